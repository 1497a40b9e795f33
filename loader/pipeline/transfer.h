/* transfer.h - full slots go to the GPU, in order, and stay there until the consumer is done.
 *
 *   slot    FREE ─▶ FILLING ─▶ READY ──send──▶ COPYING ──retire──▶ FREE       (host memory)
 *                                │                │
 *                                ▼                ▼
 *   buffer  FREE ──send──▶ COPYING ────────▶ FULL ──lend──▶ LENT ──release──▶ FREE  (GPU memory)
 *            ▲                                                                 │
 *            └──────── the next copy waits on the GPU for the consumer's work ─┘
 *
 * Batch b is copied from slot b % slot_count to buffer b % buffer_count in one piece: images, labels
 * and ids together. Behind the copy stands the event `copied`, of b % event_count: the consumer's
 * stream waits for it before it uses the buffer, and the slot is not given back to the workers
 * before it is done. The consumer's work with a buffer ends at the buffer's event `released`: the
 * next copy into it waits for that on the GPU. So the host waits for nothing.
 *
 * There are more events than slots and buffers. Before one is marked again, its batch has been
 * retired and released: batches go in order, and each needed the slot and the buffer of earlier ones.
 *
 * All of it belongs to the consumer's thread. The workers see a slot that somebody else has.
 */
#ifndef STK_PIPELINE_TRANSFER_H
#define STK_PIPELINE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/device/device.h"
#include "loader/pipeline/device_cache.h"
#include "loader/pipeline/device_convert.h"
#include "loader/pipeline/slots.h"
#include "loader/pipeline/trace.h"

/* One batch in GPU memory. */
struct stk_buffer {
    uint8_t *memory; /* laid out as a slot */
    uint8_t *images; /* rows as trained on: in the slot's part, or behind it */
    void *released;  /* event: the consumer's work with the last batch */
    uint64_t *ids;   /* the batch's ids once more, in host memory */
    uint64_t turn;   /* the batch that may be copied here next: then nobody has the buffer */
    uint32_t rows;   /* of the batch in it */
    bool used;       /* `released` has been marked: the next copy waits for it */
    bool lent;       /* next() has handed it out */
    bool shared;     /* several streams work with it: each ends behind those before it */
    void *stream;    /* the consumer's, which last waited for this batch; NULL = the default one */
};

struct stk_transfer {
    struct stk_device *device; /* NULL = not made */
    struct stk_slots *slots;
    struct stk_trace_ring *trace; /* the consumer's; NULL = nobody listens */
    struct stk_device_convert *convert;
    struct stk_device_cache *cache;
    _Atomic uint64_t copy_bytes; /* so far; written by the consumer, relaxed */
    size_t buffer_bytes;         /* of one */
    uint32_t buffer_count;
    uint32_t event_count;
    struct stk_buffer *buffers;
    void **copied; /* events */
    uint8_t *memory;
    struct stk_region ids;
    uint64_t retired;   /* batches whose copy is done: their slots are the workers' again */
    uint64_t delivered; /* batches lent so far; those up to slots->head are on their way */
};

/* Take device memory for buffer_count batches (>= 2), and the events; with convert->on for the rows
 * that it makes, as well; with cache->on they are gathered there. Both must outlive the transfer. 0, STOKER_ENOMEM,
 * STOKER_EDEVICE (the device tells why); on failure all is given back. */
int stk_transfer_init(struct stk_transfer *transfer, struct stk_device *device,
                      struct stk_slots *slots, struct stk_device_convert *convert,
                      struct stk_device_cache *cache, uint32_t buffer_count);

/* Wait for the copies and for the consumer's work, until deadline_ns, and give all back. False: the
 * device still works with our memory, and all of it is left as it is. All zero is allowed. */
bool stk_transfer_destroy(struct stk_transfer *transfer, uint64_t deadline_ns);

static inline struct stk_buffer *stk_transfer_buffer(const struct stk_transfer *transfer,
                                                     uint64_t batch)
{
    return &transfer->buffers[batch % transfer->buffer_count];
}

static inline void *stk_transfer_copied(const struct stk_transfer *transfer, uint64_t batch)
{
    return transfer->copied[batch % transfer->event_count];
}

/* Whether nobody has the buffer that the head slot's batch goes to. */
static inline bool stk_transfer_has_room(const struct stk_transfer *transfer)
{
    return stk_transfer_buffer(transfer, transfer->slots->head)->turn == transfer->slots->head;
}

/* Whether the batch that comes next is on its way. */
static inline bool stk_transfer_sent(const struct stk_transfer *transfer)
{
    return transfer->slots->head > transfer->delivered;
}

/* Whether slots wait for their copies. */
static inline bool stk_transfer_copying(const struct stk_transfer *transfer)
{
    return transfer->slots->head > transfer->retired;
}

/* Give back the slots whose copies are done. 0 or STOKER_EDEVICE. */
int stk_transfer_retire(struct stk_transfer *transfer);

/* Begin the copy of the head slot, which is ready, has room and holds so many rows of that epoch. 0 or
 * STOKER_EDEVICE. */
int stk_transfer_send(struct stk_transfer *transfer, uint32_t rows, uint64_t epoch);

/* Hand the next batch out, which is on its way. */
struct stk_buffer *stk_transfer_lend(struct stk_transfer *transfer);

/* Whether the batch is lent. */
static inline bool stk_transfer_holds(const struct stk_transfer *transfer, uint64_t batch)
{
    const struct stk_buffer *buffer = stk_transfer_buffer(transfer, batch);
    return buffer->lent && buffer->turn == batch;
}

/* The stream waits for the copy of a lent batch. */
int stk_transfer_wait_on(struct stk_transfer *transfer, uint64_t batch, void *stream);

/* The consumer's work with a lent batch ends with what is on the stream now. A second time does
 * nothing. The buffer is free even if this fails. */
int stk_transfer_release_on(struct stk_transfer *transfer, uint64_t batch, void *stream);

/* The two halves of it, for a batch that several streams work with: each ends its work, behind those before
 * it, and then the buffer is free. Any thread, one at a time; and the consumer. */
int stk_transfer_end_work(struct stk_transfer *transfer, uint64_t batch, void *stream);
void stk_transfer_free(struct stk_transfer *transfer, uint64_t batch);

/* Others than the consumer will work with a lent batch, and end their work by the above. */
void stk_transfer_share(struct stk_transfer *transfer, uint64_t batch);

#endif
