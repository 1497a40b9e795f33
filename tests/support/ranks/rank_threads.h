/* rank_threads.h - runs a function on ranks that are threads: each finds its group and rank in
 * rank_run.h. */
#ifndef STK_TEST_RANK_THREADS_H
#define STK_TEST_RANK_THREADS_H

#include <pthread.h>

#include "rank_run.h"

enum { THREAD_RANKS_MAX = 4 };

struct rank_thread {
    pthread_t thread;
    stoker_peer_group *group;
    uint32_t rank;
    void (*run)(void);
};

static inline void *be_thread_rank(void *argument)
{
    const struct rank_thread *const self = argument;
    rank_group = self->group;
    rank_in_group = self->rank;
    self->run();
    return NULL;
}

static inline void run_ranks(uint32_t world_size, void (*run)(void))
{
    struct rank_thread threads[THREAD_RANKS_MAX];
    stoker_peer_group *group = NULL;
    CHECK(world_size <= THREAD_RANKS_MAX);
    CHECK(stoker_peer_group_create(&group, world_size, NULL) == STOKER_OK);
    for (uint32_t r = 0; r < world_size; r++) {
        threads[r] = (struct rank_thread){ .group = group, .rank = r, .run = run };
        CHECK(pthread_create(&threads[r].thread, NULL, be_thread_rank, &threads[r]) == 0);
    }
    for (uint32_t r = 0; r < world_size; r++)
        CHECK(pthread_join(threads[r].thread, NULL) == 0);
    stoker_peer_group_destroy(&group);
    CHECK(group == NULL);
}

#endif
