/* pread.c - the reader of plain system calls: it works wherever files can be read.
 *
 *   submit: is the first in the page cache? --no--> ask the kernel to fetch them all
 *           all into the fifo
 *   reap:   read the oldest, a group at a time, and hand them out
 *
 * Reads happen in reap, one after the other in the order submitted. Without help a
 * disk would see one request at a time: on random reads of cold files the advice to
 * fetch is worth a factor of five, the same as io_uring's queue. It costs a system
 * call per read, so it is given only when a read has just missed the page cache.
 *
 * A whole file is opened, read and closed in reap, so that at most one at a time is open. Once one
 * has missed the page cache, the next few are open ahead, so that there is a file to give the
 * advice for: on cold files that is worth a factor of five, too (16 of them; a factor of four
 * with 8).
 *
 *   waiting: [ r r r r | r r r r r r ]     examined of them are looked at: those that are whole
 *             examined                     files are open, in the same order, in ahead
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

#include "loader/base/memory.h"
#include "loader/base/open_beneath.h"
#include "loader/reader/fifo.h"
#include "loader/reader/setup.h"

/* One miss in a batch tells of more to come, in files that are cached in part too:
 * so many submits give advice after it. */
enum { ADVICE_SUBMITS = 32, AHEAD_FILES = 16 };

struct pread_ring {
    const stoker_file *files;
    uint32_t file_count;
    int directory;
    uint32_t advice_left; /* submits that still give advice */
    bool cannot_tell;     /* what is cached: this system reads only for good */
    uint32_t examined;    /* of the reads waiting, from the oldest on */
    uint32_t ahead_first; /* the file of the oldest of them that is a whole file */
    uint32_t ahead_count;
    int ahead[AHEAD_FILES]; /* < 0: it could not be opened */
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

/* Whether what the read wants is in the page cache, as far as one byte tells: of a record its last,
 * since the kernel reads ahead from the one before. True where this system cannot tell. */
static bool is_cached(struct pread_ring *plain, const stoker_read *read)
{
    uint8_t byte;
    const struct iovec one = { .iov_base = &byte, .iov_len = 1 };
    const bool whole = read->path != NULL;
    const uint64_t at = read->offset + (whole ? 0 : stk_read_bytes(read) - 1);
    const int fd = whole ? stk_open_beneath_to_read(plain->directory, read->path)
                         : plain->files[read->file].fd;
    const bool missed = fd >= 0 && preadv2(fd, &one, 1, (off_t)at, RWF_NOWAIT) < 0;
    if (missed)
        plain->cannot_tell = errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM;
    if (whole && fd >= 0)
        close(fd);
    return !missed || plain->cannot_tell;
}

/* Open the whole files that come next and ask the kernel to fetch them. */
static void open_ahead(struct pread_ring *plain)
{
    while (plain->advice_left > 0 && plain->ahead_count < AHEAD_FILES &&
           plain->examined < plain->waiting.count) {
        const stoker_read *read = stk_fifo_at(&plain->waiting, plain->examined++);
        if (read->path == NULL)
            continue;
        const int fd = stk_open_beneath_to_read(plain->directory, read->path);
        if (fd >= 0)
            (void)posix_fadvise(fd, (off_t)read->offset, (off_t)stk_read_bytes(read),
                                POSIX_FADV_WILLNEED);
        plain->ahead[(plain->ahead_first + plain->ahead_count++) % AHEAD_FILES] = fd;
    }
}

/* The file of the oldest read, if it is open already; else < 0. */
static int take_ahead(struct pread_ring *plain, const stoker_read *oldest)
{
    if (plain->examined == 0)
        return -1;
    plain->examined--;
    if (oldest->path == NULL)
        return -1;
    assert(plain->ahead_count > 0);
    const int fd = plain->ahead[plain->ahead_first];
    plain->ahead_first = (plain->ahead_first + 1) % AHEAD_FILES;
    plain->ahead_count--;
    return fd;
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
        stk_fifo_push(&plain->waiting, reads[i]);
    }
    if (count > 0 && !plain->cannot_tell && !is_cached(plain, reads[0]))
        plain->advice_left = ADVICE_SUBMITS;
    if (plain->advice_left == 0)
        return 0;
    plain->advice_left--;
    for (uint32_t i = 0; i < count; i++)
        if (reads[i]->path == NULL)
            advise(plain, reads[i]);
    return 0;
}

static int32_t read_from(int fd, const stoker_read *read)
{
    const ssize_t got = pread(fd, read->buffer, stk_read_bytes(read), (off_t)read->offset);
    return got < 0 ? (int32_t)-errno : (int32_t)got;
}

/* `ahead`: the whole file, open already, or < 0. */
static int32_t read_now(const struct pread_ring *plain, const stoker_read *read, int ahead)
{
    if (read->path == NULL)
        return read_from(plain->files[read->file].fd, read);
    if (ahead < 0)
        return (int32_t)stk_read_beneath(plain->directory, read->path, read->buffer,
                                         stk_read_bytes(read), read->offset);
    const int32_t result = read_from(ahead, read);
    close(ahead);
    return result;
}

static int pread_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct pread_ring *plain = ring;
    (void)wait_ns; /* a plain read cannot be waited for, only done */
    uint32_t count = 0;
    uint64_t bytes = 0;
    while (count < max && plain->waiting.count > 0 && bytes < STK_READ_GROUP_BYTES) {
        open_ahead(plain);
        stoker_read *read = stk_fifo_pop(&plain->waiting);
        const int ahead = take_ahead(plain, read);
        read->result = read_now(plain, read, ahead);
        bytes += read->bytes;
        done[count++] = read;
    }
    return (int)count;
}

static int pread_close(void *ring, int64_t wait_ns)
{
    struct pread_ring *plain = ring;
    (void)wait_ns; /* nothing is ever under way */
    for (; plain->ahead_count > 0; plain->ahead_count--) {
        const int fd = plain->ahead[plain->ahead_first];
        plain->ahead_first = (plain->ahead_first + 1) % AHEAD_FILES;
        if (fd >= 0)
            close(fd);
    }
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
