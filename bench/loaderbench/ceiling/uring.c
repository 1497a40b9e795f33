/* uring.c - the same random reads through a bare ring per thread, in the fastest mode of the
 * kernel.
 *
 *   free reads --prep--> submission queue --one system call--> reap all that is done --> free
 *
 * There is no retry and no check of the bytes: a short or failed read ends the measurement with an
 * error.
 */
#include "bench/loaderbench/ceiling/share.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>

struct ringer {
    struct bench_share share;
    struct io_uring ring;
    bool open;
    uint32_t in_flight; /* the kernel owns their buffers */
    uint32_t depth;
    uint32_t wait_reads;
    uint32_t free_count;
    uint32_t *free_reads; /* [depth] reads not in flight */
    uint32_t *wanted;     /* [depth] bytes of each read in flight */
    void **out;           /* [depth] the row of each read in flight */
    char *scratch;        /* [depth] rows as read; NULL = read straight into the ring */
};

static void close_ring(struct ringer *ringer)
{
    if (!ringer->open)
        return;
    for (; ringer->in_flight > 0; ringer->in_flight--) {
        struct io_uring_cqe *cqe = NULL;
        if (io_uring_wait_cqe(&ringer->ring, &cqe) < 0)
            break;
        io_uring_cqe_seen(&ringer->ring, cqe);
    }
    io_uring_queue_exit(&ringer->ring);
}

static void teardown_ringer(void *state)
{
    struct ringer *ringer = state;
    close_ring(ringer);
    bench_share_destroy(&ringer->share);
    free(ringer->free_reads);
    free(ringer->wanted);
    free((void *)ringer->out);
    free(ringer->scratch);
    free(ringer);
}

static int open_ring(struct ringer *ringer, int fd)
{
    static const unsigned flags[] = {
#if defined(IORING_SETUP_DEFER_TASKRUN)
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN,
#endif
        0 /* older kernels */
    };
    int rc = -EINVAL;
    for (size_t index = 0; rc == -EINVAL && index < sizeof(flags) / sizeof(flags[0]); index++)
        rc = io_uring_queue_init(ringer->depth, &ringer->ring, flags[index]);
    if (rc < 0)
        return STOKER_ENOTSUP;
    ringer->open = true;
    (void)io_uring_register_ring_fd(&ringer->ring); /* saves a look-up; optional */
    return io_uring_register_files(&ringer->ring, &fd, 1) < 0 ? STOKER_ENOTSUP : STOKER_OK;
}

static int allocate_reads(struct ringer *ringer, const struct bench_work *work)
{
    bool direct = bench_keeps_rows(work->plan);
    ringer->free_reads = calloc(ringer->depth, sizeof(ringer->free_reads[0]));
    ringer->wanted = calloc(ringer->depth, sizeof(ringer->wanted[0]));
    ringer->out = calloc(ringer->depth, sizeof(ringer->out[0]));
    if (!direct)
        ringer->scratch = calloc(ringer->depth, work->plan->from_bytes);
    bool missing = ringer->free_reads == NULL || ringer->wanted == NULL || ringer->out == NULL ||
                   (!direct && ringer->scratch == NULL);
    if (missing)
        return STOKER_ENOMEM;
    for (uint32_t read = 0; read < ringer->depth; read++)
        ringer->free_reads[ringer->free_count++] = read;
    return STOKER_OK;
}

static int setup_ringer(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    const struct bench_work *work = context;
    struct ringer *ringer = calloc(1, sizeof(*ringer));
    if (ringer == NULL)
        return STOKER_ENOMEM;
    ringer->depth = work->read_depth;
    ringer->wait_reads = work->wait_reads > 0 ? work->wait_reads : (work->read_depth + 3) / 4;
    int rc = bench_share_create(&ringer->share, work, thread, threads);
    /* With fewer rows than reads in flight, two would write to one row. */
    if (rc == STOKER_OK && ringer->share.ring_rows < ringer->depth)
        ringer->depth = (uint32_t)ringer->share.ring_rows;
    if (rc == STOKER_OK)
        rc = allocate_reads(ringer, work);
    if (rc == STOKER_OK)
        rc = open_ring(ringer, work->material->file.fd);
    if (rc != STOKER_OK) {
        teardown_ringer(ringer);
        return rc;
    }
    *state = ringer;
    return STOKER_OK;
}

static void prepare(struct ringer *ringer, uint64_t sample)
{
    const struct bench_work *work = ringer->share.work;
    uint32_t read = ringer->free_reads[--ringer->free_count];
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ringer->ring);
    assert(sqe != NULL); /* as many entries as reads */
    ringer->in_flight++;
    ringer->out[read] = bench_share_room(&ringer->share, 1);
    ringer->wanted[read] = work->material->bytes[sample];
    char *to = ringer->scratch == NULL ? ringer->out[read]
                                       : ringer->scratch + (size_t)read * work->plan->from_bytes;
    io_uring_prep_read(sqe, 0, to, ringer->wanted[read], work->material->offsets[sample]);
    sqe->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data64(sqe, read);
}

static int finish(struct ringer *ringer, const struct io_uring_cqe *cqe)
{
    const struct stk_convert_plan *plan = ringer->share.work->plan;
    uint32_t read = (uint32_t)io_uring_cqe_get_data64(cqe);
    ringer->free_reads[ringer->free_count++] = read;
    if (cqe->res < 0 || (uint32_t)cqe->res != ringer->wanted[read])
        return STOKER_EIO;
    if (ringer->scratch != NULL) {
        const void *row = ringer->scratch + (size_t)read * plan->from_bytes;
        plan->rows(plan, &row, 1, 0, ringer->out[read]);
    }
    return STOKER_OK;
}

/* Submits, waits for `wanted` reads and finishes all that are done. Returns their number or an
 * error. */
static int64_t reap(struct ringer *ringer, uint32_t wanted)
{
    int rc = io_uring_submit_and_wait(&ringer->ring, wanted);
    if (rc < 0 && rc != -EINTR)
        return STOKER_EIO;
    rc = STOKER_OK;
    struct io_uring_cqe *cqe = NULL;
    unsigned head = 0;
    unsigned seen = 0;
    io_uring_for_each_cqe(&ringer->ring, head, cqe)
    {
        const int finished = finish(ringer, cqe);
        rc = rc == STOKER_OK ? finished : rc;
        seen++;
    }
    io_uring_cq_advance(&ringer->ring, seen);
    ringer->in_flight -= seen;
    return rc == STOKER_OK ? (int64_t)seen : rc;
}

/* Fill the queue, one system call, empty the queue. */
static int64_t step_ringer(void *state)
{
    struct ringer *ringer = state;
    uint64_t start = 0;
    uint32_t count = bench_share_take(&ringer->share, ringer->free_count, &start);
    for (uint32_t index = 0; index < count; index++)
        prepare(ringer, start + index);
    if (ringer->in_flight == 0)
        return 0;
    return reap(ringer,
                ringer->wait_reads < ringer->in_flight ? ringer->wait_reads : ringer->in_flight);
}

const struct bench_steps bench_steps_uring = { setup_ringer, step_ringer, teardown_ringer };
