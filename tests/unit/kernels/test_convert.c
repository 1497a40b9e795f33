/* test_convert.c - every variant gives the bits of the reference and stays in its rows.
 *
 * Method: all (from, to, layout, channels, mean_count) at awkward sizes, on each
 * variant this CPU can run. Rows end right before an unmapped page, so that one byte
 * read or written too far is a fault; a guard pattern precedes them. The formula,
 * which a variant and the reference could share by mistake, is checked separately.
 */
#include "kernels/convert/convert.h"
#include "kernels/convert/variants.h"
#include "support/leaks.h"
#include <math.h>
#include <sys/mman.h>

enum { ROWS = 2, AHEAD = 1, GUARD_BYTES = 64, GUARD = 0xa5, ARENA_BYTES = 1 << 17 };

static const size_t pixel_counts[] = { 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 783, 784, 785 };
static const uint32_t channel_counts[] = { 1, 3, 4, 7 };
static const stoker_dtype targets[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                        STOKER_DTYPE_BFLOAT16 };

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static size_t bytes_of(stoker_dtype dtype)
{
    static const size_t bytes[] = { 0, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8, 1 };
    return bytes[dtype];
}

/* Memory that ends right before an inaccessible page. */
struct fence {
    unsigned char *base, *end;
    size_t mapped_bytes;
};

static struct fence fence_open(void)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped_bytes = ARENA_BYTES + page_bytes;
    unsigned char *base =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(base, MAP_FAILED);
    cr_assert_eq(mprotect(base + ARENA_BYTES, page_bytes, PROT_NONE), 0);
    return (struct fence){ base, base + ARENA_BYTES, mapped_bytes };
}

static void fence_close(struct fence *fence)
{
    munmap(fence->base, fence->mapped_bytes);
}

/* The last `bytes` bytes before the fence, with a guard pattern in front of them. */
static unsigned char *fence_take(const struct fence *fence, size_t bytes)
{
    cr_assert_leq(bytes + GUARD_BYTES, ARENA_BYTES);
    memset(fence->end - bytes - GUARD_BYTES, GUARD, bytes + GUARD_BYTES);
    return fence->end - bytes;
}

static void check_guard(const unsigned char *rows)
{
    for (size_t i = 1; i <= GUARD_BYTES; i++)
        cr_assert_eq(rows[-(ptrdiff_t)i], GUARD, "byte %zu before the rows was written", i);
}

struct arena {
    struct fence in[ROWS], out, expected;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 32 | *state << 32;
}

/* Random bytes are values of any type, NaN, infinities and subnormals included. */
static void fill_random(unsigned char *out, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += sizeof(seed)) {
        uint64_t word = next_random(&seed);
        memcpy(out + i, &word, bytes - i < sizeof(word) ? bytes - i : sizeof(word));
    }
}

/* Ordinary numbers: random halves and doubles mostly overflow. */
static void fill_plain(unsigned char *out, size_t elements, stoker_dtype dtype, uint64_t seed)
{
    for (size_t i = 0; i < elements; i++) {
        float value = (float)(int16_t)next_random(&seed) / 4096.0F;
        double wide = (double)value * 1.000000119;
        uint16_t half = dtype == STOKER_DTYPE_FLOAT16 ? stk_float16_from_float(value)
                                                      : stk_bfloat16_from_float(value);
        const void *from = dtype == STOKER_DTYPE_FLOAT64   ? (const void *)&wide
                           : dtype == STOKER_DTYPE_FLOAT32 ? (const void *)&value
                                                           : (const void *)&half;
        memcpy(out + i * bytes_of(dtype), from, bytes_of(dtype));
    }
}

static void fill_row(unsigned char *row, size_t elements, stoker_dtype from, uint64_t seed)
{
    if (from >= STOKER_DTYPE_FLOAT16 && from <= STOKER_DTYPE_FLOAT64 && seed % 2 == 1)
        fill_plain(row, elements, from, seed);
    else
        fill_random(row, elements * bytes_of(from), seed);
}

static void check_variant(const struct stk_convert_variant *variant, struct arena *arena,
                          const struct stk_convert_plan *plan, const void *const *rows)
{
    unsigned char *out = fence_take(&arena->out, ROWS * plan->to_bytes);
    const unsigned char *expected = arena->expected.end - ROWS * plan->to_bytes;
    variant->choose(plan)(plan, rows, ROWS, AHEAD, out);
    check_guard(out);
    cr_assert_eq(memcmp(out, expected, ROWS * plan->to_bytes), 0,
                 "%s: type %d to %d, layout %d, %zu elements, %u channels, period %u",
                 variant->name, (int)plan->from, (int)plan->to, (int)plan->layout, plan->elements,
                 plan->channels, plan->period);
}

static void check_options(struct arena *arena, const struct stk_convert_options *options)
{
    struct stk_convert_plan plan;
    cr_assert_eq(stk_convert_plan_init(&plan, options), STOKER_OK);

    const void *rows[ROWS + AHEAD];
    for (uint32_t row = 0; row < ROWS; row++) {
        unsigned char *in = fence_take(&arena->in[row], plan.from_bytes);
        fill_row(in, plan.elements, plan.from, plan.elements * ROWS + row);
        rows[row] = in;
    }
    rows[ROWS] = rows[0];

    unsigned char *expected = fence_take(&arena->expected, ROWS * plan.to_bytes);
    stk_convert_rows_reference(&plan, rows, ROWS, AHEAD, expected);
    for (const struct stk_convert_variant *v = stk_convert_variants; v->name != NULL; v++)
        if (v->runs_here())
            check_variant(v, arena, &plan, rows);
}

static void arena_open(struct arena *arena)
{
    for (uint32_t row = 0; row < ROWS; row++)
        arena->in[row] = fence_open();
    arena->out = fence_open();
    arena->expected = fence_open();
}

static void arena_close(struct arena *arena)
{
    for (uint32_t row = 0; row < ROWS; row++)
        fence_close(&arena->in[row]);
    fence_close(&arena->out);
    fence_close(&arena->expected);
}

static const float means[] = { 0.485F, 0.456F, 0.406F, 0.1307F, -1.5F, 0.0F, 7.25F };
static const float stds[] = { 0.229F, 0.224F, 0.225F, 0.3081F, 2.0F, 1.0F, 1e-3F };

/* All sizes, channel counts and mean counts of one pair of types. */
static void check_pair(struct arena *arena, stoker_dtype from, stoker_dtype to,
                       stoker_layout layout)
{
    for (size_t c = 0; c < COUNT_OF(channel_counts); c++) {
        for (size_t p = 0; p < COUNT_OF(pixel_counts); p++) {
            struct stk_convert_options options = {
                .from = from,
                .to = to,
                .layout = layout,
                .elements = pixel_counts[p] * channel_counts[c],
                .channels = channel_counts[c],
                .scale = 1.0F / 255.0F,
            };
            check_options(arena, &options);
            options.mean = means;
            options.std = stds;
            options.mean_count = 1;
            check_options(arena, &options);
            options.mean_count = channel_counts[c];
            check_options(arena, &options);
        }
    }
}

static void check_layout(stoker_layout layout)
{
    struct arena arena;
    arena_open(&arena);
    for (stoker_dtype from = STOKER_DTYPE_UINT8; from <= STOKER_DTYPE_BOOL; from++)
        for (size_t t = 0; t < COUNT_OF(targets); t++)
            check_pair(&arena, from, targets[t], layout);
    arena_close(&arena);
}

CleanTest(convert, every_conversion_matches_the_reference_channels_last)
{
    check_layout(STOKER_LAYOUT_NHWC);
}

CleanTest(convert, every_conversion_matches_the_reference_channels_first)
{
    check_layout(STOKER_LAYOUT_NCHW);
}

CleanTest(convert, equal_types_are_copied_in_either_layout)
{
    struct arena arena;
    arena_open(&arena);
    for (stoker_dtype dtype = STOKER_DTYPE_UINT8; dtype <= STOKER_DTYPE_BOOL; dtype++) {
        for (size_t c = 0; c < COUNT_OF(channel_counts); c++) {
            for (size_t p = 0; p < COUNT_OF(pixel_counts); p++) {
                struct stk_convert_options options = {
                    .from = dtype,
                    .to = dtype,
                    .layout = STOKER_LAYOUT_NHWC,
                    .elements = pixel_counts[p] * channel_counts[c],
                    .channels = channel_counts[c],
                    .scale = 1.0F,
                };
                check_options(&arena, &options);
                options.layout = STOKER_LAYOUT_NCHW;
                check_options(&arena, &options);
            }
        }
    }
    arena_close(&arena);
}

CleanTest(convert, many_channels_and_long_rows_match_the_reference)
{
    struct arena arena;
    arena_open(&arena);
    float mean[STK_CHANNELS_MAX], std[STK_CHANNELS_MAX];
    for (uint32_t c = 0; c < STK_CHANNELS_MAX; c++) {
        mean[c] = (float)c * 0.25F;
        std[c] = 1.0F + (float)c;
    }
    static const uint32_t wide[] = { 2, 5, 16, 31, 63, 64 };
    for (size_t c = 0; c < COUNT_OF(wide); c++) {
        for (stoker_layout layout = STOKER_LAYOUT_NHWC; layout <= STOKER_LAYOUT_NCHW; layout++) {
            struct stk_convert_options options = {
                .from = STOKER_DTYPE_UINT8,
                .to = STOKER_DTYPE_FLOAT32,
                .layout = layout,
                .elements = (size_t)(8000 / wide[c]) * wide[c], /* beyond the prefetch limit */
                .channels = wide[c],
                .scale = 0.5F,
                .mean = mean,
                .std = std,
                .mean_count = wide[c],
            };
            check_options(&arena, &options);
            options.from = STOKER_DTYPE_FLOAT64;
            options.elements = 37 * wide[c];
            check_options(&arena, &options);
            options.from = options.to = STOKER_DTYPE_UINT8;
            options.elements = (size_t)(20000 / wide[c]) * wide[c];
            check_options(&arena, &options);
        }
    }
    arena_close(&arena);
}

/* Returns the distance of two floats in ulps. */
static int64_t ulps_between(float a, float b)
{
    int32_t bits_a, bits_b;
    memcpy(&bits_a, &a, sizeof(a));
    memcpy(&bits_b, &b, sizeof(b));
    int64_t place_a = bits_a < 0 ? INT32_MIN - (int64_t)bits_a : bits_a;
    int64_t place_b = bits_b < 0 ? INT32_MIN - (int64_t)bits_b : bits_b;
    return place_a > place_b ? place_a - place_b : place_b - place_a;
}

/* (x * scale - mean) / std in double is the expected value. If mean and value nearly cancel,
 * the tolerance is an ulp of the larger of the two. */
CleanTest(convert, all_bytes_follow_the_usual_formula)
{
    uint8_t bytes[256];
    float out[256];
    for (uint32_t x = 0; x < 256; x++)
        bytes[x] = (uint8_t)x;
    for (size_t c = 0; c < COUNT_OF(means); c++) {
        struct stk_convert_options options = {
            .from = STOKER_DTYPE_UINT8,
            .to = STOKER_DTYPE_FLOAT32,
            .elements = 256,
            .channels = 1,
            .scale = 1.0F / 255.0F,
            .mean = &means[c],
            .std = &stds[c],
            .mean_count = 1,
        };
        struct stk_convert_plan plan;
        cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_OK);
        plan.rows(&plan, (const void *const[]){ bytes }, 1, 0, out);
        for (uint32_t x = 0; x < 256; x++) {
            double scaled = x * (double)options.scale, mean = (double)means[c];
            double truth = (scaled - mean) / (double)stds[c];
            double largest = fmax(scaled, fabs(mean)) / (double)stds[c];
            double ulp = (double)nextafterf((float)largest, INFINITY) - (double)(float)largest;
            bool close =
                ulps_between(out[x], (float)truth) <= 2 || fabs((double)out[x] - truth) <= 2 * ulp;
            cr_assert(close, "byte %u, mean %g: %a is not %a", x, mean, (double)out[x], truth);
        }
    }
}

CleanTest(convert, channels_first_puts_each_channel_in_its_plane)
{
    const uint8_t pixels[] = { 1, 2, 3, 11, 12, 13 };
    const uint8_t planes[] = { 1, 11, 2, 12, 3, 13 };
    uint8_t copied[6];
    float converted[6];
    struct stk_convert_options options = {
        .from = STOKER_DTYPE_UINT8,
        .to = STOKER_DTYPE_UINT8,
        .layout = STOKER_LAYOUT_NCHW,
        .elements = 6,
        .channels = 3,
        .scale = 1.0F,
    };
    struct stk_convert_plan plan;
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_OK);
    plan.rows(&plan, (const void *const[]){ pixels }, 1, 0, copied);
    cr_assert_arr_eq(copied, planes, sizeof(planes));

    options.to = STOKER_DTYPE_FLOAT32;
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_OK);
    plan.rows(&plan, (const void *const[]){ pixels }, 1, 0, converted);
    for (size_t i = 0; i < 6; i++)
        cr_assert_eq(converted[i], (float)planes[i]);
}

CleanTest(convert, rows_run_without_prefetch_and_with_any_distance)
{
    const uint8_t in[4] = { 0, 1, 2, 255 };
    const void *rows[] = { in, in + 1, in + 2, in + 3 };
    struct stk_convert_options options = { .from = STOKER_DTYPE_UINT8,
                                           .to = STOKER_DTYPE_FLOAT32,
                                           .elements = 1,
                                           .channels = 1,
                                           .scale = 1.0F };
    struct stk_convert_plan plan;
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_OK);
    for (uint32_t distance = 0; distance < 8; distance++) {
        float out[4] = { -1.0F, -1.0F, -1.0F, -1.0F };
        plan.prefetch_rows = distance;
        plan.rows(&plan, rows, 3, 1, out);
        cr_assert_eq(out[0], 0.0F);
        cr_assert_eq(out[1], 1.0F);
        cr_assert_eq(out[2], 2.0F);
        cr_assert_eq(out[3], -1.0F, "the row ahead is only fetched");
        plan.rows(&plan, rows, 0, 4, out);
        cr_assert_eq(out[0], 0.0F);
    }
}

static int init_with(struct stk_convert_options options)
{
    struct stk_convert_plan plan;
    return stk_convert_plan_init(&plan, &options);
}

/* Valid options; each check below changes one thing. */
static struct stk_convert_options good(void)
{
    return (struct stk_convert_options){
        .from = STOKER_DTYPE_UINT8,
        .to = STOKER_DTYPE_FLOAT32,
        .elements = 12,
        .channels = 3,
        .scale = 1.0F,
    };
}

#define CHECK_WITH(code, ...)                                                                      \
    do {                                                                                           \
        struct stk_convert_options o = good();                                                     \
        __VA_ARGS__;                                                                               \
        cr_assert_eq(init_with(o), (code), #__VA_ARGS__);                                          \
    } while (0)

CleanTest(convert, bad_sizes_are_refused)
{
    struct stk_convert_plan plan;
    struct stk_convert_options options = good();
    cr_assert_eq(stk_convert_plan_init(NULL, &options), STOKER_EINVAL);
    cr_assert_eq(stk_convert_plan_init(&plan, NULL), STOKER_EINVAL);

    CHECK_WITH(STOKER_OK, o.layout = STOKER_LAYOUT_NHWC);
    CHECK_WITH(STOKER_EINVAL, o.layout = (stoker_layout)2);
    CHECK_WITH(STOKER_EINVAL, o.elements = 0);
    CHECK_WITH(STOKER_EINVAL, o.elements = SIZE_MAX);
    CHECK_WITH(STOKER_EINVAL, o.elements = SIZE_MAX / 16 + 1);
    CHECK_WITH(STOKER_OK, o.elements = 13);
    CHECK_WITH(STOKER_EINVAL, o.elements = 13; o.layout = STOKER_LAYOUT_NCHW);
    CHECK_WITH(STOKER_EINVAL, o.elements = 13; o.mean_count = 3; o.mean = means);
    CHECK_WITH(STOKER_OK, o.channels = 0);
    CHECK_WITH(STOKER_EINVAL, o.channels = 0; o.layout = STOKER_LAYOUT_NCHW);
    CHECK_WITH(STOKER_EINVAL, o.channels = 65; o.elements = 65; o.layout = STOKER_LAYOUT_NCHW);
    CHECK_WITH(STOKER_OK, o.channels = 64; o.elements = 64; o.layout = STOKER_LAYOUT_NCHW);
    CHECK_WITH(STOKER_OK, o.mean_count = 3; o.mean = means);
    CHECK_WITH(STOKER_EINVAL, o.mean_count = 2; o.mean = means);
    CHECK_WITH(STOKER_EINVAL, o.mean_count = 0; o.mean = means);
    CHECK_WITH(STOKER_EINVAL, o.mean_count = 0; o.std = stds);
}

CleanTest(convert, numbers_that_give_no_scale_are_refused)
{
    static const float zero[] = { 1.0F, 0.0F, 1.0F }, negative[] = { -1.0F };
    static const float not_a_number[] = { NAN }, infinite[] = { INFINITY }, tiny[] = { 1e-45F };

    CHECK_WITH(STOKER_EINVAL, o.scale = 0.0F);
    CHECK_WITH(STOKER_EINVAL, o.scale = NAN);
    CHECK_WITH(STOKER_EINVAL, o.scale = INFINITY);
    CHECK_WITH(STOKER_OK, o.scale = -1.0F);
    CHECK_WITH(STOKER_EINVAL, o.std = zero; o.mean_count = 3);
    CHECK_WITH(STOKER_OK, o.std = zero; o.mean_count = 1);
    CHECK_WITH(STOKER_EINVAL, o.std = negative; o.mean_count = 1);
    CHECK_WITH(STOKER_EINVAL, o.std = not_a_number; o.mean_count = 1);
    CHECK_WITH(STOKER_EINVAL, o.std = infinite; o.mean_count = 1);
    CHECK_WITH(STOKER_EINVAL, o.std = tiny; o.mean_count = 1);
    CHECK_WITH(STOKER_EINVAL, o.mean = not_a_number; o.mean_count = 1);
    CHECK_WITH(STOKER_EINVAL, o.mean = infinite; o.mean_count = 1);
}

CleanTest(convert, types_without_a_conversion_are_refused)
{
    CHECK_WITH(STOKER_ETYPE, o.from = STOKER_DTYPE_NONE);
    CHECK_WITH(STOKER_ETYPE, o.to = STOKER_DTYPE_NONE);
    CHECK_WITH(STOKER_ETYPE, o.from = (stoker_dtype)99);
    CHECK_WITH(STOKER_ETYPE, o.to = (stoker_dtype)99);
    CHECK_WITH(STOKER_ETYPE, o.to = STOKER_DTYPE_INT8);
    CHECK_WITH(STOKER_OK, o.from = STOKER_DTYPE_UINT8; o.to = STOKER_DTYPE_INT64);
    CHECK_WITH(STOKER_ETYPE, o.to = STOKER_DTYPE_FLOAT64);
    CHECK_WITH(STOKER_OK, o.to = STOKER_DTYPE_UINT8; o.scale = 0.5F);
    CHECK_WITH(STOKER_OK, o.from = o.to = STOKER_DTYPE_FLOAT64);
    CHECK_WITH(STOKER_ETYPE, o.from = o.to = STOKER_DTYPE_FLOAT64; o.scale = 0.5F);
}

/* Standardizing floats is not a copy, although the type stays. */
CleanTest(convert, a_float_type_is_scaled_in_place_of_a_copy)
{
    const float in[] = { 1.0F, 2.0F, 4.0F };
    float out[3];
    struct stk_convert_options options = good();
    options.from = STOKER_DTYPE_FLOAT32;
    options.elements = 3;
    options.mean = (const float[]){ 1.0F, 1.0F, 2.0F };
    options.std = (const float[]){ 1.0F, 2.0F, 4.0F };
    options.mean_count = 3;
    struct stk_convert_plan plan;
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_OK);
    plan.rows(&plan, (const void *const[]){ in }, 1, 0, out);
    cr_assert_eq(out[0], 0.0F);
    cr_assert_eq(out[1], 0.5F);
    cr_assert_eq(out[2], 0.5F);
}
