/* recall.c - see recall.h. */
#include "loader/dataset/recall.h"

#include <stdatomic.h>
#include <time.h>

#include "loader/dataset/format.h"

static _Atomic uint32_t turn;
static _Atomic uint32_t readers[2]; /* of even and odd turns */
static _Atomic bool busy;           /* an owner waits */

uint32_t stk_recall_turn(void)
{
    /* Acquire, with the increment in stk_recall(): locate() sees what the owner wrote before. */
    return atomic_load_explicit(&turn, memory_order_acquire);
}

uint32_t stk_recall_enter(const stoker_dataset *dataset)
{
    if (!dataset->recalls)
        return 0;
    for (;;) {
        /* Sequentially consistent, as in stk_recall(): either the turn is still the same after the
         * reader was counted, then the owner sees the count after it changes the turn, or not. */
        const uint32_t now = atomic_load(&turn);
        atomic_fetch_add(&readers[now % 2], 1U);
        if (atomic_load(&turn) == now)
            return now;
        atomic_fetch_sub(&readers[now % 2], 1U);
    }
}

void stk_recall_leave(const stoker_dataset *dataset, uint32_t entered)
{
    if (dataset->recalls) /* release, with the load in stk_recall(): the reads are over */
        atomic_fetch_sub_explicit(&readers[entered % 2], 1U, memory_order_release);
}

/* Returns false if the owner must stop. */
static bool rest(const _Atomic uint32_t *stop)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return atomic_load(stop) == 0;
}

bool stk_recall(const _Atomic uint32_t *stop)
{
    /* One owner at a time: the readers of the turn before this one must be gone, too. */
    while (atomic_exchange(&busy, true))
        if (!rest(stop))
            return false;
    const uint32_t before = atomic_fetch_add(&turn, 1U);
    bool goes_on = true;
    while (atomic_load(&readers[before % 2]) > 0 && goes_on)
        goes_on = rest(stop);
    atomic_store(&busy, false);
    return goes_on;
}
