/* null.c - the reader that reads nothing: every read is complete at once.
 *
 * It writes no byte, so a run with it measures all other stages. A read of a whole file requests
 * one byte more than the file should have; the result is one less, as if the file had the expected
 * length.
 */
#include <stoker/reader.h>

#include "loader/base/memory/memory.h"
#include "loader/reader/fifo.h"
#include "loader/reader/readers.h"
#include "loader/reader/setup.h"

struct null_ring {
    struct stk_fifo done;
    stoker_read *slots[];
};

static int null_open(void *self, void **ring, const stoker_reader_setup *setup, stoker_error *error)
{
    (void)self;
    int rc = stk_reader_setup_check(setup, error);
    if (rc < 0)
        return rc;
    struct null_ring *null = stk_calloc(1, sizeof(*null) + setup->depth * sizeof(null->slots[0]));
    if (null == NULL) {
        const struct stk_place place = STK_NOWHERE;
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, &place, "null reader");
    }
    null->done.capacity = setup->depth;
    null->done.reads = null->slots;
    *ring = null;
    return 0;
}

static int32_t result_of(const stoker_read *read)
{
    const uint32_t bytes = stk_read_bytes(read);
    return (int32_t)(read->path != NULL ? bytes - 1 : bytes);
}

static int null_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    struct null_ring *null = ring;
    if (count > null->done.capacity - null->done.count)
        return STOKER_EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        reads[i]->result = result_of(reads[i]);
        stk_fifo_push(&null->done, reads[i]);
    }
    return 0;
}

static int null_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct null_ring *null = ring;
    (void)wait_ns; /* nothing is ever in flight */
    uint32_t count = max < null->done.count ? max : null->done.count;
    for (uint32_t i = 0; i < count; i++)
        done[i] = stk_fifo_pop(&null->done);
    return (int)count;
}

static int null_close(void *ring, int64_t wait_ns)
{
    (void)wait_ns;
    stk_free(ring);
    return 0;
}

const stoker_reader stk_reader_null = {
    .struct_size = sizeof(stoker_reader),
    .name = "null",
    .open = null_open,
    .submit = null_submit,
    .reap = null_reap,
    .close = null_close,
};

const stoker_reader *stoker_reader_null(void)
{
    return &stk_reader_null;
}
