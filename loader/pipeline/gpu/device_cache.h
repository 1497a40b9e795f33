/* device_cache.h - rows that stay in GPU memory: batches are gathered there and cross the bus only
 * once.
 *
 *   slot ──copy──▶ buffer: | fresh rows | other fields | values, ids, flags |
 *                              │ stk_keep         ▲ stk_rows: fresh rows to the place of their id,
 *                              ▼                  ▼           held ones from there
 *   images: | 0 | 1 | ... | count - 1 |   fields: | 0 | 1 | ... | count - 1 |
 *       └──by id: stk_crop_*──▶  | rows as delivered |
 *
 * Field 0 is kept as it crosses the bus if the GPU converts it, and other fields that come from a
 * part as they are delivered; so is field 0 if nothing on the GPU changes it. What values() makes
 * crosses each time.
 *
 * Every sample has a place. A row is fresh if the worker did not find it held and made it; it is
 * held once the consumer has put its copy on the device's stream, before everything that gathers
 * it. If no row of a batch is fresh, only values, ids and flags are copied, and no worker touches a
 * part.
 *
 *   EMPTY ──commit, by the consumer──▶ HELD, until destroy
 */
#ifndef STK_PIPELINE_DEVICE_CACHE_H
#define STK_PIPELINE_DEVICE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <stoker/dataset.h>

#include "kernels/transform/gpu/launch.h"
#include "loader/base/memory/memory.h"
#include "loader/device/device.h"
#include "loader/pipeline/slots/fields.h"

/* A field of the slots. */
struct stk_kept_field {
    size_t row_bytes; /* 0 = it is not kept */
    uint8_t *rows;    /* every sample has one; GPU memory */
};

enum {
    STK_ROWS_LAUNCHES_MAX = STOKER_FIELDS_MAX / STK_ROWS_FIELDS_MAX,
    STK_CACHE_LAUNCHES_MAX = 1 + STK_ROWS_LAUNCHES_MAX
};

struct stk_device_cache {
    bool on; /* false: all else is zero */
    struct stk_device *device;
    uint64_t count;   /* samples */
    size_t row_bytes; /* sum over the fields that are kept */
    bool images;      /* field 0 is kept as it crosses: kernels gather it from fields[0].rows */
    struct stk_kept_field *fields; /* [field_count] */
    uint32_t field_count;
    uint8_t *memory; /* all of it */
    /* _Atomic uint8_t per sample: release in commit pairs with acquire in holds. */
    struct stk_region held;
    _Atomic uint64_t held_rows; /* release in commit pairs with acquire in holds_all */
    struct stk_keep_launch keep;
    struct stk_rows_launch *rows; /* [STK_ROWS_LAUNCHES_MAX] */
    struct stk_device_launch keep_kernel, rows_kernel;
};

struct stk_device_cache_options {
    struct stk_device *device;
    uint64_t count; /* samples */
    /* Height, width and channels of field 0 as it crosses; 0 = it is no image that the GPU
     * converts. */
    uint32_t image_size[3];
    /* [field_count] 0 = not kept; field 0's is not looked at if it is such an image. */
    const size_t *row_bytes;
    uint32_t field_count;
};

/* Allocate GPU memory for the fields of all samples. Returns 0; STOKER_ENOMEM (host memory);
 * or STOKER_EDEVICE or STOKER_ENOTSUP with the reason in `why`. On failure *cache is all zero. */
int stk_device_cache_init(struct stk_device_cache *cache,
                          const struct stk_device_cache_options *options,
                          char why[STK_DEVICE_WHY_BYTES]);

/* The GPU must no longer use it. All zero is allowed. */
void stk_device_cache_destroy(struct stk_device_cache *cache);

static inline _Atomic uint8_t *stk_device_cache_state(const struct stk_device_cache *cache,
                                                      uint64_t id)
{
    return (_Atomic uint8_t *)cache->held.base + id;
}

/* Returns true if the row is held for all batches made from now on. Any thread. */
static inline bool stk_device_cache_holds(const struct stk_device_cache *cache, uint64_t id)
{
    return cache->on &&
           atomic_load_explicit(stk_device_cache_state(cache, id), memory_order_acquire) != 0;
}

/* Returns true if all rows are held. Any thread. */
static inline bool stk_device_cache_holds_all(const struct stk_device_cache *cache)
{
    return cache->on &&
           atomic_load_explicit(&cache->held_rows, memory_order_acquire) == cache->count;
}

/* Returns true if rows that are held need no copy of this field. */
static inline bool stk_device_cache_keeps(const struct stk_device_cache *cache, uint32_t field)
{
    return cache->on && cache->fields[field].row_bytes > 0;
}

/* A batch in GPU memory, laid out as a slot; device pointers. */
struct stk_kept_batch {
    uint8_t *memory;
    const struct stk_slot_fields *fields;
    const void *ids, *fresh;
    uint32_t count; /* >= 1 */
    bool any_fresh;
};

/* The launches that store the fresh rows of a batch, and bring the others of all fields but images.
 * Returns their number. Valid until the next call. */
uint32_t stk_device_cache_launches(struct stk_device_cache *cache,
                                   const struct stk_kept_batch *batch,
                                   struct stk_device_launch launches[STK_CACHE_LAUNCHES_MAX]);

/* The fresh rows are on the stream: mark them held. ids and fresh are in host memory. The
 * consumer's thread. */
void stk_device_cache_commit(struct stk_device_cache *cache, const uint64_t *ids,
                             const uint8_t *fresh, uint32_t count);

#endif
