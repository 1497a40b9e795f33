/* thread_team.h - a fixed set of threads that run one function together, pass by pass.
 *
 *   asleep ──run──▶ working ──barrier──▶ working ──▶ ... ──▶ asleep
 *
 * The caller of stk_thread_team_run is thread 0. Threads that wait spin for some tens of
 * microseconds, because the others are usually nearly there, and then sleep on a futex. */
#ifndef STK_BASE_THREAD_TEAM_H
#define STK_BASE_THREAD_TEAM_H

#include <stdint.h>

enum { STK_THREAD_TEAM_MAX = 257 }; /* 256 that work, and a caller that keeps the time */

struct stk_thread_team;
typedef void stk_thread_team_work(void *argument, uint32_t thread);

/* A team of 1..STK_THREAD_TEAM_MAX threads, the caller included; the others get `name`. Returns 0,
 * STOKER_ENOMEM or STOKER_ETHREAD; on failure nothing is left behind. */
int stk_thread_team_create(struct stk_thread_team **out, const char *name, uint32_t threads);
void stk_thread_team_destroy(struct stk_thread_team *team); /* NULL is allowed */
uint32_t stk_thread_team_threads(const struct stk_thread_team *team);

/* Calls work(argument, thread) once on every thread; returns after all calls have returned. */
void stk_thread_team_run(struct stk_thread_team *team, stk_thread_team_work *work, void *argument);

/* Inside work: waits until every thread has arrived. Writes before it are visible to all after
 * it. */
void stk_thread_team_barrier(struct stk_thread_team *team);

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
