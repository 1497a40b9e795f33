/* uring.c - the reader on io_uring: one ring per worker, used by one thread at a time (ring.h).
 *
 *   submit: SQ <- one entry per read, three per whole file (chain.h), one io_uring_enter
 *   reap:   CQ -> done[]; enters the kernel only when the CQ is empty
 *
 *   a read ──▶ waiting ──a group starts──▶ SQ ──▶ done
 *   a whole file ──▶ waiting ──a slot is free──▶ chain ──▶ done
 *                       └──── no slots: open, read, close by system calls, in reap ──▶ done
 *
 * A read that hits the page cache is copied while it is submitted, and its completion is in the CQ
 * at once, so hot reads cost one system call per group (STK_READ_GROUP_BYTES). The next group
 * starts when the CQ is empty, so that hot reads are handed out before others evict them from the
 * core's cache. If a group is not complete at once, some of it is on storage: then all waiting
 * reads start.
 *
 * The CQ holds the largest possible number of requests in flight, so it cannot overflow. A read
 * whose submission failed half-way, or that is in flight when the ring fails, belongs to the kernel
 * until close() has returned 0. Reads already issued to a disk cannot be canceled: a close that
 * times out leaves the ring and its memory to the kernel for good.
 */
#include <stoker/reader.h>

#include "loader/base/error.h"
#include "loader/reader/setup.h"

#ifdef STOKER_HAVE_URING
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/io/open_beneath.h"
#include "loader/base/memory/memory.h"
#include "loader/reader/chain.h"
#include "loader/reader/fifo.h"
#include "loader/reader/readers.h"
#include "loader/reader/ring.h"

struct uring {
    struct stk_ring ring;
    const stoker_file *files;
    uint32_t file_count;
    uint32_t depth;
    uint32_t in_flight; /* reads taken by submit and not yet handed out by reap */
    uint32_t requests;  /* requests in the kernel, those of chains included */
    bool failed;        /* a system call failed for good: only close may follow */

    int directory;                 /* where paths start */
    struct open_how how;           /* for any whole file */
    struct open_how unlinked;      /* for a whole file whose name contains no link */
    bool has_links;                /* a name contained a link, or links need no check */
    struct stk_chain *chains;      /* one per slot */
    struct stk_chain *free_chains; /* chains whose slot holds no file */
    struct stk_fifo waiting;       /* whole files without a slot, reads of later groups */
    stoker_read *waiting_reads[];  /* `depth` elements */
};

enum { RETRIES_MAX = 64, RETRY_PAUSE_NS = 100000 };

/* One chain per slot. */
static int make_chains(struct uring *uring)
{
    if (uring->ring.slot_count == 0)
        return 0;
    uring->chains = stk_calloc(uring->ring.slot_count, sizeof(uring->chains[0]));
    if (uring->chains == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = uring->ring.slot_count; i-- > 0;) {
        uring->chains[i].slot = uring->ring.first_slot + i;
        uring->chains[i].next_free = uring->free_chains;
        uring->free_chains = &uring->chains[i];
    }
    return 0;
}

/* Set the directory of whole files, and how links in their names are treated. */
static void set_paths(struct uring *uring, int directory)
{
    uring->directory = directory;
    uring->how = (struct open_how){ .flags = O_RDONLY | O_NOCTTY | O_NONBLOCK,
                                    .resolve = stk_open_beneath_resolve(directory) };
    uring->unlinked = uring->how;
    uring->unlinked.resolve = RESOLVE_NO_SYMLINKS;
    uring->has_links = directory == AT_FDCWD;
}

static int directory_of(const struct uring *uring, const stoker_read *read)
{
    return stk_read_directory(uring->directory, uring->files, read->file);
}

static void free_uring(struct uring *uring)
{
    stk_ring_close(&uring->ring);
    stk_free(uring->chains);
    stk_free(uring);
}

static int uring_open(void *self, void **ring, const stoker_reader_setup *setup,
                      stoker_error *error)
{
    (void)self;
    int rc = stk_reader_setup_check(setup, error);
    if (rc < 0)
        return rc;
    const struct stk_place place = STK_NOWHERE;
    struct uring *uring =
        stk_calloc(1, sizeof(*uring) + setup->depth * sizeof(uring->waiting_reads[0]));
    if (uring == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, &place, "io_uring");
    rc = stk_ring_open(&uring->ring, setup, error);
    if (rc < 0) {
        stk_free(uring);
        return rc;
    }
    uring->files = setup->files;
    uring->file_count = setup->file_count;
    uring->depth = setup->depth;
    uring->waiting.capacity = setup->depth;
    uring->waiting.reads = uring->waiting_reads;
    set_paths(uring, setup->directory);
    rc = make_chains(uring);
    if (rc < 0) {
        free_uring(uring);
        return stk_error_set(error, rc, STOKER_STAGE_READ, &place, "io_uring: chains of files");
    }
    *ring = uring;
    return 0;
}

/* Returns the index of the registered buffer that contains the read's buffer, else < 0. */
static int buffer_of(const struct uring *uring, const stoker_read *read, uint32_t bytes)
{
    for (uint32_t i = 0; i < uring->ring.buffer_count; i++) {
        const struct iovec *buffer = &uring->ring.buffers[i];
        const uintptr_t at = (uintptr_t)read->buffer - (uintptr_t)buffer->iov_base; /* may wrap */
        if (at < buffer->iov_len && bytes <= buffer->iov_len - at)
            return (int)i;
    }
    return -1;
}

static struct io_uring_sqe *next_sqe(struct uring *uring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring.io);
    assert(sqe != NULL); /* make_room was called */
    return sqe;
}

static void prepare_sqe(struct uring *uring, struct io_uring_sqe *sqe, const stoker_read *read,
                        int file, bool fixed)
{
    const uint32_t bytes = stk_read_bytes(read);
    const int buffer = buffer_of(uring, read, bytes);
    if (buffer >= 0)
        io_uring_prep_read_fixed(sqe, file, read->buffer, bytes, read->offset, buffer);
    else
        io_uring_prep_read(sqe, file, read->buffer, bytes, read->offset);
    if (fixed)
        sqe->flags |= IOSQE_FIXED_FILE;
}

static void prepare_read(struct uring *uring, stoker_read *read)
{
    assert(read->file < uring->file_count);
    struct io_uring_sqe *sqe = next_sqe(uring);
    const int file = uring->ring.files_fixed ? (int)read->file : uring->files[read->file].fd;
    prepare_sqe(uring, sqe, read, file, uring->ring.files_fixed);
    io_uring_sqe_set_data(sqe, read);
}

static void set_step(struct io_uring_sqe *sqe, struct stk_chain *chain, enum stk_chain_step step)
{
    io_uring_sqe_set_data(sqe, (uint8_t *)chain + step);
}

/* The flags of each request are set after its preparation, which clears them. No O_CLOEXEC: a slot
 * is not a descriptor, and the kernel refuses the flag. O_NONBLOCK: the file may have been replaced
 * by a pipe without a writer. */
static void prepare_chain(struct uring *uring, stoker_read *read)
{
    struct stk_chain *chain = uring->free_chains;
    uring->free_chains = chain->next_free;
    stk_chain_begin(chain, read);

    const bool unlinked = !uring->has_links && stk_only_links_lead_out(read->path);
    struct io_uring_sqe *sqe = next_sqe(uring);
    io_uring_prep_openat2_direct(sqe, directory_of(uring, read), read->path,
                                 unlinked ? &uring->unlinked : &uring->how, chain->slot);
    sqe->flags |= IOSQE_IO_LINK;
    set_step(sqe, chain, STK_CHAIN_OPEN);

    sqe = next_sqe(uring);
    prepare_sqe(uring, sqe, read, (int)chain->slot, true);
    sqe->flags |= IOSQE_IO_HARDLINK; /* close the file after a short read, too */
    set_step(sqe, chain, STK_CHAIN_READ);

    sqe = next_sqe(uring);
    io_uring_prep_close_direct(sqe, chain->slot);
    set_step(sqe, chain, STK_CHAIN_CLOSE);
}

static void pause_before_retry(uint32_t attempt)
{
    const struct timespec pause = { .tv_nsec = (long)RETRY_PAUSE_NS * (1 + attempt) };
    nanosleep(&pause, NULL);
}

/* Submit the SQ to the kernel. EAGAIN (no memory for requests) and EBUSY are retried for about 0.2
 * s; after that the ring has failed. */
static int enter_submit(struct uring *uring)
{
    uint32_t left = io_uring_sq_ready(&uring->ring.io);
    for (uint32_t attempt = 0; left > 0; attempt++) {
        int rc = io_uring_submit(&uring->ring.io);
        if (rc > 0) {
            uring->requests += (uint32_t)rc;
            left -= (uint32_t)rc;
            attempt = 0;
            continue;
        }
        const bool passing = rc == 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
        if (!passing || attempt == RETRIES_MAX) {
            uring->failed = true;
            return STOKER_EIO;
        }
        pause_before_retry(attempt);
    }
    return 0;
}

/* A chain must be submitted as a whole, so there must be room for all of it. */
static int make_room(struct uring *uring, uint32_t entries)
{
    return io_uring_sq_space_left(&uring->ring.io) >= entries ? 0 : enter_submit(uring);
}

static bool file_waits(const struct uring *uring)
{
    return uring->waiting.count > 0 && stk_fifo_at(&uring->waiting, 0)->path != NULL;
}

static bool read_waits(const struct uring *uring)
{
    return uring->waiting.count > 0 && !file_waits(uring);
}

/* Start whole files while slots are free, and one group of reads. */
static int start_waiting(struct uring *uring)
{
    uint64_t bytes = 0;
    while ((file_waits(uring) && uring->free_chains != NULL) ||
           (read_waits(uring) && bytes < STK_READ_GROUP_BYTES)) {
        if (make_room(uring, file_waits(uring) ? STK_CHAIN_STEPS : 1) < 0)
            return STOKER_EIO;
        stoker_read *read = stk_fifo_pop(&uring->waiting);
        if (read->path != NULL) {
            prepare_chain(uring, read);
        } else {
            prepare_read(uring, read);
            bytes += read->bytes;
        }
    }
    return enter_submit(uring);
}

/* Returns true if a started read has no completion yet: then the page cache does not hold
 * everything, and storage should work on the rest while the caller does something else. */
static bool waits_for_storage(const struct uring *uring)
{
    return uring->in_flight - uring->waiting.count > io_uring_cq_ready(&uring->ring.io);
}

static int uring_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    struct uring *uring = ring;
    if (uring->failed || count > uring->depth - uring->in_flight)
        return STOKER_EINVAL;
    uring->in_flight += count;
    for (uint32_t i = 0; i < count; i++) {
        assert(reads[i]->bytes >= 1);
        stk_fifo_push(&uring->waiting, reads[i]);
    }
    int rc = start_waiting(uring);
    while (rc == 0 && read_waits(uring) && waits_for_storage(uring))
        rc = start_waiting(uring);
    return rc;
}

/* Free a chain and its slot; empty the slot first if its close failed. */
static void free_chain(struct uring *uring, struct stk_chain *chain)
{
    const int none = -1;
    if (uring->ring.slot_count == 0)
        return; /* no more chains are started */
    if (stk_chain_dirty(chain) &&
        io_uring_register_files_update(&uring->ring.io, chain->slot, &none, 1) < 0) {
        uring->ring.slot_count--;
        return;
    }
    chain->next_free = uring->free_chains;
    uring->free_chains = chain;
}

static void read_by_calls(const struct uring *uring, stoker_read *read)
{
    read->result = (int32_t)stk_read_beneath(directory_of(uring, read), read->path, read->buffer,
                                             stk_read_bytes(read), read->offset);
}

/* A chain has ended. Returns its read, or NULL if it must be read in another way. */
static stoker_read *finish_chain(struct uring *uring, struct stk_chain *chain)
{
    stoker_read *read = chain->read;
    read->result = stk_chain_result(chain);
    if (stk_chain_would_wait(chain)) {
        read_by_calls(uring, read);
        if (read->result >= 0) /* not a pipe: this file system does not work with O_NONBLOCK */
            uring->how.flags = uring->unlinked.flags &= ~(uint64_t)O_NONBLOCK;
    } else if (stk_chain_undecided(chain)) {
        read_by_calls(uring, read);
    } else if (read->result == -ELOOP) { /* a link that stays in the directory may be followed */
        read_by_calls(uring, read);
        uring->has_links = uring->has_links || read->result >= 0;
    }
    free_chain(uring, chain);
    if (!stk_chain_unknown(chain))
        return read;
    uring->ring.slot_count = 0;
    uring->free_chains = NULL;
    stk_fifo_push(&uring->waiting, read);
    return NULL;
}

/* Returns the read that this completion finishes, or NULL. */
static stoker_read *complete(struct uring *uring, const struct io_uring_cqe *cqe)
{
    uint8_t *data = io_uring_cqe_get_data(cqe);
    const enum stk_chain_step step = (uintptr_t)data & STK_CHAIN_STEPS;
    if (step != 0) {
        struct stk_chain *chain = (struct stk_chain *)(void *)(data - step);
        return stk_chain_note(chain, step, cqe->res) ? finish_chain(uring, chain) : NULL;
    }
    stoker_read *read = (stoker_read *)(void *)data;
    read->result = cqe->res;
    return read;
}

/* Take the completions in the CQ. No system call unless the kernel has flagged work that only this
 * thread can finish. */
static uint32_t collect(struct uring *uring, stoker_read **done, uint32_t max)
{
    struct io_uring_cqe *cqes[64];
    uint32_t count = 0;
    while (count < max) {
        const uint32_t room = max - count < 64 ? max - count : 64;
        const unsigned got = io_uring_peek_batch_cqe(&uring->ring.io, cqes, room);
        for (unsigned i = 0; i < got; i++) {
            stoker_read *read = complete(uring, cqes[i]);
            if (read != NULL)
                done[count++] = read;
        }
        io_uring_cq_advance(&uring->ring.io, got);
        assert(got <= uring->requests);
        uring->requests -= got;
        if (got < room)
            break;
    }
    return count;
}

/* Without slots: read whole files by system calls, one after the other. */
static uint32_t read_waiting(struct uring *uring, stoker_read **done, uint32_t max)
{
    uint32_t count = 0;
    while (uring->ring.slot_count == 0 && file_waits(uring) && count < max) {
        stoker_read *read = stk_fifo_pop(&uring->waiting);
        read_by_calls(uring, read);
        done[count++] = read;
    }
    return count;
}

/* Sleep until a completion arrives or the clock shows `until_ns` (UINT64_MAX = no limit).
 * Returns 0, -ETIME or -errno. */
static int wait_for_one(struct uring *uring, uint64_t until_ns)
{
    for (;;) {
        struct __kernel_timespec limit = { 0 };
        const bool limited = until_ns != UINT64_MAX;
        if (limited) {
            const uint64_t now_ns = stk_now_ns();
            const uint64_t left_ns = now_ns < until_ns ? until_ns - now_ns : 0;
            limit.tv_sec = (long long)(left_ns / 1000000000U);
            limit.tv_nsec = (long long)(left_ns % 1000000000U);
        }
        struct io_uring_cqe *cqe = NULL;
        int rc = limited ? io_uring_wait_cqe_timeout(&uring->ring.io, &cqe, &limit)
                         : io_uring_wait_cqe(&uring->ring.io, &cqe);
        if (rc != -EINTR)
            return rc;
        if (limited && stk_now_ns() >= until_ns) /* signals do not prolong the wait */
            return -ETIME;
    }
}

static uint64_t until(int64_t wait_ns)
{
    return wait_ns < 0 ? UINT64_MAX : stk_now_ns() + (uint64_t)wait_ns;
}

/* Let the kernel take all possible steps of chains now. A ring that defers such work does at most
 * 20 steps per call, and if the thread decoded after every few files, thread and kernel would start
 * with cold caches each time. */
static void take_steps(struct uring *uring)
{
#ifdef IORING_SETUP_DEFER_TASKRUN
    const unsigned *flags = uring->ring.io.sq.kflags;
    for (uint32_t asked = 0; asked < uring->requests; asked++)
        if ((IO_URING_READ_ONCE(*flags) & IORING_SQ_TASKRUN) == 0 ||
            io_uring_get_events(&uring->ring.io) < 0)
            return;
#else
    (void)uring;
#endif
}

/* Collect finished reads, and start whole files in the free slots. If nothing is finished, start
 * reads until one is, or all are started. */
static int collect_or_start(struct uring *uring, stoker_read **done, uint32_t max)
{
    if (uring->ring.slot_count > 0)
        take_steps(uring);
    uint32_t count = collect(uring, done, max);
    while (count == 0 && read_waits(uring)) {
        if (start_waiting(uring) < 0)
            return STOKER_EIO;
        count = collect(uring, done, max);
    }
    if (file_waits(uring)) {
        count += read_waiting(uring, done + count, max - count);
        if (start_waiting(uring) < 0)
            return STOKER_EIO;
    }
    assert(count <= uring->in_flight);
    uring->in_flight -= count;
    return (int)count;
}

static int uring_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct uring *uring = ring;
    if (uring->failed)
        return STOKER_EIO;
    if (uring->in_flight == 0 || max == 0)
        return 0;
    int count = collect_or_start(uring, done, max);
    if (count != 0 || wait_ns == 0)
        return count;

    const uint64_t until_ns = until(wait_ns);
    while (count == 0) { /* only the last of a chain's three completions finishes a read */
        assert(uring->requests > 0);
        int rc = wait_for_one(uring, until_ns);
        if (rc == -ETIME)
            return 0;
        if (rc < 0) {
            uring->failed = true;
            return STOKER_EIO;
        }
        count = collect_or_start(uring, done, max);
    }
    return count;
}

static int uring_close(void *ring, int64_t wait_ns)
{
    struct uring *uring = ring;
    const uint64_t until_ns = until(wait_ns);
    while (uring->requests > 0) {
        stoker_read *done[64];
        const uint32_t before = uring->requests;
        (void)collect(uring, done, 64);
        if (uring->requests < before)
            continue;
        if (wait_for_one(uring, until_ns) < 0)
            return STOKER_BUSY;
    }
    free_uring(uring);
    return 0;
}

uint64_t stk_uring_registered_bytes(const void *ring, const void *base)
{
    const struct stk_ring *own = &((const struct uring *)ring)->ring;
    for (uint32_t i = 0; i < own->buffer_count; i++)
        if (own->buffers[i].iov_base == base)
            return own->buffers[i].iov_len;
    return 0;
}

#else

uint64_t stk_uring_registered_bytes(const void *ring, const void *base)
{
    (void)ring;
    (void)base;
    return 0;
}

static int uring_open(void *self, void **ring, const stoker_reader_setup *setup,
                      stoker_error *error)
{
    (void)self;
    (void)ring;
    const struct stk_place place = STK_NOWHERE;
    int rc = stk_reader_setup_check(setup, error);
    if (rc < 0)
        return rc;
    return stk_error_set(error, STOKER_EREADER, STOKER_STAGE_READ, &place,
                         "io_uring: built without liburing");
}

/* Never called: open made no ring. */
static int uring_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    (void)ring;
    (void)reads;
    (void)count;
    return STOKER_EREADER;
}

static int uring_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    (void)ring;
    (void)done;
    (void)max;
    (void)wait_ns;
    return STOKER_EREADER;
}

static int uring_close(void *ring, int64_t wait_ns)
{
    (void)ring;
    (void)wait_ns;
    return STOKER_EREADER;
}

#endif

const stoker_reader stk_reader_uring = {
    .struct_size = sizeof(stoker_reader),
    .name = "uring",
    .open = uring_open,
    .submit = uring_submit,
    .reap = uring_reap,
    .close = uring_close,
};

const stoker_reader *stoker_reader_uring(void)
{
    return &stk_reader_uring;
}
