/* peer_group.c - the public calls for ranks that are threads; trainer/peers/threads/threads.h is
 * behind them. */
#include <stoker/trainer.h>

#include "loader/base/error.h"
#include "trainer/peers/threads/threads.h"

int stoker_peer_group_create(stoker_peer_group **out, uint32_t world_size, stoker_error *error)
{
    if (out == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "peer group: out is NULL");
    if (world_size < 1 || world_size > STK_GROUP_RANKS_MAX)
        return stk_refuse_option(error, STOKER_EINVAL, "world_size = %u: expected 1 to %d",
                                 world_size, STK_GROUP_RANKS_MAX);
    return stk_group_create(out, world_size, error);
}

void stoker_peer_group_destroy(stoker_peer_group **group)
{
    if (group == NULL || *group == NULL)
        return;
    stk_group_free(*group);
    *group = NULL;
}
