/* decode_lane.h - the images that one worker lets a GPU decode, several at once.
 *
 *   add: a file waits ─▶ ... ─▶ full, or nothing else to do ─▶ run: decoded, transformed to rows
 *   ─▶ taken, one by one
 *
 * Files are copied to page-locked memory: the memory that they were read to is given back to fetch
 * before the lane is run, and the GPU reads the copy by itself. As many images are decoded at once
 * as have room for their pixels, and the kernels of a transform run once for all of them.
 */
#ifndef STK_PIPELINE_DECODE_LANE_H
#define STK_PIPELINE_DECODE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/memory/memory.h"
#include "loader/device/lane.h"
#include "loader/pipeline/gpu/device_decode.h"
#include "loader/pipeline/slots/span.h"

/* An image that waits, or has been decoded. */
struct stk_lane_image {
    struct stk_part_ref ref; /* its bytes are the file */
    uint32_t height, width;
    bool decoded; /* set by run: its row is in the ring */
};

/* What the kernels read about the images that are transformed at once. */
struct stk_lane_table {
    uint64_t ids[STK_BATCH_DECODER_IMAGES_MAX];
    uint64_t places[STK_BATCH_DECODER_IMAGES_MAX]; /* rows of the ring */
    struct stk_launch_source sources[STK_BATCH_DECODER_IMAGES_MAX];
};

struct stk_decode_lane {
    struct stk_device_decode *decode;
    struct stk_lane *lane;
    struct stk_batch_decoder decoder;
    struct stk_lane_image images[STK_BATCH_DECODER_IMAGES_MAX];
    struct stk_batch_file files[STK_BATCH_DECODER_IMAGES_MAX];
    uint32_t count;
    struct stk_region memory; /* copies of files; page-locked unless pin_memory is OFF */
    size_t used_bytes;        /* used by the copies */
    uint8_t *pixels; /* GPU memory: decoded images, then the kernels' scratch, then the table */
    struct stk_lane_table table;
    struct stk_launch_steps steps;
};

/* Open the lane of a worker. Returns 0, STOKER_ENOMEM, or STOKER_EPIN or STOKER_EDEVICE with
 * the reason in `why`. Close it either way. */
int stk_decode_lane_open(struct stk_decode_lane **out, struct stk_device_decode *decode,
                         char why[STK_DEVICE_WHY_BYTES]);
/* Sets *at to NULL, which is allowed. */
void stk_decode_lane_close(struct stk_decode_lane **at);

/* Returns true if the lane must be run before another row begins or continues. */
bool stk_decode_lane_is_full(const struct stk_decode_lane *lane);

/* Take an image, if the GPU may decode a file with that header. Returns false if the CPU has to
 * decode it. */
bool stk_decode_lane_add(struct stk_decode_lane *lane, const struct stk_part_ref *ref,
                         const stoker_image_header *header);

/* Decode and transform all images that wait, and wait for it: sets each one's `decoded`, and
 * where its row is. Returns 0, or STOKER_EDEVICE: the device has failed. The caller then takes
 * the images and sets count to 0. */
int stk_decode_lane_run(struct stk_decode_lane *lane);

/* The images have been taken. */
void stk_decode_lane_clear(struct stk_decode_lane *lane);

#endif
