/* sum.c - see mpi_peers.h: the sum of an array, slice after slice. */
#include "trainer/peers/mpi/mpi_peers.h"

int stk_mpi_all_reduce(struct stk_peers *peers, float *floats, uint64_t count, stoker_error *error)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    int rc = stk_mpi_check(p, error);
    for (uint64_t done = 0; done < count && rc == STOKER_OK;) {
        struct stk_slot *const slot = &p->slots[p->slices++ % STK_SLOTS];
        const uint64_t left = count - done;
        rc = stk_mpi_await_slot(p, slot, error);
        if (rc != STOKER_OK)
            break;
        slot->at = floats + done;
        slot->count = left < p->slice_floats ? left : p->slice_floats;
        done += slot->count;
        rc = stk_mpi_begin_slice(p, slot, error);
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
        rc = stk_mpi_await_slot(p, &p->slots[s], error);
    return rc;
}
