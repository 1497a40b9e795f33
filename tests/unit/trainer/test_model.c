/* test_model.c - networks are checked while they are built, and start as PyTorch's do. */
#include "support/trainer/plan_models.h"

#include <math.h>

#include "loader/base/memory/memory.h"
#include "support/leaks.h"

/* ---- shapes ---- */

static struct stk_shape last_shape(const stoker_model *model)
{
    return model->layers[model->layer_count - 1].out;
}

/* The extents torch.nn.Conv2d and MaxPool2d give (2.x, dilation 1, ceil_mode False). */
CleanTest(trainer_model, windows_slide_as_in_pytorch)
{
    static const struct {
        uint32_t in, kernel, stride, padding, out;
    } cases[] = {
        { 28, 3, 1, 0, 26 }, { 28, 5, 1, 2, 28 },   { 28, 2, 2, 0, 14 },   { 7, 2, 2, 0, 3 },
        { 7, 3, 2, 1, 4 },   { 224, 7, 2, 3, 112 }, { 1, 1, 1, 0, 1 },     { 5, 5, 3, 0, 1 },
        { 10, 3, 4, 0, 2 },  { 11, 3, 4, 0, 3 },    { 255, 255, 9, 0, 1 }, { 3, 5, 1, 2, 3 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int axis = 0; axis < 2; axis++) {
            uint32_t extent[2] = { 9, 9 }, kernel[2] = { 1, 1 }, stride[2] = { 1, 1 },
                     padding[2] = { 0, 0 };
            extent[axis] = cases[i].in;
            kernel[axis] = cases[i].kernel;
            stride[axis] = cases[i].stride;
            padding[axis] = cases[i].padding;
            stoker_model *model = stk_test_begin(extent[0], extent[1], 2);
            stoker_conv2d conv = { .filters = 6 };
            stoker_pool2d pool = { .kernel = { 0, 0 } };
            for (int j = 0; j < 2; j++) {
                conv.kernel[j] = pool.kernel[j] = kernel[j];
                conv.stride[j] = pool.stride[j] = stride[j];
                conv.padding[j] = pool.padding[j] = padding[j];
            }
            cr_assert_eq(stoker_model_conv2d(model, "conv", &conv), STOKER_OK);
            struct stk_shape out = last_shape(model);
            cr_assert_eq(axis == 0 ? out.h : out.w, cases[i].out, "case %zu", i);
            cr_assert_eq(axis == 0 ? out.w : out.h, 9);
            cr_assert_eq(out.c, 6);
            (void)stoker_model_from(model, "input");
            cr_assert_eq(stoker_model_max_pool2d(model, "pool", &pool), STOKER_OK);
            out = last_shape(model);
            cr_assert_eq(axis == 0 ? out.h : out.w, cases[i].out);
            cr_assert_eq(out.c, 2);
            stoker_model_destroy(&model);
        }
}

CleanTest(trainer_model, defaults_are_pytorchs)
{
    stoker_model *model = stk_test_begin(9, 6, 4);
    (void)stoker_model_conv2d(model, "conv", &(stoker_conv2d){ .filters = 8, .kernel = { 3, 1 } });
    const struct stk_layer *layer = &model->layers[1];
    cr_assert_eq(layer->stride[0] * layer->stride[1], 1);
    cr_assert_eq(layer->groups, 1);
    cr_assert_geq(layer->bias, 0);
    (void)stoker_model_avg_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 3, 2 } });
    layer = &model->layers[2];
    cr_assert_eq(layer->stride[0], 3);
    cr_assert_eq(layer->stride[1], 2);
    (void)stoker_model_batch_norm(model, "bn", NULL);
    layer = &model->layers[3];
    cr_assert_float_eq(layer->epsilon, 1e-5F, 1e-12);
    cr_assert_float_eq(layer->momentum, 0.1F, 1e-7);
    (void)stoker_model_batch_norm(model, "bn0", &(stoker_batch_norm){ 0 }); /* 0 is a value */
    layer = &model->layers[4];
    cr_assert_float_eq(layer->epsilon, 0, 0);
    cr_assert_float_eq(layer->momentum, 0, 0);
    (void)stoker_model_global_avg_pool(model, "mean");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", 3);
    (void)stoker_model_softmax_cross_entropy(model, 0.25F);
    cr_assert_float_eq(model->layers[8].rate, 0.25F, 1e-9);
    cr_assert(model->closed);
    (void)stk_test_end(model);
    stoker_model_destroy(&model);
}

/* ---- parameters ---- */

CleanTest(trainer_model, pytorchs_mnist_example_has_as_many_parameters)
{
    stoker_model *model = stk_test_mnist();
    stoker_model_size size;
    stoker_model_get_size(model, &size);
    cr_assert_eq(size.parameters, 1199882);
    cr_assert_eq(size.layers, 11);
    const uint64_t multiply_adds = 26 * 26 * 32 * 9 + 24 * 24 * 64 * 9 * 32 + 9216 * 128 + 128 * 10;
    const uint64_t others = 26 * 26 * 32 + 2 * 24 * 24 * 64 + 128; /* ReLUs and the pool */
    cr_assert_eq(size.flops_per_sample, 2 * multiply_adds + others);

    static const struct {
        const char *name;
        uint32_t rank, shape[4];
    } expected[] = {
        { "conv1.weight", 4, { 32, 1, 3, 3 } },  { "conv1.bias", 1, { 32 } },
        { "conv2.weight", 4, { 64, 32, 3, 3 } }, { "conv2.bias", 1, { 64 } },
        { "fc1.weight", 2, { 128, 9216 } },      { "fc1.bias", 1, { 128 } },
        { "fc2.weight", 2, { 10, 128 } },        { "fc2.bias", 1, { 10 } },
    };
    cr_assert_eq(model->parameter_count, 8);
    uint64_t end = 0;
    for (uint32_t i = 0; i < 8; i++) {
        const struct stk_parameter *p = &model->parameters[i];
        cr_assert_str_eq(p->name, expected[i].name);
        cr_assert_eq(p->rank, expected[i].rank);
        cr_assert_eq(memcmp(p->torch_shape, expected[i].shape, sizeof(p->torch_shape)), 0);
        cr_assert_eq(p->role, i % 2 == 0 ? STK_WEIGHT : STK_BIAS);
        cr_assert_eq(p->offset % STK_ALIGN_FLOATS, 0);
        cr_assert_geq(p->offset, end);
        cr_assert_lt(p->offset, end + STK_ALIGN_FLOATS);
        end = p->offset + p->elements;
        const bool after_flatten = strcmp(p->name, "fc1.weight") == 0;
        cr_assert_eq(p->flattened.rank, after_flatten ? 3 : 0, "%s", p->name);
        cr_assert_eq(p->flattened.c, after_flatten ? 64 : 0);
    }
    cr_assert_geq(model->parameter_floats, end);
    stoker_model_destroy(&model);
}

CleanTest(trainer_model, groups_divide_the_weights_and_batch_norm_has_statistics)
{
    stoker_model *model = stk_test_depthwise();
    cr_assert_str_eq(model->parameters[0].name, "depthwise.weight");
    cr_assert_eq(model->parameters[0].elements, 8 * 9);
    cr_assert_eq(model->parameters[0].torch_shape[1], 1);
    cr_assert_eq(model->layers[4].bias, -1, "no_bias");
    cr_assert_eq(model->statistic_count, 4);
    cr_assert_str_eq(model->statistics[0].name, "bn1.running_mean");
    cr_assert_str_eq(model->statistics[3].name, "bn2.running_var");
    cr_assert_eq(model->statistics[3].elements, 24);
    cr_assert_eq(model->statistics[3].offset % STK_ALIGN_FLOATS, 0);
    stoker_model_destroy(&model);
}

/* ---- initial weights ---- */

static void initialize(const stoker_model *model, uint64_t seed, float **weights,
                       float **statistics)
{
    *weights = stk_calloc(model->parameter_floats + 1, sizeof(float));
    *statistics = stk_calloc(model->statistic_floats + 1, sizeof(float));
    memset(*weights, 0xFF, model->parameter_floats * sizeof(float)); /* all must be written */
    memset(*statistics, 0xFF, model->statistic_floats * sizeof(float));
    stk_model_initialize(model, seed, *weights, *statistics);
}

/* Uniform in +-bound: extremes near it, mean 0, variance bound^2 / 3. */
static void check_uniform(const float *values, uint64_t count, double bound, const char *name)
{
    double sum = 0, squares = 0, largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
        largest = fmax(largest, fabs((double)values[i]));
    }
    cr_assert_leq(largest, bound * (1 + 1e-6), "%s", name);
    if (count < 1000)
        return;
    const double n = (double)count;
    cr_assert_gt(largest, bound * 0.99, "%s", name);
    cr_assert_lt(fabs(sum / n), 5 * bound / sqrt(3 * n), "%s: five standard errors", name);
    cr_assert_float_eq(squares / n, bound * bound / 3, 5 * bound * bound * 0.3 / sqrt(n), "%s",
                       name);
}

CleanTest(trainer_model, weights_start_as_pytorchs)
{
    static const double fan_in[] = { 9, 9, 288, 288, 9216, 9216, 128, 128 };
    stoker_model *model = stk_test_mnist();
    float *weights, *statistics;
    initialize(model, 7, &weights, &statistics);
    uint64_t end = 0;
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const struct stk_parameter *p = &model->parameters[i];
        check_uniform(weights + p->offset, p->elements, 1 / sqrt(fan_in[i]), p->name);
        for (; end < p->offset; end++)
            cr_assert_eq(weights[end], 0.0F, "padding");
        end += p->elements;
    }
    stk_free(weights);
    stk_free(statistics);
    stoker_model_destroy(&model);
}

CleanTest(trainer_model, batch_norm_starts_as_identity)
{
    stoker_model *model = stk_test_bn_net();
    float *weights, *statistics;
    initialize(model, 7, &weights, &statistics);
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const struct stk_parameter *p = &model->parameters[i];
        if (model->layers[p->layer].kind == STK_BATCH_NORM)
            for (uint64_t e = 0; e < p->elements; e++)
                cr_assert_eq(weights[p->offset + e], p->role == STK_WEIGHT ? 1.0F : 0.0F);
    }
    for (uint32_t i = 0; i < model->statistic_count; i++)
        for (uint64_t e = 0; e < model->statistics[i].elements; e++)
            cr_assert_eq(statistics[model->statistics[i].offset + e], i % 2 == 0 ? 0.0F : 1.0F);
    stk_free(weights);
    stk_free(statistics);
    stoker_model_destroy(&model);
}

CleanTest(trainer_model, a_seed_names_the_weights)
{
    stoker_model *model = stk_test_mnist();
    float *one, *same, *other, *statistics[3];
    initialize(model, 1, &one, &statistics[0]);
    initialize(model, 1, &same, &statistics[1]);
    initialize(model, 2, &other, &statistics[2]);
    cr_assert_eq(memcmp(one, same, model->parameter_floats * sizeof(float)), 0);
    uint64_t equal = 0;
    for (uint64_t i = 0; i < model->parameter_floats; i++)
        equal += one[i] == other[i];
    cr_assert_lt(equal, model->parameter_floats / 1000 + 100, "padding and chance only");
    /* Two parameters of one shape must differ, too. */
    const struct stk_parameter *a = &model->parameters[2];
    const struct stk_parameter *b = &model->parameters[4];
    cr_assert_neq(memcmp(one + a->offset, one + b->offset, 64 * sizeof(float)), 0);
    stk_free(one);
    stk_free(same);
    stk_free(other);
    for (int i = 0; i < 3; i++)
        stk_free(statistics[i]);
    stoker_model_destroy(&model);
}

/* ---- errors ---- */

enum of { IMAGE, VECTOR, PLANE };

static int conv(stoker_model *m, stoker_conv2d o)
{
    return stoker_model_conv2d(m, "x", &o);
}

static int max_pool(stoker_model *m, stoker_pool2d o)
{
    return stoker_model_max_pool2d(m, "x", &o);
}

static int batch_norm(stoker_model *m, float epsilon, float momentum)
{
    return stoker_model_batch_norm(
        m, "x", &(stoker_batch_norm){ .epsilon = epsilon, .momentum = momentum });
}

static int linear(stoker_model *m, uint32_t features)
{
    return stoker_model_linear(m, "x", &(stoker_linear){ .features = features });
}

#define CASES(X)                                                                                   \
    X(IMAGE, EINVAL, "no options", stoker_model_conv2d(m, "x", NULL))                              \
    X(IMAGE, EINVAL, "0 filters", conv(m, (stoker_conv2d){ .kernel = { 1, 1 } }))                  \
    X(IMAGE, EINVAL, "65536 filters",                                                              \
      conv(m, (stoker_conv2d){ .filters = 65536, .kernel = { 1, 1 } }))                            \
    X(IMAGE, EINVAL, "kernel of 0x3",                                                              \
      conv(m, (stoker_conv2d){ .filters = 1, .kernel = { 0, 3 } }))                                \
    X(IMAGE, EINVAL, "kernel of 3x256",                                                            \
      conv(m, (stoker_conv2d){ .filters = 1, .kernel = { 3, 256 } }))                              \
    X(IMAGE, EINVAL, "stride of 1x256",                                                            \
      conv(m, (stoker_conv2d){ .filters = 1, .kernel = { 1, 1 }, .stride = { 1, 256 } }))          \
    X(IMAGE, EINVAL, "padding of 3x0: at most 2",                                                  \
      conv(m, (stoker_conv2d){ .filters = 1, .kernel = { 3, 3 }, .padding = { 3, 0 } }))           \
    X(IMAGE, EINVAL, "4 groups, which do not divide its 6 filters",                                \
      conv(m, (stoker_conv2d){ .filters = 6, .kernel = { 1, 1 }, .groups = 4 }))                   \
    X(IMAGE, EMISMATCH, "3 groups, which do not divide the 4 channels of 'input' of shape 8x6x4",  \
      conv(m, (stoker_conv2d){ .filters = 6, .kernel = { 1, 1 }, .groups = 3 }))                   \
    X(IMAGE, EMISMATCH, "kernel of 9x1, larger than 'input' of shape 8x6x4",                       \
      conv(m, (stoker_conv2d){ .filters = 1, .kernel = { 9, 1 } }))                                \
    X(VECTOR, EMISMATCH, "'input' of shape 5 and needs an image",                                  \
      conv(m, (stoker_conv2d){ .filters = 1, .kernel = { 1, 1 } }))                                \
    X(PLANE, EMISMATCH, "'input' of shape 8x6 and needs an image",                                 \
      conv(m, (stoker_conv2d){ .filters = 1, .kernel = { 1, 1 } }))                                \
    X(VECTOR, EINVAL, "no options", stoker_model_linear(m, "x", NULL))                             \
    X(VECTOR, EINVAL, "0 features", linear(m, 0))                                                  \
    X(VECTOR, EINVAL, "16777217 features", linear(m, (1U << 24) + 1))                              \
    X(IMAGE, EMISMATCH, "7 features of one axis, and 'input' has shape 8x6x4: flatten",            \
      linear(m, 7))                                                                                \
    X(PLANE, EMISMATCH, "'input' has shape 8x6: flatten", linear(m, 7))                            \
    X(IMAGE, EINVAL, "no options", stoker_model_max_pool2d(m, "x", NULL))                          \
    X(IMAGE, EINVAL, "no options", stoker_model_avg_pool2d(m, "x", NULL))                          \
    X(IMAGE, EINVAL, "kernel of 0x0", max_pool(m, (stoker_pool2d){ .kernel = { 0, 0 } }))          \
    X(IMAGE, EINVAL, "padding of 2x2: at most 1",                                                  \
      max_pool(m, (stoker_pool2d){ .kernel = { 3, 3 }, .padding = { 2, 2 } }))                     \
    X(IMAGE, EMISMATCH, "larger than 'input' of shape 8x6x4",                                      \
      max_pool(m, (stoker_pool2d){ .kernel = { 2, 7 } }))                                          \
    X(VECTOR, EMISMATCH, "needs an image", max_pool(m, (stoker_pool2d){ .kernel = { 1, 1 } }))     \
    X(VECTOR, EMISMATCH, "needs an image", stoker_model_global_avg_pool(m, "x"))                   \
    X(VECTOR, EMISMATCH, "needs an image", stoker_model_global_max_pool(m, "x"))                   \
    X(PLANE, EMISMATCH, "'input' of shape 8x6", batch_norm(m, 0, 0))                               \
    X(IMAGE, EINVAL, "epsilon of -1", batch_norm(m, -1, 0))                                        \
    X(IMAGE, EINVAL, "epsilon of nan", batch_norm(m, NAN, 0))                                      \
    X(IMAGE, EINVAL, "momentum of 1.5", batch_norm(m, 0, 1.5F))                                    \
    X(IMAGE, EINVAL, "rate of 1", stoker_model_dropout(m, "x", 1.0F))                              \
    X(IMAGE, EINVAL, "rate of -0.5", stoker_model_dropout(m, "x", -0.5F))                          \
    X(IMAGE, EINVAL, "rate of nan", stoker_model_dropout(m, "x", NAN))                             \
    X(IMAGE, EINVAL, "adds 'y': there is no such layer", stoker_model_add(m, "x", "y"))            \
    X(IMAGE, EINVAL, "no such layer", stoker_model_add(m, "x", NULL))                              \
    X(IMAGE, EINVAL, "layer 1 is to read 'y': there is no such", stoker_model_from(m, "y"))        \
    X(IMAGE, EINVAL, "no such layer", stoker_model_from(m, NULL))                                  \
    X(IMAGE, EINVAL, "taken already", stoker_model_relu(m, "input"))                               \
    X(IMAGE, EINVAL, "name must be", stoker_model_relu(m, NULL))                                   \
    X(IMAGE, EINVAL, "name must be", stoker_model_relu(m, ""))                                     \
    X(IMAGE, EINVAL, "name must be", stoker_model_relu(m, "a b"))                                  \
    X(IMAGE, EINVAL, "name must be", stoker_model_relu(m, "a/b"))                                  \
    X(IMAGE, EINVAL, "name must be",                                                               \
      stoker_model_relu(m, "a234567890123456789012345678901234567890123456789012345678901234"))    \
    X(IMAGE, EINVAL, "without parameters", stoker_model_mse(m))                                    \
    X(IMAGE, EINVAL, "smoothing of 1", stoker_model_softmax_cross_entropy(m, 1.0F))                \
    X(IMAGE, EMISMATCH, "one axis of logits, and 'input' has shape 8x6x4",                         \
      stoker_model_softmax_cross_entropy(m, 0.0F))

static stoker_model *begin_of(enum of of)
{
    stoker_model *model = NULL;
    if (of == PLANE)
        cr_assert_eq(stoker_model_create(&model, (uint32_t[]){ 8, 6 }, 2, NULL), STOKER_OK);
    else
        model = of == IMAGE ? stk_test_begin(8, 6, 4) : stk_test_begin(0, 0, 5);
    return model;
}

/* The error is reported and kept, and nothing was added; what follows changes nothing. */
static void check_kept(stoker_model *m, int rc, int expected, const char *part)
{
    const stoker_error *error = stoker_model_error(m);
    cr_assert_not_null(error, "%s", part);
    cr_assert_eq(rc, expected, "%s: %s", part, error->message);
    cr_assert_eq(error->code, expected);
    cr_assert_not_null(strstr(error->message, part), "'%s' is not in '%s'", part, error->message);
    const stoker_error first = *error;
    cr_assert_eq(stoker_model_relu(m, "good"), expected);
    cr_assert_eq(stoker_model_relu(m, "bad name"), expected);
    cr_assert_eq(stoker_model_from(m, "input"), expected);
    cr_assert_eq(linear(m, 3), expected);
    cr_assert_eq(stoker_model_mse(m), expected);
    cr_assert_str_eq(stoker_model_error(m)->message, first.message);
    cr_assert_eq(m->layer_count, 1);
    cr_assert_eq(m->parameter_count + m->statistic_count, 0);
    cr_assert_not(m->closed);
}

#define CHECK_CASE(of, code, part, call)                                                           \
    {                                                                                              \
        stoker_model *m = begin_of(of);                                                            \
        const int rc = (call);                                                                     \
        check_kept(m, rc, STOKER_##code, part);                                                    \
        stoker_model_destroy(&m);                                                                  \
        cr_assert_null(m);                                                                         \
    }

CleanTest(trainer_model, the_first_error_is_reported_and_kept){ CASES(CHECK_CASE) }

CleanTest(trainer_model, errors_of_a_layer_name_it_and_both_shapes)
{
    stoker_model *model = stk_test_begin(28, 28, 1);
    stk_test_conv(model, "conv1", 32, 1);
    (void)stoker_model_max_pool2d(model, "pool1", &(stoker_pool2d){ .kernel = { 2, 2 } });
    cr_assert_eq(stoker_model_add(model, "sum", "conv1"), STOKER_EMISMATCH);
    const char *message = stoker_model_error(model)->message;
    cr_assert_not_null(strstr(message, "layer 'sum' (add) adds 'pool1' of shape 14x14x32 and "
                                       "'conv1' of shape 28x28x32"),
                       "%s", message);
    stoker_model_destroy(&model);

    model = stk_test_begin(28, 28, 1);
    (void)stoker_model_relu(model, "a");
    cr_assert_eq(stoker_model_relu(model, "a"), STOKER_EINVAL);
    stoker_model_destroy(&model);
}

CleanTest(trainer_model, a_closed_model_takes_no_more_and_wants_every_layer_read)
{
    stoker_model *model = stk_test_begin(0, 0, 4);
    stk_test_linear(model, "fc1", 4);
    stk_test_linear(model, "unread", 4);
    (void)stoker_model_from(model, "fc1");
    stk_test_linear(model, "fc2", 4);
    cr_assert_eq(stoker_model_mse(model), STOKER_EINVAL);
    cr_assert_not_null(strstr(stoker_model_error(model)->message, "nothing reads 'unread'"));
    cr_assert_not(model->closed);
    stoker_model_destroy(&model);

    for (int i = 0; i < 3; i++) {
        model = stk_test_chain(3);
        const uint32_t layers = model->layer_count;
        const int rc = i == 0   ? stoker_model_relu(model, "more")
                       : i == 1 ? stoker_model_mse(model)
                                : stoker_model_from(model, "fc1");
        cr_assert_eq(rc, STOKER_EINVAL);
        cr_assert_not_null(strstr(stoker_model_error(model)->message, "after the loss"));
        cr_assert_eq(model->layer_count, layers);
        stoker_model_destroy(&model);
    }
}

CleanTest(trainer_model, samples_have_one_to_three_axes_in_range)
{
    static const struct {
        uint32_t shape[3], rank;
        int rc;
    } cases[] = {
        { { 1 }, 1, STOKER_OK },
        { { 1 << 30 }, 1, STOKER_OK },
        { { (1 << 30) + 1 }, 1, STOKER_EINVAL },
        { { 0 }, 1, STOKER_EINVAL },
        { { 65535, 16 }, 2, STOKER_OK },
        { { 65536, 1 }, 2, STOKER_EINVAL },
        { { 3, 0, 3 }, 3, STOKER_EINVAL },
        { { 65535, 65535, 1 }, 3, STOKER_ELIMIT },
        { { 1, 1, 1 }, 0, STOKER_EINVAL },
        { { 1, 1, 1 }, 4, STOKER_EINVAL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_model *model = NULL;
        stoker_error error = { .code = 0 };
        cr_assert_eq(stoker_model_create(&model, cases[i].shape, cases[i].rank, &error),
                     cases[i].rc, "case %zu", i);
        cr_assert_eq(error.code, cases[i].rc);
        cr_assert_eq(model != NULL, cases[i].rc == STOKER_OK);
        stoker_model_destroy(&model);
    }
    stoker_model *model = NULL;
    cr_assert_eq(stoker_model_create(&model, NULL, 1, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_model_create(NULL, cases[0].shape, 1, NULL), STOKER_EINVAL);
}

CleanTest(trainer_model, sizes_are_limited)
{
    stoker_model *model = stk_test_begin(4096, 4096, 4);
    cr_assert_eq(conv(model, (stoker_conv2d){ .filters = 65, .kernel = { 1, 1 } }), STOKER_ELIMIT);
    stoker_model_destroy(&model);
    model = stk_test_begin(0, 0, 1 << 24);
    cr_assert_eq(linear(model, 1 << 24), STOKER_ELIMIT);
    cr_assert_not_null(strstr(stoker_model_error(model)->message, "parameters"));
    stoker_model_destroy(&model);
    model = stk_test_begin(300, 300, 1);
    cr_assert_eq(stoker_model_global_max_pool(model, "x"), STOKER_ELIMIT);
    stoker_model_destroy(&model);

    model = stk_test_begin(0, 0, 1);
    char name[16];
    for (int i = 1; i < STOKER_MODEL_LAYERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "r%d", i);
        cr_assert_eq(stoker_model_relu(model, name), STOKER_OK);
    }
    cr_assert_eq(stoker_model_relu(model, "last"), STOKER_ELIMIT);
    stoker_model_destroy(&model);
}

CleanTest(trainer_model, no_model_is_no_crash)
{
    stoker_model *none = NULL;
    stoker_model_size size = { .layers = 1 };
    char text[8] = "x";
    cr_assert_eq(stoker_model_relu(NULL, "x"), STOKER_EINVAL);
    cr_assert_eq(stoker_model_from(NULL, "x"), STOKER_EINVAL);
    cr_assert_eq(stoker_model_mse(NULL), STOKER_EINVAL);
    cr_assert_null(stoker_model_error(NULL));
    stoker_model_get_size(NULL, &size);
    cr_assert_eq(size.layers, 0);
    stoker_model_get_size(NULL, NULL);
    cr_assert_eq(stoker_model_summary(NULL, text, sizeof(text)), 0);
    cr_assert_eq(text[0], '\0');
    stoker_model_destroy(&none);
    stoker_model_destroy(NULL);
}

/* ---- summary ---- */

CleanTest(trainer_model, the_summary_has_a_line_a_layer_and_the_totals)
{
    stoker_model *model = stk_test_mnist();
    char text[4096];
    const size_t length = stoker_model_summary(model, text, sizeof(text));
    cr_assert_eq(length, strlen(text));
    static const char *const parts[] = { "conv1",      "conv2d 3x3",   "26x26x32",
                                         "389,376",    "1,179,776",    "1,199,882",
                                         "24,080,384", "max pool 2x2", "4,799,528" };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        cr_assert_not_null(strstr(text, parts[i]), "%s", parts[i]);
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    cr_assert_eq(lines, model->layer_count + 3U);

    char part[100];
    for (size_t bytes = 0; bytes <= sizeof(part); bytes += 25) {
        memset(part, '#', sizeof(part));
        cr_assert_eq(stoker_model_summary(model, part, bytes), length);
        for (size_t i = bytes; i < sizeof(part); i++)
            cr_assert_eq(part[i], '#');
        if (bytes > 0)
            cr_assert(strlen(part) == bytes - 1 && memcmp(part, text, bytes - 1) == 0);
    }
    cr_assert_eq(stoker_model_summary(model, NULL, 0), length);
    stoker_model_destroy(&model);
}
