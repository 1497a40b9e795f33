/* transfer.h - copies full slots to the GPU, in order, and holds them there until the consumer is
 * done.
 *
 *   slot    FREE ─▶ FILLING ─▶ READY ──send──▶ COPYING ──retire──▶ FREE       (host memory)
 *                                │                │
 *                                ▼                ▼
 *   buffer  FREE ──send──▶ COPYING ────────▶ FULL ──lend──▶ LENT ──release──▶ FREE  (GPU memory)
 *            ▲                                                                 │
 *            └──────── the next copy waits on the GPU for the consumer's work ─┘
 *
 * Batch b is copied from slot b % slot_count to buffer b % buffer_count, all fields and ids
 * together: in one piece, unless more than 64 KiB in a row are unused, as behind the packed rows of
 * a field that varies. A gap of 64 KiB takes about as long on the bus as another copy takes to
 * start (3 us at 20 GB/s). The event copied[b % event_count] follows the copy: the consumer's
 * stream waits for it before it uses the buffer, and the slot returns to the workers only when it
 * is done. If kernels change the rows in the buffer, they run beside the next copies, and the
 * stream waits for the buffer's event `ready` instead; the next copy into the buffer waits for
 * that, too, since the consumer need not have used the batch. The consumer's work with a buffer
 * ends at the buffer's event `released`: the next copy into it waits for that on the GPU. So the
 * host waits for nothing.
 *
 * There are more events than slots and buffers. Before one is marked again, its batch has been
 * retired and released: batches go in order, and each needed the slot and the buffer of earlier
 * ones.
 *
 * If the consumer keeps a batch and the ring comes round to its buffer, another buffer may take
 * that one's place (stk_transfer_exchange).
 *
 * Everything here belongs to the consumer's thread; to the workers the slot is in use.
 */
#ifndef STK_PIPELINE_TRANSFER_H
#define STK_PIPELINE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/device/device.h"
#include "loader/pipeline/gpu/device_blend.h"
#include "loader/pipeline/gpu/device_cache.h"
#include "loader/pipeline/gpu/device_convert.h"
#include "loader/pipeline/gpu/device_decode.h"
#include "loader/pipeline/report/trace.h"
#include "loader/pipeline/slots/slots.h"

/* One batch in GPU memory. */
struct stk_buffer {
    struct stk_lease lease; /* first member: stk_transfer_buffer_of() */
    uint8_t *memory;        /* laid out as a slot */
    uint8_t *images;        /* rows as delivered: within the copied slot, or after it */
    void *released;         /* event: end of the consumer's work with the last batch */
    void *ready;            /* event: end of the kernels behind its copy; see changed */
    uint64_t *ids;          /* copy of the batch's ids in host memory, behind this struct */
    int64_t *offsets;       /* the same of its fields' offsets, one after the other */
    uint64_t turn;          /* the batch that may be copied here next, when the buffer is free */
    uint32_t padded;        /* the last of its rows: added to fill the batch */
    uint32_t rows;          /* rows of the batch in it */
    bool used;              /* `released` was marked: the next copy waits for it */
    bool changed;           /* `ready` was marked: kernels follow the copy of the last batch */
    bool lent;              /* next() has returned it */
    bool shared;            /* several streams use it: each ends after those before it */
    void *stream; /* consumer's stream that last waited for this batch; NULL = the default stream */
    bool owns_memory;           /* not a part of the ring's */
    struct stk_buffer *earlier; /* list of all buffers */
};

struct stk_transfer {
    struct stk_device *device; /* NULL = not made */
    struct stk_slots *slots;
    struct stk_trace_ring *trace; /* the consumer's; NULL = no tracing */
    struct stk_device_convert *convert;
    struct stk_device_cache *cache;
    struct stk_device_blend *blend;
    const struct stk_device_decode *decode; /* rows of field 0 that workers made on the GPU */
    _Atomic uint64_t copy_bytes;            /* total so far; written by the consumer, relaxed */
    size_t buffer_bytes;                    /* per buffer */
    uint32_t buffer_count;
    uint32_t event_count;
    struct stk_send_piece *pieces;      /* what is sent of a batch */
    struct stk_device_launch *launches; /* kernels behind its copy */
    struct stk_buffer **buffers;        /* [buffer_count], the ring */
    struct stk_buffer *made; /* the last one made; those that left the ring are among them */
    void **copied;           /* events */
    uint8_t *memory;         /* all buffers made by init */
    uint64_t retired;        /* batches whose copy is done and whose slots are free again */
    uint64_t delivered;      /* batches lent so far; those up to slots->head are being copied */
};

/* Allocate device memory for buffer_count batches (>= 2) and the events; with convert->on also for
 * the converted rows; with cache->on rows are gathered on the GPU; mixing may have work there; with
 * decode->on rows of field 0 may lie there already. All must outlive the transfer. Returns 0,
 * STOKER_ENOMEM or STOKER_EDEVICE (the device has the reason); on failure nothing stays
 * allocated. */
int stk_transfer_init(struct stk_transfer *transfer, struct stk_device *device,
                      struct stk_slots *slots, struct stk_device_convert *convert,
                      struct stk_device_cache *cache, struct stk_device_blend *mixing,
                      const struct stk_device_decode *decode, uint32_t buffer_count);

/* Wait until deadline_ns for the copies and for the consumer's work, then free everything. Returns
 * false if the device still uses our memory, which then stays allocated. All zero is allowed. */
bool stk_transfer_destroy(struct stk_transfer *transfer, uint64_t deadline_ns);

static inline struct stk_buffer *stk_transfer_buffer(const struct stk_transfer *transfer,
                                                     uint64_t batch)
{
    return transfer->buffers[batch % transfer->buffer_count];
}

static inline void *stk_transfer_copied(const struct stk_transfer *transfer, uint64_t batch)
{
    return transfer->copied[batch % transfer->event_count];
}

/* The event after which the batch can be used in its buffer. */
static inline void *stk_transfer_usable(const struct stk_transfer *transfer, uint64_t batch)
{
    const struct stk_buffer *buffer = stk_transfer_buffer(transfer, batch);
    return buffer->changed ? buffer->ready : stk_transfer_copied(transfer, batch);
}

/* Returns true if the buffer for the head slot's batch is free. */
static inline bool stk_transfer_has_room(const struct stk_transfer *transfer)
{
    return stk_transfer_buffer(transfer, transfer->slots->head)->turn == transfer->slots->head;
}

/* Returns true if the copy of the next batch has started. */
static inline bool stk_transfer_sent(const struct stk_transfer *transfer)
{
    return transfer->slots->head > transfer->delivered;
}

/* Returns true if slots wait for their copies. */
static inline bool stk_transfer_copying(const struct stk_transfer *transfer)
{
    return transfer->slots->head > transfer->retired;
}

/* Release the slots whose copies are done. Returns 0 or STOKER_EDEVICE. */
int stk_transfer_retire(struct stk_transfer *transfer);

/* Start the copy of the head slot, which is ready, has a free buffer and holds `rows` rows of the
 * batch at that place. Returns 0 or STOKER_EDEVICE. */
int stk_transfer_send(struct stk_transfer *transfer, uint32_t rows,
                      const struct stk_batch_place *place);

/* Lend the next batch, whose copy has started. */
struct stk_buffer *stk_transfer_lend(struct stk_transfer *transfer);

static inline struct stk_buffer *stk_transfer_buffer_of(struct stk_lease *lease)
{
    return (struct stk_buffer *)lease;
}

/* Returns true if the batch is lent in this buffer. */
static inline bool stk_buffer_holds(const struct stk_buffer *buffer, uint64_t batch)
{
    return buffer->lent && buffer->turn == batch;
}

/* These take a stream of the consumer: STOKER_EINVAL with the reason in `why` if that cannot be
 * used; then nothing has happened. */

/* The stream waits until the batch that is lent in the buffer can be used. */
int stk_transfer_wait_on(struct stk_transfer *transfer, struct stk_buffer *buffer, void *stream,
                         char why[STK_DEVICE_WHY_BYTES]);

/* The consumer's work with the lent batch ends with what is on the stream now. The buffer is free
 * unless this returns STOKER_EINVAL. */
int stk_transfer_release_on(struct stk_transfer *transfer, struct stk_buffer *buffer, void *stream,
                            char why[STK_DEVICE_WHY_BYTES]);

/* Both halves of the above, for a batch that several streams use: each ends its work, after those
 * before it, and finally the buffer is free. end_work: any thread, one at a time. */
int stk_transfer_end_work(struct stk_transfer *transfer, struct stk_buffer *buffer, void *stream,
                          char why[STK_DEVICE_WHY_BYTES]);
void stk_transfer_free(struct stk_transfer *transfer, struct stk_buffer *buffer);

/* Announce that streams other than the consumer's, or other threads, will use the lent batch, and
 * end their work by the above. */
void stk_transfer_share(struct stk_buffer *buffer);

/* Make another buffer, outside the ring; destroy frees it. Returns NULL if there is none, with the
 * reason in `why`. */
struct stk_buffer *stk_transfer_more_memory(struct stk_transfer *transfer,
                                            char why[STK_DEVICE_WHY_BYTES]);

/* Let a free buffer from outside of the ring take the place of the buffer for the head slot's
 * batch, which keeps the batch that is lent in it. */
void stk_transfer_exchange(struct stk_transfer *transfer, struct stk_buffer *buffer);

#endif
