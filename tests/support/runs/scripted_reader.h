/* scripted_reader.h - a reader that misbehaves as a script says, for everybody's tests.
 *
 *   submit --> HELD --due, and not stalled--> read by pread, or the rule's result --> reap
 *
 *   static const struct stk_script_rule rules[] = {
 *       // the 3rd and 4th read of file 1 end after 10 bytes
 *       { .what = STK_SCRIPT_SHORT, .amount = 10, .file = 1, .skip = 2, .times = 2 },
 *       // whatever touches bytes 4096..4099 of any file fails for ever
 *       { .what = STK_SCRIPT_ERRNO, .amount = EIO, .file = STK_SCRIPT_ANY_FILE,
 *         .offset = 4096, .bytes = 4 },
 *   };
 *   stk_script_install(&(struct stk_script){ .rules = rules, .rule_count = 2 });
 *   options.reader = &stk_scripted_reader;
 *
 * A vtable has no room for a script, so there is one per process; a test is a process
 * and a program of one file, which is why this is a header of static functions.
 *
 * Threads  install before the loader is created and after it is destroyed, never in
 *          between. stk_script_release() and the counters from any thread at any time.
 *          Counting is atomic over all rings: rules count the reads of all workers.
 * Memory   A read writes its buffer when it is reaped, so that a buffer freed too early
 *          is seen by ASan. A ring whose close answered STOKER_BUSY stays reachable for
 *          good, so that it is no leak.
 */
#ifndef STK_TEST_SCRIPTED_READER_H
#define STK_TEST_SCRIPTED_READER_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stoker/reader.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/io/open_beneath.h"
#include "loader/base/rng.h"

enum stk_script_what {
    STK_SCRIPT_PASS,  /* read as usual: an exception in front of a wider rule */
    STK_SCRIPT_SHORT, /* read at most `amount` bytes */
    STK_SCRIPT_ERRNO, /* result = -amount: EINTR, EAGAIN, EIO, ESTALE, ... */
    STK_SCRIPT_EOF,   /* result = 0 */
    STK_SCRIPT_FLIP,  /* read as usual, then flip the lowest bit of byte `amount` % result */
    STK_SCRIPT_DELAY, /* finish `amount` milliseconds after submit */
    STK_SCRIPT_STALL, /* finish only after stk_script_release() */
    STK_SCRIPT_WHATS
};

enum { STK_SCRIPT_RULES_MAX = 64 };
#define STK_SCRIPT_ANY_FILE UINT32_MAX

/* Applies to reads of `file`, or of the whole file named `path` if that is not NULL, that touch
 * [offset, offset + bytes); bytes 0 = any place. STK_SCRIPT_ANY_FILE means whole files as well.
 * Of those the first `skip` are let pass, the next `times` (0 = all) are hit. The
 * first rule that hits a read decides about it. */
struct stk_script_rule {
    enum stk_script_what what;
    uint64_t amount;
    uint32_t file;
    const char *path;
    uint64_t offset;
    uint64_t bytes;
    uint64_t skip;
    uint64_t times;
};

struct stk_script {
    const struct stk_script_rule *rules; /* must outlive the script */
    uint32_t rule_count;
    uint64_t shuffle_seed; /* deliver in an order drawn from it; 0 = oldest first */
    uint32_t reap_max;     /* most completions per reap; 0 = no limit */
    uint64_t fail_open;    /* the k-th open (1, 2, ...) answers STOKER_EREADER; 0 = none */
    uint64_t fail_submit;  /* the k-th submit answers STOKER_EIO and takes nothing */
    uint64_t fail_reap;    /* the k-th reap answers STOKER_EIO */
    bool fail_on;          /* not only the k-th: each from the k-th on */
};

/* What happened since install. */
struct stk_script_counts {
    uint64_t opens; /* that made a ring */
    uint64_t closes;
    uint64_t busy_closes;
    uint64_t submits;
    uint64_t reads;
    uint64_t reaped;
    uint64_t hits[STK_SCRIPT_WHATS]; /* by rules, per kind */
};

struct stk_scripted_state {
    struct stk_script script;
    _Atomic uint64_t matched[STK_SCRIPT_RULES_MAX];
    _Atomic uint64_t opens, closes, busy_closes, submits, reads, reaped, open_calls, reap_calls;
    _Atomic uint64_t hits[STK_SCRIPT_WHATS];
    _Atomic bool released;
};

static struct stk_scripted_state stk_scripted;

/* The rings that were left busy, by all scripts. */
static struct stk_scripted_ring *_Atomic stk_scripted_busy;

static inline void stk_script_install(const struct stk_script *script)
{
    assert(script->rule_count <= STK_SCRIPT_RULES_MAX);
    memset(&stk_scripted, 0, sizeof(stk_scripted));
    stk_scripted.script = *script;
}

/* Let every stalled read, and those to come, finish. */
static inline void stk_script_release(void)
{
    atomic_store(&stk_scripted.released, true);
}

static inline struct stk_script_counts stk_script_counts(void)
{
    struct stk_script_counts counts = {
        .opens = atomic_load(&stk_scripted.opens),
        .closes = atomic_load(&stk_scripted.closes),
        .busy_closes = atomic_load(&stk_scripted.busy_closes),
        .submits = atomic_load(&stk_scripted.submits),
        .reads = atomic_load(&stk_scripted.reads),
        .reaped = atomic_load(&stk_scripted.reaped),
    };
    for (int i = 0; i < STK_SCRIPT_WHATS; i++)
        counts.hits[i] = atomic_load(&stk_scripted.hits[i]);
    return counts;
}

/* ---- the reader ------------------------------------------------------------ */

struct stk_scripted_held {
    stoker_read *read;
    enum stk_script_what what;
    uint64_t amount;
    uint64_t due_ns; /* on the clock */
};

struct stk_scripted_ring {
    const stoker_file *files;
    uint32_t file_count;
    int directory;
    uint32_t depth;
    uint32_t held_count;
    uint64_t number; /* this ring's, which gives it an order of its own */
    uint64_t draws;
    struct stk_scripted_ring *earlier; /* in the list of busy ones */
    struct stk_scripted_held held[];
};

/* Returns true if call number `calls` (from 1) is the one to fail. */
static inline bool stk_scripted_fails(uint64_t calls, uint64_t nth)
{
    return nth != 0 && (calls == nth || (stk_scripted.script.fail_on && calls > nth));
}

static inline bool stk_scripted_touches(const struct stk_script_rule *rule, const stoker_read *read)
{
    if (rule->path != NULL && (read->path == NULL || strcmp(rule->path, read->path) != 0))
        return false;
    if (rule->path == NULL && rule->file != STK_SCRIPT_ANY_FILE &&
        (read->path != NULL || rule->file != read->file))
        return false;
    if (rule->bytes == 0)
        return true;
    return read->offset < rule->offset + rule->bytes && rule->offset < read->offset + read->bytes;
}

/* The rule that hits this read, or NULL. */
static inline const struct stk_script_rule *stk_scripted_rule_for(const stoker_read *read)
{
    for (uint32_t i = 0; i < stk_scripted.script.rule_count; i++) {
        const struct stk_script_rule *rule = &stk_scripted.script.rules[i];
        if (!stk_scripted_touches(rule, read))
            continue;
        const uint64_t before = atomic_fetch_add(&stk_scripted.matched[i], 1U);
        if (before < rule->skip || (rule->times != 0 && before - rule->skip >= rule->times))
            continue;
        atomic_fetch_add(&stk_scripted.hits[rule->what], 1U);
        return rule;
    }
    return NULL;
}

static inline int stk_scripted_open(void *self, void **ring, const stoker_reader_setup *setup,
                                    stoker_error *error)
{
    (void)self;
    const struct stk_place place = STK_NOWHERE;
    const uint64_t calls = atomic_fetch_add(&stk_scripted.open_calls, 1U) + 1;
    if (stk_scripted_fails(calls, stk_scripted.script.fail_open))
        return stk_error_set(error, STOKER_EREADER, STOKER_STAGE_READ, &place,
                             "scripted reader: open %llu fails", (unsigned long long)calls);
    struct stk_scripted_ring *scripted =
        calloc(1, sizeof(*scripted) + setup->depth * sizeof(scripted->held[0]));
    if (scripted == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, &place, "scripted reader");
    scripted->files = setup->files;
    scripted->file_count = setup->file_count;
    scripted->directory = setup->directory;
    scripted->depth = setup->depth;
    scripted->number = atomic_fetch_add(&stk_scripted.opens, 1U);
    *ring = scripted;
    return 0;
}

static inline void stk_scripted_hold(struct stk_scripted_ring *scripted, stoker_read *read)
{
    assert(read->path != NULL || read->file < scripted->file_count);
    assert(read->bytes >= 1);
    const struct stk_script_rule *rule = stk_scripted_rule_for(read);
    struct stk_scripted_held *held = &scripted->held[scripted->held_count++];
    *held = (struct stk_scripted_held){ .read = read };
    if (rule != NULL) {
        held->what = rule->what;
        held->amount = rule->amount;
    }
    if (held->what == STK_SCRIPT_DELAY)
        held->due_ns = stk_now_ns() + held->amount * 1000000U;
}

static inline int stk_scripted_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    struct stk_scripted_ring *scripted = ring;
    assert(count <= scripted->depth - scripted->held_count); /* the caller's promise */
    const uint64_t calls = atomic_fetch_add(&stk_scripted.submits, 1U) + 1;
    if (stk_scripted_fails(calls, stk_scripted.script.fail_submit))
        return STOKER_EIO;
    atomic_fetch_add(&stk_scripted.reads, count);
    for (uint32_t i = 0; i < count; i++)
        stk_scripted_hold(scripted, reads[i]);
    return 0;
}

static inline int32_t stk_scripted_pread(const struct stk_scripted_ring *scripted,
                                         const stoker_read *read, uint64_t bytes)
{
    if (read->path != NULL)
        return (int32_t)stk_read_beneath(scripted->directory, read->path, read->buffer, bytes,
                                         read->offset);
    const ssize_t got =
        pread(scripted->files[read->file].fd, read->buffer, bytes, (off_t)read->offset);
    return got < 0 ? (int32_t)-errno : (int32_t)got;
}

static inline void stk_scripted_finish(const struct stk_scripted_ring *scripted,
                                       const struct stk_scripted_held *held)
{
    stoker_read *read = held->read;
    uint64_t bytes = read->bytes;
    switch (held->what) {
    case STK_SCRIPT_ERRNO:
        read->result = -(int64_t)held->amount;
        return;
    case STK_SCRIPT_EOF:
        read->result = 0;
        return;
    case STK_SCRIPT_SHORT:
        bytes = held->amount < bytes ? held->amount : bytes;
        break;
    case STK_SCRIPT_PASS:
    case STK_SCRIPT_FLIP:
    case STK_SCRIPT_DELAY:
    case STK_SCRIPT_STALL:
    case STK_SCRIPT_WHATS:
        break;
    }
    read->result = stk_scripted_pread(scripted, read, bytes);
    if (held->what == STK_SCRIPT_FLIP && read->result > 0)
        ((uint8_t *)read->buffer)[held->amount % (uint64_t)read->result] ^= 1U;
}

static inline bool stk_scripted_ready(const struct stk_scripted_held *held, uint64_t now_ns)
{
    if (held->what == STK_SCRIPT_STALL)
        return atomic_load(&stk_scripted.released);
    return held->due_ns <= now_ns;
}

/* The number of a held read to deliver next, or -1. */
static inline int64_t stk_scripted_pick(struct stk_scripted_ring *scripted)
{
    const uint64_t now_ns = stk_now_ns();
    uint32_t first = 0;
    if (stk_scripted.script.shuffle_seed != 0 && scripted->held_count > 0) {
        const struct stk_random draw =
            stk_philox(stk_scripted.script.shuffle_seed, scripted->number, scripted->draws++);
        first = draw.word[0] % scripted->held_count;
    }
    for (uint32_t i = 0; i < scripted->held_count; i++) {
        const uint32_t at = (first + i) % scripted->held_count;
        if (stk_scripted_ready(&scripted->held[at], now_ns))
            return at;
    }
    return -1;
}

static inline stoker_read *stk_scripted_deliver(struct stk_scripted_ring *scripted, uint32_t at)
{
    const struct stk_scripted_held held = scripted->held[at];
    stk_scripted_finish(scripted, &held);
    scripted->held_count--;
    memmove(&scripted->held[at], &scripted->held[at + 1],
            (scripted->held_count - at) * sizeof(held));
    atomic_fetch_add(&stk_scripted.reaped, 1U);
    return held.read;
}

/* Wait for a deliverable read; its number, or -1 when the time is over. */
static inline int64_t stk_scripted_wait(struct stk_scripted_ring *scripted, int64_t wait_ns)
{
    const uint64_t start_ns = stk_now_ns();
    const struct timespec pause = { .tv_nsec = 100000 };
    int64_t at = stk_scripted_pick(scripted);
    while (at < 0 && (wait_ns < 0 || stk_now_ns() - start_ns < (uint64_t)wait_ns)) {
        nanosleep(&pause, NULL);
        at = stk_scripted_pick(scripted);
    }
    return at;
}

static inline int stk_scripted_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct stk_scripted_ring *scripted = ring;
    const uint64_t calls = atomic_fetch_add(&stk_scripted.reap_calls, 1U) + 1;
    if (stk_scripted_fails(calls, stk_scripted.script.fail_reap))
        return STOKER_EIO;
    if (stk_scripted.script.reap_max != 0 && max > stk_scripted.script.reap_max)
        max = stk_scripted.script.reap_max;
    if (max == 0 || scripted->held_count == 0)
        return 0;
    uint32_t count = 0;
    int64_t at = stk_scripted_wait(scripted, wait_ns);
    while (at >= 0) {
        done[count++] = stk_scripted_deliver(scripted, (uint32_t)at);
        at = count < max ? stk_scripted_pick(scripted) : -1;
    }
    return (int)count;
}

/* Keep a ring that is leaked on purpose within LeakSanitizer's sight. */
static inline void stk_scripted_keep(struct stk_scripted_ring *ring)
{
    atomic_fetch_add(&stk_scripted.busy_closes, 1U);
    ring->earlier = atomic_load(&stk_scripted_busy);
    while (!atomic_compare_exchange_weak(&stk_scripted_busy, &ring->earlier, ring))
        ;
}

static inline int stk_scripted_close(void *ring, int64_t wait_ns)
{
    struct stk_scripted_ring *scripted = ring;
    const uint64_t start_ns = stk_now_ns();
    while (scripted->held_count > 0) {
        const uint64_t spent_ns = stk_now_ns() - start_ns;
        const int64_t left_ns = spent_ns < (uint64_t)wait_ns ? wait_ns - (int64_t)spent_ns : 0;
        const int64_t at = stk_scripted_wait(scripted, wait_ns < 0 ? -1 : left_ns);
        if (at < 0) {
            stk_scripted_keep(scripted);
            return STOKER_BUSY;
        }
        (void)stk_scripted_deliver(scripted, (uint32_t)at);
    }
    free(scripted);
    atomic_fetch_add(&stk_scripted.closes, 1U);
    return 0;
}

static const stoker_reader stk_scripted_reader = {
    .struct_size = sizeof(stoker_reader),
    .name = "scripted",
    .open = stk_scripted_open,
    .submit = stk_scripted_submit,
    .reap = stk_scripted_reap,
    .close = stk_scripted_close,
};

#endif
