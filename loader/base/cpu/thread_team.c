/* thread_team.c - see thread_team.h.
 *
 * A turn is a number that only grows: `pass` when there is work, `phase` when all have arrived. A
 * waiting thread spins, then counts itself among the sleepers and looks once more; the thread that
 * makes the turn writes the number and then looks for sleepers. Both orders are sequentially
 * consistent, so at least one of the two sees the other. */
#include "loader/base/cpu/thread_team.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stoker/error.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/memory/memory.h"

enum { SPINS = 4000 }; /* some tens of microseconds, less than sleeping and waking cost */

struct turn {
    _Alignas(STK_CACHE_LINE) _Atomic uint32_t number;
    _Atomic uint32_t sleepers;
};

struct member {
    struct stk_thread_team *team;
    pthread_t thread;
    uint32_t index;
};

struct stk_thread_team {
    struct turn pass;
    struct turn phase;
    _Alignas(STK_CACHE_LINE) _Atomic uint32_t arrived;
    uint32_t threads; /* including the caller of run */
    uint32_t started; /* members[1..started] have a thread */
    bool stop;        /* this and the next two: written before a turn of `pass`, read after it */
    stk_thread_team_work *work;
    void *argument;
    struct member members[];
};

static void await_turn(struct turn *turn, uint32_t old)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(&turn->number, memory_order_acquire) != old)
            return;
        stk_spin_pause();
    }
    atomic_fetch_add_explicit(&turn->sleepers, 1U, memory_order_seq_cst);
    while (atomic_load_explicit(&turn->number, memory_order_seq_cst) == old)
        stk_futex_wait(&turn->number, old, -1);
    atomic_fetch_sub_explicit(&turn->sleepers, 1U, memory_order_relaxed);
}

static void make_turn(struct turn *turn)
{
    atomic_fetch_add_explicit(&turn->number, 1U, memory_order_seq_cst);
    if (atomic_load_explicit(&turn->sleepers, memory_order_seq_cst) > 0)
        stk_futex_wake(&turn->number, INT_MAX);
}

void stk_thread_team_barrier(struct stk_thread_team *team)
{
    /* The phase cannot turn before this thread arrives, so the number is current. */
    const uint32_t phase = atomic_load_explicit(&team->phase.number, memory_order_relaxed);
    const uint32_t before = atomic_fetch_add_explicit(&team->arrived, 1U, memory_order_acq_rel);
    if (before + 1 < team->threads) {
        await_turn(&team->phase, phase);
        return;
    }
    atomic_store_explicit(&team->arrived, 0U, memory_order_relaxed); /* published by the turn */
    make_turn(&team->phase);
}

static void *serve(void *argument)
{
    struct member *member = argument;
    struct stk_thread_team *team = member->team;
    for (uint32_t pass = 0;; pass++) {
        await_turn(&team->pass, pass);
        if (team->stop)
            return NULL;
        team->work(team->argument, member->index);
        stk_thread_team_barrier(team);
    }
}

int stk_thread_team_create(struct stk_thread_team **out, const char *name, uint32_t threads)
{
    assert(threads >= 1);
    assert(threads <= STK_THREAD_TEAM_MAX);
    struct stk_thread_team *team =
        stk_calloc(1, sizeof(*team) + threads * sizeof(team->members[0]));
    if (team == NULL)
        return STOKER_ENOMEM;
    team->threads = threads;
    for (uint32_t index = 1; index < threads; index++) {
        struct member *member = &team->members[index];
        *member = (struct member){ .team = team, .index = index };
        if (stk_thread_start(&member->thread, name, serve, member) != 0) {
            stk_thread_team_destroy(team);
            return STOKER_ETHREAD;
        }
        team->started++;
    }
    *out = team;
    return STOKER_OK;
}

void stk_thread_team_destroy(struct stk_thread_team *team)
{
    if (team == NULL)
        return;
    team->stop = true;
    make_turn(&team->pass);
    for (uint32_t index = 1; index <= team->started; index++)
        pthread_join(team->members[index].thread, NULL);
    stk_free(team);
}

uint32_t stk_thread_team_threads(const struct stk_thread_team *team)
{
    return team->threads;
}

void stk_thread_team_run(struct stk_thread_team *team, stk_thread_team_work *work, void *argument)
{
    team->work = work;
    team->argument = argument;
    if (team->threads > 1)
        make_turn(&team->pass);
    work(argument, 0);
    stk_thread_team_barrier(team);
}
