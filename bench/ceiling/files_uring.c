/* files_uring.c - whole files through a bare ring per thread.
 *
 *   free slots --prep--> open -LINK-> read -HARDLINK-> close --one system call--> reap --> free
 *
 * A file never gets a descriptor, only a slot of the ring's table. There is no retry and no check of the
 * bytes: a file of another length or a failed request ends the measurement with an error.
 */
#include "bench/ceiling/ceiling.h"
#include "bench/ceiling/ring.h"
#include "bench/ceiling/share.h"

#include <fcntl.h>
#include <stdlib.h>

enum step { OPEN, READ, CLOSE, STEPS };

struct filer {
    struct bench_share share;
    struct bench_ring ring;
    uint32_t depth; /* chains in flight at most */
    uint32_t wait_chains;
    uint32_t in_flight; /* chains */
    uint32_t free_count;
    uint32_t *free_slots; /* [depth] */
    uint32_t *wanted;     /* [depth] bytes of each file in flight */
};

static void teardown(void *state)
{
    struct filer *filer = state;
    bench_ring_close(&filer->ring);
    bench_share_destroy(&filer->share);
    free(filer->free_slots);
    free(filer->wanted);
    free(filer);
}

static int open_ring(struct filer *filer)
{
    int rc = bench_ring_open(&filer->ring, STEPS * filer->depth);
    if (rc == STOKER_OK && io_uring_register_files_sparse(&filer->ring.uring, filer->depth) < 0)
        rc = STOKER_ENOTSUP;
    return rc;
}

static int take_memory(struct filer *filer)
{
    filer->free_slots = calloc(filer->depth, sizeof(filer->free_slots[0]));
    filer->wanted = calloc(filer->depth, sizeof(filer->wanted[0]));
    if (filer->free_slots == NULL || filer->wanted == NULL)
        return STOKER_ENOMEM;
    for (uint32_t slot = 0; slot < filer->depth; slot++)
        filer->free_slots[filer->free_count++] = slot;
    return STOKER_OK;
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    const struct bench_work *work = context;
    struct filer *filer = calloc(1, sizeof(*filer));
    if (filer == NULL)
        return STOKER_ENOMEM;
    filer->depth = work->read_depth;
    filer->wait_chains = work->wait_reads > 0 ? work->wait_reads : (work->read_depth + 3) / 4;
    int rc = bench_share_create(&filer->share, work, thread, threads);
    /* With fewer rows than files in flight, two would write to one row. */
    if (rc == STOKER_OK && filer->share.ring_rows < filer->depth)
        filer->depth = (uint32_t)filer->share.ring_rows;
    if (rc == STOKER_OK)
        rc = take_memory(filer);
    if (rc == STOKER_OK)
        rc = open_ring(filer);
    if (rc != STOKER_OK) {
        teardown(filer);
        return rc;
    }
    *state = filer;
    return STOKER_OK;
}

static void end_sqe(struct io_uring_sqe *sqe, unsigned flags, uint32_t slot, enum step step)
{
    sqe->flags |= (uint8_t)flags;
    io_uring_sqe_set_data64(sqe, (uint64_t)slot * STEPS + step);
}

static void prepare(struct filer *filer, uint64_t sample)
{
    const struct bench_material *material = filer->share.work->material;
    const uint32_t slot = filer->free_slots[--filer->free_count];
    filer->wanted[slot] = material->bytes[sample];
    filer->in_flight++;

    struct io_uring_sqe *sqe = bench_ring_request(&filer->ring);
    io_uring_prep_openat_direct(sqe, material->directory, material->paths[sample], O_RDONLY, 0,
                                slot);
    end_sqe(sqe, IOSQE_IO_LINK, slot, OPEN);
    sqe = bench_ring_request(&filer->ring);
    io_uring_prep_read(sqe, (int)slot, bench_share_room(&filer->share, 1), filer->wanted[slot], 0);
    end_sqe(sqe, IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK, slot, READ);
    sqe = bench_ring_request(&filer->ring);
    io_uring_prep_close_direct(sqe, slot);
    end_sqe(sqe, 0, slot, CLOSE);
}

/* Returns the number of finished files, < 0 = an error. */
static int finish(void *state, const struct io_uring_cqe *cqe)
{
    struct filer *filer = state;
    const uint64_t data = io_uring_cqe_get_data64(cqe);
    const uint32_t slot = (uint32_t)(data / STEPS);
    if (cqe->res < 0)
        return STOKER_EIO;
    switch ((enum step)(data % STEPS)) {
    case READ:
        return (uint32_t)cqe->res == filer->wanted[slot] ? 0 : STOKER_EIO;
    case CLOSE:
        filer->free_slots[filer->free_count++] = slot;
        filer->in_flight--;
        return 1;
    default:
        return 0;
    }
}

/* Fill the queue, one system call, empty the queue. */
static int64_t step(void *state)
{
    struct filer *filer = state;
    uint64_t start = 0;
    uint32_t count = bench_share_take(&filer->share, filer->free_count, &start);
    for (uint32_t index = 0; index < count; index++)
        prepare(filer, start + index);
    if (filer->in_flight == 0)
        return 0;
    const uint32_t chains =
        filer->wait_chains < filer->in_flight ? filer->wait_chains : filer->in_flight;
    /* Some chains may lack only their close. */
    const uint32_t requests = filer->ring.requests;
    uint32_t wait = STEPS * chains < requests ? STEPS * chains : requests;
    int64_t done = 0;
    for (; done == 0; wait = 1)
        done = bench_ring_turn(&filer->ring, wait, finish, filer);
    return done;
}

const struct bench_steps bench_steps_files_uring = { setup, step, teardown };
