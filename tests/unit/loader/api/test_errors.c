/* test_errors.c - storage that stutters, stalls or goes away: the same bytes, or an
 * answer in time.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "loader/api/loader.h"
#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/runs/scripted_reader.h"
#include "support/seccomp.h"
#include "support/sets/made_set.h"

enum { COUNT = 101, ROW = 40 };

static struct stk_run expected;
static struct stk_run found;

static enum stk_made_kind all_raw(uint64_t id)
{
    (void)id;
    return STK_MADE_RAW;
}

static enum stk_made_kind all_encoded(uint64_t id)
{
    (void)id;
    return STK_MADE_ENCODED;
}

static void open_set(struct stk_made_set *set, stk_made_kind_of *kind_of)
{
    stoker_loader_options options = stk_small_options(.num_workers = 0);
    *set = (struct stk_made_set){ .count = COUNT, .row_bytes = ROW, .kind_of = kind_of };
    cr_assert(stk_made_set_open(set));
    options.reader = stoker_reader_pread();
    cr_assert_eq(stk_run(set->dataset, &options, &expected), STOKER_FINISHED);
}

/* With this script every byte must come as without it. */
static void expect_unharmed(const struct stk_made_set *set, const struct stk_script *script)
{
    for (int32_t workers = 0; workers <= 3; workers += workers == 0 ? 1 : 2)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            stoker_loader_options options =
                stk_small_options(.reader = &stk_scripted_reader, .num_workers = workers,
                                  .cache = (stoker_cache)cache);
            stk_script_install(script);
            (void)stk_run(set->dataset, &options, &found);
            cr_assert(stk_runs_equal(&expected, &found), "workers %d cache %d: rc %d", workers,
                      cache, found.rc);
        }
}

static void expect_rule_unharmed(const struct stk_made_set *set, struct stk_script_rule rule)
{
    rule.file = STK_SCRIPT_ANY_FILE;
    expect_unharmed(set, &(struct stk_script){ .rules = &rule, .rule_count = 1 });
    cr_assert_gt(stk_script_counts().hits[rule.what], 0);
}

CleanTest(errors, short_reads_of_every_length_are_taken_up)
{
    struct stk_made_set set;
    open_set(&set, all_raw);
    for (uint64_t length = 1; length < ROW; length++)
        expect_rule_unharmed(
            &set, (struct stk_script_rule){ .what = STK_SCRIPT_SHORT, .amount = length });
    stk_made_set_close(&set);
    open_set(&set, all_encoded);
    for (uint64_t length = 1; length < ROW; length += 6)
        expect_rule_unharmed(
            &set, (struct stk_script_rule){ .what = STK_SCRIPT_SHORT, .amount = length });
    stk_made_set_close(&set);
}

/* A block of many rows that comes in pieces, cut anywhere. */
CleanTest(errors, short_reads_of_whole_blocks_are_taken_up)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, COUNT, 8, 5, 0));
    stoker_loader_options options = stk_small_options();
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    for (uint64_t length = 1; length < 4000; length = length * 2 + 13) {
        const struct stk_script_rule rule = { .what = STK_SCRIPT_SHORT,
                                              .amount = length,
                                              .file = STK_SCRIPT_ANY_FILE };
        stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
        options.reader = &stk_scripted_reader;
        options.cache = STOKER_CACHE_DECODED;
        options.num_workers = (int32_t)(length % 3);
        cr_assert_eq(stk_run(set.dataset, &options, &found), STOKER_FINISHED);
        cr_assert(stk_runs_equal(&expected, &found), "length %d", (int)length);
    }
    stk_file_set_remove(&set);
}

CleanTest(errors, interrupted_reads_are_tried_again)
{
    static const uint64_t errnos[] = { EINTR, EAGAIN };
    static const uint64_t times[] = { 1, 2, 7, 8, 9, 63, 64, 65, 200 };
    struct stk_made_set set;
    open_set(&set, all_raw);
    for (size_t e = 0; e < 2; e++)
        for (size_t t = 0; t < sizeof(times) / sizeof(times[0]); t++)
            expect_rule_unharmed(&set, (struct stk_script_rule){ .what = STK_SCRIPT_ERRNO,
                                                                 .amount = errnos[e],
                                                                 .skip = t * 5,
                                                                 .times = times[t] });
    stk_made_set_close(&set);
}

CleanTest(errors, completions_in_any_order_change_nothing)
{
    struct stk_made_set set;
    open_set(&set, all_encoded);
    for (uint64_t seed = 1; seed <= 20; seed++)
        expect_unharmed(
            &set, &(struct stk_script){ .shuffle_seed = seed, .reap_max = (uint32_t)(seed % 4) });
    stk_made_set_close(&set);
}

/* The same of a reader that may be replaced by pread, as the built-in ones may. */
static void expect_replaced(const struct stk_made_set *set, const struct stk_script *script)
{
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
        stoker_loader_options options = stk_small_options();
        stoker_loader *loader = NULL;
        options.reader = &stk_scripted_reader;
        options.num_workers = 0; /* nothing is read before the first next */
        options.cache = (stoker_cache)cache;
        stk_script_install(script);
        found = (struct stk_run){ 0 };
        cr_assert_eq(stoker_loader_create(&loader, set->dataset, &options, NULL), STOKER_OK);
        loader->pipeline.plan.reader = STK_READER_NAMED;
        stk_run_on(loader, &found, UINT32_MAX);
        stoker_loader_destroy(&loader);
        cr_assert(stk_runs_equal(&expected, &found), "cache %d: rc %d", cache, found.rc);
    }
}

/* Whichever call it fails at; reader/test_own.c has those that never work again. */
CleanTest(errors, a_ring_that_breaks_is_replaced)
{
    struct stk_made_set set;
    open_set(&set, all_raw);
    for (uint64_t nth = 1; nth <= 12; nth++) {
        expect_unharmed(&set, &(struct stk_script){ .fail_submit = nth });
        expect_unharmed(&set, &(struct stk_script){ .fail_reap = nth });
        expect_replaced(&set, &(struct stk_script){ .fail_submit = nth, .fail_on = true });
        expect_replaced(&set, &(struct stk_script){ .fail_reap = nth, .fail_on = true });
    }
    stk_made_set_close(&set);
}

CleanTest(errors, a_reader_asked_for_that_is_not_here_fails_create)
{
    struct stk_made_set set;
    open_set(&set, all_raw);
    for (int32_t workers = 0; workers <= 3; workers++)
        for (uint64_t nth = 1; nth <= (workers == 0 ? 1U : (uint64_t)workers); nth++) {
            stoker_loader *loader = NULL;
            stoker_error error = { 0 };
            stoker_loader_options options =
                stk_small_options(.reader = &stk_scripted_reader, .num_workers = workers);
            stk_script_install(&(struct stk_script){ .fail_open = nth });
            cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error),
                         STOKER_EREADER);
            cr_assert_null(loader);
            cr_assert_not_null(strstr(error.message, "scripted reader: open"));
        }
    stk_made_set_close(&set);
}

/* ---- stalls ---- */

static void expect_timeout(stoker_loader *loader, int32_t timeout_ms)
{
    stoker_batch batch = { .struct_size = sizeof(stoker_batch), .count = 77 };
    const uint64_t before_ns = stk_now_ns();
    cr_assert_eq(stoker_loader_next(loader, &batch, timeout_ms), STOKER_TIMEOUT);
    const uint64_t waited_ms = (stk_now_ns() - before_ns) / 1000000;
    cr_assert_geq(waited_ms, (uint64_t)timeout_ms);
    cr_assert_eq(batch.count, 77);
}

CleanTest(errors, a_stalled_read_times_out_and_nothing_is_lost)
{
    static const int32_t timeouts[] = { 0, 1, 30, 150 };
    const struct stk_script_rule rule = {
        .what = STK_SCRIPT_STALL, .file = STK_SCRIPT_ANY_FILE, .offset = 50 * ROW, .bytes = ROW
    };
    struct stk_made_set set;
    open_set(&set, all_raw);
    for (int32_t workers = 0; workers <= 3; workers++)
        for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
            stoker_loader *loader = NULL;
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_loader_options options =
                stk_small_options(.reader = &stk_scripted_reader, .num_workers = workers);
            stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
            found = (struct stk_run){ 0 };
            cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
            /* All that is not behind the stalled sample comes; then it is waited for. */
            for (uint64_t since_ns = stk_now_ns(); stk_now_ns() - since_ns < 250000000;) {
                const int rc = stoker_loader_next(loader, &batch, timeouts[i]);
                cr_assert(rc == STOKER_OK || rc == STOKER_TIMEOUT);
                if (rc != STOKER_OK)
                    continue;
                found.hashes[found.batches++] = stk_batch_hash(&batch);
                found.samples += batch.count;
                stoker_batch_release(&batch);
            }
            cr_assert_lt(found.batches, 7);
            expect_timeout(loader, timeouts[i]);
            stk_script_release();
            stk_run_on(loader, &found, UINT32_MAX);
            stoker_loader_destroy(&loader);
            cr_assert(stk_runs_equal(&expected, &found), "workers %d timeout %d", workers,
                      timeouts[i]);
        }
    stk_made_set_close(&set);
}

/* With all slots lent but one, workers sleep, and half a ring of credits never comes together. A
 * caller that sleeps in next wakes them; one that only polls must as well. */
CleanTest(errors, polling_wakes_the_workers)
{
    enum { SLOTS = 8 };
    struct stk_made_set set;
    stoker_batch held[SLOTS];
    stk_batches_begin(held, SLOTS);
    open_set(&set, all_raw);
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.num_workers = 2, .batch_size = 4, .prefetch_batches = SLOTS);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    for (int i = 0; i < SLOTS; i++)
        while (stoker_loader_next(loader, &held[i], 0) != STOKER_OK) {
        }
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL); /* likely, they sleep by then */
    stoker_batch_release(&held[0]);
    int rc = STOKER_TIMEOUT;
    for (uint64_t since_ns = stk_now_ns();
         rc == STOKER_TIMEOUT && stk_now_ns() - since_ns < UINT64_C(20000000000);)
        rc = stoker_loader_next(loader, &held[0], 0);
    cr_assert_eq(rc, STOKER_OK);
    for (int i = 0; i < SLOTS; i++)
        stoker_batch_release(&held[i]);
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
}

/* What the device keeps is leaked, never freed: nothing is written to freed memory then. */
static void destroy_stuck(int32_t workers)
{
    static const struct stk_script_rule rule = { .what = STK_SCRIPT_STALL,
                                                 .file = STK_SCRIPT_ANY_FILE };
    static stoker_loader *kept; /* within the leak checker's sight */
    struct stk_made_set set;
    open_set(&set, all_raw);
    stoker_loader_options options =
        stk_small_options(.reader = &stk_scripted_reader, .num_workers = workers);
    stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    kept = loader;
    expect_timeout(loader, 10);
    const int64_t live = stk_fault_live_bytes();
    const uint64_t before_ns = stk_now_ns();
    stoker_loader_destroy(&loader);
    const uint64_t waited_ms = (stk_now_ns() - before_ns) / 1000000;
    cr_assert_null(loader);
    cr_assert_geq(waited_ms, 4900);
    cr_assert_leq(waited_ms, 6500);
    cr_assert_geq(stk_script_counts().busy_closes, 1);
    cr_assert_eq(stk_fault_live_bytes(), live);
    cr_assert_not_null(kept);
    stk_made_set_close(&set);
    stk_test_check_lost();
}

Test(errors, destroy_leaves_a_device_stuck_in_a_worker)
{
    destroy_stuck(3);
}

Test(errors, destroy_leaves_a_device_stuck_without_workers)
{
    destroy_stuck(0);
}

CleanTest(errors, destroy_waits_for_slow_reads_and_frees_all)
{
    static const struct stk_script_rule rule = { .what = STK_SCRIPT_DELAY,
                                                 .amount = 50,
                                                 .file = STK_SCRIPT_ANY_FILE };
    struct stk_made_set set;
    open_set(&set, all_raw);
    const int64_t before = stk_fault_live_bytes();
    for (int32_t workers = 0; workers <= 4; workers++) {
        stoker_loader_options options =
            stk_small_options(.reader = &stk_scripted_reader, .num_workers = workers);
        stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
        stoker_loader *loader = NULL;
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
        expect_timeout(loader, 5);
        stoker_loader_destroy(&loader);
        const struct stk_script_counts counts = stk_script_counts();
        cr_assert_eq(counts.reads, counts.reaped);
        cr_assert_eq(counts.opens, counts.closes);
        cr_assert_eq(stk_fault_live_bytes(), before);
    }
    stk_made_set_close(&set);
}

/* ---- no rings ---- */

static void check_without_rings(int os_errno)
{
    struct stk_made_set set;
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    open_set(&set, all_raw);
    stoker_loader_options options = stk_small_options(.num_workers = 3);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    found = (struct stk_run){ 0 };
    stk_run_on(loader, &found, UINT32_MAX);
    cr_assert(stk_runs_equal(&expected, &found));
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_str_eq(stats.reader, "pread");
    cr_assert_not_null(strstr(stats.reader_reason, strerror(os_errno)), "reason: %s",
                       stats.reader_reason);
    stoker_loader_destroy(&loader);
    options.reader = stoker_reader_uring(); /* asked for by name: no quiet change */
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_EREADER);
    stk_made_set_close(&set);
    stk_test_check_leaks();
}

Test(errors, rings_refused_give_the_same_bytes_by_pread)
{
    (void)unsetenv("STOKER_READER");
    if (stk_seccomp_refuse_rings(EPERM) != 0)
        cr_skip_test("no seccomp here");
    check_without_rings(EPERM);
}

Test(errors, a_kernel_without_rings_gives_the_same_bytes_by_pread)
{
    (void)unsetenv("STOKER_READER");
    if (stk_seccomp_refuse_rings(ENOSYS) != 0)
        cr_skip_test("no seccomp here");
    check_without_rings(ENOSYS);
}

/* Rings are files: with room for `room` more, the workers after that many get none. */
CleanTest(errors, workers_without_a_ring_of_their_own_use_pread)
{
    (void)unsetenv("STOKER_READER");
    if (!stk_test_reader_works(stoker_reader_uring()))
        cr_skip_test("no io_uring here");
    struct stk_made_set set;
    bool mixed = false;
    open_set(&set, all_raw);
    const int next = dup(0); /* the lowest number that is free */
    cr_assert_geq(next, 0);
    close(next);
    for (rlim_t room = 1; room <= 5; room++) {
        struct rlimit limit;
        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
        const rlim_t before = limit.rlim_cur;
        stoker_loader_options options = stk_small_options(.num_workers = 4);
        stoker_loader *loader = NULL;
        stoker_stats stats = { .struct_size = sizeof(stats) };
        limit.rlim_cur = (rlim_t)next + room;
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const int rc = stoker_loader_create(&loader, set.dataset, &options, NULL);
        limit.rlim_cur = before;
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        cr_assert_eq(rc, STOKER_OK);
        found = (struct stk_run){ 0 };
        stk_run_on(loader, &found, UINT32_MAX);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        stoker_loader_destroy(&loader);
        cr_assert(stk_runs_equal(&expected, &found), "room for %d", (int)room);
        mixed = mixed || strstr(stats.reader_reason, "of 4 workers got no ring") != NULL;
    }
    cr_assert(mixed, "never were there too few files");
    stk_made_set_close(&set);
}

/* ---- signals ---- */

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* One signal a millisecond in this thread, no SA_RESTART. */
CleanTest(errors, a_storm_of_signals_disturbs_nothing)
{
    static const struct stk_script_rule rule = { .what = STK_SCRIPT_DELAY,
                                                 .amount = 20,
                                                 .file = STK_SCRIPT_ANY_FILE };
    const struct sigaction action = { .sa_handler = count_signal };
    const struct itimerval storm = { { .tv_usec = 1000 }, { .tv_usec = 1000 } };
    const struct itimerval calm = { { 0 }, { 0 } };
    struct stk_made_set set;
    open_set(&set, all_raw);
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int reader = 0; reader < 2; reader++) {
            stoker_loader_options options = stk_small_options(.num_workers = workers);
            if (reader == 0)
                options.reader = &stk_scripted_reader;
            stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
            cr_assert_eq(setitimer(ITIMER_REAL, &storm, NULL), 0);
            (void)stk_run(set.dataset, &options, &found);
            cr_assert_eq(setitimer(ITIMER_REAL, &calm, NULL), 0);
            cr_assert(stk_runs_equal(&expected, &found), "workers %d rc %d", workers, found.rc);
        }
    cr_assert_gt(signals, 20);
    stk_made_set_close(&set);
}
