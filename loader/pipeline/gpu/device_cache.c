/* device_cache.c - see device_cache.h. */
#include "loader/pipeline/gpu/device_cache.h"

#include <stdio.h>
#include <string.h>

#include "loader/pipeline/gpu/device_kernel.h"

enum { PLACE_ALIGN = 256 };

static size_t align(size_t bytes)
{
    return (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

static int load_kernel(struct stk_device_cache *cache, const char *name, const void *arguments,
                       struct stk_device_launch *kernel, char why[STK_DEVICE_WHY_BYTES])
{
    kernel->block_threads = STK_LAUNCH_THREADS;
    kernel->arguments = arguments;
    return stk_device_kernel_load(cache->device, name, &kernel->kernel, why);
}

/* Note what is kept of each field. Returns the bytes of all samples, each field aligned. */
static size_t take_fields(struct stk_device_cache *cache,
                          const struct stk_device_cache_options *options)
{
    const uint32_t *size = options->image_size;
    size_t bytes = 0;
    cache->images = size[0] > 0;
    cache->keep.batch.height = size[0];
    cache->keep.batch.width = size[1];
    cache->keep.batch.channels = size[2];
    for (uint32_t i = 0; i < options->field_count; i++) {
        const bool image = i == 0 && cache->images;
        cache->fields[i].row_bytes =
            image ? (size_t)size[0] * size[1] * size[2] : options->row_bytes[i];
        cache->row_bytes += cache->fields[i].row_bytes;
        bytes += align((size_t)cache->count * cache->fields[i].row_bytes);
    }
    return bytes;
}

static int take_memory(struct stk_device_cache *cache, size_t bytes, char why[STK_DEVICE_WHY_BYTES])
{
    int rc = stk_region_map(&cache->held, cache->count);
    if (rc < 0)
        return rc;
    cache->memory = cache->device->ops->alloc(cache->device, bytes, why);
    if (cache->memory == NULL)
        return STOKER_EDEVICE;
    uint8_t *at = cache->memory;
    for (uint32_t i = 0; i < cache->field_count; i++) {
        cache->fields[i].rows = at;
        at += align((size_t)cache->count * cache->fields[i].row_bytes);
    }
    cache->keep.kept = cache->fields[0].rows;
    return 0;
}

int stk_device_cache_init(struct stk_device_cache *cache,
                          const struct stk_device_cache_options *options,
                          char why[STK_DEVICE_WHY_BYTES])
{
    memset(cache, 0, sizeof(*cache));
    cache->device = options->device;
    cache->count = options->count;
    cache->field_count = options->field_count;
    cache->fields = stk_calloc(options->field_count, sizeof(cache->fields[0]));
    cache->rows = stk_calloc(STK_ROWS_LAUNCHES_MAX, sizeof(cache->rows[0]));
    if (cache->fields == NULL || cache->rows == NULL) {
        stk_device_cache_destroy(cache);
        return STOKER_ENOMEM;
    }
    const size_t bytes = take_fields(cache, options);
    int rc = load_kernel(cache, "stk_keep", &cache->keep, &cache->keep_kernel, why);
    if (rc == 0)
        rc = load_kernel(cache, "stk_rows", NULL, &cache->rows_kernel, why);
    if (rc == 0)
        rc = take_memory(cache, bytes, why);
    cache->on = rc == 0;
    if (rc < 0)
        stk_device_cache_destroy(cache);
    return rc;
}

void stk_device_cache_destroy(struct stk_device_cache *cache)
{
    if (cache->memory != NULL)
        cache->device->ops->free(cache->device, cache->memory);
    stk_region_unmap(&cache->held);
    stk_free(cache->fields);
    stk_free(cache->rows);
    memset(cache, 0, sizeof(*cache));
}

static struct stk_device_launch launch_of(const struct stk_device_launch *kernel, const char *name,
                                          const void *arguments)
{
    struct stk_device_launch launch = *kernel;
    const struct stk_launch_grid grid = stk_kernel_named(name)->grid(arguments);
    launch.arguments = arguments;
    launch.grid_x = grid.x;
    launch.grid_y = grid.y;
    return launch;
}

/* Divide the fields but images among launches. Returns the number of these. */
static uint32_t fill_rows(struct stk_device_cache *cache, const struct stk_kept_batch *batch)
{
    uint32_t count = 0;
    for (uint32_t i = cache->images ? 1 : 0; i < cache->field_count; i++) {
        const struct stk_kept_field *kept = &cache->fields[i];
        if (kept->row_bytes == 0)
            continue;
        if (count == 0 || cache->rows[count - 1].field_count == STK_ROWS_FIELDS_MAX)
            cache->rows[count++].field_count = 0;
        struct stk_rows_launch *rows = &cache->rows[count - 1];
        rows->batch.ids = batch->ids;
        rows->batch.count = batch->count;
        rows->fresh = batch->fresh;
        rows->fields[rows->field_count++] =
            (struct stk_rows_field){ .rows = batch->memory + batch->fields->each[i].at,
                                     .kept = kept->rows,
                                     .row_bytes = kept->row_bytes };
    }
    return count;
}

uint32_t stk_device_cache_launches(struct stk_device_cache *cache,
                                   const struct stk_kept_batch *batch,
                                   struct stk_device_launch launches[STK_CACHE_LAUNCHES_MAX])
{
    uint32_t count = 0;
    if (cache->images && batch->any_fresh) {
        cache->keep.batch.images = batch->memory;
        cache->keep.batch.ids = batch->ids;
        cache->keep.batch.count = batch->count;
        cache->keep.fresh = batch->fresh;
        launches[count++] = launch_of(&cache->keep_kernel, "stk_keep", &cache->keep);
    }
    const uint32_t groups = fill_rows(cache, batch);
    for (uint32_t i = 0; i < groups; i++)
        launches[count++] = launch_of(&cache->rows_kernel, "stk_rows", &cache->rows[i]);
    return count;
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
