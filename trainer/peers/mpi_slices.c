/* mpi_slices.c - see mpi_peers.h: the sum of one slice of an array, step by step.
 *
 * Slices are copied: an array may be freed after a failure, when MPI can still write to what it was given. */
#include "trainer/peers/mpi_peers.h"

#include <string.h>

int stk_mpi_begin_slice(struct stk_mpi_peers *p, struct stk_slot *slot, stoker_error *error)
{
    const struct stk_mpi_functions *const mpi = p->mpi;
    memcpy(slot->from, slot->at, slot->count * sizeof(float));
    if (!p->options.deterministic) {
        const int code =
            mpi->sum_floats(slot->communicator, slot->from, slot->to, slot->count, &slot->request);
        slot->state = STK_SLOT_SUMS;
        return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Iallreduce", error);
    }
    const uint64_t world_size = p->peers.world_size;
    slot->part = (slot->count + world_size - 1) / world_size;
    memset(slot->from + slot->count, 0, (slot->part * world_size - slot->count) * sizeof(float));
    const int code = mpi->exchange(slot->communicator, slot->from, slot->to,
                                   slot->part * sizeof(float), &slot->request);
    slot->state = STK_SLOT_EXCHANGES;
    return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Ialltoall", error);
}

/* Adds this rank's part, of which every rank has sent its own. */
static int add_part(struct stk_mpi_peers *p, struct stk_slot *slot, stoker_error *error)
{
    float *const sum = slot->to;
    for (uint32_t r = 1; r < p->peers.world_size; r++) {
        const float *const part = slot->to + r * slot->part;
        for (uint64_t i = 0; i < slot->part; i++)
            sum[i] += part[i];
    }
    const int code = p->mpi->gather(slot->communicator, sum, slot->from, slot->part * sizeof(float),
                                    &slot->request);
    slot->state = STK_SLOT_GATHERS;
    return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Iallgather", error);
}

static void end_slice(struct stk_slot *slot)
{
    const float *const sum = slot->state == STK_SLOT_SUMS ? slot->to : slot->from;
    memcpy(slot->at, sum, slot->count * sizeof(float));
    slot->state = STK_SLOT_FREE;
}

static int move_slot(struct stk_mpi_peers *p, struct stk_slot *slot, stoker_error *error)
{
    bool done = false;
    if (slot->state == STK_SLOT_FREE)
        return STOKER_OK;
    const int code = p->mpi->test(&slot->request, &done);
    if (code != 0)
        return stk_mpi_failed(p, code, "MPI_Test", error);
    if (!done)
        return STOKER_OK;
    if (slot->state == STK_SLOT_EXCHANGES)
        return add_part(p, slot, error);
    end_slice(slot);
    return STOKER_OK;
}

int stk_mpi_move_slots(struct stk_mpi_peers *p, stoker_error *error)
{
    int rc = STOKER_OK;
    for (uint32_t s = 0; s < STK_SLOTS && rc == STOKER_OK; s++)
        rc = move_slot(p, &p->slots[s], error);
    return rc;
}
