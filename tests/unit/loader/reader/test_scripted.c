/* test_scripted.c - the scripted reader misbehaves exactly as its script says.
 *
 * Other tests trust it to have caused what they then see survived.
 */
#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/runs/scripted_reader.h"

enum { FILE_BYTES = 8192, READS = 8, READ_BYTES = 100, WAIT_NS = 1000000000 };

struct bench {
    FILE *file;
    stoker_file files[1];
    stoker_reader_setup setup;
    void *ring;
    stoker_read reads[READS];
    stoker_read *pointers[READS];
    uint8_t bytes[READS][READ_BYTES];
};

/* READS reads of READ_BYTES, one after the other in the file, under a script. */
static void bench_open(struct bench *bench, const struct stk_script *script)
{
    memset(bench, 0, sizeof(*bench));
    bench->file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(bench->file);
    bench->files[0] =
        (stoker_file){ .path = "file", .fd = fileno(bench->file), .size = FILE_BYTES };
    bench->setup = (stoker_reader_setup){ .files = bench->files, .file_count = 1, .depth = READS };
    for (uint32_t i = 0; i < READS; i++) {
        bench->reads[i] = (stoker_read){ .buffer = bench->bytes[i],
                                         .offset = (uint64_t)i * READ_BYTES,
                                         .bytes = READ_BYTES,
                                         .result = INT32_MIN,
                                         .tag = i };
        bench->pointers[i] = &bench->reads[i];
    }
    stk_script_install(script);
    cr_assert_eq(stk_scripted_reader.open(NULL, &bench->ring, &bench->setup, NULL), 0);
    cr_assert_eq(stk_scripted_reader.submit(bench->ring, bench->pointers, READS), 0);
}

static void bench_close(struct bench *bench)
{
    cr_assert_eq(stk_scripted_reader.close(bench->ring, WAIT_NS), 0);
    fclose(bench->file);
}

static void reap_all(struct bench *bench, stoker_read **done)
{
    for (uint32_t count = 0; count < READS;) {
        int got = stk_scripted_reader.reap(bench->ring, done + count, READS - count, WAIT_NS);
        cr_assert_gt(got, 0);
        count += (uint32_t)got;
    }
}

static void assert_untouched(const struct bench *bench, uint32_t i)
{
    cr_assert_eq(bench->reads[i].result, READ_BYTES);
    cr_assert(stk_test_bytes_match(bench->bytes[i], bench->reads[i].offset, READ_BYTES));
}

CleanTest(reader_scripted, without_rules_reads_right)
{
    struct bench bench;
    stoker_read *done[READS];
    bench_open(&bench, &(struct stk_script){ 0 });
    reap_all(&bench, done);
    for (uint32_t i = 0; i < READS; i++) {
        cr_assert_eq(done[i]->tag, i);
        assert_untouched(&bench, i);
    }
    bench_close(&bench);
    const struct stk_script_counts counts = stk_script_counts();
    cr_assert_eq(counts.opens, 1);
    cr_assert_eq(counts.closes, 1);
    cr_assert_eq(counts.submits, 1);
    cr_assert_eq(counts.reads, READS);
    cr_assert_eq(counts.reaped, READS);
}

CleanTest(reader_scripted, each_rule_hits_its_reads_and_no_other)
{
    static const struct stk_script_rule rules[] = {
        { .what = STK_SCRIPT_SHORT, .amount = 10, .skip = 1, .times = 1 },        /* read 1 */
        { .what = STK_SCRIPT_PASS, .offset = 350, .bytes = 1 },                   /* read 3 */
        { .what = STK_SCRIPT_ERRNO, .amount = EIO, .offset = 299, .bytes = 102 }, /* 2, 4 */
        { .what = STK_SCRIPT_EOF, .offset = 500, .bytes = 100 },                  /* read 5 */
        { .what = STK_SCRIPT_FLIP, .amount = 7, .offset = 600, .bytes = 1 },      /* read 6 */
        { .what = STK_SCRIPT_ERRNO, .amount = EAGAIN, .file = 9 },                /* none */
    };
    struct bench bench;
    stoker_read *done[READS];
    bench_open(&bench, &(struct stk_script){ .rules = rules,
                                             .rule_count = sizeof(rules) / sizeof(rules[0]) });
    reap_all(&bench, done);
    cr_assert_eq(bench.reads[1].result, 10);
    cr_assert(stk_test_bytes_match(bench.bytes[1], READ_BYTES, 10));
    cr_assert_eq(bench.bytes[1][10], 0);
    cr_assert_eq(bench.reads[2].result, -EIO);
    cr_assert_eq(bench.reads[4].result, -EIO);
    cr_assert_eq(bench.reads[5].result, 0);
    cr_assert_eq(bench.reads[6].result, READ_BYTES);
    cr_assert_eq(bench.bytes[6][7], stk_test_byte(607) ^ 1U);
    bench.bytes[6][7] ^= 1U;
    cr_assert(stk_test_bytes_match(bench.bytes[6], 600, READ_BYTES));
    static const uint32_t untouched[] = { 0, 3, 7 };
    for (size_t i = 0; i < sizeof(untouched) / sizeof(untouched[0]); i++)
        assert_untouched(&bench, untouched[i]);
    bench_close(&bench);
    const struct stk_script_counts counts = stk_script_counts();
    cr_assert_eq(counts.hits[STK_SCRIPT_SHORT], 1);
    cr_assert_eq(counts.hits[STK_SCRIPT_ERRNO], 2);
    cr_assert_eq(counts.hits[STK_SCRIPT_PASS], 1);
}

CleanTest(reader_scripted, shuffles_the_same_way_for_the_same_seed)
{
    uint32_t orders[3][READS];
    static const uint64_t seeds[3] = { 7, 7, 8 };
    for (int run = 0; run < 3; run++) {
        struct bench bench;
        stoker_read *done[READS];
        bench_open(&bench, &(struct stk_script){ .shuffle_seed = seeds[run], .reap_max = 3 });
        reap_all(&bench, done);
        uint32_t seen = 0;
        for (uint32_t i = 0; i < READS; i++) {
            orders[run][i] = done[i]->tag;
            seen |= 1U << done[i]->tag;
            assert_untouched(&bench, i);
        }
        cr_assert_eq(seen, (1U << READS) - 1);
        bench_close(&bench);
    }
    cr_assert_arr_eq(orders[0], orders[1], sizeof(orders[0]));
    cr_assert_arr_neq(orders[0], orders[2], sizeof(orders[0]));
}

CleanTest(reader_scripted, stalls_until_released_and_delays_for_a_time)
{
    static const struct stk_script_rule rules[] = {
        { .what = STK_SCRIPT_STALL, .times = 1 },
        { .what = STK_SCRIPT_DELAY, .amount = 30, .times = 1 },
    };
    struct bench bench;
    stoker_read *done[READS];
    bench_open(&bench, &(struct stk_script){ .rules = rules, .rule_count = 2 });
    const uint64_t start_ns = stk_now_ns();
    cr_assert_eq(stk_scripted_reader.reap(bench.ring, done, READS, 0), READS - 2);
    cr_assert_eq(stk_scripted_reader.reap(bench.ring, done, READS, WAIT_NS), 1);
    cr_assert_eq(done[0]->tag, 1);
    cr_assert_geq(stk_now_ns() - start_ns, 20000000U); /* due_ns counts from submit */
    cr_assert_eq(stk_scripted_reader.reap(bench.ring, done, READS, 1000000), 0);
    cr_assert_eq(bench.reads[0].result, INT32_MIN);
    stk_script_release();
    cr_assert_eq(stk_scripted_reader.reap(bench.ring, done, READS, 0), 1);
    assert_untouched(&bench, 0);
    bench_close(&bench);
}

CleanTest(reader_scripted, close_of_a_stalled_ring_is_busy_and_in_time)
{
    static const struct stk_script_rule rules[] = { { .what = STK_SCRIPT_STALL, .skip = 2 } };
    struct bench bench;
    bench_open(&bench, &(struct stk_script){ .rules = rules, .rule_count = 1 });
    const uint64_t start_ns = stk_now_ns();
    cr_assert_eq(stk_scripted_reader.close(bench.ring, 20000000), STOKER_BUSY);
    cr_assert_geq(stk_now_ns() - start_ns, 20000000U);
    cr_assert_eq(stk_script_counts().busy_closes, 1);
    fclose(bench.file);
}

CleanTest(reader_scripted, calls_fail_on_request)
{
    struct bench bench;
    bench_open(&bench, &(struct stk_script){ .fail_open = 2, .fail_submit = 2, .fail_reap = 2 });
    stoker_error error = { 0 };
    void *second = NULL;
    cr_assert_eq(stk_scripted_reader.open(NULL, &second, &bench.setup, &error), STOKER_EREADER);
    cr_assert_eq(error.code, STOKER_EREADER);
    cr_assert_eq(stk_scripted_reader.open(NULL, &second, &bench.setup, NULL), 0); /* only the 2nd */
    cr_assert_eq(stk_scripted_reader.submit(second, bench.pointers, READS), STOKER_EIO);
    cr_assert_eq(stk_scripted_reader.close(second, 0), 0);
    stoker_read *done[READS];
    cr_assert_eq(stk_scripted_reader.reap(bench.ring, done, 1, 0), 1);
    cr_assert_eq(stk_scripted_reader.reap(bench.ring, done, 1, 0), STOKER_EIO);
    bench_close(&bench);

    stk_script_install(&(struct stk_script){ .fail_open = 1, .fail_on = true });
    for (int i = 0; i < 3; i++)
        cr_assert_eq(stk_scripted_reader.open(NULL, &second, &bench.setup, NULL), STOKER_EREADER);
}
