/* pread.c - the reader of plain system calls: it works wherever files can be read.
 *
 *   submit: try the first from the page cache --miss--> ask the kernel to fetch them all
 *           all into the fifo
 *   reap:   read the oldest, hand it out
 *
 * Reads happen in reap, one after the other in the order submitted. Without help a
 * disk would see one request at a time: on random reads of cold files the advice to
 * fetch is worth a factor of five, the same as io_uring's queue. It costs a system
 * call per read, so it is given only when a read has just missed the page cache.
 *
 * A whole file is opened, read and closed in reap: at most one at a time is open. There is no
 * advice for it, which would take an open of its own; more workers do what a queue would.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <stoker/reader.h>

#include "loader/base/beneath.h"
#include "loader/base/memory.h"
#include "loader/reader/fifo.h"
#include "loader/reader/setup.h"

/* One miss in a batch tells of more to come, in files that are cached in part too:
 * so many submits give advice after it. */
enum { ADVICE_SUBMITS = 32 };
#define STILL_TO_READ INT32_MIN /* as a result; no errno is that large */

struct pread_ring {
    const stoker_file *files;
    uint32_t file_count;
    int directory;
    uint32_t advice_left; /* submits that still give advice */
    bool cannot_try;      /* this system reads only for good */
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
    plain->directory = setup->directory;
    plain->waiting.capacity = setup->depth;
    plain->waiting.reads = plain->slots;
    *ring = plain;
    return 0;
}

/* Read from the page cache or not at all. Returns whether the read is done. */
static bool try_cached(struct pread_ring *plain, stoker_read *read)
{
    const uint32_t bytes = stk_read_bytes(read);
    const struct iovec whole = { .iov_base = read->buffer, .iov_len = bytes };
    const ssize_t got =
        preadv2(plain->files[read->file].fd, &whole, 1, (off_t)read->offset, RWF_NOWAIT);
    if (got == (ssize_t)bytes) {
        read->result = (int32_t)got;
        return true;
    }
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM))
        plain->cannot_try = true;
    else /* part of it, or the end of the file, is a miss as well: reap reads again */
        plain->advice_left = ADVICE_SUBMITS;
    return false;
}

static void advise(const struct pread_ring *plain, const stoker_read *read)
{
    /* An answer would change nothing: the read tells what is wrong. */
    (void)posix_fadvise(plain->files[read->file].fd, (off_t)read->offset,
                        (off_t)stk_read_bytes(read), POSIX_FADV_WILLNEED);
}

static int pread_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    struct pread_ring *plain = ring;
    if (count > plain->waiting.capacity - plain->waiting.count)
        return STOKER_EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        assert(reads[i]->path != NULL || reads[i]->file < plain->file_count);
        assert(reads[i]->bytes >= 1);
        reads[i]->result = STILL_TO_READ;
        stk_fifo_push(&plain->waiting, reads[i]);
    }
    const uint32_t done =
        count > 0 && reads[0]->path == NULL && !plain->cannot_try && try_cached(plain, reads[0]);
    if (plain->advice_left == 0)
        return 0;
    plain->advice_left--;
    for (uint32_t i = done; i < count; i++)
        if (reads[i]->path == NULL)
            advise(plain, reads[i]);
    return 0;
}

static int32_t read_now(const struct pread_ring *plain, const stoker_read *read)
{
    if (read->path != NULL)
        return (int32_t)stk_beneath_read(plain->directory, read->path, read->buffer,
                                         stk_read_bytes(read), read->offset);
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
        if (done[i]->result == STILL_TO_READ)
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
