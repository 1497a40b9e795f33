/* test_window.c - the window order, without a loader: at every position the sample that a literal
 * construction has there, each sample once per epoch, and few blocks in use at a time.
 */
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/sampler/sampler.h"
#include "loader/sampler/window.h"
#include "support/leaks.h"
#include "support/sweep.h"

enum { SAMPLES_MAX = 6000, BLOCKS_MAX = 1200, LANES_MAX = 200, EPOCHS = 3, SEED = 19 };

/* ---- layouts -------------------------------------------------------------------------- */

static uint64_t firsts[BLOCKS_MAX + 1];

static uint64_t first_at(const void *self, uint64_t block)
{
    return ((const uint64_t *)self)[block];
}

enum sizes { EQUAL, DECLARED_EQUAL, RANDOM, ONE_LARGE, ONES, TWO_SIZES };

/* Blocks of up to `size` samples, the last of up to `last`. */
static struct stk_blocks lay_out(enum sizes sizes, uint64_t block_count, uint64_t size,
                                 uint64_t last)
{
    firsts[0] = 0;
    for (uint64_t i = 0; i < block_count; i++) {
        uint64_t samples = size;
        if (sizes == RANDOM)
            samples = 1 + stk_mix64(i * 77 + size) % size;
        if (sizes == ONES || (sizes == ONE_LARGE && i != block_count / 3))
            samples = 1;
        if (sizes == TWO_SIZES)
            samples = i % 5 == 4 ? 1 + size / 3 : size;
        firsts[i + 1] = firsts[i] + (i + 1 == block_count ? last : samples);
    }
    return (struct stk_blocks){ .count = firsts[block_count],
                                .block_count = block_count,
                                .first = sizes == EQUAL ? NULL : first_at,
                                .self = firsts,
                                .block_samples = sizes == EQUAL ? size : 0 };
}

/* ---- the literal construction --------------------------------------------------------- */

/* out[0..n) = a keyed permutation of 0..n - 1. */
static void permutation(uint64_t n, uint64_t seed, uint64_t key, uint64_t *out)
{
    struct stk_sampler sampler;
    struct stk_sampler_order order = { .epoch = 0 };
    if (n == 0)
        return;
    stk_sampler_init(&sampler, n, seed, true);
    stk_sampler_begin(&sampler, key, &order);
    for (uint64_t i = 0; i < n; i++)
        stk_sampler_map(&sampler, &order, &i, 1, &out[i]);
}

/* The blocks in the order of an epoch. A last block that alone is shorter goes to a place drawn for
 * it. */
static void order_blocks(const struct stk_blocks *blocks, uint64_t epoch, uint64_t *out)
{
    const uint64_t count = blocks->block_count;
    const uint64_t seed = stk_mix64(SEED ^ UINT64_C(0x626C6F636B732121));
    bool equal = firsts[count] - firsts[count - 1] < firsts[1];
    for (uint64_t i = 0; i + 1 < count; i++)
        equal = equal && firsts[i + 1] - firsts[i] == firsts[1];
    if (!equal) {
        permutation(count, seed, epoch, out);
        return;
    }
    const struct stk_random draw = stk_philox(SEED ^ UINT64_C(0x706C616365212121), epoch, 0);
    const long double fraction = ((long double)draw.word[0] + draw.word[1] / 0x1p32L) / 0x1p32L;
    const uint64_t place = (uint64_t)(fraction * count);
    permutation(count - 1, seed, epoch, out);
    memmove(out + place + 1, out + place, (count - 1 - place) * sizeof(out[0]));
    out[place] = count - 1;
}

/* Permute a run of samples whose first is number `begin` of the line. */
static void permute_run(uint64_t *run, uint64_t length, uint64_t begin, uint64_t epoch)
{
    static uint64_t order[SAMPLES_MAX], old[SAMPLES_MAX];
    permutation(length, stk_mix64(SEED ^ UINT64_C(0x72756E7321212121)),
                stk_mix64(stk_mix64(epoch) + begin), order);
    memcpy(old, run, length * sizeof(old[0]));
    for (uint64_t i = 0; i < length; i++)
        run[i] = old[order[i]];
}

static void reverse(uint64_t *ids, uint64_t length)
{
    for (uint64_t i = 0; i < length / 2; i++) {
        const uint64_t id = ids[i];
        ids[i] = ids[length - 1 - i];
        ids[length - 1 - i] = id;
    }
}

static void construct(const struct stk_blocks *blocks, uint64_t window_blocks, uint64_t lanes,
                      uint64_t epoch, uint64_t *ids)
{
    static uint64_t order[BLOCKS_MAX], line[SAMPLES_MAX];
    const uint64_t count = blocks->count;
    uint64_t n = 0, begin = 0;
    order_blocks(blocks, epoch, order);
    for (uint64_t i = 0; i < blocks->block_count; i++)
        for (uint64_t id = firsts[order[i]]; id < firsts[order[i] + 1]; id++)
            line[n++] = id;
    cr_assert_eq(n, count);
    const uint64_t longest = (count + lanes - 1) / lanes;
    const uint64_t run = window_blocks * count / blocks->block_count;
    for (uint64_t lane = 0; lane < lanes; lane++) {
        const uint64_t length = (count + lanes - 1 - lane) / lanes;
        if (lane % 2 == 1)
            reverse(line + begin, length);
        uint64_t next = run >= longest ? length : run - lane * run / lanes; /* the first run */
        for (uint64_t at = 0; at < length; at += next, next = run) {
            next = next < length - at ? next : length - at;
            permute_run(line + begin + at, next, begin + at, epoch);
        }
        for (uint64_t at = 0; at < length; at++)
            ids[at * lanes + lane] = line[begin + at];
        begin += length;
    }
}

static uint32_t compare(const struct stk_blocks *blocks, uint64_t window_blocks, uint32_t lanes)
{
    static uint64_t ids[SAMPLES_MAX];
    struct stk_window *window = NULL;
    struct stk_window_line *lines[EPOCHS] = { NULL }; /* all in use at once */
    cr_assert_eq(stk_window_make(&window, blocks, window_blocks, lanes, SEED), 0);
    cr_assert_eq(window == NULL, window_blocks >= blocks->block_count);
    for (uint64_t epoch = 0; window != NULL && epoch < EPOCHS; epoch++)
        cr_assert_eq(stk_window_begin(window, epoch, &lines[epoch]), 0);
    for (uint64_t epoch = 0; window != NULL && epoch < EPOCHS; epoch++) {
        uint8_t seen[SAMPLES_MAX] = { 0 };
        const struct stk_window_line *line = lines[epoch];
        construct(blocks, window_blocks, lanes, epoch, ids);
        for (uint64_t i = 0; i < blocks->count; i++) {
            const uint64_t at = blocks->count - 1 - i; /* any order will do */
            const uint64_t id = stk_window_id(window, line, at);
            cr_assert_eq(id, ids[at],
                         "%llu blocks, window %llu, %u lanes, epoch %llu, position %llu",
                         (unsigned long long)blocks->block_count, (unsigned long long)window_blocks,
                         lanes, (unsigned long long)epoch, (unsigned long long)at);
            cr_assert_eq(seen[id]++, 0);
        }
    }
    stk_window_free(window);
    return window != NULL ? 1 : 0;
}

static const struct {
    enum sizes sizes;
    uint64_t count, size, last;
} layouts[] = {
    { EQUAL, 1, 5, 5 },
    { EQUAL, 2, 1, 1 },
    { EQUAL, 2, 7, 3 },
    { EQUAL, 10, 100, 100 },
    { EQUAL, 10, 100, 1 },
    { EQUAL, 100, 10, 9 },
    { EQUAL, 1000, 6, 6 },
    { EQUAL, 1000, 5, 2 },
    { EQUAL, 7, 9, 4 },
    { DECLARED_EQUAL, 1, 3, 3 },
    { DECLARED_EQUAL, 40, 11, 5 },
    { DECLARED_EQUAL, 64, 32, 32 },
    { DECLARED_EQUAL, 9, 8, 12 },
    { RANDOM, 2, 30, 30 },
    { RANDOM, 5, 3, 1 },
    { RANDOM, 100, 80, 40 },
    { RANDOM, 1000, 9, 5 },
    { RANDOM, 65, 2, 1 },
    { ONE_LARGE, 50, 2000, 1 },
    { ONE_LARGE, 3, 500, 1 },
    { ONES, 63, 1, 1 },
    { ONES, 700, 1, 1 },
    { TWO_SIZES, 200, 20, 20 },
    { TWO_SIZES, 33, 100, 7 },
};

CleanTest(window, is_what_the_construction_says)
{
    static const uint32_t lane_counts[] = { 1, 2, 3, 8, 64, 100, LANES_MAX };
    uint32_t cases = 0;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const struct stk_blocks blocks =
            lay_out(layouts[i].sizes, layouts[i].count, layouts[i].size, layouts[i].last);
        cr_assert_leq(blocks.count, SAMPLES_MAX);
        const uint64_t windows[] = { 1,
                                     2,
                                     3,
                                     4,
                                     16,
                                     61,
                                     blocks.block_count - 1,
                                     blocks.block_count,
                                     blocks.block_count + 5,
                                     UINT64_MAX };
        for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++)
            for (size_t l = 0; windows[w] > 0 && l < sizeof(lane_counts) / sizeof(lane_counts[0]);
                 l++)
                cases += compare(&blocks, windows[w], lane_counts[l]);
    }
    cr_assert_gt(cases, 800, "%u", cases);
}

/* ---- locality ------------------------------------------------------------------------- */

static uint64_t block_of(uint64_t id)
{
    uint64_t block = 0;
    while (firsts[block + 1] <= id)
        block++;
    return block;
}

/* Most blocks that a rank needs again at a time, after it has used them once, or their samples. */
static uint64_t most_in_use(const struct stk_window *window, struct stk_window_line *line,
                            uint64_t count, uint32_t rank, uint32_t world_size, bool samples)
{
    static uint64_t opens[BLOCKS_MAX], closes[BLOCKS_MAX];
    uint64_t in_use = 0, most = 0;
    memset(opens, 0xFF, sizeof(opens));
    for (uint64_t at = rank; at < count; at += world_size) {
        const uint64_t block = block_of(stk_window_id(window, line, at));
        opens[block] = opens[block] == UINT64_MAX ? at : opens[block];
        closes[block] = at;
    }
    for (uint64_t at = rank; at < count; at += world_size) {
        const uint64_t block = block_of(stk_window_id(window, line, at));
        const uint64_t weight = samples ? firsts[block + 1] - firsts[block] : 1;
        in_use += opens[block] == at ? weight : 0;
        most = in_use > most ? in_use : most;
        in_use -= closes[block] == at ? weight : 0;
    }
    return most;
}

CleanTest(window, a_rank_uses_few_blocks_at_a_time)
{
    uint64_t most = 0;
    for (int unequal = 0; unequal < 2; unequal++)
        for (uint64_t window_blocks = 1; window_blocks <= 8; window_blocks *= 2)
            for (uint32_t lanes = 1; lanes <= 16; lanes *= 4)
                for (uint32_t world = 1; world <= lanes; world *= 2) {
                    const struct stk_blocks blocks =
                        lay_out(unequal ? RANDOM : EQUAL, 300, 12, unequal ? 3 : 5);
                    struct stk_window *window = NULL;
                    struct stk_window_line *line = NULL;
                    const uint64_t run = window_blocks * blocks.count / blocks.block_count;
                    const uint64_t bound = /* a run has two edges; one block is short */
                        lanes / world * (unequal ? run + 2 * 12 : window_blocks + 1) + 1;
                    cr_assert_eq(stk_window_make(&window, &blocks, window_blocks, lanes, SEED), 0);
                    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
                        cr_assert_eq(stk_window_begin(window, epoch, &line), 0);
                        for (uint32_t rank = 0; rank < world; rank++) {
                            const uint64_t found =
                                most_in_use(window, line, blocks.count, rank, world, unequal);
                            cr_assert_leq(found, bound, "window %llu, %u lanes, rank %u of %u",
                                          (unsigned long long)window_blocks, lanes, rank, world);
                            most = found * 100 / bound > most ? found * 100 / bound : most;
                        }
                    }
                    stk_window_free(window);
                }
    cr_assert_geq(most, 90, "the bound says nothing: %llu %%", (unsigned long long)most);
}

/* Lanes change their blocks one after the other: of 64 lanes, never more than a few at a time. */
CleanTest(window, lanes_take_turns_to_change_their_blocks)
{
    enum { LANES = 64, SPAN = 640 }; /* 10 positions of each lane, a tenth of a run */
    const struct stk_blocks blocks = lay_out(EQUAL, 1000, 6, 6);
    static uint8_t used[1000];
    struct stk_window *window = NULL;
    struct stk_window_line *line = NULL;
    memset(used, 0, sizeof(used));
    cr_assert_eq(stk_window_make(&window, &blocks, 4, LANES, SEED), 0);
    cr_assert_eq(stk_window_begin(window, 0, &line), 0);
    uint64_t most = 0;
    for (uint64_t at = 0; at < blocks.count; at++) {
        static uint64_t fresh;
        fresh = at % SPAN == 0 ? 0 : fresh;
        const uint64_t block = stk_window_id(window, line, at) / 6;
        fresh += used[block]++ == 0 ? 1 : 0;
        most = at >= SPAN && fresh > most ? fresh : most; /* all are new at first */
    }
    cr_assert_leq(most, 170, "%llu of 1000 blocks in a tenth of the epoch",
                  (unsigned long long)most);
    stk_window_free(window);
}

/* ---- limits --------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

CleanTest(window, seeks_among_2_to_the_62_samples)
{
    enum { LOOKS = 4096 };
    static uint64_t ids[LOOKS];
    const uint64_t count = (UINT64_C(1) << 62) - 5;
    const struct stk_blocks blocks = { .count = count,
                                       .block_count = UINT64_C(1) << 42,
                                       .block_samples = 1 << 20 };
    struct stk_window *window = NULL;
    struct stk_window_line *line = NULL;
    cr_assert_eq(stk_window_make(&window, &blocks, UINT64_C(1) << 30, 64, SEED), 0);
    cr_assert_eq(stk_window_begin(window, 0, &line), 0);
    for (uint64_t i = 0; i < LOOKS; i++) {
        ids[i] = stk_window_id(window, line, i % 2 == 0 ? i : count - i);
        cr_assert_lt(ids[i], count);
    }
    qsort(ids, LOOKS, sizeof(ids[0]), by_value);
    for (uint64_t i = 1; i < LOOKS; i++)
        cr_assert_neq(ids[i], ids[i - 1]);
    cr_assert_gt(ids[LOOKS / 2], count / 3);
    cr_assert_lt(ids[LOOKS / 2], count / 3 * 2);
    stk_window_free(window);
}

static uint64_t one_then_two(const void *self, uint64_t block)
{
    (void)self;
    return block == 0 ? 0 : 2 * block - 1;
}

CleanTest(window, refuses_a_table_above_the_limit)
{
    struct stk_blocks blocks = { .first = one_then_two, .block_count = STK_WINDOW_TABLE_MAX + 1 };
    struct stk_window *window = NULL;
    blocks.count = 2 * blocks.block_count - 1;
    cr_assert_eq(stk_window_make(&window, &blocks, 4, 64, SEED), STOKER_ELIMIT);
    cr_assert_null(window);
}

/* An order that moves on gives its line back, and one of the same epoch shares it: no third line is
 * made, which would take memory. */
CleanTest(window, two_lines_are_enough_to_move_on)
{
    const struct stk_blocks blocks = lay_out(RANDOM, 50, 9, 9);
    struct stk_window *window = NULL;
    struct stk_window_line *ahead = NULL, *behind = NULL, *third = NULL;
    cr_assert_eq(stk_window_make(&window, &blocks, 4, 8, SEED), 0);
    const int64_t live = stk_fault_live_bytes();
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        cr_assert_eq(stk_window_begin(window, epoch + 1, &ahead), 0);
        cr_assert_eq(stk_window_begin(window, epoch, &behind), 0);
        cr_assert_eq(stk_window_begin(window, epoch, &third), 0);
        cr_assert_eq(behind, third);
        stk_window_leave(window, &third);
    }
    cr_assert_eq(stk_fault_live_bytes(), live);
    stk_window_free(window);
}

CleanTest(window, survives_each_allocation_failure)
{
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY, .silent = true };
    while (stk_sweep_next(&sweep)) {
        const struct stk_blocks blocks = lay_out(RANDOM, 50, 9, 9);
        struct stk_window *window = NULL;
        struct stk_window_line *lines[3] = { NULL };
        sweep.rc = stk_window_make(&window, &blocks, 4, 8, SEED);
        for (uint64_t i = 0; sweep.rc == 0 && i < 3;
             i++) /* the third epoch at a time needs memory */
            sweep.rc = stk_window_begin(window, i, &lines[i]);
        stk_window_free(window);
    }
    cr_assert_eq(sweep.failed, 4);
}

/* ---- hashes --------------------------------------------------------------------------- */

CleanTest(window, its_hash_is_that_of_all_it_depends_on)
{
    static const struct {
        enum sizes sizes;
        uint64_t count, size, last, window_blocks;
        uint32_t lanes;
    } rows[] = { { EQUAL, 100, 10, 10, 4, 8 },  { EQUAL, 100, 10, 10, 5, 8 },
                 { EQUAL, 100, 10, 10, 4, 7 },  { EQUAL, 100, 10, 9, 4, 8 },
                 { EQUAL, 101, 10, 10, 4, 8 },  { EQUAL, 200, 5, 5, 8, 8 },
                 { RANDOM, 100, 10, 10, 4, 8 }, { RANDOM, 100, 11, 10, 4, 8 } };
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    uint64_t hashes[ROWS];
    for (int i = 0; i < ROWS; i++) {
        const struct stk_blocks blocks =
            lay_out(rows[i].sizes, rows[i].count, rows[i].size, rows[i].last);
        struct stk_window *window = NULL;
        cr_assert_eq(stk_window_make(&window, &blocks, rows[i].window_blocks, rows[i].lanes, 7), 0);
        hashes[i] = stk_window_hash(window);
        for (int other = 0; other < i; other++)
            cr_assert_neq(hashes[i], hashes[other], "%d %d", i, other);
        stk_window_free(window);
    }
    const struct stk_blocks unequal = lay_out(RANDOM, 100, 11, 10);
    uint64_t edge = 2;
    while (firsts[edge] + 1 == firsts[edge + 1])
        edge++;
    firsts[edge]++; /* one edge between blocks moves */
    struct stk_window *moved = NULL;
    cr_assert_eq(stk_window_make(&moved, &unequal, 4, 8, 0), 0);
    cr_assert_neq(stk_window_hash(moved), hashes[ROWS - 1]);
    stk_window_free(moved);
    const struct stk_blocks declared = lay_out(DECLARED_EQUAL, 100, 10, 10);
    struct stk_window *window = NULL;
    cr_assert_eq(stk_window_make(&window, &declared, 4, 8, 0), 0);
    cr_assert_eq(stk_window_hash(window), hashes[0], "who says where the blocks are is no matter");
    stk_window_free(window);
}
