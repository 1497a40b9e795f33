/* slices.c - see mpi_peers.h: the sum of one slice of an array, step by step.
 *
 *   rank 0's slice   | part 0 | part 1 |          part 1 ──▶ received by rank 1, which adds it to its own
 *   rank 1's slice   | part 0 | part 1 |          part 0 ──▶ received by rank 0
 *                                                 then the sums go to all, in place
 *
 * MPI_Iallreduce of Open MPI 4 sends all floats to one rank, which adds them alone, if there are
 * less than four ranks or the sum is in place; so sums of many ranks are made in other memory,
 * and copied. */
#include "trainer/peers/mpi/mpi_peers.h"

#include <string.h>

enum { BLOCK_FLOATS = 1024 };

/* Parts begin at cache lines; the last ones may be empty. */
static void divide(const struct stk_mpi_peers *p, struct stk_slot *slot)
{
    const uint64_t world_size = p->peers.world_size;
    const uint64_t lines = (slot->count + STK_LINE_FLOATS - 1) / STK_LINE_FLOATS;
    const uint64_t part = (lines + world_size - 1) / world_size * STK_LINE_FLOATS;
    for (uint64_t r = 0; r < world_size; r++) {
        const uint64_t at = r * part < slot->count ? r * part : slot->count;
        const uint64_t left = slot->count - at;
        slot->parts.at[r] = slot->sent_parts.at[r] = (int)at;
        slot->parts.count[r] = slot->sent_parts.count[r] = (int)(left < part ? left : part);
    }
    const uint32_t own = p->peers.rank;
    for (uint32_t r = 0; r < world_size; r++) {
        slot->received_parts.count[r] = slot->parts.count[own];
        slot->received_parts.at[r] = (int)r * slot->parts.count[own];
    }
    slot->sent_parts.count[own] = slot->received_parts.count[own] = 0;
}

int stk_mpi_begin_slice(struct stk_mpi_peers *p, struct stk_slot *slot, stoker_error *error)
{
    const struct stk_mpi_functions *const mpi = p->mpi;
    if (!p->by_parts) {
        const int code = mpi->sum_floats(slot->communicator, slot->at, slot->received, slot->count,
                                         &slot->request);
        slot->state = STK_SLOT_SUMS;
        return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Iallreduce", error);
    }
    divide(p, slot);
    const int code = mpi->exchange(slot->communicator, slot->at, &slot->sent_parts, slot->received,
                                   &slot->received_parts, &slot->request);
    slot->state = STK_SLOT_EXCHANGES;
    return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Ialltoallv", error);
}

/* sum[0, count) = the floats of rank 0 + rank 1 + ... */
static void add_block(const struct stk_mpi_peers *p, const struct stk_slot *slot, uint64_t from,
                      uint64_t count)
{
    const uint32_t own = p->peers.rank;
    float *const mine = slot->at + slot->parts.at[own] + from;
    float sum[BLOCK_FLOATS];
    for (uint32_t r = 0; r < p->peers.world_size; r++) {
        const float *const floats =
            r == own ? mine : slot->received + slot->received_parts.at[r] + from;
        if (r == 0)
            memcpy(sum, floats, count * sizeof(*sum));
        for (uint64_t i = 0; i < count && r > 0; i++)
            sum[i] += floats[i];
    }
    memcpy(mine, sum, count * sizeof(*sum));
}

/* Adds this rank's part, of which every other rank has sent its own. */
static int add_part(struct stk_mpi_peers *p, struct stk_slot *slot, stoker_error *error)
{
    const uint64_t count = (uint64_t)slot->parts.count[p->peers.rank];
    for (uint64_t from = 0; from < count; from += BLOCK_FLOATS)
        add_block(p, slot, from, count - from < BLOCK_FLOATS ? count - from : BLOCK_FLOATS);
    const int code =
        p->mpi->gather_parts(slot->communicator, slot->at, &slot->parts, &slot->request);
    slot->state = STK_SLOT_GATHERS;
    return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Iallgatherv", error);
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
    if (slot->state == STK_SLOT_SUMS)
        memcpy(slot->at, slot->received, slot->count * sizeof(float));
    slot->state = STK_SLOT_FREE;
    return STOKER_OK;
}

int stk_mpi_move_slots(struct stk_mpi_peers *p, stoker_error *error)
{
    int rc = STOKER_OK;
    for (uint32_t s = 0; s < STK_SLOTS && rc == STOKER_OK; s++)
        rc = move_slot(p, &p->slots[s], error);
    return rc;
}
