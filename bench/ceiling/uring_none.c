/* uring_none.c - the ceilings of io_uring in a build without liburing: they cannot be measured. */
#include "bench/ceiling/ceiling.h"

#include <stoker/error.h>

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)context;
    (void)thread;
    (void)threads;
    (void)state;
    return STOKER_ENOTSUP;
}

const struct bench_steps bench_steps_uring = { .setup = setup };
const struct bench_steps bench_steps_files_uring = { .setup = setup };
