/* none.c - a run of one process: nothing is sent, and every sum is its own. */
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/peers/peers.h"

static void leave(struct stk_peers *peers)
{
    stk_free(peers);
}

static int gather(struct stk_peers *peers, const void *mine, size_t bytes, const void **all,
                  stoker_error *error)
{
    (void)peers;
    (void)bytes;
    (void)error;
    *all = mine;
    return STOKER_OK;
}

static int all_reduce(struct stk_peers *peers, float *floats, uint64_t count, stoker_error *error)
{
    (void)peers;
    (void)floats;
    (void)count;
    (void)error;
    return STOKER_OK;
}

static int move_on(struct stk_peers *peers, stoker_error *error)
{
    (void)peers;
    (void)error;
    return STOKER_OK;
}

static int broadcast(struct stk_peers *peers, void *memory, size_t bytes, stoker_error *error)
{
    (void)peers;
    (void)memory;
    (void)bytes;
    (void)error;
    return STOKER_OK;
}

static void failed(struct stk_peers *peers, int code, const char *text)
{
    (void)peers;
    (void)code;
    (void)text;
}

static const struct stk_peers_ops ops = { .name = "none",
                                          .leave = leave,
                                          .gather = gather,
                                          .all_reduce = all_reduce,
                                          .poll = move_on,
                                          .finish = move_on,
                                          .broadcast = broadcast,
                                          .failed = failed };

int stk_peers_alone(struct stk_peers **out, stoker_error *error)
{
    struct stk_peers *const peers = stk_calloc(1, sizeof(*peers));
    if (peers == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "peers");
    *peers = (struct stk_peers){ .ops = &ops, .world_size = 1, .gather_bytes_max = SIZE_MAX };
    *out = peers;
    return STOKER_OK;
}
