/* pread.c - the reader that uses plain system calls; it works on every system.
 *
 *   submit: is the first in the page cache? --no--> advise the kernel to fetch them all
 *           push all to the fifo
 *   reap:   read the oldest, a group at a time, and return them
 *
 * Reads happen in reap, one after the other in the order submitted. Without advice a disk would see
 * one request at a time: on random reads of cold files the advice makes reading five times as fast,
 * the same as io_uring's queue. It costs a system call per read, so it is given only after a read
 * has missed the page cache.
 *
 * A whole file is opened, read and closed in reap, so that at most one is open at a time. After a
 * miss of the page cache the next 16 files are opened ahead, because advice needs an open file: on
 * cold files that is five times as fast, too (four times with 8 files).
 *
 *   waiting: [ r r r r | r r r r r r ]     the first `examined` reads were looked at; the whole
 *             examined                     files among them are open, in the same order, in ahead
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

#include "loader/base/io/open_beneath.h"
#include "loader/base/memory/memory.h"
#include "loader/reader/fifo.h"
#include "loader/reader/readers.h"
#include "loader/reader/setup.h"

/* A miss predicts more misses, also in files that are partly cached: the next ADVICE_SUBMITS
 * submits give advice. */
enum { ADVICE_SUBMITS = 32, AHEAD_FILES = 16 };

struct pread_ring {
    const stoker_file *files;
    uint32_t file_count;
    int directory;
    uint32_t advice_left; /* submits that still give advice */
    bool cannot_probe;    /* this system cannot report what is cached */
    uint32_t examined;    /* waiting reads that were looked at, from the oldest */
    uint32_t ahead_first; /* index in `ahead` of the oldest open file */
    uint32_t ahead_count;
    int ahead[AHEAD_FILES]; /* < 0: it could not be opened */
    struct stk_fifo waiting;
    stoker_read *slots[];
};

static int pread_open(void *self, void **ring, const stoker_reader_setup *setup,
                      stoker_error *error)
{
    (void)self;
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

static int directory_of(const struct pread_ring *plain, const stoker_read *read)
{
    return stk_read_directory(plain->directory, plain->files, read->file);
}

/* Returns true if the page cache holds the read's bytes, judged by one byte: of a record the last,
 * because the kernel reads ahead from the record before. Also true if this system cannot report
 * it. */
static bool is_cached(struct pread_ring *plain, const stoker_read *read)
{
    uint8_t byte;
    const struct iovec one = { .iov_base = &byte, .iov_len = 1 };
    const bool whole = read->path != NULL;
    const uint64_t at = read->offset + (whole ? 0 : stk_read_bytes(read) - 1);
    const int fd = whole ? stk_open_beneath_to_read(directory_of(plain, read), read->path)
                         : plain->files[read->file].fd;
    const bool missed = fd >= 0 && preadv2(fd, &one, 1, (off_t)at, RWF_NOWAIT) < 0;
    if (missed)
        plain->cannot_probe = errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM;
    if (whole && fd >= 0)
        close(fd);
    return !missed || plain->cannot_probe;
}

/* Open the next whole files and advise the kernel to fetch them. */
static void open_ahead(struct pread_ring *plain)
{
    while (plain->advice_left > 0 && plain->ahead_count < AHEAD_FILES &&
           plain->examined < plain->waiting.count) {
        const stoker_read *read = stk_fifo_at(&plain->waiting, plain->examined++);
        if (read->path == NULL)
            continue;
        const int fd = stk_open_beneath_to_read(directory_of(plain, read), read->path);
        if (fd >= 0)
            (void)posix_fadvise(fd, (off_t)read->offset, (off_t)stk_read_bytes(read),
                                POSIX_FADV_WILLNEED);
        plain->ahead[(plain->ahead_first + plain->ahead_count++) % AHEAD_FILES] = fd;
    }
}

/* Returns the file of the oldest read if it is open already, else < 0. */
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
    /* An error here does not matter: the read will report it. */
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
    if (count > 0 && !plain->cannot_probe && !is_cached(plain, reads[0]))
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

/* `ahead`: the whole file if it is open already, else < 0. */
static int32_t read_now(const struct pread_ring *plain, const stoker_read *read, int ahead)
{
    if (read->path == NULL)
        return read_from(plain->files[read->file].fd, read);
    if (ahead < 0)
        return (int32_t)stk_read_beneath(directory_of(plain, read), read->path, read->buffer,
                                         stk_read_bytes(read), read->offset);
    const int32_t result = read_from(ahead, read);
    close(ahead);
    return result;
}

static int pread_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct pread_ring *plain = ring;
    (void)wait_ns; /* a plain read happens here, whatever time it takes */
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
    (void)wait_ns; /* nothing is ever in flight */
    for (; plain->ahead_count > 0; plain->ahead_count--) {
        const int fd = plain->ahead[plain->ahead_first];
        plain->ahead_first = (plain->ahead_first + 1) % AHEAD_FILES;
        if (fd >= 0)
            close(fd);
    }
    stk_free(ring);
    return 0;
}

const stoker_reader stk_reader_pread = {
    .struct_size = sizeof(stoker_reader),
    .name = "pread",
    .open = pread_open,
    .submit = pread_submit,
    .reap = pread_reap,
    .close = pread_close,
};

const stoker_reader *stoker_reader_pread(void)
{
    return &stk_reader_pread;
}
