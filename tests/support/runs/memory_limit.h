/* memory_limit.h - options.memory_bytes by what it leaves for the cache, or for kept batches. */
#ifndef STK_TEST_MEMORY_LIMIT_H
#define STK_TEST_MEMORY_LIMIT_H

#include "loader/api/choose/sizing.h"
#include "loader/api/loader.h"

#include <stoker/loader.h>

/* A loader without a limit; NULL if create refuses the options. */
static inline stoker_loader *stk_unlimited(const stoker_dataset *dataset,
                                           stoker_loader_options options)
{
    stoker_loader *loader = NULL;
    options.memory_bytes = STOKER_BYTES_AUTO;
    options.cache = STOKER_CACHE_NONE;
    options.share_cache = STOKER_SWITCH_OFF;
    options.resume = NULL;
    options.on_log = NULL;
    return stoker_loader_create(&loader, dataset, &options, NULL) == STOKER_OK ? loader : NULL;
}

/* Leave the cache as many bytes, in host memory: the rest is for batches. */
static inline void stk_limit_cache(const stoker_dataset *dataset, stoker_loader_options *options,
                                   uint64_t cache_bytes)
{
    stoker_loader *loader = stk_unlimited(dataset, *options);
    uint64_t least = 0;
    if (loader == NULL)
        return;
    options->memory_bytes = cache_bytes;
    while ((least = cache_bytes + stk_sizing_batches_share(loader, options->memory_bytes)) >
           options->memory_bytes)
        options->memory_bytes = least;
    stoker_loader_destroy(&loader);
}

/* Leave as many bytes for the batches that the caller keeps; in GPU memory also what slots take
 * more than buffers. */
static inline void stk_limit_kept(const stoker_dataset *dataset, stoker_loader_options *options,
                                  uint64_t kept_bytes)
{
    stoker_loader *loader = stk_unlimited(dataset, *options);
    if (loader == NULL)
        return;
    options->memory_bytes = loader->pipeline.slots.memory.bytes;
    const uint64_t buffers_bytes = loader->transfer.buffer_bytes * loader->transfer.buffer_count;
    if (loader->on_device && options->memory_bytes < buffers_bytes)
        options->memory_bytes = buffers_bytes;
    options->memory_bytes += kept_bytes;
    stoker_loader_destroy(&loader);
}

#endif
