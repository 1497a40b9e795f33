/* test_thread_ranks.c - ranks that are threads train as one rank: the cases that ranks of MPI run,
 * too. */
#include "support/ranks/rank_threads.h"
#include "support/ranks/rank_train_cases.h"

static void be_one(void)
{
    meet();
    CHECK(ranks == 1);
    cases_of_any_number();
}

static void be_several(void)
{
    meet();
    CHECK(rank == rank_in_group);
    cases_of_any_number();
    cases_of_several();
}

int main(void)
{
    run_ranks(1, be_one);
    for (uint32_t world_size = 2; world_size <= THREAD_RANKS_MAX; world_size++)
        run_ranks(world_size, be_several);
    return 0;
}
