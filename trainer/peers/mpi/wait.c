/* wait.c - see mpi_peers.h: waiting for requests and slices, while messages are heard and
 * slices move on. */
#include "trainer/peers/mpi/mpi_peers.h"

#include "loader/base/clock.h"

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

int stk_mpi_await_slot(struct stk_mpi_peers *p, const struct stk_slot *slot, stoker_error *error)
{
    const struct wanted wanted = { .slot = slot, .what = "the sum of gradients" };
    return await(p, &wanted, error);
}
