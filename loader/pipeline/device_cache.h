/* device_cache.h - rows that stay in GPU memory: batches are gathered there and cross the bus only once.
 *
 *   slot ──copy──▶ buffer: | fresh rows | labels, ids, flags |
 *                              │ stk_keep: copies fresh row k to the place of its id
 *                              ▼
 *   rows: | 0 | 1 | 2 | ... | count - 1 |  ──by id: stk_crop_*──▶  | rows as delivered |
 *
 * Every sample has a place. A row is fresh if the worker did not find it held and made it; it is held once the
 * consumer has put its copy on the device's stream, before everything that gathers it. If no row of a batch is fresh,
 * only labels, ids and flags are copied, and no worker touches a pixel.
 *
 *   EMPTY ──commit, by the consumer──▶ HELD, until destroy
 */
#ifndef STK_PIPELINE_DEVICE_CACHE_H
#define STK_PIPELINE_DEVICE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/transform/launch.h"
#include "loader/base/memory.h"
#include "loader/device/device.h"

struct stk_device_cache {
    bool on; /* false: all else is zero */
    struct stk_device *device;
    uint64_t count; /* samples */
    size_t row_bytes;
    uint8_t *rows; /* GPU memory */
    /* _Atomic uint8_t per sample: release in commit pairs with acquire in holds. */
    struct stk_region held;
    _Atomic uint64_t held_rows; /* release in commit pairs with acquire in holds_all */
    struct stk_keep_launch launch;
    struct stk_device_launch kernel;
};

/* Allocate GPU memory for `count` images of height x width x channels bytes. Returns 0; STOKER_ENOMEM (host memory);
 * or STOKER_EDEVICE or STOKER_ENOTSUP with the reason in `why`. On failure *cache is all zero. */
int stk_device_cache_init(struct stk_device_cache *cache, struct stk_device *device, uint64_t count,
                          const uint32_t shape[3], char why[STK_DEVICE_WHY_BYTES]);

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

/* The launch that stores the fresh ones of `count` rows; device pointers. Valid until the next call. */
const struct stk_device_launch *stk_device_cache_keep(struct stk_device_cache *cache,
                                                      const void *images, const void *ids,
                                                      const void *fresh, uint32_t count);

/* The fresh rows are on the stream: mark them held. ids and fresh are in host memory. The consumer's thread. */
void stk_device_cache_commit(struct stk_device_cache *cache, const uint64_t *ids,
                             const uint8_t *fresh, uint32_t count);

#endif
