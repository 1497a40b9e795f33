/* test_plan.c - whatever is recomputed, shared or overwritten, each operation reads the
 * very value it must read.
 *
 * Method: the operations are run on the arena with symbols for numbers. A symbol is a hash of
 * how the value was computed ("convolution of layer 3 of [ReLU of ...]"); sums of gradients are
 * sums of symbols, so that their order is free. Writing into a buffer destroys every other one
 * whose bytes it touches. What each layer's output and gradient should be is worked out from the
 * model alone, without graph, segments or buffers.
 */
#include "support/trainer/plan_models.h"

#include "loader/base/memory/memory.h"
#include "support/leaks.h"
#include "trainer/plan/plan.h"

enum { LAYERS_MAX = 2100, BUFFERS_MAX = 12000 };

/* ---- symbols ---- */

static uint64_t symbol(uint64_t what, uint64_t layer, uint64_t a, uint64_t b)
{
    return stk_mix64(stk_mix64(stk_mix64(what * 1000003U + layer) + a) ^ (b + 0x1234567U));
}

enum what { SAMPLES = 1, VALUE, RELU, SUM, STATISTICS, PLACES, LOSS, BACK, RELU_BACK };

static uint64_t relu_of(uint64_t x)
{
    return symbol(RELU, 0, x, 0);
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return symbol(SUM, 0, a < b ? a : b, a < b ? b : a);
}

/* ---- what the model means ---- */

struct meaning {
    uint64_t value[LAYERS_MAX];    /* each layer's output */
    uint64_t gradient[LAYERS_MAX]; /* the gradient of that output; 0 = not wanted */
    bool wanted[LAYERS_MAX];
};

static bool passes_through(const struct stk_layer *layer, bool train)
{
    return layer->kind == STK_FLATTEN ||
           (layer->kind == STK_DROPOUT && (!train || layer->rate == 0.0F));
}

static void find_values(struct meaning *m, const stoker_model *model, bool train)
{
    m->value[0] = symbol(SAMPLES, 0, 0, 0);
    for (uint32_t i = 1; i < model->layer_count; i++) {
        const struct stk_layer *layer = &model->layers[i];
        const uint64_t x = m->value[layer->input];
        m->wanted[i] = layer->weight >= 0 || m->wanted[layer->input] ||
                       (layer->kind == STK_ADD && m->wanted[layer->other]);
        if (passes_through(layer, train))
            m->value[i] = x;
        else if (layer->kind == STK_RELU)
            m->value[i] = relu_of(x);
        else if (layer->kind == STK_ADD)
            m->value[i] = sum_of(x, m->value[layer->other]);
        else
            m->value[i] = symbol(VALUE, i, x, 0);
    }
}

static uint64_t back(const struct meaning *m, const struct stk_layer *layer, uint32_t i)
{
    const uint64_t dy = m->gradient[i];
    const uint64_t x = m->value[layer->input];
    switch (layer->kind) {
    case STK_FLATTEN:
    case STK_ADD:
        return dy;
    case STK_DROPOUT:
        return layer->rate == 0.0F ? dy : symbol(BACK, i, dy, 0);
    case STK_RELU:
        return symbol(RELU_BACK, 0, m->value[i], dy);
    case STK_MAX_POOL:
        return symbol(BACK, i, dy, symbol(PLACES, i, x, 0));
    case STK_BATCH_NORM:
        return symbol(BACK, i, dy, x);
    case STK_SOFTMAX_CROSS_ENTROPY:
    case STK_MSE:
        return symbol(LOSS, i, x, 0);
    default:
        return symbol(BACK, i, dy, 0);
    }
}

static void find_gradients(struct meaning *m, const stoker_model *model)
{
    for (uint32_t i = model->layer_count - 1; i > 0; i--) {
        const struct stk_layer *layer = &model->layers[i];
        if (m->wanted[layer->input])
            m->gradient[layer->input] += back(m, layer, i);
        if (layer->kind == STK_ADD && m->wanted[layer->other])
            m->gradient[layer->other] += back(m, layer, i);
    }
}

/* ---- running a plan on symbols ---- */

struct machine {
    const struct stk_plan *plan;
    const struct meaning *meaning;
    uint64_t held[BUFFERS_MAX]; /* 0 = nothing that could be read */
    uint32_t trained[LAYERS_MAX], measured[LAYERS_MAX], losses;
    const char *title;
    uint32_t at; /* operation */
};

static struct machine machine;
static struct meaning meaning;

static const struct stk_layer *layer_at(void)
{
    return &machine.plan->model->layers[machine.plan->ops[machine.at].layer];
}

#define check(condition)                                                                           \
    cr_assert(condition, "%s: operation %u of kind %d, layer %s: %s", machine.title, machine.at,   \
              (int)machine.plan->ops[machine.at].kind, layer_at()->name, #condition)

static uint64_t read_buffer(int32_t buffer)
{
    if (buffer == STK_SAMPLES) {
        check((machine.plan->storage == STOKER_DTYPE_FLOAT32) !=
              (machine.plan->ops[machine.at].kind == STK_OP_CAST)); /* others read what was cast */
        return meaning.value[0];
    }
    check(buffer >= 0);
    check((uint32_t)buffer < machine.plan->buffer_count);
    check(machine.at >= machine.plan->buffers[buffer].first_op);
    check(machine.at <= machine.plan->buffers[buffer].last_op);
    check(machine.held[buffer] != 0);
    return machine.held[buffer];
}

static bool touches(int32_t a, int32_t b)
{
    const struct stk_buffer *x = &machine.plan->buffers[a];
    const struct stk_buffer *y = &machine.plan->buffers[b];
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static void write_buffer(int32_t buffer, uint64_t bytes_per_sample, uint64_t what)
{
    check(buffer >= 0);
    check((uint32_t)buffer < machine.plan->buffer_count);
    const struct stk_buffer *b = &machine.plan->buffers[buffer];
    check(machine.at >= b->first_op);
    check(machine.at <= b->last_op);
    check(b->bytes_per_sample == bytes_per_sample);
    check(b->bytes >= bytes_per_sample * machine.plan->options.batch);
    check(b->offset % 64 == 0);
    check(b->offset + b->bytes <= machine.plan->activation_bytes);
    for (uint32_t i = 0; i < machine.plan->buffer_count; i++)
        if (machine.held[i] != 0 && touches((int32_t)i, buffer))
            machine.held[i] = 0;
    machine.held[buffer] = what;
}

/* Nothing that is written may lie over what is read, but the pair that the contract allows. */
static void check_apart(const struct stk_op *op, int32_t in, int32_t out)
{
    const int32_t reads[] = { op->x, op->x2, op->dy };
    const int32_t writes[] = { op->y, op->dx };
    const bool backward = op->dy != STK_NO_BUFFER;
    for (int r = 0; r < 3; r++)
        for (int w = backward ? 1 : 0; w < 2; w++)
            if (reads[r] >= 0 && writes[w] >= 0 &&
                !(reads[r] == in && writes[w] == out && in == out))
                check(!touches(reads[r], writes[w]));
    for (int w = 0; w < 2; w++)
        if (op->aux >= 0 && writes[w] >= 0)
            check(!touches(op->aux, writes[w]));
    if (op->kind == STK_OP_ADD_FORWARD && op->x == op->y)
        check(op->x2 != op->y);
    if (backward && op->y >= 0 && op->dx >= 0)
        check(!touches(op->y, op->dx));
}

static uint64_t out_bytes(void)
{
    return stoker_dtype_bytes(machine.plan->storage) * stk_shape_elements(layer_at()->out);
}

static uint64_t in_bytes(void)
{
    return stoker_dtype_bytes(machine.plan->storage) * stk_shape_elements(layer_at()->in);
}

static void run_weights(const struct stk_op *op)
{
    const struct stk_layer *layer = layer_at();
    check(read_buffer(op->x) == meaning.value[layer->input]);
    check(read_buffer(op->dy) == meaning.gradient[op->layer]);
    machine.trained[op->layer]++;
}

static void run_batch_norm(const struct stk_op *op)
{
    const struct stk_layer *layer = layer_at();
    const uint64_t x = read_buffer(op->x);
    const uint64_t value = symbol(VALUE, op->layer, x, 0);
    const uint64_t y = op->relu ? relu_of(value) : value;
    if (op->kind == STK_OP_BATCH_NORM_FORWARD) {
        check(!op->again);
        machine.measured[op->layer]++;
        check(machine.plan->buffers[op->aux].bytes >= 8 * (uint64_t)layer->in.c);
        write_buffer(op->aux, 0, symbol(STATISTICS, op->layer, x, 0));
    } else if (op->kind == STK_OP_BATCH_NORM_APPLY) {
        check(op->again);
        check(op->x != op->y);
        check(read_buffer(op->aux) == symbol(STATISTICS, op->layer, x, 0));
    }
    write_buffer(op->y, out_bytes(), y);
}

static void run_batch_norm_backward(const struct stk_op *op)
{
    const struct stk_layer *layer = layer_at();
    const uint64_t x = read_buffer(op->x);
    const uint64_t value = symbol(VALUE, op->layer, x, 0);
    uint64_t dy = read_buffer(op->dy);
    check(x == meaning.value[layer->input]);
    check(read_buffer(op->aux) == symbol(STATISTICS, op->layer, x, 0));
    if (op->y != STK_NO_BUFFER)
        check(op->relu && read_buffer(op->y) == relu_of(value));
    if (op->relu)
        dy = symbol(RELU_BACK, 0, relu_of(value), dy);
    check(dy == meaning.gradient[op->layer]);
    machine.trained[op->layer]++;
    write_buffer(op->dx, in_bytes(), symbol(BACK, op->layer, dy, x));
}

static void run_max_pool(const struct stk_op *op)
{
    const struct stk_layer *layer = layer_at();
    const uint64_t x = read_buffer(op->x);
    const uint64_t place_bytes = layer->kernel[0] * layer->kernel[1] > 256 ? 2 : 1;
    const uint64_t value = symbol(VALUE, op->layer, x, 0);
    write_buffer(op->y, out_bytes(), op->relu ? relu_of(value) : value);
    if (op->aux != STK_NO_BUFFER)
        write_buffer(op->aux, place_bytes * stk_shape_elements(layer->out),
                     symbol(PLACES, op->layer, x, 0));
}

static void run_max_pool_backward(const struct stk_op *op)
{
    uint64_t dy = read_buffer(op->dy);
    check(op->relu == (op->y != STK_NO_BUFFER));
    if (op->relu)
        dy = symbol(RELU_BACK, 0, read_buffer(op->y), dy);
    check(dy == meaning.gradient[op->layer]);
    write_buffer(op->dx, in_bytes(), symbol(BACK, op->layer, dy, read_buffer(op->aux)));
}

static void run_loss(const struct stk_op *op)
{
    const struct stk_layer *layer = layer_at();
    const uint64_t x = read_buffer(op->x);
    check(x == meaning.value[layer->input]);
    check((op->dx != STK_NO_BUFFER) == machine.plan->options.train);
    machine.losses++;
    check(machine.plan->output == op->x);
    if (op->dx != STK_NO_BUFFER)
        write_buffer(op->dx, in_bytes(), symbol(LOSS, op->layer, x, 0));
}

static void run_forward(const struct stk_op *op)
{
    const uint64_t x = read_buffer(op->x);
    uint64_t y = symbol(VALUE, op->layer, x, 0);
    if (op->kind == STK_OP_RELU_FORWARD)
        y = relu_of(x);
    if (op->kind == STK_OP_ADD_FORWARD)
        y = sum_of(x, read_buffer(op->x2));
    write_buffer(op->y, out_bytes(), op->relu ? relu_of(y) : y);
}

static void run_backward(const struct stk_op *op)
{
    const uint64_t dy = read_buffer(op->dy);
    switch (op->kind) {
    case STK_OP_RELU_BACKWARD:
        write_buffer(op->dx, in_bytes(), symbol(RELU_BACK, 0, read_buffer(op->y), dy));
        return;
    case STK_OP_ACCUMULATE:
        write_buffer(op->dx, out_bytes(), read_buffer(op->dx) + dy);
        return;
    case STK_OP_COPY:
        write_buffer(op->dx, out_bytes(), dy);
        return;
    default:
        write_buffer(op->dx, in_bytes(), symbol(BACK, op->layer, dy, 0));
    }
}

static void run_op(const struct stk_op *op)
{
    switch (op->kind) {
    case STK_OP_CONV_FORWARD:
    case STK_OP_LINEAR_FORWARD:
    case STK_OP_AVG_POOL_FORWARD:
        check_apart(op, STK_NO_BUFFER, STK_NO_BUFFER);
        run_forward(op);
        return;
    case STK_OP_RELU_FORWARD:
    case STK_OP_DROPOUT_FORWARD:
    case STK_OP_ADD_FORWARD:
        check_apart(op, op->x, op->y);
        run_forward(op);
        return;
    case STK_OP_MAX_POOL_BACKWARD:
        check_apart(op, STK_NO_BUFFER, STK_NO_BUFFER);
        run_max_pool_backward(op);
        return;
    case STK_OP_MAX_POOL_FORWARD:
        check_apart(op, STK_NO_BUFFER, STK_NO_BUFFER);
        run_max_pool(op);
        return;
    case STK_OP_BATCH_NORM_FORWARD:
        check_apart(op, op->x, op->y);
        run_batch_norm(op);
        return;
    case STK_OP_BATCH_NORM_APPLY:
    case STK_OP_BATCH_NORM_INFER:
        check_apart(op, STK_NO_BUFFER, STK_NO_BUFFER);
        run_batch_norm(op);
        return;
    case STK_OP_CONV_BACKWARD_WEIGHTS:
    case STK_OP_LINEAR_BACKWARD_WEIGHTS:
        run_weights(op);
        return;
    case STK_OP_BATCH_NORM_BACKWARD:
        check_apart(op, op->dy, op->dx);
        run_batch_norm_backward(op);
        return;
    case STK_OP_RELU_BACKWARD:
    case STK_OP_DROPOUT_BACKWARD:
        check_apart(op, op->dy, op->dx);
        run_backward(op);
        return;
    case STK_OP_CAST:
        check(machine.at == 0);
        write_buffer(op->y, out_bytes(), read_buffer(op->x));
        return;
    case STK_OP_SOFTMAX_CROSS_ENTROPY:
    case STK_OP_MSE:
        check_apart(op, op->x, op->dx);
        run_loss(op);
        return;
    default:
        check_apart(op, STK_NO_BUFFER, STK_NO_BUFFER);
        run_backward(op);
    }
}

static void check_each_layer_once(const stoker_model *model, bool train)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct stk_layer *layer = &model->layers[i];
        const uint32_t trained = train && layer->weight >= 0 ? 1 : 0;
        const uint32_t measured = train && layer->kind == STK_BATCH_NORM ? 1 : 0;
        cr_assert_eq(machine.trained[i], trained, "%s: layer %s", machine.title, layer->name);
        cr_assert_eq(machine.measured[i], measured, "%s: layer %s", machine.title, layer->name);
    }
    cr_assert_eq(machine.losses, 1);
}

static void check_plan(const stoker_model *model, const struct stk_plan_options *options,
                       const char *name)
{
    static char title[160];
    struct stk_plan plan;
    cr_assert_leq(model->layer_count, LAYERS_MAX);
    (void)snprintf(title, sizeof(title), "%s train %d recompute bn %d segments %u apart %d", name,
                   options->train, options->recompute_batch_norm, options->checkpoint_segments,
                   options->no_reuse);
    cr_assert_eq(stk_plan_make(&plan, model, options, NULL), STOKER_OK, "%s", title);
    cr_assert_leq(plan.buffer_count, BUFFERS_MAX);
    meaning = (struct meaning){ 0 };
    find_values(&meaning, model, options->train);
    if (options->train)
        find_gradients(&meaning, model);
    machine = (struct machine){ .plan = &plan, .meaning = &meaning, .title = title };
    for (; machine.at < plan.op_count; machine.at++)
        run_op(&plan.ops[machine.at]);
    check_each_layer_once(model, options->train);
    if (!options->train) {
        machine.at = plan.op_count - 1; /* what is left is the answer */
        cr_assert_eq(read_buffer(plan.output),
                     meaning.value[model->layers[model->layer_count - 1].input]);
    }
    stk_plan_free(&plan);
}

static void check_all_options(stoker_model *model, const char *name)
{
    static const uint32_t segments[] = { 0, 2, 3, 5, 8, 1000 };
    check_plan(model, &(struct stk_plan_options){ .batch = 3 }, name);
    check_plan(model, &(struct stk_plan_options){ .batch = 3, .no_reuse = true }, name);
    check_plan(model, &(struct stk_plan_options){ .batch = 3, .storage = STOKER_DTYPE_FLOAT16 },
               name);
    for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++)
        for (int bits = 0; bits < 8; bits++)
            check_plan(model,
                       &(struct stk_plan_options){ .batch = 3,
                                                   .train = true,
                                                   .checkpoint_segments = segments[i],
                                                   .exact_segments = true,
                                                   .recompute_batch_norm = (bits & 1) != 0,
                                                   .no_reuse = (bits & 2) != 0,
                                                   .storage = (bits & 4) != 0
                                                                  ? STOKER_DTYPE_BFLOAT16
                                                                  : STOKER_DTYPE_FLOAT32 },
                       name);
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan, every_operation_reads_what_it_must)
{
    check_all_options(stk_test_mnist(), "mnist");
    check_all_options(stk_test_bn_net(), "bn net");
    check_all_options(stk_test_residual(), "residual");
    check_all_options(stk_test_depthwise(), "depthwise");
    check_all_options(stk_test_awkward(), "awkward");
}

CleanTest(trainer_plan, so_it_does_in_random_networks)
{
    char name[32];
    for (uint64_t seed = 0; seed < 150; seed++) {
        (void)snprintf(name, sizeof(name), "random %u", (unsigned)seed);
        check_all_options(stk_test_random(seed), name);
    }
}

CleanTest(trainer_plan, so_it_does_in_a_long_chain)
{
    stoker_model *model = stk_test_chain(1000);
    static const uint32_t segments[] = { 0, 32 };
    check_plan(model, &(struct stk_plan_options){ .batch = 2 }, "chain");
    for (int i = 0; i < 2; i++)
        check_plan(model,
                   &(struct stk_plan_options){ .batch = 2,
                                               .train = true,
                                               .checkpoint_segments = segments[i],
                                               .exact_segments = true },
                   "chain");
    stoker_model_destroy(&model);
}

static bool is_for_training(enum stk_op_kind kind)
{
    switch (kind) {
    case STK_OP_CONV_FORWARD:
    case STK_OP_LINEAR_FORWARD:
    case STK_OP_MAX_POOL_FORWARD:
    case STK_OP_AVG_POOL_FORWARD:
    case STK_OP_RELU_FORWARD:
    case STK_OP_BATCH_NORM_INFER:
    case STK_OP_ADD_FORWARD:
    case STK_OP_SOFTMAX_CROSS_ENTROPY:
    case STK_OP_MSE:
        return false;
    default:
        return true;
    }
}

CleanTest(trainer_plan, a_forward_plan_has_nothing_of_training)
{
    stoker_model *models[] = { stk_test_mnist(), stk_test_bn_net(), stk_test_residual(),
                               stk_test_awkward() };
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        struct stk_plan plan;
        const struct stk_plan_options options = { .batch = 8,
                                                  .recompute_batch_norm = true,
                                                  .checkpoint_segments = 4 };
        cr_assert_eq(stk_plan_make(&plan, models[m], &options, NULL), STOKER_OK);
        for (uint32_t i = 0; i < plan.op_count; i++) {
            cr_assert_not(is_for_training(plan.ops[i].kind));
            cr_assert_not(plan.ops[i].again);
            cr_assert_eq(plan.ops[i].aux, STK_NO_BUFFER);
            cr_assert_eq(plan.ops[i].dx, STK_NO_BUFFER);
        }
        for (uint32_t i = 0; i < plan.buffer_count; i++)
            cr_assert_not(plan.buffers[i].gradient);
        stk_plan_free(&plan);
        stoker_model_destroy(&models[m]);
    }
}

static uint32_t count_ops(const struct stk_plan *plan, enum stk_op_kind kind, const char *layer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i].kind == kind &&
            strcmp(plan->model->layers[plan->ops[i].layer].name, layer) == 0)
            count++;
    return count;
}

CleanTest(trainer_plan, no_gradient_goes_below_the_first_parameters)
{
    stoker_model *model = stk_test_mnist();
    struct stk_plan plan;
    const struct stk_plan_options options = { .batch = 4, .train = true };
    cr_assert_eq(stk_plan_make(&plan, model, &options, NULL), STOKER_OK);
    cr_assert_eq(count_ops(&plan, STK_OP_CONV_BACKWARD_DATA, "conv1"), 0);
    cr_assert_eq(count_ops(&plan, STK_OP_CONV_BACKWARD_DATA, "conv2"), 1);
    cr_assert_eq(count_ops(&plan, STK_OP_CONV_BACKWARD_WEIGHTS, "conv1"), 1);
    cr_assert_eq(count_ops(&plan, STK_OP_RELU_FORWARD, "relu1"), 0, "fused");
    cr_assert_eq(count_ops(&plan, STK_OP_RELU_BACKWARD, "relu1"), 1);
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}

/* A residual network of seven sums: the shared gradient is copied nowhere. */
CleanTest(trainer_plan, sums_hand_their_gradient_on_without_a_copy)
{
    stoker_model *model = stk_test_residual();
    struct stk_plan plan;
    const struct stk_plan_options options = { .batch = 4, .train = true };
    cr_assert_eq(stk_plan_make(&plan, model, &options, NULL), STOKER_OK);
    uint32_t copies = 0;
    uint32_t sums = 0;
    for (uint32_t i = 0; i < plan.op_count; i++) {
        copies += plan.ops[i].kind == STK_OP_COPY;
        sums += plan.ops[i].kind == STK_OP_ACCUMULATE;
    }
    cr_assert_eq(copies, 0);
    cr_assert_eq(sums, 6);
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan, only_a_closed_model_and_a_batch_in_range_are_planned)
{
    stoker_model *model = stk_test_mnist();
    struct stk_plan plan;
    stoker_error error = { .code = 0 };
    static const uint32_t batches[] = { 0, STK_BATCH_MAX + 1, UINT32_MAX };
    for (int i = 0; i < 3; i++) {
        const struct stk_plan_options options = { .batch = batches[i], .train = true };
        cr_assert_eq(stk_plan_make(&plan, model, &options, &error), STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, "1 to 65536"));
        cr_assert_null(plan.ops);
    }
    stoker_model_destroy(&model);

    const struct stk_plan_options options = { .batch = 1 };
    model = stk_test_begin(0, 0, 4);
    stk_test_linear(model, "fc", 4);
    cr_assert_eq(stk_plan_make(&plan, model, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "no loss"));
    stk_test_linear(model, "fc", 4);
    cr_assert_eq(stk_plan_make(&plan, model, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "taken already"));
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}
