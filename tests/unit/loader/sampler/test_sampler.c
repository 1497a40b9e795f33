/* test_sampler.c - an epoch is a permutation, a random-looking one, the same in pieces of any
 * length.
 *
 * Statistics use fixed seeds: a limit is either kept for ever or broken by a change. The
 * limits of chi-square are those that one fair sampler in some ten thousand breaks.
 */
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/sampler/sampler.h"
#include "support/cpu_mask.h"
#include "support/leaks.h"

enum { IDS_MAX = 16384 };

static void ids_of(const struct stk_sampler *sampler, uint64_t epoch, uint64_t first,
                   uint64_t stride, uint32_t n, uint64_t *ids)
{
    struct stk_sampler_order order;
    stk_sampler_begin(sampler, epoch, &order);
    cr_assert_eq(stk_sampler_ids(sampler, &order, first, stride, n, ids, NULL), 0);
}

/* Walk a whole epoch in pieces of 200; false if an id is out of range or comes twice. */
static bool is_permutation(uint64_t count, uint64_t seed, uint64_t epoch, uint8_t *visited)
{
    struct stk_sampler sampler;
    uint64_t ids[200];
    stk_sampler_init(&sampler, count, seed, true);
    memset(visited, 0, count);
    for (uint64_t at = 0; at < count; at += 200) {
        const uint32_t n = count - at < 200 ? (uint32_t)(count - at) : 200;
        ids_of(&sampler, epoch, at, 1, n, ids);
        for (uint32_t i = 0; i < n; i++)
            if (ids[i] >= count || visited[ids[i]]++ != 0)
                return false;
    }
    return true;
}

CleanTest(sampler, is_a_permutation_for_every_small_count)
{
    uint8_t *visited = stk_calloc(5000, 1);
    for (uint64_t count = 1; count <= 5000; count++)
        cr_assert(is_permutation(count, count * 77, count % 5, visited), "count %llu",
                  (unsigned long long)count);
    stk_free(visited);
}

CleanTest(sampler, is_a_permutation_for_primes_and_squares)
{
    static const uint64_t counts[] = { 8191,  8192,  8193,  10007,  60000, 65535,
                                       65536, 65537, 99856, 104729, 160000 };
    uint8_t *visited = stk_calloc(1000003, 1);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (uint64_t epoch = 0; epoch < 3; epoch++)
            cr_assert(is_permutation(counts[i], 9, epoch, visited), "count %llu epoch %llu",
                      (unsigned long long)counts[i], (unsigned long long)epoch);
    cr_assert(is_permutation(1000003, UINT64_MAX, UINT64_MAX, visited));
    stk_free(visited);
}

static int compare(const void *a, const void *b)
{
    uint64_t x;
    uint64_t y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Windows at the start, in the middle and at the end of an epoch: all distinct, all in range. */
static void check_windows(uint64_t count, uint64_t seed)
{
    enum { WINDOW = IDS_MAX / 4 };
    static uint64_t ids[IDS_MAX];
    const uint64_t starts[4] = { 0, count / 3, count / 2 + 12345, count - WINDOW };
    struct stk_sampler sampler;
    stk_sampler_init(&sampler, count, seed, true);
    for (uint32_t i = 0; i < 4; i++)
        ids_of(&sampler, seed, starts[i], 1, WINDOW, ids + (size_t)i * WINDOW);
    qsort(ids, IDS_MAX, sizeof(ids[0]), compare);
    cr_assert_lt(ids[IDS_MAX - 1], count);
    for (uint32_t i = 1; i < IDS_MAX; i++)
        cr_assert_lt(ids[i - 1], ids[i], "count %llu: a sample twice", (unsigned long long)count);
    /* Spread over the whole range, not over a corner of it. */
    cr_assert_lt(ids[IDS_MAX / 4], count / 3);
    cr_assert_gt(ids[IDS_MAX / 4 * 3], count / 3 * 2);
}

CleanTest(sampler, has_no_doubles_among_astronomically_many)
{
    static const uint64_t counts[] = { 1000000000000U, 999999999989U, (1ULL << 40) + 1,
                                       (1ULL << 62) - 1, STK_SAMPLER_COUNT_MAX };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (uint64_t seed = 0; seed < 3; seed++)
            check_windows(counts[i], seed);
}

/* Ids at first, first + stride, ... in pieces of `piece`. */
static void ask_in_pieces(const struct stk_sampler *sampler, uint64_t first, uint64_t stride,
                          uint32_t n, uint32_t piece, uint64_t *ids)
{
    for (uint32_t at = 0; at < n; at += piece)
        ids_of(sampler, 3, first + at * stride, stride, n - at < piece ? n - at : piece, ids + at);
}

CleanTest(sampler, answers_alike_in_pieces_of_any_size)
{
    static const uint64_t counts[] = { 1, 2, 63, 64, 257, 4095, 4096, 4097, 60000, 1000000000000U };
    static const uint32_t pieces[] = { 1, 7, 64, 200 };
    static const uint64_t strides[] = { 1, 2, 5, 63, 64, 65, 1000 };
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (size_t s = 0; s < sizeof(strides) / sizeof(strides[0]); s++)
            for (uint64_t first = 0; first < counts[c]; first += 1 + counts[c] / 7) {
                struct stk_sampler sampler;
                uint64_t expected[513];
                uint64_t ids[513];
                const uint64_t left = (counts[c] - first - 1) / strides[s] + 1;
                const uint32_t n = left < 513 ? (uint32_t)left : 513;
                stk_sampler_init(&sampler, counts[c], 5, true);
                ask_in_pieces(&sampler, first, strides[s], n, n, expected);
                for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
                    ask_in_pieces(&sampler, first, strides[s], n, pieces[p], ids);
                    cr_assert_arr_eq(
                        ids, expected, n * sizeof(ids[0]), "count %llu stride %llu piece %u",
                        (unsigned long long)counts[c], (unsigned long long)strides[s], pieces[p]);
                }
            }
}

CleanTest(sampler, stride_picks_from_the_same_order)
{
    struct stk_sampler sampler;
    static uint64_t all[5003];
    uint64_t some[715];
    stk_sampler_init(&sampler, 5003, 8, true);
    ids_of(&sampler, 1, 0, 1, 5003, all);
    for (uint64_t rank = 0; rank < 7; rank++) {
        const uint32_t n = (uint32_t)((5003 - rank + 6) / 7);
        ids_of(&sampler, 1, rank, 7, n, some);
        for (uint32_t i = 0; i < n; i++)
            cr_assert_eq(some[i], all[rank + 7 * (uint64_t)i]);
    }
}

CleanTest(sampler, without_shuffle_samples_come_in_order)
{
    struct stk_sampler sampler;
    uint64_t ids[300];
    stk_sampler_init(&sampler, 1000000000000U, 8, false);
    ids_of(&sampler, 4, 999999999000U, 3, 300, ids);
    for (uint64_t i = 0; i < 300; i++)
        cr_assert_eq(ids[i], 999999999000U + 3 * i);
}

static double chi_square(const uint32_t *seen, uint32_t cells, double expected)
{
    double sum = 0;
    for (uint32_t i = 0; i < cells; i++)
        sum += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
    return sum;
}

/* The number of a permutation among all of its length. */
static uint32_t permutation_number(const uint64_t *ids, uint32_t n)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t smaller = 0;
        for (uint32_t j = i + 1; j < n; j++)
            smaller += ids[j] < ids[i];
        number = number * (n - i) + smaller;
    }
    return number;
}

CleanTest(sampler, each_permutation_of_a_few_is_equally_likely)
{
    static const struct {
        uint32_t count, permutations;
        double limit; /* chi-square of permutations - 1 degrees of freedom, p = 1e-4 */
    } cases[] = { { 2, 2, 15.2 }, { 3, 6, 25.8 }, { 4, 24, 55.9 }, { 5, 120, 184.0 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t seen[120] = { 0 };
        struct stk_sampler sampler;
        uint64_t ids[5];
        for (uint64_t draw = 0; draw < 400U * cases[i].permutations; draw++) {
            stk_sampler_init(&sampler, cases[i].count, draw / 100, true);
            ids_of(&sampler, draw % 100, 0, 1, cases[i].count, ids);
            seen[permutation_number(ids, cases[i].count)]++;
        }
        const double chi = chi_square(seen, cases[i].permutations, 400);
        cr_assert_lt(chi, cases[i].limit, "count %u: chi-square %.1f", cases[i].count, chi);
    }
}

CleanTest(sampler, each_sample_is_equally_likely_at_each_position)
{
    enum { COUNT = 12, DRAWS = 12000 };
    static uint32_t seen[COUNT][COUNT];
    struct stk_sampler sampler;
    uint64_t ids[COUNT];
    stk_sampler_init(&sampler, COUNT, 1, true);
    for (uint64_t epoch = 0; epoch < DRAWS; epoch++) {
        ids_of(&sampler, epoch, 0, 1, COUNT, ids);
        for (uint32_t at = 0; at < COUNT; at++)
            seen[at][ids[at]]++;
    }
    for (uint32_t at = 0; at < COUNT; at++)
        cr_assert_lt(chi_square(seen[at], COUNT, DRAWS / COUNT), 37.4, "position %u", at);
}

/* Positions at which two orders of the same set agree; about 1 of any count if unrelated. */
static uint32_t agreements(uint64_t seed_a, uint64_t epoch_a, uint64_t seed_b, uint64_t epoch_b)
{
    enum { COUNT = 10000 };
    static uint64_t a[COUNT];
    static uint64_t b[COUNT];
    struct stk_sampler sampler;
    stk_sampler_init(&sampler, COUNT, seed_a, true);
    ids_of(&sampler, epoch_a, 0, 1, COUNT, a);
    stk_sampler_init(&sampler, COUNT, seed_b, true);
    ids_of(&sampler, epoch_b, 0, 1, COUNT, b);
    uint32_t same = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        same += a[i] == b[i];
    return same;
}

CleanTest(sampler, epochs_and_seeds_have_orders_of_their_own)
{
    cr_assert_eq(agreements(1, 2, 1, 2), 10000);
    for (uint64_t i = 0; i < 64; i++) {
        cr_assert_lt(agreements(0, i, 0, i + 1), 10, "epoch %llu", (unsigned long long)i);
        cr_assert_lt(agreements(i, 0, i + 1, 0), 10, "seed %llu", (unsigned long long)i);
        cr_assert_lt(agreements(i, i + 1, i + 1, i), 10);
        cr_assert_lt(agreements(0, 0, 1ULL << i, 0), 10);
    }
}

/* How far neighbors lie apart, modulo the count, falls evenly into 16 classes. */
CleanTest(sampler, neighbors_are_not_related)
{
    static const uint64_t counts[] = { 4096, 10007, 60000, 1U << 20, 1000000000000U };
    static uint64_t ids[IDS_MAX];
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (uint64_t epoch = 0; epoch < 8; epoch++) {
            const uint32_t n = counts[c] < IDS_MAX ? (uint32_t)counts[c] : IDS_MAX;
            uint32_t apart[16] = { 0 };
            uint32_t places[16] = { 0 };
            struct stk_sampler sampler;
            stk_sampler_init(&sampler, counts[c], 3, true);
            ids_of(&sampler, epoch, 0, 1, n, ids);
            for (uint32_t i = 0; i < n; i++) {
                const uint64_t next = ids[(i + 1) % n];
                const uint64_t distance = (next + counts[c] - ids[i]) % counts[c];
                apart[(uint32_t)((double)distance * 16.0 / (double)counts[c])]++;
                places[(uint32_t)((double)ids[i] * 16.0 / (double)counts[c])]++;
            }
            cr_assert_lt(chi_square(apart, 16, n / 16.0), 44.3, "count %llu epoch %llu",
                         (unsigned long long)counts[c], (unsigned long long)epoch);
            cr_assert_lt(chi_square(places, 16, n / 16.0), 44.3);
        }
}

/* The definition in sampler.h, one position at a time: what each variant must give. */
static uint64_t defined_id(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                           uint64_t position)
{
    uint32_t left = (uint32_t)(position % sampler->width);
    uint32_t right = (uint32_t)(position / sampler->width);
    for (uint32_t round = 0; round < sampler->rounds; round++) {
        const uint32_t half = round % 2 == 0 ? right : left;
        const uint32_t size = round % 2 == 0 ? sampler->width : sampler->height;
        uint32_t h = (half ^ order->keys[round]) * 0x9E3779B1U;
        h = (h ^ (h >> 15)) * 0x85EBCA77U;
        const uint32_t value = (uint32_t)(((uint64_t)h * size) >> 32);
        if (round % 2 == 0)
            left = (uint32_t)(((uint64_t)left + value) % size);
        else
            right = (uint32_t)(((uint64_t)right + value) % size);
    }
    const uint64_t id = (uint64_t)right * sampler->width + left;
    return id < sampler->count ? id : defined_id(sampler, order, id);
}

static void check_defined_order(const struct stk_sampler *sampler)
{
    struct stk_sampler_order order;
    uint64_t ids[200];
    stk_sampler_begin(sampler, 5, &order);
    const uint32_t n = sampler->count < 200 ? (uint32_t)sampler->count : 200;
    for (uint64_t first = 0; first <= sampler->count - n; first += (sampler->count - n) / 3 + 1) {
        cr_assert_eq(stk_sampler_ids(sampler, &order, first, 1, n, ids, NULL), 0);
        for (uint32_t k = 0; k < n; k++)
            cr_assert_eq(ids[k], defined_id(sampler, &order, first + k));
    }
    const uint32_t apart = (uint32_t)((sampler->count - 1) / 3 < n ? (sampler->count - 1) / 3 : n);
    cr_assert_eq(stk_sampler_ids(sampler, &order, 0, 3, apart, ids, NULL), 0);
    for (uint32_t k = 0; k < apart; k++)
        cr_assert_eq(ids[k], defined_id(sampler, &order, 3 * k));
}

/* Positions in any order, one by one or many at a time, have the ids that they have in a row. */
CleanTest(sampler, scattered_positions_have_the_same_ids)
{
    static const uint64_t counts[] = { 1, 2, 63, 64, 65, 1000, 1000003, UINT64_C(1) << 40 };
    enum { N = 200 };
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct stk_sampler sampler;
        struct stk_sampler_order order;
        uint64_t positions[N], ids[N];
        stk_sampler_init(&sampler, counts[c], 9, true);
        stk_sampler_begin(&sampler, 4, &order);
        for (uint32_t i = 0; i < N; i++)
            positions[i] = stk_mix64(i) % counts[c];
        for (uint32_t n = 1; n <= N; n += 33) {
            stk_sampler_map(&sampler, &order, positions, n, ids);
            for (uint32_t i = 0; i < n; i++) {
                uint64_t one;
                cr_assert_eq(stk_sampler_ids(&sampler, &order, positions[i], 1, 1, &one, NULL), 0);
                cr_assert_eq(ids[i], one);
            }
        }
        stk_sampler_map(&sampler, &order, positions, N, positions); /* in place */
        stk_sampler_map(&sampler, &order, ids, 0, ids);
    }
}

CleanTest(sampler, gives_the_defined_order_on_every_cpu)
{
    static const uint64_t counts[] = { 1,
                                       2,
                                       63,
                                       64,
                                       4097,
                                       60000,
                                       (1U << 20) + 7,
                                       UINT64_C(4294967311),
                                       UINT64_C(1) << 40,
                                       STK_SAMPLER_COUNT_MAX };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct stk_sampler sampler;
        stk_sampler_init(&sampler, counts[i], 77, true);
        for (const struct stk_cpu_level *level = stk_cpu_levels;; level++) {
            stk_cpu_shown = level->features;
            check_defined_order(&sampler);
            if (level->name == NULL)
                break;
        }
    }
}
