/* machine.h - the state of the one launch that runs, shared by the files of the runtime.
 *
 * Time is counted in slices. A slice is a stretch of one thread without a switch, a fence or an
 * atomic operation; its number is unique in the life of the process, so what an earlier launch
 * noted is recognized by its number and needs no clearing.
 *
 *   block      0                       1                      2
 *   epoch      0    │ 1   │ 2          0    │ 1               0          barriers separate epochs
 *   slice      17 18│19 20│21 22 23    24 25│26 27            28 ...
 */
#ifndef STK_TEST_CUDA_THREADS_MACHINE_H
#define STK_TEST_CUDA_THREADS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_threads.h"
#include "fiber.h"

enum {
    CT_THREADS_MAX = 1024,
    CT_STACK_BYTES = 64 << 10,
    CT_EPOCHS_MAX = 1 << 16, /* barriers of a block */
    CT_WARP = 32
};

enum ct_state { CT_READY, CT_AT_BARRIER, CT_AT_SHUFFLE, CT_ENDED };

struct ct_thread {
    struct ct_fiber fiber;
    char *stack; /* that it runs on */
    struct cuda_where where;
    enum ct_state state;
    const struct cuda_site *site; /* where it waits */
    /* A shuffle. */
    uint32_t mask;
    int source;
    uint64_t value, taken;
    /* Its latest fence, and the latest in an epoch before that one's. Slice 0 = none. */
    uint32_t fence_slice, fence_epoch, fence_slice_before;
};

struct ct_machine {
    const struct cuda_threads_module *module;
    const struct cuda_threads_launch *launch;
    struct cuda_threads_report *report;
    void (*call)(const void *arguments);
    struct ct_fiber scheduler;
    char *stacks;          /* CT_THREADS_MAX, each above a page that cannot be touched */
    const uint32_t *order; /* the order of threads in this turn */
    uint32_t begun;        /* threads of the block, in that order */
    struct ct_thread threads[CT_THREADS_MAX];
    struct ct_thread *running; /* NULL = no kernel runs */
    uint32_t thread_count, live;
    uint32_t slice;                       /* the current one */
    uint32_t launch_slice, block_slice;   /* the first of the launch, of the block */
    uint32_t epoch;                       /* barriers that the block has passed */
    uint32_t epoch_slices[CT_EPOCHS_MAX]; /* the first slice of each */
    uint64_t random;
    bool ended; /* by a finding */
};

extern struct ct_machine ct; /* guarded by launch.c's lock */

static inline bool ct_watched(void)
{
    return ct.launch->memory_count > 0 || ct.launch->find != NULL;
}

static inline uint32_t ct_self(void)
{
    return (uint32_t)(ct.running - ct.threads);
}

/* ---- launch.c ---- */

/* Leaves the running thread in that state until the scheduler resumes it. */
void ct_pause(enum ct_state state, const struct cuda_site *site);
/* The launch ends; does not return. */
void ct_end_launch(void);
/* Notes that the running thread reached a site. */
void ct_reach(const struct cuda_site *site);
uint64_t ct_random(void);

/* ---- mutation.c ---- */

/* Returns true if the launch breaks this site in that way. */
bool ct_broken(const struct cuda_site *site, int how);

/* ---- findings.c ---- */

/* Adds a finding of the running thread. `code`: the place in the kernel, or NULL. */
__attribute__((format(printf, 3, 4))) void ct_find(enum cuda_threads_kind kind, const void *code,
                                                   const char *format, ...);

/* ---- meet.c: both return true if threads can continue ---- */

bool ct_release_barrier(void);
bool ct_release_shuffles(void);

/* ---- shadow.c ---- */

struct ct_stamp {
    uint32_t slice;  /* 0 = never */
    uint16_t thread; /* in its block */
    uint16_t epoch;
};

/* What is known of one byte. */
struct ct_cell {
    struct ct_stamp write;
    struct ct_stamp read, read2; /* by two threads of the latest epoch with a read */
    struct ct_stamp elsewhere;   /* the latest read by an earlier block */
};

struct ct_region {
    const char *from, *to;
    const char *name;
    bool writable, scratch, shared;
    struct ct_cell *cells; /* one per byte */
};

/* The regions of a launch: those of its list, its arguments, and the module's shared memory. */
void ct_regions_begin(void);
/* Clears all cells: slices begin again at 0. */
void ct_regions_forget(void);
/* The region that contains the byte; NULL = none. */
struct ct_region *ct_region_at(const char *at);

/* ---- order.c ---- */

void ct_order_begin_launch(void);
void ct_order_begin_block(void);
void ct_order_fence(void);
void ct_order_atomic(const char *at, size_t bytes);
/* Returns true if what an earlier block did happened before what the running thread does now to the
 * byte. `atomic`: what the other block did was an atomic operation. */
bool ct_ordered(struct ct_stamp before, const char *at, bool atomic);

/* ---- access.c ---- */

void ct_access_atomic(const char *at, size_t bytes, const void *code);
/* Judges writes whose value was not known yet. */
void ct_settle_writes(void);

#endif
