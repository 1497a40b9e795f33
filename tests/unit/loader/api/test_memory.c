/* test_memory.c - all memory is taken at create and given back at destroy; stats say
 * how much; and a set of 10^12 samples takes no more than one of ten thousand.
 */
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "loader/base/fault.h"
#include "loader/base/io/number_file.h"
#include "loader/base/memory/budget.h"
#include "loader/reader/lock_limit.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/runs/memory_limit.h"
#include "support/runs/opened_loader.h"
#include "support/runs/registered_buffers.h"
#include "support/runs/scenario.h"
#include "support/sets/made_set.h"
#include "support/sets/one_file_set.h"

#ifdef STK_TEST_ASAN
#include <sanitizer/asan_interface.h>

enum { HEAP_IS_LIBC = 0 }; /* mallinfo2 sees nothing of ASan's heap */
#else
enum { HEAP_IS_LIBC = 1 };
#endif

/* After the first batch, nothing: neither by us nor by what libc does for us. */
static void check_no_allocations(const stoker_dataset *dataset, stoker_loader_options options)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    static struct stk_run run;
    const int64_t live_before = stk_fault_live_bytes();
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    stoker_batch_release(&batch);
    const uint64_t allocations = stk_fault_allocations();
    const int64_t live = stk_fault_live_bytes();
    const struct mallinfo2 heap = mallinfo2();
    memset(&run, 0, sizeof(run));
    stk_run_on(loader, &run, 60);
    cr_assert_eq(run.rc, STOKER_OK);
    const struct mallinfo2 after = mallinfo2();
    cr_assert_eq(stk_fault_allocations(), allocations);
    cr_assert_eq(stk_fault_live_bytes(), live);
    if (HEAP_IS_LIBC) {
        cr_assert_eq(after.uordblks, heap.uordblks);
        cr_assert_eq(after.hblkhd, heap.hblkhd);
    }
    stoker_loader_destroy(&loader);
    cr_assert_eq(stk_fault_live_bytes(), live_before);
}

static void check_all(const stoker_dataset *dataset, stoker_loader_options options)
{
    for (int32_t workers = STOKER_WORKERS_AUTO; workers <= 3; workers++)
        for (int cache = STOKER_CACHE_AUTO; cache <= STOKER_CACHE_DECODED; cache++) {
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            options.epochs = STOKER_EPOCHS_ENDLESS;
            check_no_allocations(dataset, options);
        }
}

CleanTest(memory, nothing_is_allocated_after_the_first_batch)
{
    struct stk_file_set set;
    stoker_dataset *drawn = NULL;
    cr_assert(stk_file_set_make(&set, 257, 9, 7, 0));
    cr_assert_eq(stoker_dataset_open(&drawn, "synth:digits?count=100", NULL, NULL), STOKER_OK);
    stoker_loader_options options = stk_small_options();
    check_all(drawn, options);
    check_all(set.dataset, options);
    options.reader = stoker_reader_pread();
    options.dtype = STOKER_DTYPE_FLOAT32;
    check_all(set.dataset, options);
    options.trace_events = 64; /* and nobody takes them: the rings are full soon */
    check_all(set.dataset, options);
    stoker_dataset_close(&drawn);
    stk_file_set_remove(&set);
}

/* Of the memory taken, stats report all large pieces; the rest is small. */
CleanTest(memory, stats_report_where_memory_is)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 2000, 28, 28, 0));
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
        for (int32_t workers = 0; workers <= 3; workers += 3) {
            stoker_stats stats = { .struct_size = sizeof(stats) };
            stoker_loader_options options =
                stk_small_options(.cache = (stoker_cache)cache, .num_workers = workers,
                                  .prefetch_batches = 8, .read_depth = 64);
            const int64_t before = stk_fault_live_bytes();
            stoker_loader *loader = loader_of(set.dataset, &options);
            const uint64_t taken = (uint64_t)(stk_fault_live_bytes() - before);
            cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
            const uint64_t told = stats.slot_bytes + stats.cache_bytes + stats.scratch_bytes;
            cr_assert_leq(told, taken);
            cr_assert_leq(taken - told, (72U << 10) + 65536U * (uint32_t)(workers + 1),
                          "%d of %d bytes are not reported", (int)(taken - told), (int)taken);
            cr_assert_geq(stats.slot_bytes, 8 * 16 * (784 + 8 + 8));
            cr_assert_geq(stats.scratch_bytes, 64 * 784 * (uint64_t)(workers > 0 ? workers : 1));
            cr_assert_eq(stats.cache, (stoker_cache)cache);
            cr_assert_eq(stats.cache_bytes > 0, cache != STOKER_CACHE_NONE);
            if (cache != STOKER_CACHE_NONE)
                cr_assert_geq(stats.cache_bytes, 2000 * 784);
            cr_assert_not(stats.pinned);
            const uint64_t slots = stk_lock_is_unlimited() ? stats.slot_bytes : 0;
            cr_assert_leq(stats.locked_bytes,
                          stats.scratch_bytes + slots); /* if io_uring has them */
            stoker_loader_destroy(&loader);
        }
    stk_file_set_remove(&set);
}

/* Training and validation, say: what the first reserved and has not filled yet is not there for the
 * second. */
CleanTest(memory, caches_of_a_process_share_one_budget)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loaders[3] = { NULL };
    const uint64_t available = stk_memory_available();
    uint64_t reserved = 0;
    cr_assert_eq(
        stoker_dataset_open(&dataset, "synth:bytes?count=1000000000&shape=1000", NULL, NULL), 0);
    for (int round = 0; round < 2; round++) { /* what is destroyed gives its share back */
        for (int i = 0; i < 3; i++) {
            stoker_stats stats = { .struct_size = sizeof(stats) };
            stoker_loader_options options =
                stk_small_options(.cache = STOKER_CACHE_DECODED, .num_workers = 0);
            cr_assert_eq(stoker_loader_create(&loaders[i], dataset, &options, NULL), STOKER_OK);
            cr_assert_eq(stoker_loader_stats(loaders[i], &stats), STOKER_OK);
            if (i == 0)
                cr_assert_gt(stats.cache_bytes, available / 4);
            reserved += stats.cache_bytes;
        }
        cr_assert_lt(reserved, available * 3 / 4, "%d of %d MB", (int)(reserved >> 20),
                     (int)(available >> 20)); /* half, and what others took or freed meanwhile */
        for (int i = 0; i < 3; i++)
            stoker_loader_destroy(&loaders[i]);
        reserved = 0;
    }
    stoker_dataset_close(&dataset);
}

/* Many workers share one large batch: they need no slots of their own. */
CleanTest(memory, the_ring_of_large_batches_does_not_grow_with_the_workers)
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=1000&shape=64x64x3", NULL, NULL),
                 0);
    for (int32_t workers = 1; workers <= 64; workers *= 4) {
        stoker_stats stats = { .struct_size = sizeof(stats) };
        stoker_loader_options options =
            stk_small_options(.batch_size = 256, .dtype = STOKER_DTYPE_FLOAT32,
                              .cache = STOKER_CACHE_NONE, .num_workers = workers,
                              .prefetch_batches = STOKER_PREFETCH_AUTO);
        stoker_loader *loader = loader_of(dataset, &options);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_geq(stats.slots, 4);
        cr_assert_leq(stats.slots, 8, "%d workers: %d slots", (int)workers, (int)stats.slots);
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}

/* Slots of 65 GB: an error that names the cure, and no process that is killed. */
CleanTest(memory, slots_that_cannot_be_there_are_refused)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    stoker_loader_options options = stk_small_options();
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=65536&shape=1000000", NULL, NULL),
                 0);
    options.batch_size = 65536;
    options.prefetch_batches = 64;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_ENOMEM);
    cr_assert_not_null(strstr(error.message, "choose a smaller batch_size"), "%s", error.message);
    stoker_dataset_close(&dataset);
}

/* Slots that the loader chooses: two tickets for each worker and two more, and as many as its reads
 * go to. A batch of 4 such rows has 4 tickets. */
CleanTest(memory, the_ring_has_room_for_each_worker_and_its_reads)
{
    static const struct {
        int32_t workers;
        uint32_t read_depth, prefetch_batches, slots;
    } cases[] = { { 8, 1, STOKER_PREFETCH_AUTO, 5 },
                  { 2, 64, STOKER_PREFETCH_AUTO, 33 },
                  { 8, 64, 3, 3 } };
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 8, 512, 512, 0)); /* no more of them fit in a cache */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_stats stats = { .struct_size = sizeof(stats) };
        stoker_loader_options options =
            stk_small_options(.batch_size = 4, .cache = STOKER_CACHE_NONE,
                              .num_workers = cases[i].workers, .read_depth = cases[i].read_depth,
                              .prefetch_batches = cases[i].prefetch_batches);
        stoker_loader *loader = loader_of(set.dataset, &options);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(stats.slots, cases[i].slots, "case %d: %d", (int)i, (int)stats.slots);
        stoker_loader_destroy(&loader);
    }
    stk_file_set_remove(&set);
}

enum { LOCKED_BYTES = 8 << 20 }; /* a ring takes little of it: small slots, few reads */

/* How many buffers the ring of a loader without workers registers. */
static int buffers_with(const stoker_dataset *dataset, stoker_switch pin_memory, stoker_dtype dtype)
{
    stoker_loader_options options =
        stk_small_options(.num_workers = 0, .cache = STOKER_CACHE_NONE,
                          .reader = stoker_reader_uring(), .prefetch_batches = 2, .read_depth = 8,
                          .pin_memory = pin_memory, .dtype = dtype);
    stoker_loader *loader = loader_of(dataset, &options);
    const int buffers = stk_test_registered_buffers();
    stoker_loader_destroy(&loader);
    return buffers;
}

/* Beside the scratch, where they are page-locked and rows are read straight into them. */
/* kB behind a key of /proc/self/status. */
static uint64_t status_bytes(const char *key)
{
    char status[8192];
    cr_assert_gt(stk_text_file_read("/proc/self/status", status, sizeof(status)), 0);
    return stk_number_in(status, key) * 1024;
}

/* As the kernel counts it: memory locked, and pinned by rings. */
CleanTest(memory, page_locked_memory_is_reported)
{
    struct rlimit limit;
    if (!stk_test_reader_works(stoker_reader_uring()))
        cr_skip_test("NOT TESTED: no io_uring here");
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur < LOCKED_BYTES)
        cr_skip_test("NOT TESTED: we may not lock so much");
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 257, 9, 7, 0));
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int pin = STOKER_SWITCH_AUTO; pin <= STOKER_SWITCH_OFF; pin++) {
            stoker_stats stats = { .struct_size = sizeof(stats) };
            stoker_loader_options options =
                stk_small_options(.num_workers = workers, .cache = STOKER_CACHE_NONE,
                                  .reader = stoker_reader_uring(), .read_depth = 8,
                                  .pin_memory = (stoker_switch)pin);
            const uint64_t before = status_bytes("VmLck:");
            stoker_loader *loader = loader_of(set.dataset, &options);
            cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
            const uint64_t pinned = status_bytes("VmPin:");
            if (workers == 0 && pinned == 0)
                cr_skip_test(
                    "NOT TESTED: this kernel does not report it, or a ring may lock nothing");
            const bool by_rings = !stats.pinned && stk_lock_is_unlimited();
            const uint64_t slots = stats.pinned || by_rings ? stats.slot_bytes : 0;
            cr_assert_gt(stats.locked_bytes, slots);
            /* Rings whose rows go straight to locked slots may have registered these, too. */
            const uint64_t scratch = stats.locked_bytes - slots;
            cr_expect_geq(pinned, scratch, "%d workers, pin %d", (int)workers, pin);
            cr_expect_eq(slots > 0 ? (pinned - scratch) % slots : pinned - scratch, 0,
                         "%d workers, pin %d", (int)workers, pin);
            if (HEAP_IS_LIBC) /* a sanitizer's mlock does nothing */
                cr_expect_eq(status_bytes("VmLck:") - before, by_rings ? 0 : slots);
            stoker_loader_destroy(&loader);
        }
    stk_file_set_remove(&set);
}

/* Where images are transformed counts as scratch. */
CleanTest(memory, room_for_images_is_reported)
{
    stoker_dataset *dataset = NULL;
    uint64_t scratch[2];
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=100&shape=256x256x3", NULL, NULL),
                 0);
    for (int i = 0; i < 2; i++) {
        stoker_stats stats = { .struct_size = sizeof(stats) };
        stoker_loader_options options =
            stk_small_options(.cache = STOKER_CACHE_NONE, .num_workers = 2);
        if (i == 1)
            options.transform.resize = (stoker_size){ 200, 200 };
        const int64_t before = stk_fault_live_bytes();
        stoker_loader *loader = loader_of(dataset, &options);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        const uint64_t taken = (uint64_t)(stk_fault_live_bytes() - before);
        scratch[i] = stats.scratch_bytes;
        cr_assert_leq(taken - stats.slot_bytes - stats.scratch_bytes, 1U << 20);
        stoker_loader_destroy(&loader);
    }
    cr_assert_gt(scratch[1], scratch[0] + 2U * 256 * 256);
    stoker_dataset_close(&dataset);
}

CleanTest(memory, slots_are_registered_with_the_ring)
{
    struct rlimit limit;
    if (!stk_test_reader_works(stoker_reader_uring()))
        cr_skip_test("NOT TESTED: no io_uring here");
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur < LOCKED_BYTES)
        cr_skip_test("NOT TESTED: we may not lock so much");
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 257, 9, 7, 0));
    if (buffers_with(set.dataset, STOKER_SWITCH_OFF, STOKER_DTYPE_UINT8) < 0)
        cr_skip_test("NOT TESTED: this kernel does not report it");
    cr_expect_eq(buffers_with(set.dataset, STOKER_SWITCH_ON, STOKER_DTYPE_UINT8), 2);
    cr_expect_eq(buffers_with(set.dataset, STOKER_SWITCH_OFF, STOKER_DTYPE_UINT8),
                 stk_lock_is_unlimited() ? 2 : 1, "not page-locked");
    cr_expect_eq(buffers_with(set.dataset, STOKER_SWITCH_ON, STOKER_DTYPE_FLOAT32), 1,
                 "rows are converted");
    stk_file_set_remove(&set);
}

/* What the cache holds grows to the whole set, and no further. */
CleanTest(memory, the_cache_fills_and_stays)
{
    struct stk_file_set set;
    static struct stk_run run;
    cr_assert(stk_file_set_make(&set, 300, 8, 8, 0));
    for (int cache = STOKER_CACHE_ENCODED; cache <= STOKER_CACHE_DECODED; cache++) {
        stoker_stats stats = { .struct_size = sizeof(stats) };
        stoker_loader_options options =
            stk_small_options(.cache = (stoker_cache)cache, .epochs = 4);
        options.prefetch_batches = 4;
        stoker_loader *loader = loader_of(set.dataset, &options);
        memset(&run, 0, sizeof(run));
        stk_run_on(loader, &run, UINT32_MAX);
        cr_assert_eq(run.rc, STOKER_FINISHED);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(stats.cache_held_bytes, 300 * 64);
        cr_assert_leq(stats.read_bytes, 2 * 300 * 64);
        cr_assert_geq(stats.cache_hits, 3 * 300);
        stoker_loader_destroy(&loader);
    }
    stk_file_set_remove(&set);
}

static enum stk_made_kind raw(uint64_t id)
{
    (void)id;
    return STK_MADE_RAW;
}

static enum stk_made_kind in_memory(uint64_t id)
{
    (void)id;
    return STK_MADE_MEMORY;
}

/* The samples that are read come last: looking only at the beginning shows none of them. */
static enum stk_made_kind in_memory_at_first(uint64_t id)
{
    return id < 64 ? STK_MADE_MEMORY : STK_MADE_RAW;
}

/* One long sample does not make all others wait for each other, and the scratch stays bounded. */
CleanTest(memory, the_read_depth_follows_what_is_usual)
{
    static const struct {
        uint32_t row_bytes;
        uint64_t longest_bytes;
        stk_made_kind_of *kind_of;
        uint32_t depth;
    } cases[] = {
        { 100, 100, raw, 128 },         { 1 << 20, 1 << 20, raw, 7 }, /* with a byte more each */
        { 100, 1 << 20, raw, 63 },      { 100, 4 << 20, raw, 15 },
        { 100, 40 << 20, raw, 2 },      { 1 << 20, 4 << 20, raw, 7 },
        { 100, 1 << 20, in_memory, 7 }, { 100, 1 << 20, in_memory_at_first, 63 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_made_set set = { .count = 70,
                                    .row_bytes = cases[i].row_bytes,
                                    .kind_of = cases[i].kind_of,
                                    .bytes_max = cases[i].longest_bytes };
        stoker_stats stats = { .struct_size = sizeof(stats) };
        stoker_loader_options options =
            stk_small_options(.cache = STOKER_CACHE_NONE, .num_workers = 1, .batch_size = 4,
                              .epochs = 1);
        static struct stk_run run;
        cr_assert(stk_made_set_open(&set));
        stoker_loader *loader = loader_of(set.dataset, &options);
        memset(&run, 0, sizeof(run));
        stk_run_on(loader, &run, UINT32_MAX);
        cr_assert_eq(run.samples, 70);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(stats.read_depth, cases[i].depth, "case %d: %d", (int)i,
                     (int)stats.read_depth);
        cr_assert_leq(stats.scratch_bytes, (64U << 20) + 3 * (cases[i].longest_bytes + (2 << 20)));
        stoker_loader_destroy(&loader);
        stk_made_set_close(&set);
    }
}

static long resident_kilobytes(void)
{
    long kilobytes = -1;
    char line[128];
    FILE *status = fopen("/proc/self/status", "re");
    cr_assert_not_null(status);
    while (fgets(line, sizeof(line), status) != NULL)
        if (sscanf(line, "VmRSS: %ld kB", &kilobytes) == 1)
            break;
    fclose(status);
    return kilobytes;
}

/* AddressSanitizer may keep the frames of functions on a heap of its own
 * (detect_stack_use_after_return, on by itself in newer clang): then the process grows for a while,
 * whatever the loader does. */
static bool frames_are_on_the_heap(void)
{
#ifdef STK_TEST_ASAN
    return __asan_get_current_fake_stack() != NULL;
#else
    return false;
#endif
}

CleanTest(memory, a_trillion_samples_take_no_more_than_a_few)
{
    static struct stk_run run;
    stoker_dataset *dataset = NULL;
    cr_assert_eq(
        stoker_dataset_open(&dataset, "synth:bytes?count=1000000000000&shape=28x28", NULL, NULL),
        STOKER_OK);
    stoker_loader_options options = stk_small_options(.cache = STOKER_CACHE_AUTO, .num_workers = 2);
    const int64_t before = stk_fault_live_bytes();
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_lt(stk_fault_live_bytes() - before, 16 << 20);
    stk_run_on(loader, &run, 100);
    const long early = resident_kilobytes();
    for (int round = 0; round < 50; round++) {
        memset(&run, 0, sizeof(run));
        stk_run_on(loader, &run, 100);
        cr_assert_eq(run.batches, 100);
    }
    if (!frames_are_on_the_heap())
        cr_assert_leq(resident_kilobytes(), early + 512);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* ---- a budget for samples of different lengths ---- */

enum { LONGEST = 1 << 16, SHORT = 100, UNEQUAL_BYTES = LONGEST + 63 * SHORT };

static int describe_unequal(const void *self, stoker_dataset_info *out)
{
    (void)stk_one_file_describe(self, out);
    out->shape[0] = 1 << 20;
    out->encoded_bytes_max = LONGEST;
    return STOKER_OK;
}

static int locate_unequal(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                          stoker_error *error)
{
    (void)stk_one_file_locate(self, ids, count, out, error);
    for (uint32_t i = 0; i < count; i++)
        out[i].extent = ids[i] == 0 ? (stoker_extent){ .bytes = LONGEST }
                                    : (stoker_extent){ .offset = LONGEST + (ids[i] - 1) * SHORT,
                                                       .bytes = SHORT };
    return STOKER_OK;
}

static int file_unequal(const void *self, uint32_t number, stoker_file *out)
{
    (void)stk_one_file_file(self, number, out);
    out->size = UNEQUAL_BYTES;
    return STOKER_OK;
}

static int decode_unequal(const void *self, void *scratch, const stoker_encoded *in,
                          const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    (void)scratch;
    (void)error;
    cr_assert_eq(in->size, in->sample == 0 ? LONGEST : SHORT);
    for (size_t at = 0; at < in->size; at++)
        cr_assert_eq(in->bytes[at], (uint8_t)in->sample);
    memset(out->rows[0].data, (int)in->sample, out->rows[0].bytes_max);
    return STOKER_OK;
}

/* One sample is longer than the others together: the budget is for what they have, not for as many
 * of the longest. */
CleanTest(memory, a_cache_takes_as_many_bytes_as_its_budget)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "unequal",
                                            .describe = describe_unequal,
                                            .locate = locate_unequal,
                                            .file = file_unequal };
    static const stoker_codec codec = { .struct_size = sizeof(codec),
                                        .name = "unequal",
                                        .decode = decode_unequal };
    static const struct {
        stoker_cache asked, found;
        uint64_t cache_bytes, reads_least, reads_most;
    } cases[] = {
        { STOKER_CACHE_AUTO, STOKER_CACHE_ENCODED, 200000, 64, 64 },
        { STOKER_CACHE_AUTO, STOKER_CACHE_NONE, 70000, 192, 192 },
        { STOKER_CACHE_ENCODED, STOKER_CACHE_ENCODED, 70000, 66, 66 }, /* the longest, thrice */
    };
    FILE *bytes = tmpfile();
    cr_assert_not_null(bytes);
    for (int id = 0; id < 64; id++)
        for (int at = 0; at < (id == 0 ? LONGEST : SHORT); at++)
            cr_assert_neq(putc(id, bytes), EOF);
    cr_assert_eq(fflush(bytes), 0);
    struct stk_one_file_set set = { .path = "unequal", .fd = fileno(bytes), .codec = &codec };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_dataset *dataset = NULL;
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_stats stats = STOKER_STATS_INIT;
        stoker_loader_options options = stk_small_options(.cache = cases[i].asked, .epochs = 3,
                                                          .batch_size = 8, .num_workers = 0);
        cr_assert_eq(stoker_dataset_create(&dataset, &ops, &set, NULL), STOKER_OK);
        stk_limit_cache(dataset, &options, cases[i].cache_bytes);
        stoker_loader *loader = loader_of(dataset, &options);
        for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;)
            if (rc == STOKER_OK)
                stoker_batch_release(&batch);
            else
                cr_assert_eq(rc, STOKER_EPOCH_END, "%s", stoker_loader_error(loader)->message);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(stats.cache, cases[i].found, "%d", (int)i);
        cr_assert_leq(stats.cache_bytes, cases[i].cache_bytes);
        cr_assert_leq(stats.memory_bytes, stats.memory_bytes_max);
        cr_assert_eq(stats.memory_bytes_max, options.memory_bytes);
        cr_assert(stats.reads >= cases[i].reads_least && stats.reads <= cases[i].reads_most,
                  "%d: %d reads", (int)i, (int)stats.reads);
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&dataset);
    }
    cr_assert_eq(fclose(bytes), 0);
}

/* ---- memory of kept batches ---- */

enum { KEPT = 12, KEPT_ROW = 32768, KEPT_BATCH = 8 };

/* Pages in memory, of those that held the rows of the kept batches. */
static uint32_t resident_pages(uint8_t *const rows[KEPT])
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint32_t pages = 0;
    for (uint32_t i = 0; i < KEPT; i++) {
        unsigned char resident[KEPT_BATCH * KEPT_ROW / 4096 + 1] = { 0 };
        const uintptr_t first = ((uintptr_t)rows[i] + page - 1) / page * page;
        cr_assert_eq(mincore((void *)first, (KEPT_BATCH - 1) * KEPT_ROW, resident), 0);
        for (size_t at = 0; at < sizeof(resident); at++)
            pages += resident[at] & 1U;
    }
    return pages;
}

CleanTest(memory, of_kept_batches_is_given_back_once_an_epoch_does_not_use_it)
{
    stoker_dataset *dataset = NULL;
    stoker_loader_options options =
        stk_small_options(.batch_size = KEPT_BATCH, .prefetch_batches = 2, .num_workers = 1,
                          .cache = STOKER_CACHE_NONE, .on_lent = STOKER_ON_LENT_GROW,
                          .epochs = STOKER_EPOCHS_ENDLESS);
    stoker_batch batches[KEPT];
    uint8_t *rows[KEPT];
    static struct stk_run later;
    uint64_t lent_bytes[2];
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=96&shape=32768", NULL, NULL), 0);
    stk_limit_kept(dataset, &options, KEPT * KEPT_BATCH * (KEPT_ROW + 4096));
    stoker_loader *loader = loader_of(dataset, &options);
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < KEPT; i++) {
            batches[i] = (stoker_batch)STOKER_BATCH_INIT;
            while (stoker_loader_next(loader, &batches[i], -1) == STOKER_EPOCH_END)
                ;
            rows[i] = batches[i].images.data;
        }
        const stoker_stats kept = stats_of(loader);
        lent_bytes[turn] = kept.lent_bytes;
        cr_assert_leq(kept.memory_bytes, kept.memory_bytes_max);
        for (uint32_t i = 0; i < KEPT; i++)
            stoker_batch_release(&batches[i]);
        const uint32_t before = resident_pages(rows);
        later = (struct stk_run){ .rc = STOKER_OK };
        stk_run_on(loader, &later, 4 * KEPT); /* whole epochs */
        cr_assert_eq(later.rc, STOKER_OK);
        cr_assert_lt(resident_pages(rows), before / 2); /* what the ring has stays */
        cr_assert_lt(stats_of(loader).lent_bytes, kept.lent_bytes / 2);
        cr_assert_eq(stats_of(loader).lent_slots, kept.lent_slots);
    }
    cr_assert_eq(lent_bytes[0], lent_bytes[1]);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}
