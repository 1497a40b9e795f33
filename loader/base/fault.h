/* fault.h - make the n-th allocation, thread start, mapping or pin fail, on demand.
 *
 * Only the test build (STOKER_FAULT_INJECTION) has it; elsewhere it costs nothing.
 * The counters are the one place of shared mutable state in the library, and they
 * exist only in that build.
 */
#ifndef STK_BASE_FAULT_H
#define STK_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stk_fault_kind {
    STK_FAULT_MEMORY = 1, /* stk_calloc, stk_region_map */
    STK_FAULT_THREAD = 2, /* stk_thread_start */
    STK_FAULT_LOCK = 4,   /* stk_region_lock */
    STK_FAULT_ANY = 7
};

#ifdef STOKER_FAULT_INJECTION
/* Let the nth (1, 2, ...) hit of the kinds in the mask from now on fail, once. */
void stk_fault_arm(unsigned kinds, uint64_t nth);
/* Stop failing; returns true if the armed fault was reached. */
bool stk_fault_disarm(void);
/* Bytes from stk_calloc and stk_region_map not given back yet. */
int64_t stk_fault_live_bytes(void);
/* Allocations and mappings made so far, in this process. */
uint64_t stk_fault_allocations(void);

bool stk_fault_hit(enum stk_fault_kind kind);
void stk_fault_count(int64_t bytes);
#else
static inline bool stk_fault_hit(enum stk_fault_kind kind)
{
    (void)kind;
    return false;
}
static inline void stk_fault_count(int64_t bytes)
{
    (void)bytes;
}
#endif

#endif
