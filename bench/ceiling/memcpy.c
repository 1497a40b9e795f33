/* memcpy.c - how fast bytes can be copied: between large blocks in DRAM, and between small ones that stay
 * in one core's cache. Bytes are counted once. */
#include "bench/ceiling/ceiling.h"

#include <stdlib.h>
#include <string.h>

enum { DRAM_BYTES = 128 << 20, CACHE_BYTES = 128 << 10, STEP_BYTES = 64 << 10 };

struct copier {
    struct bench_block from;
    struct bench_block to;
    size_t at;
};

static void teardown(void *state)
{
    struct copier *copier = state;
    bench_block_destroy(&copier->from);
    bench_block_destroy(&copier->to);
    free(copier);
}

static int setup(size_t bytes, void **state)
{
    struct copier *copier = calloc(1, sizeof(*copier));
    if (copier == NULL)
        return STOKER_ENOMEM;
    int rc = bench_block_create(&copier->from, bytes);
    if (rc == STOKER_OK)
        rc = bench_block_create(&copier->to, bytes);
    if (rc != STOKER_OK) {
        teardown(copier);
        return rc;
    }
    *state = copier;
    return STOKER_OK;
}

static int setup_dram(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)context;
    (void)thread;
    return setup((DRAM_BYTES / threads + STEP_BYTES) / STEP_BYTES * STEP_BYTES, state);
}

static int setup_cache(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)context;
    (void)thread;
    (void)threads;
    return setup(CACHE_BYTES, state);
}

static int64_t step(void *state)
{
    struct copier *copier = state;
    if (copier->at == copier->from.size)
        copier->at = 0;
    memcpy((char *)copier->to.bytes + copier->at, (char *)copier->from.bytes + copier->at,
           STEP_BYTES);
    copier->at += STEP_BYTES;
    return STEP_BYTES;
}

const struct bench_steps bench_steps_memcpy_dram = { setup_dram, step, teardown };
const struct bench_steps bench_steps_memcpy_cache = { setup_cache, step, teardown };
