/* consumer_wait.c - see consumer_wait.h. */
#include "loader/pipeline/work/consumer_wait.h"

#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/pipeline/work/consumer_cpu.h"

enum {
    SEVERAL_NS = 500000,   /* work that one sleep of the consumer should cover */
    WAKING_NS = 30000,     /* until a woken consumer has released slots */
    TIMER_LATE_NS = 60000, /* what a timer and a waking core add to a short sleep */
    SPIN_NS = 30000,       /* spin for batches that come faster than this, if a core is spare:
                             a sleep and its wake-up cost as much */
    SPIN_TURNS = 64,       /* between two clock readings; about 2 us */
    SPINS_SKIPPED = 16     /* waits without a spin after one that failed */
};

/* Estimate the time between batches from those published during one wait. */
static void learn_pace(struct stk_slots *slots, uint64_t waited_ns, uint64_t published_before)
{
    const uint64_t made =
        atomic_load_explicit(&slots->published, memory_order_relaxed) - published_before;
    if (made == 0)
        return;
    const uint64_t batch_ns = waited_ns / made;
    slots->batch_ns = slots->batch_ns == 0 ? batch_ns : (3 * slots->batch_ns + batch_ns) / 4;
}

/* Number of batches to sleep through; 1 = wake for each. The rest of the ring must keep the workers
 * busy until the consumer is awake: one slot for each worker, and those they fill meanwhile. */
static uint64_t several_batches(const struct stk_slots *slots)
{
    if (slots->batch_ns == 0)
        return 1;
    const uint64_t wanted = SEVERAL_NS / (slots->batch_ns + 1) + 1;
    const uint64_t room = slots->slot_count - slots->lent;
    const uint64_t slack = slots->workers + WAKING_NS / (slots->batch_ns + 1) + 1;
    const uint64_t most = slack + room / 3 < room ? room - slack : (room + 2) / 3;
    return wanted < most ? wanted : most;
}

static int64_t lesser_wait(int64_t a, int64_t b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return a < b ? a : b;
}

/* One sleep, until `wake_at` batches in all are published, or for a limited time. */
static void sleep_until(struct stk_slots *slots, uint64_t wake_at, int64_t wait_ns)
{
    uint32_t word = atomic_load(&slots->consumer_word);
    atomic_store(&slots->wake_at, wake_at); /* seq_cst: then check again */
    if (atomic_load(&slots->published) < wake_at && !stk_slots_ready(slots) &&
        !atomic_load(&slots->stopping) && !atomic_load(&slots->interrupted)) {
        if (atomic_load(&slots->sleepers) > 0)
            stk_slots_wake_workers(slots); /* never sleep while workers that could help sleep */
        stk_futex_wait(&slots->consumer_word, word, wait_ns);
    }
    atomic_store(&slots->wake_at, UINT64_MAX);
}

/* Sleep while several batches are made. With a spare core, on a timer: it costs the workers
 * nothing, while waking an idle core costs the waker 10 us; they do so only if the ring fills up
 * first. Without one, the timer would be late, since every core is busy: then a worker wakes the
 * consumer, which takes over that worker's core. */
static void sleep_for_several(struct stk_slots *slots, int64_t wait_ns)
{
    const uint64_t wanted = several_batches(slots);
    if (wanted <= 1)
        return;
    const uint64_t made_ns = wanted * slots->batch_ns;
    if (slots->spare_core)
        sleep_until(slots, slots->head + slots->slot_count - slots->lent,
                    lesser_wait(wait_ns, made_ns > 2 * TIMER_LATE_NS
                                             ? (int64_t)(made_ns - TIMER_LATE_NS)
                                             : TIMER_LATE_NS));
    else
        sleep_until(slots, slots->head + wanted, lesser_wait(wait_ns, 2 * SEVERAL_NS));
}

/* Sleep until the next batch, in any order, is published. */
static void sleep_for_batch(struct stk_slots *slots, int64_t wait_ns)
{
    uint64_t published = atomic_load(&slots->published);
    /* Later batches may be ready while the head is not. */
    sleep_until(slots, (published > slots->head ? published : slots->head) + 1, wait_ns);
}

static bool spin(const struct stk_slots *slots)
{
    for (int turn = 0; turn < SPIN_TURNS; turn++) {
        if (stk_slots_ready(slots))
            return true;
        stk_spin_pause();
    }
    return false;
}

/* Spin for a batch that is about to come, if a core is spare. A miss means the core was busy: do
 * not spin for the next SPINS_SKIPPED waits. */
static bool spin_long(struct stk_slots *slots, uint64_t start_ns)
{
    if (!slots->spare_core || slots->batch_ns >= SPIN_NS)
        return false;
    if (slots->spins_to_skip > 0) {
        slots->spins_to_skip--;
        return false;
    }
    while (stk_now_ns() - start_ns < SPIN_NS)
        if (spin(slots))
            return true;
    slots->spins_to_skip = SPINS_SKIPPED;
    return false;
}

/* Time left until the deadline; -1 = no limit. */
static int64_t wait_left(uint64_t deadline_ns, uint64_t now_ns)
{
    if (deadline_ns == UINT64_MAX)
        return -1;
    return deadline_ns > now_ns ? (int64_t)(deadline_ns - now_ns) : 0;
}

bool stk_consumer_wait(struct stk_slots *slots, uint64_t deadline_ns, uint64_t *now_ns)
{
    const uint64_t start_ns = *now_ns;
    const uint64_t published = atomic_load_explicit(&slots->published, memory_order_relaxed);
    if (spin(slots)) { /* too short to learn from */
        *now_ns = stk_now_ns();
        return true;
    }
    bool ready = spin_long(slots, start_ns);
    if (!ready) {
        sleep_for_several(slots, wait_left(deadline_ns, start_ns));
        ready = stk_slots_ready(slots);
    }
    while (!ready && !atomic_load(&slots->stopping) && !atomic_load(&slots->interrupted)) {
        *now_ns = stk_now_ns();
        if (*now_ns >= deadline_ns) {
            /* A caller that only polls from time to time must wake the workers, too. */
            if (atomic_load(&slots->sleepers) > 0)
                stk_slots_wake_workers(slots);
            return false;
        }
        sleep_for_batch(slots, wait_left(deadline_ns, *now_ns));
        ready = stk_slots_ready(slots);
    }
    *now_ns = stk_now_ns();
    stk_consumer_cpu_note(slots);
    learn_pace(slots, *now_ns - start_ns, published);
    return ready;
}
