/* test_restart.c - a loader in another's place delivers what a new one would, and what was cached
 * stays. */
#include <fcntl.h>

#include "loader/base/fault.h"
#include "loader/cache/cache.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

enum { SAMPLES = 300, SIDE = 64, ROW = SIDE * SIDE, FULL_EPOCHS = 8 };

static struct stk_run expected;
static struct stk_run found;

static stoker_loader *full_loader(const stoker_dataset *dataset, stoker_loader_options options)
{
    options.epochs = FULL_EPOCHS;
    stoker_loader *loader = loader_of(dataset, &options);
    found = (struct stk_run){ 0 };
    stk_run_on(loader, &found, UINT32_MAX);
    cr_assert_eq(stats_of(loader).cache_held_bytes, SAMPLES * ROW);
    return loader;
}

/* Let *options continue at the start of another epoch of the loader's run. */
static void resume_at(const stoker_loader *loader, uint64_t epoch,
                      uint8_t state[STOKER_STATE_BYTES], stoker_loader_options *options)
{
    cr_assert_eq(
        stoker_loader_state(loader, state, STOKER_STATE_BYTES, &options->resume_size, NULL),
        STOKER_OK);
    cr_assert_eq(stoker_state_seek(state, options->resume_size, epoch, 0, NULL), STOKER_OK);
    options->resume = state;
}

/* Deliver epochs 5 and 6 and compare them with what a new loader delivers; the reads that it
 * took. */
static uint64_t go_on(stoker_loader **loader, const stoker_dataset *dataset,
                      stoker_loader_options options)
{
    stoker_error error = { .message = "" };
    uint8_t state[STOKER_STATE_BYTES];
    resume_at(*loader, 5, state, &options);
    options.epochs = 7;
    cr_assert_eq(stk_run(dataset, &options, &expected), STOKER_FINISHED);
    cr_assert_eq(stoker_loader_restart(loader, &options, &error), STOKER_OK, "%s", error.message);
    found = (struct stk_run){ 0 };
    stk_run_on(*loader, &found, UINT32_MAX);
    cr_assert_eq(found.samples, 2 * SAMPLES);
    cr_assert(stk_runs_equal(&expected, &found));
    return stats_of(*loader).reads;
}

CleanTest(restart, reads_nothing_that_is_cached)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, SIDE, SIDE, 0));
    for (int shared = 0; shared <= 1; shared++)
        for (stoker_cache kind = STOKER_CACHE_AUTO; kind <= STOKER_CACHE_DECODED; kind++) {
            if (kind == STOKER_CACHE_NONE)
                continue;
            stoker_loader_options options =
                stk_small_options(.cache = kind, .share_cache = shared == 1 ? STOKER_SWITCH_ON
                                                                            : STOKER_SWITCH_OFF);
            stoker_loader *loader = full_loader(set.dataset, options);
            options.batch_size = 24;
            options.num_workers = 3;
            for (int i = 0; i < 3; i++)
                cr_assert_eq(go_on(&loader, set.dataset, options), 0, "cache %d", (int)kind);
            cr_assert_eq(stats_of(loader).cache_held_bytes, SAMPLES * ROW);
            stoker_loader_destroy(&loader);
        }
    stk_file_set_remove(&set);
}

/* Loaders that would cache other rows, fewer, or none. */
CleanTest(restart, reads_again_what_would_be_cached_otherwise)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, SIDE, SIDE, 0));
    stoker_loader_options options =
        stk_small_options(.cache = STOKER_CACHE_DECODED, .share_cache = STOKER_SWITCH_OFF);
    for (int other = 0; other < 5; other++) {
        stoker_loader_options changed = options;
        stoker_loader *loader = full_loader(set.dataset, options);
        changed.cache = other == 0   ? STOKER_CACHE_NONE
                        : other == 1 ? STOKER_CACHE_ENCODED
                                     : STOKER_CACHE_DECODED;
        changed.memory_bytes = other == 2 ? 512U << 10 : STOKER_BYTES_AUTO; /* less than it holds */
        changed.share_cache = other == 3 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
        changed.reader = other == 4 ? stoker_reader_pread() : NULL;
        cr_assert_gt(go_on(&loader, set.dataset, changed), 0, "change %d", other);
        if (other == 4) /* nor is what came by a reader of the caller's own kept */
            cr_assert_gt(go_on(&loader, set.dataset, options), 0);
        stoker_loader_destroy(&loader);
    }
    stk_file_set_remove(&set);
}

/* The next reads of the file take as long as the disk does. */
static void forget(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    (void)fdatasync(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* Whatever was being loaded when the workers ended is loaded later. */
CleanTest(restart, leaves_no_row_out)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, SIDE, SIDE, 0));
    for (int shared = 0; shared <= 1; shared++) {
        stoker_loader_options options =
            stk_small_options(.batch_size = 2, .epochs = FULL_EPOCHS, .cache = STOKER_CACHE_DECODED,
                              .share_cache = shared == 1 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF);
        stoker_loader *loader = loader_of(set.dataset, &options);
        uint64_t held = 0;
        for (uint32_t i = 0; i < 20; i++) {
            found = (struct stk_run){ 0 };
            forget(set.images);
            stk_run_on(loader, &found, 8 + i % 5);
            cr_assert_geq(stats_of(loader).cache_held_bytes, held);
            held = stats_of(loader).cache_held_bytes;
            options.batch_size = i < 19 ? 2 : 16;
            cr_assert_eq(stoker_loader_restart(&loader, &options, NULL), STOKER_OK);
        }
        found = (struct stk_run){ 0 };
        stk_run_on(loader, &found, UINT32_MAX);
        cr_assert_eq(found.samples, FULL_EPOCHS * SAMPLES);
        cr_assert_eq(stats_of(loader).cache_held_bytes, SAMPLES * ROW);
        stoker_loader_destroy(&loader);
    }
    stk_file_set_remove(&set);
}

CleanTest(restart, a_block_that_is_abandoned_is_begun_again)
{
    const struct stk_cache_options options = { .kind = STOKER_CACHE_DECODED,
                                               .budget_bytes = 1 << 20,
                                               .count = 10,
                                               .stride_bytes = 100,
                                               .block_rows = 4 };
    struct stk_cache cache;
    cr_assert_eq(stk_cache_init(&cache, &options), 0);
    cr_assert(stk_cache_begin(&cache, 1, 0));
    cr_assert(stk_cache_begin(&cache, 9, 0));
    stk_cache_commit(&cache, 1);
    cr_assert_not(stk_cache_begin(&cache, 9, 0));
    stk_cache_abandon(&cache);
    cr_assert_not(stk_cache_begin(&cache, 1, 0));
    cr_assert(stk_cache_begin(&cache, 9, 0));
    stk_cache_commit(&cache, 9);
    cr_assert_eq(atomic_load(&stk_cache_counts(&cache)->held_rows), 6);
    stk_cache_destroy(&cache);
}

CleanTest(restart, that_fails_leaves_nothing_or_the_loader)
{
    struct stk_file_set set;
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert(stk_file_set_make(&set, SAMPLES, SIDE, SIDE, 0));
    stoker_loader_options options = stk_small_options(.cache = STOKER_CACHE_DECODED);
    cr_assert_eq(stoker_loader_restart(&loader, &options, &error), STOKER_EINVAL);
    cr_assert_neq(strstr(error.message, "no loader"), NULL);
    cr_assert_eq(stoker_loader_restart(NULL, &options, NULL), STOKER_EINVAL);
    const int64_t live = stk_fault_live_bytes();
    uint8_t state[STOKER_STATE_BYTES];
    stoker_loader_options bad = options;
    loader = full_loader(set.dataset, options);
    resume_at(loader, 5, state, &bad);
    bad.seed++; /* not the state's */
    cr_assert_eq(stoker_loader_restart(&loader, &bad, &error), STOKER_ESTATE);
    cr_assert_eq(error.code, STOKER_ESTATE);
    cr_assert_null(loader);
    cr_assert_eq(stk_fault_live_bytes(), live);

    loader = full_loader(set.dataset, options);
    stoker_loader *const before = loader;
    for (int damaged = 0; damaged < 2; damaged++) { /* found before anything is destroyed */
        bad = options;
        bad.batch_size = damaged == 1 ? options.batch_size : 0;
        bad.resume = damaged == 1 ? state + 1 : NULL;
        bad.resume_size = damaged == 1 ? sizeof(state) - 1 : 0;
        const int code = damaged == 1 ? STOKER_ESTATE : STOKER_EINVAL;
        cr_assert_eq(stoker_loader_restart(&loader, &bad, &error), code);
        cr_assert_eq(error.code, code);
        cr_assert_eq(loader, before);
        cr_assert_null(stoker_loader_error(loader));
    }
    stoker_loader_destroy(&loader);
    cr_assert_eq(stk_fault_live_bytes(), live);
    stk_file_set_remove(&set);
}
