/* layer_cases.h - layers of every kind, and checks that a back end does what `ref` does with each.
 *
 * Tolerance: both sum the same products, `ref` in double. A sum of n products, each about 1, is off
 * by some sqrt(n) roundings of 6e-8; 2e-5 of the largest number allows for n = 10^4 and more. A
 * value stored in 16 bits may be rounded to a neighbor. If nothing is summed, values are equal. */
#ifndef STK_TEST_LAYER_CASES_H
#define STK_TEST_LAYER_CASES_H

#include "trainer_case.h"

#include <math.h>

enum { BATCH = 7, BUFFER_MAX = 40000 };
static const double tolerance = 2e-5;
/* The largest number that is added to a sum after that was rounded to 16 bits. */
static double added_later;

/* The distance of a value's neighbor, of the value; 0 in float32. */
static inline double neighbor(stoker_dtype storage)
{
    return storage == STOKER_DTYPE_BFLOAT16  ? 1.0 / 128
           : storage == STOKER_DTYPE_FLOAT16 ? 1.0 / 1024
                                             : 0;
}

static int64_t class_labels[BATCH] = { 2, 0, 4, 1, 3, 4, 0 };
static float targets[BATCH * 5];

static inline struct stk_pass pass_of(enum stk_layer_kind loss, uint32_t count)
{
    return (struct stk_pass){ .labels = loss == STK_MSE ? (void *)targets : (void *)class_labels,
                              .count = count,
                              .first_sample = 2,
                              .step = 9,
                              .seed = 3,
                              .gradient_scale = 0.5F };
}

static inline struct stk_loss run(const struct stk_bench *bench, const struct stk_pass *pass)
{
    struct stk_loss loss = { 0 };
    stoker_error error = { 0 };
    cr_assert_eq(bench->ops->run(bench->program, &bench->arenas, pass, &loss, &error), STOKER_OK,
                 "%s", error.message);
    return loss;
}

/* relative: the rounding of a number before at most `added` was added to it. */
static inline void check_close(const char *name, const char *what, const float *expected,
                               const float *found, uint64_t count, double relative, double added)
{
    double largest = 1;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (uint64_t i = 0; i < count; i++)
        cr_assert((isnan(expected[i]) && isnan(found[i])) ||
                      fabs((double)expected[i] - (double)found[i]) <=
                          tolerance * largest + relative * (fabs((double)expected[i]) + added),
                  "%s: %s %d: ref %.9g, not %.9g", name, what, (int)i, (double)expected[i],
                  (double)found[i]);
}

static inline void check_equal(const char *name, const float *expected, const float *found,
                               uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        cr_assert(expected[i] == found[i] || (isnan(expected[i]) && isnan(found[i])),
                  "%s: %d: ref %.9g, not %.9g", name, (int)i, (double)expected[i],
                  (double)found[i]);
}

/* Nothing is summed: the largest value, a choice, or one rounding. */
static inline bool is_exact(enum stk_layer_kind kind)
{
    return kind == STK_MAX_POOL || kind == STK_RELU || kind == STK_DROPOUT || kind == STK_ADD;
}

static inline void floats_of(float *floats, const struct stk_bench *bench, int buffer)
{
    const uint64_t count = stk_bench_elements(bench, buffer);
    cr_assert_leq(count, BUFFER_MAX);
    if (stk_is_narrow(bench->plan->storage))
        stk_widen(floats, stk_bench_buffer(bench, buffer), count, bench->plan->storage);
    else
        memcpy(floats, stk_bench_buffer(bench, buffer), count * sizeof(float));
}

static inline void check_buffer(const struct stk_case *c, const struct stk_bench *ref,
                                const struct stk_bench *other, int buffer)
{
    static float expected[BUFFER_MAX], found[BUFFER_MAX];
    const uint64_t count = stk_bench_elements(ref, buffer);
    floats_of(expected, ref, buffer);
    floats_of(found, other, buffer);
    if (is_exact(c->asked.kind))
        check_equal(c->asked.name, expected, found, count);
    else
        check_close(c->asked.name, "buffer", expected, found, count, neighbor(c->plan.storage),
                    added_later);
}

/* rounding: of gradients of parameters, of the gradient. */
static inline void check_same(const struct stk_case *c, const struct stk_bench *ref,
                              const struct stk_bench *other, uint32_t count, double rounding)
{
    const char *name = c->asked.name;
    for (int buffer = 0; buffer < STK_CASE_AUX; buffer++)
        check_buffer(c, ref, other, buffer);
    if (c->asked.kind == STK_MAX_POOL)
        cr_assert_eq(memcmp(stk_bench_buffer(ref, STK_CASE_AUX),
                            stk_bench_buffer(other, STK_CASE_AUX),
                            c->buffers[STK_CASE_AUX].bytes_per_sample * count),
                     0, "%s: places", name);
    check_close(name, "gradient", ref->arenas.gradients, other->arenas.gradients,
                c->model.parameter_floats, rounding, 1);
    check_close(name, "statistic", ref->arenas.statistics, other->arenas.statistics,
                c->model.statistic_floats, 0, 0);
}

/* One of `one_in` values of dy is not zero: behind a maximum most are. */
static inline void thin_out(const struct stk_bench *bench, uint64_t one_in)
{
    for (uint64_t i = 0; i < stk_bench_elements(bench, STK_CASE_DY); i++)
        if (stk_mix64(i) % one_in != 0)
            stk_bench_put(bench, STK_CASE_DY, i, i % 2 == 0 ? 0.0F : -0.0F);
}

/* Samples that a short pass has not: nobody may read them. */
static inline void spoil_rest(const struct stk_bench *bench, uint32_t count)
{
    const struct stk_buffer *x = &bench->plan->buffers[STK_CASE_X];
    const uint64_t each = x->bytes_per_sample / stoker_dtype_bytes(x->dtype);
    for (uint64_t i = count * each; i < stk_bench_elements(bench, STK_CASE_X); i++)
        stk_bench_put(bench, STK_CASE_X, i, NAN);
}

/* Gradients of parameters are added to. */
static inline void fill(const struct stk_bench *bench, uint32_t count, uint64_t one_in)
{
    stk_bench_fill(bench, count);
    for (uint64_t i = 0; i < bench->plan->model->parameter_floats; i++)
        bench->arenas.gradients[i] = stk_case_number(9, i);
    thin_out(bench, one_in);
    spoil_rest(bench, count);
}

/* Copies all arenas of `host` to those of `device`, or back. */
static inline void copy_arenas(const struct stk_bench *device, const struct stk_bench *host,
                               bool back)
{
    const uint64_t floats = host->plan->model->parameter_floats;
    const struct {
        void *there, *here;
        uint64_t bytes;
    } arenas[] = {
        { device->arenas.parameters, host->arenas.parameters, floats * sizeof(float) },
        { device->arenas.gradients, host->arenas.gradients, floats * sizeof(float) },
        { device->arenas.statistics, host->arenas.statistics,
          host->plan->model->statistic_floats * sizeof(float) },
        { device->arenas.activations, host->arenas.activations, host->plan->activation_bytes },
        { device->arenas.half_weights, host->arenas.half_weights,
          host->arenas.half_weights == NULL ? 0 : floats * sizeof(uint16_t) },
    };
    const struct stk_device_ops *const ops = device->ops->device;
    for (size_t i = 0; i < sizeof(arenas) / sizeof(arenas[0]); i++)
        cr_assert_eq(back ? ops->download(device->backend, arenas[i].here, arenas[i].there,
                                          arenas[i].bytes, NULL)
                          : ops->upload(device->backend, arenas[i].there, arenas[i].here,
                                        arenas[i].bytes, NULL),
                     STOKER_OK);
}

/* `found` has the numbers before and after; device: where they are computed, if not there. */
static inline struct stk_loss run_there(const struct stk_bench *device,
                                        const struct stk_bench *found, const struct stk_pass *pass)
{
    if (device == NULL)
        return run(found, pass);
    copy_arenas(device, found, false);
    const struct stk_loss loss = run(device, pass);
    copy_arenas(device, found, true);
    return loss;
}

/* A layer for `ref` and another back end, and the same numbers for both. */
struct layer_pair {
    struct stk_case c;
    struct stk_bench ref, found, device;
    bool there; /* the other back end computes on `device` */
};

static inline void open_pair(struct layer_pair *p, const struct stk_case_layer *asked,
                             const struct stk_backend_ops *ops,
                             const struct stk_backend_options *options)
{
    struct stk_case_layer layer = *asked;
    layer.storage = options->storage;
    p->there = ops->device != NULL;
    stk_case_make(&p->c, &layer, BATCH);
    stk_bench_open(&p->ref, &stk_backend_ref, options, &p->c.plan);
    stk_bench_open(&p->found, p->there ? &stk_backend_ref : ops, options, &p->c.plan);
    if (p->there)
        stk_bench_open(&p->device, ops, options, &p->c.plan);
}

/* Runs both, and compares all that they have written. */
static inline void compare_pair(struct layer_pair *p, uint32_t count)
{
    const char *const name = p->c.asked.name;
    const struct stk_pass pass = pass_of(p->c.asked.kind, count);
    const struct stk_loss expected = run(&p->ref, &pass);
    const struct stk_loss loss = run_there(p->there ? &p->device : NULL, &p->found, &pass);
    check_same(&p->c, &p->ref, &p->found, count, p->there ? neighbor(p->c.plan.storage) : 0);
    cr_assert_float_eq(loss.loss_sum, expected.loss_sum, p->there ? 1e-6 * expected.loss_sum : 1e-9,
                       "%s", name);
    cr_assert_eq(loss.correct, expected.correct, "%s", name);
    cr_assert_eq(loss.count, expected.count, "%s", name);
}

static inline void close_pair(struct layer_pair *p)
{
    stk_bench_close(&p->ref);
    stk_bench_close(&p->found);
    if (p->there)
        stk_bench_close(&p->device);
}

static inline void check_layer(const struct stk_case_layer *asked,
                               const struct stk_backend_ops *ops,
                               const struct stk_backend_options *options)
{
    static const struct {
        uint32_t count, one_in;
    } passes[] = { { BATCH, 1 }, { BATCH, 10 }, { BATCH, 1000 }, { 4, 7 }, { 3, 3 }, { 1, 1 } };
    struct layer_pair p;
    open_pair(&p, asked, ops, options);
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        fill(&p.ref, passes[i].count, passes[i].one_in);
        fill(&p.found, passes[i].count, passes[i].one_in);
        compare_pair(&p, passes[i].count);
    }
    close_pair(&p);
}

/* NaN, infinities and zeros of both signs: what is not summed is as in `ref`. */
static inline void check_special_values(const struct stk_case_layer *asked,
                                        const struct stk_backend_ops *ops,
                                        const struct stk_backend_options *options)
{
    static const float special[] = { 0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1.5F, -1.5F };
    struct layer_pair p;
    if (!is_exact(asked->kind) || asked->kind == STK_ADD) /* the sign of inf - inf is free */
        return;
    open_pair(&p, asked, ops, options);
    struct stk_bench *const both[] = { &p.ref, &p.found };
    for (int which = 0; which < 2; which++) {
        stk_bench_fill(both[which], 1);
        for (uint64_t k = 0; k < stk_bench_elements(both[which], STK_CASE_X); k++)
            stk_bench_put(both[which], STK_CASE_X, k, special[stk_mix64(k) % 7]);
    }
    compare_pair(&p, BATCH);
    close_pair(&p);
}

#define SHAPE(height, width, channels)                                                             \
    {                                                                                              \
        .rank = 3, .h = (height), .w = (width), .c = (channels)                                    \
    }

/* Runs of even and odd length, below and above a vector and a register block; few and many filters;
 * groups. */
static const struct stk_case_layer layers[] = {
    { "conv 1x1", STK_CONV2D, SHAPE(3, 5, 4), .outputs = 3, .biased = true },
    { "conv stem", STK_CONV2D, SHAPE(9, 8, 1), .outputs = 24, .kernel = { 5, 5 }, .biased = true },
    { "conv stem, relu", STK_CONV2D, SHAPE(8, 9, 3), .outputs = 36, .kernel = { 3, 3 },
      .stride = { 2, 2 }, .padding = { 1, 1 }, .relu = true, .biased = true },
    { "conv deep", STK_CONV2D, SHAPE(6, 7, 32), .outputs = 64, .kernel = { 3, 3 }, .biased = true },
    { "conv deep, padded", STK_CONV2D, SHAPE(5, 4, 19), .outputs = 70, .kernel = { 3, 2 },
      .stride = { 1, 2 }, .padding = { 2, 1 }, .relu = true },
    { "conv of long runs", STK_CONV2D, SHAPE(5, 5, 37), .outputs = 48, .kernel = { 4, 4 },
      .biased = true },
    { "conv of tall kernels", STK_CONV2D, SHAPE(7, 3, 20), .outputs = 16, .kernel = { 5, 2 } },
    { "conv in groups", STK_CONV2D, SHAPE(6, 5, 16), .outputs = 24, .kernel = { 3, 3 },
      .padding = { 1, 1 }, .groups = 2, .relu = true, .biased = true },
    { "conv depthwise", STK_CONV2D, SHAPE(7, 6, 16), .outputs = 16, .kernel = { 3, 3 },
      .stride = { 2, 1 }, .padding = { 1, 1 }, .groups = 16, .biased = true },
    { "conv in odd groups", STK_CONV2D, SHAPE(4, 4, 9), .outputs = 6, .kernel = { 2, 2 },
      .groups = 3 },
    { "conv to one place", STK_CONV2D, SHAPE(3, 3, 2), .outputs = 33, .kernel = { 3, 3 },
      .biased = true },
    { "linear", STK_LINEAR, SHAPE(1, 1, 29), .outputs = 10, .biased = true },
    { "linear, long", STK_LINEAR, SHAPE(11, 11, 17), .outputs = 8, .relu = true, .biased = true },
    { "linear, deep", STK_LINEAR, SHAPE(1, 1, 35), .outputs = 301, .relu = true, .biased = true },
    { "linear to one", STK_LINEAR, SHAPE(1, 1, 3), .outputs = 1 },
    { "linear of one", STK_LINEAR, SHAPE(1, 1, 1), .outputs = 40, .relu = true },
    { "max pool", STK_MAX_POOL, SHAPE(7, 6, 19), .kernel = { 2, 2 }, .stride = { 2, 2 } },
    { "max pool, overlapping", STK_MAX_POOL, SHAPE(7, 6, 3), .kernel = { 3, 2 }, .stride = { 2, 1 },
      .padding = { 1, 1 } },
    { "max pool, relu", STK_MAX_POOL, SHAPE(7, 6, 16), .kernel = { 2, 2 }, .stride = { 2, 2 },
      .relu = true },
    { "max pool of overlapping packs", STK_MAX_POOL, SHAPE(7, 7, 16), .kernel = { 3, 3 },
      .stride = { 2, 2 }, .padding = { 1, 1 } },
    { "max pool at every place", STK_MAX_POOL, SHAPE(5, 6, 8), .kernel = { 3, 3 } },
    { "max pool, wide", STK_MAX_POOL, SHAPE(17, 17, 8), .kernel = { 17, 17 } },
    { "max pool, wide and padded", STK_MAX_POOL, SHAPE(20, 20, 1), .kernel = { 17, 16 },
      .stride = { 2, 1 }, .padding = { 3, 2 } },
    { "max pool of all", STK_MAX_POOL, SHAPE(6, 6, 4), .kernel = { 6, 6 } },
    { "max pool, strided apart", STK_MAX_POOL, SHAPE(9, 7, 2), .kernel = { 3, 2 },
      .stride = { 1, 3 }, .padding = { 1, 0 } },
    { "max pool with gaps", STK_MAX_POOL, SHAPE(5, 5, 2), .kernel = { 2, 2 }, .stride = { 4, 4 } },
    { "average pool", STK_AVG_POOL, SHAPE(5, 6, 8), .kernel = { 3, 2 }, .stride = { 2, 2 },
      .padding = { 1, 0 } },
    { "average pool, overlapping", STK_AVG_POOL, SHAPE(7, 9, 3), .kernel = { 3, 3 },
      .stride = { 2, 2 }, .padding = { 1, 1 } },
    { "average pool, wide", STK_AVG_POOL, SHAPE(20, 20, 1), .kernel = { 17, 16 },
      .stride = { 2, 1 }, .padding = { 3, 2 } },
    { "average pool with gaps", STK_AVG_POOL, SHAPE(5, 5, 2), .kernel = { 2, 2 },
      .stride = { 4, 4 } },
    { "relu", STK_RELU, SHAPE(3, 3, 5), .outputs = 0 },
    { "relu in place", STK_RELU, SHAPE(3, 3, 5), .in_place = true },
    { "batch norm", STK_BATCH_NORM, SHAPE(4, 5, 11), .biased = true },
    { "batch norm, relu", STK_BATCH_NORM, SHAPE(4, 5, 16), .relu = true, .biased = true },
    { "batch norm in place", STK_BATCH_NORM, SHAPE(4, 5, 3), .biased = true, .in_place = true },
    { "dropout", STK_DROPOUT, SHAPE(9, 5, 7), .rate = 0.25F },
    { "dropout in place", STK_DROPOUT, SHAPE(3, 7, 5), .rate = 0.6F, .in_place = true },
    { "add", STK_ADD, SHAPE(3, 3, 5), .outputs = 0 },
    { "cross-entropy", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .rate = 0.1F },
    { "cross-entropy in place", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .in_place = true },
    { "mse", STK_MSE, SHAPE(1, 1, 5), .outputs = 0 },
};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

#endif
