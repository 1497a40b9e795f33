/* crew.h - the compute threads of a back end, which walk through one pass together.
 *
 *   asleep ──run──▶ working ──barrier──▶ working ──▶ ... ──▶ asleep
 *
 * The caller of stk_crew_run is thread 0. Between passes the others sleep on a futex; at a
 * barrier they spin for some microseconds first, because the others are nearly there. */
#ifndef STK_TRAINER_BACKEND_CPU_CREW_H
#define STK_TRAINER_BACKEND_CPU_CREW_H

#include <stdint.h>

enum { STK_CREW_THREADS_MAX = 256 };

struct stk_crew;
typedef void stk_crew_work(void *argument, uint32_t thread);

/* Threads 1..STK_CREW_THREADS_MAX, the caller included. Returns 0, STOKER_ENOMEM or
 * STOKER_ETHREAD; on failure nothing is left behind. */
int stk_crew_create(struct stk_crew **out, uint32_t threads);
void stk_crew_destroy(struct stk_crew *crew); /* NULL is allowed */
uint32_t stk_crew_threads(const struct stk_crew *crew);

/* Let every thread call work(argument, its number); returns when all have done so. */
void stk_crew_run(struct stk_crew *crew, stk_crew_work *work, void *argument);

/* Inside work: go on when all have come here. What was written before is seen by all after. */
void stk_crew_barrier(struct stk_crew *crew);

/* Thread t of n's share of `count`: [begin, end). */
struct stk_share {
    uint64_t begin, end;
};
static inline struct stk_share stk_share_of(uint64_t count, uint32_t thread, uint32_t threads)
{
    const uint64_t whole = count / threads;
    const uint64_t rest = count % threads;
    return (struct stk_share){ .begin = whole * thread + rest * thread / threads,
                               .end = whole * (thread + 1) + rest * (thread + 1) / threads };
}

#endif
