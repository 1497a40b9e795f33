/* ring.c - opens and closes the ring that ring.h describes.
 */
#ifdef STOKER_HAVE_URING
#include "loader/reader/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/reader/chain.h"
#include "loader/reader/lock_limit.h"

enum {
    IOWQ_WORKERS_MAX = 32 /* kernel threads a ring may start for reads that would block */
};

/* liburing maps and unmaps a ring by bare system calls, which ThreadSanitizer does not see. If one
 * thread unmaps a ring and another maps one at the same address, ThreadSanitizer reports a race,
 * although the kernel orders the two. These functions declare that order. */
#if defined(__SANITIZE_THREAD__)
#define STK_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STK_UNDER_TSAN 1
#endif
#endif
#ifdef STK_UNDER_TSAN
#include <sanitizer/tsan_interface.h>
static char address_space; /* only its address is used: the object that the order is declared on */

static void mapping_begins(void)
{
    __tsan_acquire(&address_space);
}

static void mapping_ends(void)
{
    __tsan_release(&address_space);
}
#else
static void mapping_begins(void)
{
}
static void mapping_ends(void)
{
}
#endif

/* Newest kernel first; an unknown flag makes setup return EINVAL. */
static const unsigned flag_groups[] = {
#ifdef IORING_SETUP_DEFER_TASKRUN /* liburing 2.3 and later can poll such a ring */
    IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,                     /* 6.1 */
    IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, /* 5.19 */
#endif
    0,
};

/* Returns true if only the thread that made the ring may use it (others get EEXIST). */
static bool binds_thread(unsigned flags)
{
#ifdef IORING_SETUP_DEFER_TASKRUN
    return (flags & (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)) != 0;
#else
    (void)flags;
    return false;
#endif
}

static const char *setup_hint(int os_errno)
{
    switch (os_errno) {
    case EPERM:
        return " (a seccomp filter or kernel.io_uring_disabled)";
    case ENOSYS:
        return " (no io_uring in this kernel, or a seccomp filter)";
    case ENOMEM:
        return " (the limit on locked memory, ulimit -l, is per user)";
    case EMFILE:
    case ENFILE:
        return " (each worker's ring takes a file descriptor)";
    default:
        return "";
    }
}

/* Report "io_uring: WHAT: errno text (hint)", and os_errno in the error. */
static int refuse_ring(stoker_error *error, int os_errno, const char *what)
{
    const struct stk_place place = STK_NOWHERE;
    char text[96];
    (void)stk_error_set(error, STOKER_EREADER, STOKER_STAGE_READ, &place, "io_uring: %s%s%s%s",
                        what, os_errno != 0 && what[0] != '\0' ? ": " : "",
                        os_errno != 0 ? strerror_r(os_errno, text, sizeof(text)) : "",
                        setup_hint(os_errno));
    if (error != NULL)
        error->os_errno = os_errno;
    return STOKER_EREADER;
}

static uint32_t power_of_two_from(uint32_t value)
{
    uint32_t power = 1;
    while (power < value)
        power *= 2;
    return power;
}

/* Returns true if whole files may be read: their data set has a directory, and no files. */
static bool expects_paths(const stoker_reader_setup *setup)
{
    return setup->directory != AT_FDCWD || setup->file_count == 0;
}

/* Returns 0 or -errno. */
static int map_ring(struct stk_ring *ring, const stoker_reader_setup *setup)
{
    const uint32_t depth = setup->depth;
    const uint32_t entries = power_of_two_from(depth < STK_CHAIN_STEPS ? STK_CHAIN_STEPS : depth);
    const uint32_t completions =
        expects_paths(setup) ? power_of_two_from(depth * STK_CHAIN_STEPS) : entries;
    int rc = -EINVAL;
    for (size_t i = 0; rc == -EINVAL && i < sizeof(flag_groups) / sizeof(flag_groups[0]); i++) {
        if (setup->any_thread && binds_thread(flag_groups[i]))
            continue;
        struct io_uring_params params = { .flags = flag_groups[i] | IORING_SETUP_CQSIZE,
                                          .cq_entries = completions };
        rc = io_uring_queue_init_params(entries, &ring->io, &params);
        if (rc == 0)
            assert(params.cq_entries >= depth);
    }
    if (rc == 0)
        mapping_begins();
    return rc;
}

/* Returns true if waits can have a time limit and completions are never dropped. */
static bool has_features(const struct stk_ring *ring)
{
    const unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
    return (ring->io.features & needed) == needed;
}

static bool knows_reads(struct stk_ring *ring)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(&ring->io);
    if (probe == NULL)
        return false;
    bool known = io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                 io_uring_opcode_supported(probe, IORING_OP_READ_FIXED) != 0;
    io_uring_free_probe(probe);
    return known;
}

/* A chain needs a kernel that looks up the read's file after the open, not when the read is
 * submitted. */
static bool knows_chains(const struct stk_ring *ring)
{
#ifdef IORING_FEAT_LINKED_FILE /* 5.18, with opens into slots since 5.15 */
    return (ring->io.features & IORING_FEAT_LINKED_FILE) != 0;
#else
    (void)ring;
    return false;
#endif
}

/* Run one operation from end to end: a sandbox may allow setup and refuse the rest. */
static int run_nop(struct stk_ring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->io);
    assert(sqe != NULL);
    io_uring_prep_nop(sqe);
    int rc = io_uring_submit(&ring->io);
    if (rc < 0)
        return rc;
    struct io_uring_cqe *cqe = NULL;
    struct __kernel_timespec limit = { .tv_sec = 1 };
    do
        rc = io_uring_wait_cqe_timeout(&ring->io, &cqe, &limit);
    while (rc == -EINTR);
    if (rc < 0)
        return rc;
    rc = cqe->res;
    io_uring_cqe_seen(&ring->io, cqe);
    return rc;
}

/* Register the table: files, then empty slots. Not through liburing, whose function raises
 * RLIMIT_NOFILE for the whole process. */
static int register_table(struct stk_ring *ring, const int *fds, uint32_t files, uint32_t slots)
{
    const long rc =
        syscall(SYS_io_uring_register, ring->io.ring_fd, IORING_REGISTER_FILES, fds, files + slots);
    if (rc < 0)
        return -errno;
    ring->files_fixed = files > 0;
    ring->first_slot = files;
    ring->slot_count = slots;
    return 0;
}

/* Files by index save the kernel a shared reference count: 5 % of a hot read. Optional: with a
 * closed descriptor, or more files than the limit on descriptors, the ring uses plain descriptors.
 * That limit may also leave fewer slots, or none. */
static int fix_files(struct stk_ring *ring, const stoker_reader_setup *setup)
{
    const uint32_t files = setup->file_count;
    uint32_t slots = expects_paths(setup) && knows_chains(ring) ? setup->depth : 0;
    if (files + slots == 0)
        return 0;
    int *fds = stk_calloc(files + slots, sizeof(fds[0]));
    if (fds == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < files; i++)
        fds[i] = setup->files[i].fd;
    for (uint32_t i = 0; i < slots; i++)
        fds[files + i] = -1;
    int rc = register_table(ring, fds, files, slots);
    for (; rc == -EMFILE && slots > 0; rc = register_table(ring, fds, files, slots))
        slots /= 2;
    if (rc < 0 && files > 0 && slots > 0)
        (void)register_table(ring, fds + files, 0, slots);
    stk_free(fds);
    return 0;
}

static bool register_buffers(struct stk_ring *ring, const struct iovec *buffers, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += buffers[i].iov_len;
    if (bytes == 0 || !(stk_lock_is_unlimited() || stk_lock_may_take(bytes)) ||
        io_uring_register_buffers(&ring->io, buffers, count) < 0)
        return false;
    memcpy(ring->buffers, buffers, count * sizeof(buffers[0]));
    ring->buffer_count = count;
    return true;
}

/* A registered buffer saves the kernel looking up its pages for each read: 4 % of a read from the
 * page cache, more of a direct one. Optional: without it reads are plain. If both buffers do not
 * fit the limit, register only the ring's own scratch. */
static void fix_buffers(struct stk_ring *ring, const stoker_reader_setup *setup)
{
    struct iovec buffers[STK_RING_BUFFERS_MAX];
    uint32_t count = 0;
    if (setup->scratch != NULL && setup->scratch_bytes > 0)
        buffers[count++] = (struct iovec){ setup->scratch, setup->scratch_bytes };
    const uint32_t own = count;
    if (setup->slots != NULL && setup->slots_bytes > 0)
        buffers[count++] = (struct iovec){ setup->slots, setup->slots_bytes };
    if (!register_buffers(ring, buffers, count) && own < count)
        (void)register_buffers(ring, buffers, own);
}

static void limit_kernel_threads(struct stk_ring *ring, uint32_t depth)
{
    unsigned most = depth < IOWQ_WORKERS_MAX ? depth : IOWQ_WORKERS_MAX;
    unsigned workers[2] = { most, most };                         /* disk reads, everything else */
    (void)io_uring_register_iowq_max_workers(&ring->io, workers); /* 5.15; older: the default */
}

static int verify_ring(struct stk_ring *ring, stoker_error *error)
{
    if (!has_features(ring))
        return refuse_ring(error, 0, "this kernel is older than 5.11");
    if (!knows_reads(ring))
        return refuse_ring(error, 0, "the kernel does not offer reads");
    int rc = run_nop(ring);
    if (rc < 0)
        return refuse_ring(error, -rc, "a no-op failed");
    return 0;
}

int stk_ring_open(struct stk_ring *ring, const stoker_reader_setup *setup, stoker_error *error)
{
    const struct stk_place place = STK_NOWHERE;
    *ring = (struct stk_ring){ 0 };
    int rc = map_ring(ring, setup);
    if (rc < 0)
        return refuse_ring(error, -rc, "");
    rc = verify_ring(ring, error);
    if (rc == 0 && (rc = fix_files(ring, setup)) < 0)
        stk_error_set(error, rc, STOKER_STAGE_READ, &place, "io_uring: table of files");
    if (rc < 0) {
        stk_ring_close(ring);
        return rc;
    }
    fix_buffers(ring, setup);
    limit_kernel_threads(ring, setup->depth);
    return 0;
}

void stk_ring_close(struct stk_ring *ring)
{
    /* Explicitly: the kernel releases the locked memory of an exited ring late. */
    if (ring->buffer_count > 0)
        (void)io_uring_unregister_buffers(&ring->io);
    mapping_ends();
    io_uring_queue_exit(&ring->io);
}

#else
typedef int stk_ring_is_not_built; /* C wants a declaration */
#endif
