/* device_cache.c - see device_cache.h. */
#include "loader/pipeline/device_cache.h"

#include <stdio.h>
#include <string.h>

static int load_kernel(struct stk_device_cache *cache, char why[STK_DEVICE_WHY_BYTES])
{
    size_t bytes;
    const void *image = stk_kernels_fatbin(&bytes);
    if (image == NULL) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "libstoker was built without nvcc: no kernels");
        return STOKER_ENOTSUP;
    }
    cache->kernel.block_threads = STK_LAUNCH_THREADS;
    cache->kernel.arguments = &cache->launch;
    return cache->device->ops->load(cache->device, image, "stk_keep", &cache->kernel.kernel, why);
}

static int take_memory(struct stk_device_cache *cache, char why[STK_DEVICE_WHY_BYTES])
{
    int rc = stk_region_map(&cache->held, cache->count);
    if (rc < 0)
        return rc;
    cache->rows =
        cache->device->ops->alloc(cache->device, (size_t)cache->count * cache->row_bytes, why);
    return cache->rows == NULL ? STOKER_EDEVICE : 0;
}

int stk_device_cache_init(struct stk_device_cache *cache, struct stk_device *device, uint64_t count,
                          const uint32_t shape[3], char why[STK_DEVICE_WHY_BYTES])
{
    memset(cache, 0, sizeof(*cache));
    cache->device = device;
    cache->count = count;
    cache->row_bytes = (size_t)shape[0] * shape[1] * shape[2];
    cache->launch.batch.height = shape[0];
    cache->launch.batch.width = shape[1];
    cache->launch.batch.channels = shape[2];
    int rc = load_kernel(cache, why);
    if (rc == 0)
        rc = take_memory(cache, why);
    cache->launch.kept = cache->rows;
    cache->on = rc == 0;
    if (rc < 0)
        stk_device_cache_destroy(cache);
    return rc;
}

void stk_device_cache_destroy(struct stk_device_cache *cache)
{
    if (cache->rows != NULL)
        cache->device->ops->free(cache->device, cache->rows);
    stk_region_unmap(&cache->held);
    memset(cache, 0, sizeof(*cache));
}

const struct stk_device_launch *stk_device_cache_keep(struct stk_device_cache *cache,
                                                      const void *images, const void *ids,
                                                      const void *fresh, uint32_t count)
{
    cache->launch.batch.images = images;
    cache->launch.batch.ids = ids;
    cache->launch.batch.count = count;
    cache->launch.fresh = fresh;
    const struct stk_launch_grid grid = stk_kernel_named("stk_keep")->grid(&cache->launch);
    cache->kernel.grid_x = grid.x;
    cache->kernel.grid_y = grid.y;
    return &cache->kernel;
}

void stk_device_cache_commit(struct stk_device_cache *cache, const uint64_t *ids,
                             const uint8_t *fresh, uint32_t count)
{
    uint64_t added = 0;
    for (uint32_t row = 0; row < count; row++) {
        if (fresh[row] == 0 || stk_device_cache_holds(cache, ids[row]))
            continue;
        atomic_store_explicit(stk_device_cache_state(cache, ids[row]), 1, memory_order_release);
        added++;
    }
    atomic_fetch_add_explicit(&cache->held_rows, added, memory_order_release);
}
