/* crew.c - start the threads together, stop them together, add up what they did.
 *
 * With a time limit the rates of the threads are added, each over its own time, so
 * that the tail of a slow thread does not count against the others. Without one
 * (a fixed amount of work) the time is that of the whole crew.
 */
#include "crew.h"
#include "clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stoker/error.h>

struct shift {
    const struct bench_crew *crew;
    pthread_mutex_t gate; /* guards ready and go */
    pthread_cond_t changed;
    uint32_t ready; /* threads that have set up and wait to begin */
    bool go;
    atomic_bool stop;
};

struct hand {
    struct shift *shift;
    pthread_t thread;
    uint32_t index;
    int rc;
    uint64_t samples;
    uint64_t begin_ns;
    uint64_t end_ns;
};

static int warm_up(const struct bench_crew *crew, void *state)
{
    for (uint32_t step = 0; step < crew->warm_steps; step++) {
        int64_t done = crew->step(state);
        if (done <= 0)
            return (int)done;
    }
    return STOKER_OK;
}

static void wait_at_gate(struct shift *shift)
{
    pthread_mutex_lock(&shift->gate);
    shift->ready++;
    pthread_cond_broadcast(&shift->changed);
    while (!shift->go)
        pthread_cond_wait(&shift->changed, &shift->gate);
    pthread_mutex_unlock(&shift->gate);
}

static void open_gate(struct shift *shift, uint32_t started)
{
    pthread_mutex_lock(&shift->gate);
    while (shift->ready < started)
        pthread_cond_wait(&shift->changed, &shift->gate);
    shift->go = true;
    pthread_cond_broadcast(&shift->changed);
    pthread_mutex_unlock(&shift->gate);
}

static void *work(void *argument)
{
    struct hand *hand = argument;
    const struct bench_crew *crew = hand->shift->crew;
    void *state = NULL;
    hand->rc = crew->setup(crew->context, hand->index, crew->threads, &state);
    if (hand->rc == STOKER_OK)
        hand->rc = warm_up(crew, state);

    wait_at_gate(hand->shift);
    hand->begin_ns = bench_clock_ns();
    while (hand->rc == STOKER_OK &&
           !atomic_load_explicit(&hand->shift->stop, memory_order_relaxed)) {
        int64_t done = crew->step(state);
        if (done < 0)
            hand->rc = (int)done;
        if (done <= 0)
            break;
        hand->samples += (uint64_t)done;
    }
    hand->end_ns = bench_clock_ns();
    if (state != NULL)
        crew->teardown(state);
    return NULL;
}

static double add_up(const struct hand *hands, uint32_t count, bool timed)
{
    double rate = 0;
    uint64_t samples = 0, begin_ns = UINT64_MAX, end_ns = 0;
    for (uint32_t index = 0; index < count; index++) {
        const struct hand *hand = &hands[index];
        uint64_t own_ns = hand->end_ns - hand->begin_ns;
        rate += own_ns > 0 ? (double)hand->samples * 1e9 / (double)own_ns : 0;
        samples += hand->samples;
        begin_ns = hand->begin_ns < begin_ns ? hand->begin_ns : begin_ns;
        end_ns = hand->end_ns > end_ns ? hand->end_ns : end_ns;
    }
    if (timed)
        return rate;
    return end_ns > begin_ns ? (double)samples * 1e9 / (double)(end_ns - begin_ns) : 0;
}

/* If not all threads could be started, those that were do nothing. */
static void run_shift(struct shift *shift, struct hand *hands, uint32_t started)
{
    const struct bench_crew *crew = shift->crew;
    if (started < crew->threads)
        atomic_store(&shift->stop, true);
    open_gate(shift, started);
    if (crew->seconds > 0 && started == crew->threads) {
        bench_sleep_ns((uint64_t)(crew->seconds * 1e9));
        atomic_store_explicit(&shift->stop, true, memory_order_relaxed);
    }
    for (uint32_t index = 0; index < started; index++)
        pthread_join(hands[index].thread, NULL);
}

static int first_error(const struct hand *hands, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++)
        if (hands[index].rc != STOKER_OK)
            return hands[index].rc;
    return STOKER_OK;
}

int bench_crew_run(const struct bench_crew *crew, double *samples_per_s)
{
    assert(crew->threads >= 1);
    assert(crew->threads <= BENCH_THREADS_MAX);
    struct shift shift = { .crew = crew,
                           .gate = PTHREAD_MUTEX_INITIALIZER,
                           .changed = PTHREAD_COND_INITIALIZER };
    struct hand hands[BENCH_THREADS_MAX] = { 0 };
    atomic_init(&shift.stop, false);

    uint32_t started = 0;
    for (; started < crew->threads; started++) {
        hands[started] = (struct hand){ .shift = &shift, .index = started };
        if (pthread_create(&hands[started].thread, NULL, work, &hands[started]) != 0)
            break;
    }
    run_shift(&shift, hands, started);
    if (started < crew->threads)
        return STOKER_ETHREAD;
    int rc = first_error(hands, started);
    if (rc == STOKER_OK)
        *samples_per_s = add_up(hands, started, crew->seconds > 0);
    return rc;
}
