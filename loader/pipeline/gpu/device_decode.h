/* device_decode.h - images that a GPU decodes: what all workers share of it.
 *
 *   file ──read──▶ worker ── inspect ──┬─ common JPEG ─▶ waits with others ─▶ decoded, transformed on the worker's lane ─┐
 *                                      └─ all others ──▶ decoded, transformed by the CPU ─▶ row of the slot              │
 *                                                                                              │                         ▼
 *   consumer  ◀── buffer of the batch ◀──────────────────────────────────────────── copy ──────┴────────── row of the ring
 *
 * The ring in GPU memory has a row for each row of the slots' field 0, in the same form: what
 * crosses the bus of such an image are the bytes of its file. `places` says for each row of a slot
 * where it was made; with a batch it is passed on like the slot's rows. A worker waits for its lane
 * before it reports rows as done, so their pixels are there when the batch is ready.
 */
#ifndef STK_PIPELINE_DEVICE_DECODE_H
#define STK_PIPELINE_DEVICE_DECODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "kernels/transform/gpu/launch.h"
#include "loader/device/batch_decoder.h"
#include "loader/device/device.h"
#include "loader/pipeline/slots/slots.h"

enum { STK_MADE_ON_HOST = -1 }; /* in places */

struct stk_device_decode_plan {
    struct stk_transform_plan transform; /* from an image to a row of the slot; ends in `convert` */
    struct stk_convert_plan convert;
};

struct stk_device_decode {
    bool on; /* false: the CPU decodes everything */
    struct stk_device *device;
    struct stk_decoding_library library;
    struct stk_device_decode_plan *plan;
    uint32_t channels;
    bool any_size; /* images are resized; else all have one_size */
    stoker_size one_size;
    uint32_t side_max;     /* longest side of an image for the GPU */
    size_t pixel_bytes;    /* a lane's room for decoded images */
    size_t scratch_bytes;  /* a lane's, for the kernels */
    size_t file_bytes;     /* a lane's room for files that wait */
    size_t file_bytes_max; /* longest file that is read */
    struct {
        const struct stk_kernel *kernel;
        void *loaded;
    } kernels[STK_LAUNCH_STEPS_MAX];
    uint32_t kernel_count;
    bool pins;     /* lanes page-lock their files */
    uint8_t *rows; /* GPU memory: [slots x batch_size] rows; NULL = none yet */
    size_t row_bytes;
    uint32_t batch_size;
    /* [slots x batch_size] the row of `rows`, counted from the slot's first, or STK_MADE_ON_HOST.
     * Written by the worker that makes the row, then by the consumer, as the slot's rows are. */
    int32_t *places;
    uint32_t slot_count;
    _Atomic uint64_t images;          /* decoded there so far; relaxed */
    _Atomic uint64_t file_bytes_sent; /* sum of their files' sizes; relaxed */
};

struct stk_device_decode_options {
    struct stk_device *device;
    /* what is done to an image on its way to the slot; NULL = nothing */
    const struct stk_framing *framing;
    const uint8_t *fill;                    /* [STOKER_TRANSFORM_CHANNELS_MAX] */
    const struct stk_convert_plan *convert; /* to rows of the slot; copied */
    uint32_t channels;
    bool any_size;
    stoker_size one_size;  /* the data set's shape */
    uint64_t pixels_max;   /* any_size: of the largest image */
    size_t file_bytes_max; /* longest file */
};

/* Load the library and the kernels. Returns 0, STOKER_ENOMEM, or STOKER_EDEVICE or STOKER_ENOTSUP
 * with the reason in `why`; then *out is all zero. The device must outlive *out. */
int stk_device_decode_init(struct stk_device_decode *out,
                           const struct stk_device_decode_options *options,
                           char why[STK_DEVICE_WHY_BYTES]);

/* Allocate the ring for the slots. Returns 0, STOKER_ENOMEM, or STOKER_EDEVICE with the reason in
 * `why`. */
int stk_device_decode_make_rows(struct stk_device_decode *decode, const struct stk_slots *slots,
                                char why[STK_DEVICE_WHY_BYTES]);

/* Free everything, which the GPU and lanes must no longer use. All zero is allowed. */
void stk_device_decode_destroy(struct stk_device_decode *decode);

/* Where the rows of a slot were made: [batch_size]. */
static inline int32_t *stk_device_decode_places(const struct stk_device_decode *decode,
                                                uint64_t batch)
{
    return decode->places + batch % decode->slot_count * decode->batch_size;
}

/* The number of a row of the ring. */
static inline uint64_t stk_device_decode_row(const struct stk_device_decode *decode, uint64_t batch,
                                             uint32_t place)
{
    return batch % decode->slot_count * decode->batch_size + place;
}

/* GPU memory of the ring and of that many lanes; what the library takes beside them is unknown. */
static inline uint64_t stk_device_decode_bytes(const struct stk_device_decode *decode,
                                               uint32_t lanes)
{
    const uint64_t rows = (uint64_t)decode->slot_count * decode->batch_size;
    return rows * decode->row_bytes +
           (uint64_t)lanes * (decode->pixel_bytes + decode->scratch_bytes);
}

/* The loaded kernel. */
void *stk_device_decode_kernel(const struct stk_device_decode *decode,
                               const struct stk_kernel *kernel);

#endif
