/* pread.c - the reader of plain system calls: it works wherever files can be read.
 *
 *   submit: into the fifo      reap: read the oldest, hand it out
 *
 * Reads happen in reap, one after the other in the order submitted, so that what a
 * worker never reaps is never read and close has nothing to wait for.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include <stoker/reader.h>

#include "loader/base/memory.h"
#include "loader/reader/fifo.h"
#include "loader/reader/setup.h"

struct pread_ring {
    const stoker_file *files;
    uint32_t file_count;
    struct stk_fifo waiting;
    stoker_read *slots[];
};

static int pread_open(void **ring, const stoker_reader_setup *setup, stoker_error *error)
{
    int rc = stk_reader_setup_check(setup, error);
    if (rc < 0)
        return rc;
    struct pread_ring *plain =
        stk_calloc(1, sizeof(*plain) + setup->depth * sizeof(plain->slots[0]));
    if (plain == NULL) {
        const struct stk_place place = STK_NOWHERE;
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, &place, "pread reader");
    }
    plain->files = setup->files;
    plain->file_count = setup->file_count;
    plain->waiting.capacity = setup->depth;
    plain->waiting.reads = plain->slots;
    *ring = plain;
    return 0;
}

static int pread_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    struct pread_ring *plain = ring;
    if (count > plain->waiting.capacity - plain->waiting.count)
        return STOKER_EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        assert(reads[i]->file < plain->file_count);
        assert(reads[i]->bytes >= 1);
        stk_fifo_push(&plain->waiting, reads[i]);
    }
    return 0;
}

static int32_t read_now(const struct pread_ring *plain, const stoker_read *read)
{
    ssize_t got =
        pread(plain->files[read->file].fd, read->buffer, stk_read_bytes(read), (off_t)read->offset);
    return got < 0 ? (int32_t)-errno : (int32_t)got;
}

static int pread_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct pread_ring *plain = ring;
    (void)wait_ns; /* a plain read cannot be waited for, only done */
    uint32_t count = max < plain->waiting.count ? max : plain->waiting.count;
    for (uint32_t i = 0; i < count; i++) {
        done[i] = stk_fifo_pop(&plain->waiting);
        done[i]->result = read_now(plain, done[i]);
    }
    return (int)count;
}

static int pread_close(void *ring, int64_t wait_ns)
{
    (void)wait_ns; /* nothing is ever under way */
    stk_free(ring);
    return 0;
}

const stoker_reader stoker_reader_pread = {
    .name = "pread",
    .open = pread_open,
    .submit = pread_submit,
    .reap = pread_reap,
    .close = pread_close,
};
