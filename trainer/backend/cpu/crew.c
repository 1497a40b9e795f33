/* crew.c - see crew.h.
 *
 * A turn is a number that goes up: `pass` when there is work, `phase` when all have arrived. Who
 * waits for a turn spins, then counts himself among its sleepers and looks once more; who makes
 * the turn writes the number and then looks for sleepers. Both orders are sequentially
 * consistent, so one of the two sees the other. */
#include "trainer/backend/cpu/crew.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stoker/error.h>

#include "loader/base/memory.h"
#include "loader/base/thread.h"

enum { SPINS = 4000 }; /* some tens of microseconds: less than a sleep and a wake cost */

struct turn {
    _Alignas(STK_CACHE_LINE) _Atomic uint32_t number;
    _Atomic uint32_t sleepers;
};

struct hand {
    struct stk_crew *crew;
    pthread_t thread;
    uint32_t index;
};

struct stk_crew {
    struct turn pass;
    struct turn phase;
    _Alignas(STK_CACHE_LINE) _Atomic uint32_t arrived;
    uint32_t threads; /* that take part in a barrier */
    uint32_t started; /* of hands[1..] */
    bool stop;        /* these three: written before a turn of pass, read after it */
    stk_crew_work *work;
    void *argument;
    struct hand hands[];
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

void stk_crew_barrier(struct stk_crew *crew)
{
    /* The phase cannot turn before this thread has arrived, so the number read is the current one. */
    const uint32_t phase = atomic_load_explicit(&crew->phase.number, memory_order_relaxed);
    const uint32_t before = atomic_fetch_add_explicit(&crew->arrived, 1U, memory_order_acq_rel);
    if (before + 1 < crew->threads) {
        await_turn(&crew->phase, phase);
        return;
    }
    atomic_store_explicit(&crew->arrived, 0U, memory_order_relaxed); /* published by the turn */
    make_turn(&crew->phase);
}

static void *serve(void *argument)
{
    struct hand *hand = argument;
    struct stk_crew *crew = hand->crew;
    for (uint32_t pass = 0;; pass++) {
        await_turn(&crew->pass, pass);
        if (crew->stop)
            return NULL;
        crew->work(crew->argument, hand->index);
        stk_crew_barrier(crew);
    }
}

int stk_crew_create(struct stk_crew **out, uint32_t threads)
{
    assert(threads >= 1);
    assert(threads <= STK_CREW_THREADS_MAX);
    struct stk_crew *crew = stk_calloc(1, sizeof(*crew) + threads * sizeof(crew->hands[0]));
    if (crew == NULL)
        return STOKER_ENOMEM;
    crew->threads = threads;
    for (uint32_t index = 1; index < threads; index++) {
        struct hand *hand = &crew->hands[index];
        *hand = (struct hand){ .crew = crew, .index = index };
        if (stk_thread_start(&hand->thread, "stoker-train", serve, hand) != 0) {
            stk_crew_destroy(crew);
            return STOKER_ETHREAD;
        }
        crew->started++;
    }
    *out = crew;
    return STOKER_OK;
}

void stk_crew_destroy(struct stk_crew *crew)
{
    if (crew == NULL)
        return;
    crew->stop = true;
    make_turn(&crew->pass);
    for (uint32_t index = 1; index <= crew->started; index++)
        pthread_join(crew->hands[index].thread, NULL);
    stk_free(crew);
}

uint32_t stk_crew_threads(const struct stk_crew *crew)
{
    return crew->threads;
}

void stk_crew_run(struct stk_crew *crew, stk_crew_work *work, void *argument)
{
    crew->work = work;
    crew->argument = argument;
    if (crew->threads > 1)
        make_turn(&crew->pass);
    work(argument, 0);
    stk_crew_barrier(crew);
}
