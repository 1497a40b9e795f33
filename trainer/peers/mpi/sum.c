/* sum.c - see mpi_peers.h: the sum of an array, slice after slice, and every wait, during which
 * slices move on.
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

#include "loader/base/clock.h"

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

static int begin_slice(struct stk_mpi_peers *p, struct stk_slot *slot, stoker_error *error)
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

/* ---- waits ---- */

/* What a wait is for: a request, or a slot that is free. */
struct wanted {
    struct stk_mpi_request *request;
    const struct stk_slot *slot;
    const char *what;
};

static int look(struct stk_mpi_peers *p, const struct wanted *wanted, bool *done,
                stoker_error *error)
{
    int rc = stk_mpi_move_slots(p, error);
    if (rc != STOKER_OK)
        return rc;
    if (wanted->slot != NULL) {
        *done = wanted->slot->state == STK_SLOT_FREE;
        return STOKER_OK;
    }
    const int code = p->mpi->test(wanted->request, done);
    return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Test", error);
}

static int await(struct stk_mpi_peers *p, const struct wanted *wanted, stoker_error *error)
{
    const uint64_t end_ns = stk_now_ns() + p->options.timeout_ms * STK_NS_PER_MS;
    int rc = stk_mpi_check(p, error);
    for (uint32_t turn = 0; rc == STOKER_OK; turn++) {
        bool done = false;
        rc = stk_mpi_hear(p, wanted->what, error); /* first: what is done may be too late */
        if (rc == STOKER_OK)
            rc = look(p, wanted, &done, error);
        if (rc != STOKER_OK || done)
            return rc;
        if (stk_now_ns() > end_ns)
            rc = stk_mpi_check_presence(p, wanted->what, p->peers.rank, error);
        stk_mpi_relax(turn < UINT32_MAX - 1 ? turn : UINT32_MAX - 1);
    }
    return rc;
}

int stk_mpi_await(struct stk_mpi_peers *p, struct stk_mpi_request *request, const char *what,
                  stoker_error *error)
{
    const struct wanted wanted = { .request = request, .what = what };
    return await(p, &wanted, error);
}

static int await_slot(struct stk_mpi_peers *p, const struct stk_slot *slot, stoker_error *error)
{
    const struct wanted wanted = { .slot = slot, .what = "the sum of gradients" };
    return await(p, &wanted, error);
}

/* ---- arrays ---- */

int stk_mpi_all_reduce(struct stk_peers *peers, float *floats, uint64_t count, stoker_error *error)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    int rc = stk_mpi_check(p, error);
    for (uint64_t done = 0; done < count && rc == STOKER_OK;) {
        struct stk_slot *const slot = &p->slots[p->slices++ % STK_SLOTS];
        const uint64_t left = count - done;
        rc = await_slot(p, slot, error);
        if (rc != STOKER_OK)
            break;
        slot->at = floats + done;
        slot->count = left < p->slice_floats ? left : p->slice_floats;
        done += slot->count;
        rc = begin_slice(p, slot, error);
    }
    return rc;
}

bool stk_mpi_has_room(const struct stk_peers *peers)
{
    const struct stk_mpi_peers *const p = (const struct stk_mpi_peers *)peers;
    return p->slots[p->slices % STK_SLOTS].state == STK_SLOT_FREE;
}

int stk_mpi_finish(struct stk_peers *peers, stoker_error *error)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    int rc = stk_mpi_check(p, error);
    for (uint32_t s = 0; s < STK_SLOTS && rc == STOKER_OK; s++)
        rc = await_slot(p, &p->slots[s], error);
    return rc;
}
