/* test_stats.c - what stats count, and the one stage that they blame. */
#include <stddef.h>
#include <time.h>

#include "loader/pipeline/report/ledger.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scripted_reader.h"
#include "support/sets/made_set.h"

static stoker_stats look(const stoker_loader *loader)
{
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    return stats;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* ---- rules ---- */

CleanTest(stats, struct_size_is_obeyed)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=3");
    const stoker_loader_options options = stk_small_options();
    stoker_loader *loader = loader_of(dataset, &options);
    for (size_t size = 0; size <= sizeof(stoker_stats) + 8; size++) {
        union {
            stoker_stats stats;
            uint8_t bytes[sizeof(stoker_stats) + 64];
        } out;
        memset(&out, 0xA5, sizeof(out));
        out.stats.struct_size = size;
        const bool good = size >= sizeof(size_t);
        cr_assert_eq(stoker_loader_stats(loader, &out.stats), good ? STOKER_OK : STOKER_EINVAL);
        for (size_t at = good ? size : sizeof(size_t); at < sizeof(out.bytes); at++)
            cr_assert_eq(out.bytes[at], 0xA5, "byte %zu written with struct_size %zu", at, size);
        for (size_t at = sizeof(stoker_stats); good && at < size; at++)
            cr_assert_eq(out.bytes[at], 0, "members of a newer version");
        cr_assert_eq(out.stats.struct_size, size);
    }
    cr_assert_eq(stoker_loader_stats(loader, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_stats(NULL, &(stoker_stats){ .struct_size = 8 }), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

static void expect_not_less(const stoker_stats *before, const stoker_stats *after)
{
    static const size_t counters[] = {
        offsetof(stoker_stats, batches),      offsetof(stoker_stats, samples),
        offsetof(stoker_stats, bytes),        offsetof(stoker_stats, bad_samples),
        offsetof(stoker_stats, elapsed_ns),   offsetof(stoker_stats, read_ns),
        offsetof(stoker_stats, decode_ns),    offsetof(stoker_stats, convert_ns),
        offsetof(stoker_stats, slot_wait_ns), offsetof(stoker_stats, stall_ns),
        offsetof(stoker_stats, stalls),       offsetof(stoker_stats, reads),
        offsetof(stoker_stats, read_bytes),   offsetof(stoker_stats, read_retries),
        offsetof(stoker_stats, cache_hits),   offsetof(stoker_stats, first_batch_ns),
        offsetof(stoker_stats, blocks),       offsetof(stoker_stats, blocks_again),
        offsetof(stoker_stats, block_bytes),
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        uint64_t a;
        uint64_t b;
        memcpy(&a, (const uint8_t *)before + counters[i], sizeof(a));
        memcpy(&b, (const uint8_t *)after + counters[i], sizeof(b));
        cr_assert_leq(a, b, "counter %zu went down", i);
    }
}

static void expect_route(const char *spec, stoker_cache cache, const char *expected)
{
    stoker_dataset *dataset = dataset_of(spec);
    stoker_loader_options options = stk_small_options(.cache = cache);
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_str_eq(look(loader).route, expected);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(stats, the_route_is_reported_in_words)
{
    expect_route("synth:bytes?count=100&shape=3", STOKER_CACHE_NONE,
                 "read_decode: made from ids, decoded, copied into the batch");
    expect_route("synth:bytes?count=100&shape=3", STOKER_CACHE_DECODED,
                 "read_decode: made from ids, decoded, copied into the batch; cache: decoded rows");
}

CleanTest(stats, counts_are_exact_and_never_go_down)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 257, 9, 7, 0));
    for (int32_t workers = 0; workers <= 2; workers++) {
        stoker_loader_options options =
            stk_small_options(.num_workers = workers, .dtype = STOKER_DTYPE_FLOAT32);
        stoker_loader *loader = loader_of(set.dataset, &options);
        stoker_stats before = look(loader);
        static struct stk_run run;
        memset(&run, 0, sizeof(run));
        cr_assert_eq(before.batches, 0);
        cr_assert_eq(before.first_batch_ns, 0);
        do {
            stk_run_on(loader, &run, 1);
            const stoker_stats after = look(loader);
            expect_not_less(&before, &after);
            cr_assert_eq(after.batches, run.batches);
            cr_assert_eq(after.samples, run.samples);
            cr_assert_eq(after.bytes, run.samples * 63 * 4);
            cr_assert_gt(after.first_batch_ns, 0);
            before = after;
        } while (run.rc == STOKER_OK);
        cr_assert_eq(before.reads, 2 * 257);
        cr_assert_eq(before.read_bytes, 2 * 257 * 63);
        cr_assert_eq(before.read_retries, 0);
        cr_assert_eq(before.cache_hits, 0);
        cr_assert_eq(before.cache, STOKER_CACHE_NONE);
        cr_assert_eq(before.workers_max, (uint32_t)workers);
        cr_assert_geq(before.cpus, 1);
        cr_assert_gt(before.verdict[0], 0);
        stoker_loader_destroy(&loader);
    }
    stk_file_set_remove(&set);
}

/* Slots that are lent are not ready, those that are full and wait are. */
CleanTest(stats, ready_slots_are_those_that_wait)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=3");
    stoker_loader_options options = stk_small_options(.num_workers = 1, .prefetch_batches = 5);
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batches[5];
    for (uint32_t lent = 0; lent < 5; lent++) {
        batches[lent] = (stoker_batch)STOKER_BATCH_INIT;
        for (int tries = 0; look(loader).slots_ready != 5 - lent; tries++) {
            cr_assert_lt(tries, 5000, "%u lent, %u ready", lent, look(loader).slots_ready);
            pause_ms(1);
        }
        cr_assert_eq(stoker_loader_next(loader, &batches[lent], -1), STOKER_OK);
    }
    cr_assert_eq(look(loader).slots_ready, 0);
    cr_assert_eq(look(loader).slots, 5);
    for (uint32_t lent = 0; lent < 5; lent++)
        stoker_batch_release(&batches[lent]);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* ---- verdicts ---- */

static void run_for(stoker_loader *loader, uint32_t batches, long consumer_ms)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    while (batches > 0) {
        const int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK);
        if (consumer_ms > 0)
            pause_ms(consumer_ms);
        stoker_batch_release(&batch);
        batches--;
    }
}

CleanTest(stats, a_slow_consumer_is_the_limit)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=30");
    stoker_loader_options options =
        stk_small_options(.epochs = STOKER_EPOCHS_ENDLESS, .num_workers = 1);
    stoker_loader *loader = loader_of(dataset, &options);
    run_for(loader, 4, 0);
    cr_assert_eq(look(loader).limit, STOKER_LIMIT_UNKNOWN);
    /* On a busy machine the worker may have to wait for a CPU now and then: longer runs level that
     * out. */
    run_for(loader, 60, 5);
    stoker_stats stats = look(loader);
    for (int more = 0; more < 10 && stats.limit != STOKER_LIMIT_CONSUMER; more++) {
        run_for(loader, 60, 5);
        stats = look(loader);
    }
    cr_assert_eq(stats.limit, STOKER_LIMIT_CONSUMER, "%s", stats.verdict);
    cr_assert_not_null(strstr(stats.verdict, "consumer-bound"));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

static enum stk_made_kind all_raw(uint64_t id)
{
    (void)id;
    return STK_MADE_RAW;
}

/* A loader that has worked for long enough to know what holds it up. */
static stoker_loader *loader_at_work(stoker_dataset *dataset, stoker_loader_options options,
                                     int32_t workers)
{
    options.num_workers = workers;
    options.epochs = STOKER_EPOCHS_ENDLESS;
    stoker_loader *loader = loader_of(dataset, &options);
    do /* 25 batches may take too short a time */
        run_for(loader, 25, 0);
    while (look(loader).limit == STOKER_LIMIT_UNKNOWN);
    return loader;
}

/* What it says, once, and then it goes. */
static stoker_stats limit_found(stoker_loader **loader, stoker_limit limit, const char *words)
{
    const stoker_stats stats = look(*loader);
    cr_assert_eq(stats.limit, limit, "%s", stats.verdict);
    cr_assert_not_null(strstr(stats.verdict, words), "%s", stats.verdict);
    stoker_loader_destroy(loader);
    return stats;
}

/* One read at a time, 3 ms each. */
CleanTest(stats, slow_storage_is_the_limit)
{
    static const struct stk_script_rule rule = { .what = STK_SCRIPT_DELAY,
                                                 .amount = 3,
                                                 .file = STK_SCRIPT_ANY_FILE };
    struct stk_made_set set = { .count = 100, .row_bytes = 40, .kind_of = all_raw };
    stoker_loader_options options =
        stk_small_options(.reader = &stk_scripted_reader, .read_depth = 1, .batch_size = 4);
    cr_assert(stk_made_set_open(&set));
    for (int32_t workers = 0; workers <= 1; workers++) {
        stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
        stoker_loader *loader = loader_at_work(set.dataset, options, workers);
        const stoker_stats stats = limit_found(&loader, STOKER_LIMIT_READ, "read-bound");
        cr_assert_gt(stats.read_ns, stats.decode_ns + stats.convert_ns);
    }
    stk_made_set_close(&set);
}

enum { SUBMIT_MS = 2 };

static _Atomic uint64_t slow_submits;

/* As io_uring does with what the page cache holds: it is all done when submit returns. */
static int submit_slowly(void *ring, stoker_read *const *reads, uint32_t count)
{
    pause_ms(SUBMIT_MS);
    atomic_fetch_add(&slow_submits, 1U);
    return stk_scripted_submit(ring, reads, count);
}

/* Reads from the page cache are reads as well, though nobody waits for them. */
CleanTest(stats, reads_within_submit_are_the_limit)
{
    stoker_reader reader = stk_scripted_reader;
    reader.submit = submit_slowly;
    struct stk_made_set set = { .count = 100, .row_bytes = 40, .kind_of = all_raw };
    stoker_loader_options options =
        stk_small_options(.reader = &reader, .read_depth = 4, .batch_size = 4);
    cr_assert(stk_made_set_open(&set));
    for (int32_t workers = 0; workers <= 1; workers++) {
        stk_script_install(&(struct stk_script){ .rule_count = 0 });
        atomic_store(&slow_submits, 0U);
        stoker_loader *loader = loader_at_work(set.dataset, options, workers);
        const uint64_t done = atomic_load(&slow_submits); /* before the look: one may be new */
        const stoker_stats stats = limit_found(&loader, STOKER_LIMIT_READ, "read-bound");
        cr_assert_gt(done, 1);
        cr_assert_geq(stats.read_ns, (done - 1) * SUBMIT_MS * UINT64_C(1000000));
    }
    stk_made_set_close(&set);
}

/* Digits are drawn: all of the work is in the codec. */
CleanTest(stats, a_slow_codec_is_the_limit)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=1000&size=64");
    for (int32_t workers = 0; workers <= 1; workers++) {
        stoker_loader *loader = loader_at_work(dataset, stk_small_options(), workers);
        (void)limit_found(&loader, STOKER_LIMIT_DECODE, "decode-bound");
    }
    stoker_dataset_close(&dataset);
}

/* What is kept decoded is gathered, and nobody says that it is decoded. */
CleanTest(stats, rows_kept_decoded_take_no_decoding)
{
    enum { COUNT = 1000, BATCH = 50 };
    stoker_dataset *dataset = dataset_of("synth:digits?count=1000");
    for (int32_t workers = 0; workers <= 1; workers++) {
        stoker_loader_options options =
            stk_small_options(.num_workers = workers, .batch_size = BATCH,
                              .epochs = STOKER_EPOCHS_ENDLESS, .cache = STOKER_CACHE_DECODED);
        options.prefetch_batches = 4;
        stoker_loader *loader = loader_of(dataset, &options);
        run_for(loader, 2 * COUNT / BATCH, 0);
        stoker_stats before = look(loader);
        cr_assert_gt(before.decode_ns, 0);
        /* A worker notes what it decoded after it hands over the rows, perhaps an epoch later. */
        stoker_stats after = before;
        for (int epochs = 0; epochs == 0 || after.decode_ns != before.decode_ns; epochs++) {
            cr_assert_lt(epochs, 20, "every epoch decodes");
            before = after;
            run_for(loader, COUNT / BATCH, 0);
            after = look(loader);
        }
        cr_assert_gt(after.convert_ns, before.convert_ns);
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}

static stoker_limit judge(stoker_stats stats)
{
    stk_ledger_judge(&stats);
    cr_assert_gt(strlen(stats.verdict), 10);
    cr_assert_lt(strlen(stats.verdict), sizeof(stats.verdict) - 1, "cut: %s", stats.verdict);
    return stats.limit;
}

CleanTest(stats, verdicts_follow_from_the_sums)
{
    const stoker_stats base = {
        .batches = 1000, .elapsed_ns = 1000000000, .workers = 2, .cpus = 4
    };
    stoker_stats stats = base;
    stats.batches = 1;
    cr_assert_eq(judge(stats), STOKER_LIMIT_UNKNOWN);
    stats = base;
    stats.stall_ns = 900000000;
    stats.read_ns = 5;
    cr_assert_eq(judge(stats), STOKER_LIMIT_READ);
    stats.decode_ns = 6;
    cr_assert_eq(judge(stats), STOKER_LIMIT_DECODE);
    stats.convert_ns = 7;
    cr_assert_eq(judge(stats), STOKER_LIMIT_CONVERT);
    stats.slot_wait_ns = 100;
    cr_assert_eq(judge(stats), STOKER_LIMIT_HANDOVER);
    stats.stall_ns = 100000000; /* the consumer rested, and the workers waited for it */
    cr_assert_eq(judge(stats), STOKER_LIMIT_CONVERT);
    stats.stall_ns = 1000;
    cr_assert_eq(judge(stats), STOKER_LIMIT_CONSUMER);
    stats.elapsed_ns = UINT64_MAX;
    stats.stall_ns = UINT64_MAX;
    stats.slot_wait_ns = 0;
    cr_assert_eq(judge(stats), STOKER_LIMIT_CONVERT);
}

/* The words behind the limit of sums in which one stage took all of the time. */
static bool says(stoker_stats stats, const char *words)
{
    stk_ledger_judge(&stats);
    return strstr(stats.verdict, words) != NULL;
}

/* Workers are judged by the CPU time that they use, not by their number. */
CleanTest(stats, advice_follows_from_cpu_time)
{
    const uint64_t second = 1000000000;
    stoker_stats stats = {
        .batches = 1000,
        .elapsed_ns = second,
        .stall_ns = second,
        .workers = 4,
        .cpus = 2,
    };
    stats.decode_ns = 4 * second;
    stats.cpu_ns = 2 * second;
    cr_assert(says(stats, "every CPU is in use: more workers will not help"));
    stats.cpu_ns = second / 10;
    cr_assert(says(stats, "workers mostly wait, 0.1 of 2 CPUs in use: more workers will help"));
    stats.workers = 1;
    stats.decode_ns = second;
    stats.cpu_ns = second;
    cr_assert(says(stats, "1.0 of 2 CPUs in use: more workers may help"));
    stats.decode_ns = 0;
    stats.read_ns = second;
    stats.cpu_ns = second / 10;
    cr_assert(says(stats, "only if the storage has more to give"));
}

/* Without threads next makes the batches: the limit is what takes most of the time. */
CleanTest(stats, without_workers_the_larger_part_is_the_limit)
{
    stoker_stats stats = {
        .batches = 1000, .elapsed_ns = 1000000000, .cpus = 2, .decode_ns = 3000000
    };
    stats.stall_ns = 3000000;
    cr_assert_eq(judge(stats), STOKER_LIMIT_CONSUMER);
    stats.stall_ns = stats.decode_ns = 400000000;
    cr_assert_eq(judge(stats), STOKER_LIMIT_CONSUMER);
    cr_assert(says(stats, "40 % of the time was spent making batches; a worker would"));
    stats.stall_ns = stats.decode_ns = 900000000;
    cr_assert_eq(judge(stats), STOKER_LIMIT_DECODE);
}

enum { NAP_MS = 2 };

static int decode_asleep(const void *self, void *scratch, const stoker_encoded *in,
                         const stoker_decoded *out, stoker_error *error)
{
    pause_ms(NAP_MS);
    return stk_made_decode(self, scratch, in, out, error);
}

static int locate_asleep(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                         stoker_error *error)
{
    static const stoker_codec asleep = { .struct_size = sizeof(stoker_codec),
                                         .name = "asleep",
                                         .decode = decode_asleep };
    (void)self;
    (void)ids;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .codec = &asleep };
    return STOKER_OK;
}

static int describe_asleep(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = 10000,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { 16 } };
    return STOKER_OK;
}

/* A decoder that waits uses no CPU, however many workers wait in it. */
CleanTest(stats, a_decoder_that_sleeps_leaves_the_cpus_free)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "asleep",
                                            .describe = describe_asleep,
                                            .locate = locate_asleep };
    stoker_loader_options options = stk_small_options(.batch_size = 4, .cache = STOKER_CACHE_NONE);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    for (int32_t workers = 0; workers <= 4; workers += 4) {
        stoker_loader *loader = loader_at_work(dataset, options, workers);
        const stoker_stats stats = limit_found(&loader, STOKER_LIMIT_DECODE, "workers mostly wait");
        cr_assert_gt(stats.cpu_ns, 0);
        cr_assert_lt(stats.cpu_ns, stats.decode_ns / 2);
    }
    stoker_dataset_close(&dataset);
}

/* ---- between two looks ---- */

/* A second of reading, and what the window after it adds. */
static stoker_stats first_look(void)
{
    return (stoker_stats){ .struct_size = sizeof(stoker_stats),
                           .batches = 1000,
                           .samples = 16000,
                           .bytes = 48000,
                           .bad_samples = 2,
                           .elapsed_ns = 1000000000,
                           .first_batch_ns = 77,
                           .read_ns = 900000000,
                           .decode_ns = 3,
                           .convert_ns = 4,
                           .slot_wait_ns = 5,
                           .stall_ns = 800000000,
                           .stalls = 600,
                           .reads = 16000,
                           .read_bytes = 64000,
                           .read_retries = 7,
                           .cache_hits = 8,
                           .workers = 2,
                           .cpus = 4,
                           .cpu_ns = 900 };
}

static stoker_stats second_look(void)
{
    stoker_stats stats = first_look();
    stats.batches += 10;
    stats.samples += 11;
    stats.bytes += 12;
    stats.bad_samples += 13;
    stats.elapsed_ns += 20000000;
    stats.read_ns += 14;
    stats.decode_ns += 15000000;
    stats.convert_ns += 16;
    stats.slot_wait_ns += 17;
    stats.stall_ns += 18000000;
    stats.stalls += 19;
    stats.reads += 20;
    stats.read_bytes += 21;
    stats.read_retries += 22;
    stats.cache_hits += 23;
    stats.cpu_ns += 24;
    stats.workers = 3;
    stats.slots_ready = 4;
    stats.cache_held_bytes = 5;
    return stats;
}

static void expect_differences(const stoker_stats *found)
{
    cr_assert_eq(found->struct_size, sizeof(*found));
    cr_assert_eq(found->batches, 10);
    cr_assert_eq(found->samples, 11);
    cr_assert_eq(found->bytes, 12);
    cr_assert_eq(found->bad_samples, 13);
    cr_assert_eq(found->elapsed_ns, 20000000);
    cr_assert_eq(found->first_batch_ns, 77, "no count: as in the second look");
    cr_assert_eq(found->read_ns, 14);
    cr_assert_eq(found->decode_ns, 15000000);
    cr_assert_eq(found->convert_ns, 16);
    cr_assert_eq(found->slot_wait_ns, 17);
    cr_assert_eq(found->stall_ns, 18000000);
    cr_assert_eq(found->stalls, 19);
    cr_assert_eq(found->reads, 20);
    cr_assert_eq(found->read_bytes, 21);
    cr_assert_eq(found->read_retries, 22);
    cr_assert_eq(found->cache_hits, 23);
    cr_assert_eq(found->cpu_ns, 24);
    cr_assert_eq(found->workers, 3);
    cr_assert_eq(found->slots_ready, 4);
    cr_assert_eq(found->cache_held_bytes, 5);
    cr_assert_eq(found->limit, STOKER_LIMIT_DECODE, "%s", found->verdict);
    cr_assert_not_null(strstr(found->verdict, "decode-bound"));
}

/* The whole run was read-bound; the window alone is not. */
CleanTest(stats, between_speaks_of_the_window_alone)
{
    stoker_stats before = first_look();
    stoker_stats after = second_look();
    stoker_stats out;
    cr_assert_eq(judge(after), STOKER_LIMIT_READ);
    cr_assert_eq(stoker_stats_between(&before, &after, &out), STOKER_OK);
    expect_differences(&out);
    cr_assert_eq(stoker_stats_between(&before, &after, &before), STOKER_OK, "out is before");
    expect_differences(&before);
    before = first_look();
    cr_assert_eq(stoker_stats_between(&before, &after, &after), STOKER_OK, "out is after");
    expect_differences(&after);
    cr_assert_eq(stoker_stats_between(&before, &before, &out), STOKER_OK, "nothing between");
    cr_assert_eq(out.batches, 0);
    cr_assert_eq(out.elapsed_ns, 0);
    cr_assert_eq(out.limit, STOKER_LIMIT_UNKNOWN);
}

CleanTest(stats, between_refuses_what_is_no_window)
{
    enum { WRONG = 6 };
    stoker_stats before[WRONG];
    stoker_stats after[WRONG];
    for (int i = 0; i < WRONG; i++) {
        before[i] = first_look();
        after[i] = second_look();
    }
    before[0].struct_size = 0;
    before[1].struct_size = sizeof(stoker_stats) - 8;
    after[2].struct_size = 0;
    after[3].struct_size = sizeof(stoker_stats) + 8;
    before[4].elapsed_ns = after[4].elapsed_ns + 1;
    before[5].batches = after[5].batches + 1;
    stoker_stats out;
    memset(&out, 0xA5, sizeof(out));
    const stoker_stats untouched = out;
    for (int i = 0; i < WRONG; i++)
        cr_assert_eq(stoker_stats_between(&before[i], &after[i], &out), STOKER_EINVAL, "%d", i);
    const stoker_stats first = first_look();
    const stoker_stats second = second_look();
    cr_assert_eq(stoker_stats_between(&second, &first, &out), STOKER_EINVAL, "wrong order");
    cr_assert_eq(stoker_stats_between(NULL, &second, &out), STOKER_EINVAL);
    cr_assert_eq(stoker_stats_between(&first, NULL, &out), STOKER_EINVAL);
    cr_assert_eq(stoker_stats_between(&first, &second, NULL), STOKER_EINVAL);
    cr_assert_eq(memcmp(&out, &untouched, sizeof(out)), 0, "out is left alone");
}

/* Of a real run: the window has nothing of the batches before it. */
CleanTest(stats, between_two_looks_at_a_loader)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=30");
    stoker_loader_options options =
        stk_small_options(.epochs = STOKER_EPOCHS_ENDLESS, .num_workers = 1);
    stoker_loader *loader = loader_of(dataset, &options);
    run_for(loader, 20, 1);
    const stoker_stats before = look(loader);
    run_for(loader, 30, 2);
    const stoker_stats after = look(loader);
    stoker_stats out;
    cr_assert_eq(stoker_stats_between(&before, &after, &out), STOKER_OK);
    cr_assert_eq(out.batches, 30);
    cr_assert_eq(out.bytes, out.samples * 30);
    cr_assert_eq(out.elapsed_ns, after.elapsed_ns - before.elapsed_ns);
    cr_assert_eq(out.stall_ns, after.stall_ns - before.stall_ns);
    cr_assert_eq(out.stalls, after.stalls - before.stalls);
    cr_assert_eq(out.convert_ns, after.convert_ns - before.convert_ns);
    cr_assert_eq(out.limit, judge(out), "%s", out.verdict);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(stats, names_are_those_of_the_header)
{
    static const char *const limits[] = { "unknown", "consumer", "read",
                                          "decode",  "convert",  "handover" };
    static const char *const caches[] = { "auto", "none", "encoded", "decoded", "device" };
    for (int i = 0; i < 6; i++)
        cr_assert_str_eq(stoker_limit_name((stoker_limit)i), limits[i]);
    for (int i = 0; i < 5; i++)
        cr_assert_str_eq(stoker_cache_name((stoker_cache)i), caches[i]);
    cr_assert_str_eq(stoker_limit_name((stoker_limit)99), "unknown");
    cr_assert_str_eq(stoker_cache_name((stoker_cache)-1), "unknown");
}
