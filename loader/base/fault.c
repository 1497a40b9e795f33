/* fault.c - the counters behind fault.h; empty in a build for users. */
#include "loader/base/fault.h"

#ifdef STOKER_FAULT_INJECTION
#include <stdatomic.h>

static _Atomic unsigned armed_kinds;
static _Atomic uint64_t hits_left; /* 0 = disarmed or done */
static _Atomic bool reached;
static _Atomic int64_t live_bytes;
static _Atomic uint64_t allocations;

void stk_fault_arm(unsigned kinds, uint64_t nth)
{
    atomic_store(&reached, false);
    atomic_store(&hits_left, nth);
    atomic_store(&armed_kinds, kinds);
}

bool stk_fault_disarm(void)
{
    atomic_store(&armed_kinds, 0U);
    atomic_store(&hits_left, 0U);
    return atomic_load(&reached);
}

int64_t stk_fault_live_bytes(void)
{
    return atomic_load(&live_bytes);
}

uint64_t stk_fault_allocations(void)
{
    return atomic_load(&allocations);
}

bool stk_fault_hit(enum stk_fault_kind kind)
{
    if ((atomic_load(&armed_kinds) & (unsigned)kind) == 0)
        return false;
    uint64_t left = atomic_load(&hits_left);
    while (left > 0 && !atomic_compare_exchange_weak(&hits_left, &left, left - 1)) {
    }
    if (left != 1)
        return false;
    atomic_store(&reached, true);
    return true;
}

/* Relaxed: a count that ordered the allocating threads would hide their missing synchronization
 * from ThreadSanitizer. The counts are read after the threads are joined. */
void stk_fault_count(int64_t bytes)
{
    atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed);
    if (bytes > 0)
        atomic_fetch_add_explicit(&allocations, 1U, memory_order_relaxed);
}
#else
typedef int stk_fault_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
