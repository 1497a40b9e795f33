/* test_precision.c - values in 16 bits: half the memory, what stays wide stays wide, and the
 * back end ref, which really stores 16 bits, learns as it does in float32.
 */
#include "support/trainer/plan_models.h"

#include "kernels/float16.h"
#include "support/sweep.h"
#include "support/trainer/opened_trainer.h"
#include "trainer/api/trainer.h"
#include "trainer/backend/cpu/operations.h"
#include "trainer/backend/ref/rounding.h"
#include "trainer/plan/precision.h"

#include <math.h>

#include "support/trainer/trainer_golden.h"

enum { SIDE = 8, CLASSES = 5, BATCH = 8, PIXELS = SIDE * SIDE * 2 };
static const stoker_dtype narrow_types[] = { STOKER_DTYPE_FLOAT16, STOKER_DTYPE_BFLOAT16 };

/* ---- the table ---- */

/* The lines of the README's table, as the code has them. */
static void check_line(const char *readme, const struct stk_precision *p)
{
    char line[200];
    (void)snprintf(line, sizeof(line), "\n| %s | %s | %s | %s | %s | %s |\n", p->name,
                   stk_width_name(p->reads), stk_width_name(p->writes),
                   stk_width_name(p->parameters), stk_width_name(p->sums),
                   stk_width_name(p->keeps));
    cr_assert_not_null(strstr(readme, line), "the README lacks this line:%s", line);
}

CleanTest(trainer_precision, the_readme_shows_the_table)
{
    static char readme[100000];
    FILE *file = fopen(STOKER_TEST_SOURCES "/trainer/README.md", "r");
    cr_assert_not_null(file);
    const size_t length = fread(readme, 1, sizeof(readme) - 1, file);
    cr_assert_eq(fclose(file), 0);
    readme[length] = '\0';
    for (int kind = 0; kind < STK_OP_KINDS; kind++)
        check_line(readme, &stk_precisions[kind]);
}

/* ---- the plan ---- */

static struct stk_plan plan_of(const stoker_model *model, struct stk_plan_options options)
{
    struct stk_plan plan;
    cr_assert_eq(stk_plan_make(&plan, model, &options, NULL), STOKER_OK);
    return plan;
}

static bool has_width(stoker_dtype dtype, enum stk_width width, stoker_dtype storage)
{
    switch (width) {
    case STK_WIDTH_STORAGE:
        return dtype == storage;
    case STK_WIDTH_FLOAT32:
        return dtype == STOKER_DTYPE_FLOAT32;
    case STK_WIDTH_PLACES:
        return dtype == STOKER_DTYPE_UINT8 || dtype == STOKER_DTYPE_INT16;
    default:
        return false;
    }
}

static void check_operand(const struct stk_plan *plan, int32_t buffer, enum stk_width width)
{
    const stoker_dtype dtype =
        buffer == STK_SAMPLES ? STOKER_DTYPE_FLOAT32 : plan->buffers[buffer < 0 ? 0 : buffer].dtype;
    if (buffer != STK_NO_BUFFER)
        cr_assert(has_width(dtype, width, plan->storage));
}

/* Each operand of each operation has the type that the table gives it. */
static void check_types(const struct stk_plan *plan)
{
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct stk_op *op = &plan->ops[i];
        const struct stk_precision *p = &stk_precisions[op->kind];
        check_operand(plan, op->x, p->reads);
        check_operand(plan, op->x2, p->reads);
        check_operand(plan, op->dy, p->reads);
        check_operand(plan, op->y, p->writes != STK_WIDTH_NONE ? p->writes : p->reads);
        check_operand(plan, op->dx, p->writes);
        check_operand(plan, op->aux, p->keeps);
        cr_assert_eq(op->kind == STK_OP_CAST, i == 0);
    }
}

CleanTest(trainer_precision, each_buffer_has_the_type_of_the_table)
{
    for (int t = 0; t < 2; t++)
        for (int bits = 0; bits < 8; bits++) {
            stoker_model *models[] = { stk_test_mnist(), stk_test_bn_net(), stk_test_residual(),
                                       stk_test_awkward() };
            for (int m = 0; m < 4; m++) {
                uint32_t a, b;
                struct stk_plan plan = plan_of(
                    models[m],
                    (struct stk_plan_options){ .batch = 3,
                                               .train = (bits & 1) != 0,
                                               .recompute_batch_norm = (bits & 2) != 0,
                                               .checkpoint_segments = (bits & 4) != 0 ? 3 : 0,
                                               .storage = narrow_types[t] });
                check_types(&plan);
                cr_assert_not(stk_plan_overlaps(&plan, &a, &b));
                stk_plan_free(&plan);
                stoker_model_destroy(&models[m]);
            }
        }
}

CleanTest(trainer_precision, other_types_are_refused)
{
    stoker_model *model = stk_test_mnist();
    struct stk_plan plan;
    const struct stk_plan_options options = { .batch = 1, .storage = STOKER_DTYPE_FLOAT64 };
    cr_assert_eq(stk_plan_make(&plan, model, &options, NULL), STOKER_EINVAL);
    stoker_model_destroy(&model);
}

static uint64_t activation_bytes(const stoker_model *model, stoker_dtype storage,
                                 bool recompute_batch_norm, uint32_t segments)
{
    struct stk_plan plan =
        plan_of(model, (struct stk_plan_options){ .batch = 64,
                                                  .train = true,
                                                  .storage = storage,
                                                  .recompute_batch_norm = recompute_batch_norm,
                                                  .checkpoint_segments = segments });
    const uint64_t bytes = plan.activation_bytes;
    stk_plan_free(&plan);
    return bytes;
}

/* To the byte: the values alive at the peak (test_memory.c says which), half as large, the
 * places of the maxima as they were, and the samples, which are the loader's in float32. */
CleanTest(trainer_precision, the_mnist_example_takes_half)
{
    enum { CONV1 = 26 * 26 * 32, CONV2 = 24 * 24 * 64, POOL = 12 * 12 * 64, IMAGE = 28 * 28 };
    stoker_model *model = stk_test_mnist();
    for (int t = 0; t < 2; t++)
        cr_assert_eq(activation_bytes(model, narrow_types[t], false, 0),
                     64 * (2ULL * (IMAGE + CONV1 + CONV2 + POOL + CONV2) + POOL));
    const double share = (double)activation_bytes(model, STOKER_DTYPE_FLOAT16, false, 0) /
                         (double)activation_bytes(model, STOKER_DTYPE_FLOAT32, false, 0);
    cr_assert_leq(share, 0.52);
    stoker_model_destroy(&model);
}

CleanTest(trainer_precision, recomputation_saves_in_16_bits_as_well)
{
    stoker_model *models[] = { stk_test_bn_net(), stk_test_residual() };
    for (int m = 0; m < 2; m++) {
        uint64_t bytes[2][4];
        for (int narrow = 0; narrow < 2; narrow++)
            for (int way = 0; way < 4; way++)
                bytes[narrow][way] = activation_bytes(
                    models[m], narrow == 1 ? STOKER_DTYPE_FLOAT16 : STOKER_DTYPE_FLOAT32,
                    (way & 1) != 0, (way & 2) != 0 ? 4 : 0);
        for (int way = 0; way < 4; way++) {
            const double share = (double)bytes[1][way] / (double)bytes[0][way];
            cr_log_info("network %d, way %d: %lu bytes in float32, %lu in float16", m, way,
                        (unsigned long)bytes[0][way], (unsigned long)bytes[1][way]);
            cr_assert(share > 0.45 && share < 0.56, "%f", share); /* the cast samples come on top */
            cr_assert(way == 0 || bytes[1][way] < bytes[1][0]);
        }
        stoker_model_destroy(&models[m]);
    }
}

/* ---- rounding ---- */

CleanTest(trainer_precision, what_is_stored_is_rounded_once)
{
    static const float values[] = { 0.0F, 1.0F, -2.5F, 0.1F, 65504.0F, 1e6F, 1e-9F, -3.14159F };
    enum { COUNT = sizeof(values) / sizeof(values[0]) };
    for (int t = 0; t < 2; t++) {
        uint16_t stored[COUNT];
        float back[COUNT];
        stk_narrow(stored, values, COUNT, narrow_types[t]);
        stk_widen(back, stored, COUNT, narrow_types[t]);
        for (int i = 0; i < COUNT; i++) {
            const float want = t == 0 ? float_of_float16(float16_of_float(values[i]))
                                      : float_of_bfloat16(bfloat16_of_float(values[i]));
            cr_assert_eq(memcmp(&back[i], &want, sizeof(want)), 0);
            const float rounded = stk_rounded(values[i], narrow_types[t]);
            cr_assert_eq(memcmp(&rounded, &want, sizeof(want)), 0);
        }
    }
    cr_assert(stk_rounded(0.1F, STOKER_DTYPE_FLOAT32) == 0.1F);
    cr_assert(stk_rounded(1e-9F, STOKER_DTYPE_FLOAT16) == 0);
    cr_assert(isinf(stk_rounded(1e6F, STOKER_DTYPE_FLOAT16)));
}

/* ---- a trainer ---- */

static stoker_model *network(void)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, 2);
    stk_test_conv(model, "conv1", 8, 1);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    stk_test_conv(model, "conv2", 8, 1);
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_add(model, "sum", "relu1");
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    (void)stoker_model_dropout(model, "dropout", 0.1F);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc1", 16);
    (void)stoker_model_relu(model, "relu3");
    stk_test_linear(model, "fc2", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.1F);
    return stk_test_end(model);
}

/* Back ends and types, each alone. */
struct way {
    const char *backend;
    stoker_dtype type;
};
static const struct way all_ways[] = { { "ref", STOKER_DTYPE_FLOAT16 },
                                       { "ref", STOKER_DTYPE_BFLOAT16 },
                                       { "cpu", STOKER_DTYPE_BFLOAT16 } };

static int ways_here(void)
{
    if (stk_cpu_has_bf16())
        return 3;
    cr_log_info("this CPU has no AVX512_BF16: back end cpu is left out");
    return 2;
}

static stoker_trainer_options options_in(stoker_dtype precision)
{
    return stk_trainer_options(.backend = "ref", .batch_size = BATCH, .learning_rate = 0.02F,
                               .momentum = 0.9F, .seed = 3, .precision = precision);
}

struct data {
    float images[BATCH * PIXELS];
    int64_t labels[BATCH];
    stoker_batch batch;
};

static const stoker_batch *fill(struct data *data)
{
    golden_fill(data->images, (uint64_t)BATCH * PIXELS, 11, 1.0F);
    for (int i = 0; i < BATCH; i++)
        data->labels[i] = i % CLASSES;
    data->batch = golden_images(data->images, data->labels, BATCH, SIDE, SIDE, 2);
    return &data->batch;
}

/* The 16-bit weights are the parameters, rounded. */
static void check_half_weights(const stoker_trainer *trainer, const float *weights)
{
    const uint64_t count = trainer->model->parameter_floats;
    const uint16_t *half_weights = trainer->stage[0]->arenas.half_weights;
    for (uint64_t i = 0; i < count; i++) {
        const uint16_t want = trainer->settings.backend.storage == STOKER_DTYPE_FLOAT16
                                  ? float16_of_float(weights[i])
                                  : bfloat16_of_float(weights[i]);
        cr_assert_eq(half_weights[i], want);
    }
}

static double relative_distance(const float *a, const float *b, uint64_t count, double factor)
{
    double apart = 0;
    double size = 0;
    for (uint64_t i = 0; i < count; i++) {
        const double off = (double)a[i] * factor - (double)b[i];
        apart += off * off;
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(apart / size);
}

CleanTest(trainer_precision, gradients_are_those_of_float32_within_a_hundredth)
{
    static struct data data;
    stoker_model *model = network();
    stoker_trainer *wide = trainer_of(model, options_in(STOKER_DTYPE_NONE));
    stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT32);
    options.accumulate = 2; /* so that a step leaves its gradients */
    stoker_trainer_destroy(&wide);
    wide = trainer_of(model, options);
    cr_assert_eq(stoker_trainer_step(wide, fill(&data), NULL), STOKER_OK);
    for (int t = 0; t < ways_here(); t++) {
        options.backend = all_ways[t].backend;
        options.precision = all_ways[t].type;
        stoker_trainer *narrow = trainer_of(model, options);
        stoker_step step;
        cr_assert_eq(stoker_trainer_step(narrow, fill(&data), &step), STOKER_OK);
        cr_assert(step.loss_scale ==
                  (t == 0 ? 65536.0F / BATCH : 1.0F)); /* only fp16 has a scale */
        const double apart =
            relative_distance(narrow->stage[0]->arenas.gradients, wide->stage[0]->arenas.gradients,
                              model->parameter_floats, 1 / (double)step.loss_scale);
        cr_log_info("%s: gradients are %.5f apart", stoker_dtype_name(all_ways[t].type), apart);
        cr_assert_gt(apart, 1e-6, "something was rounded");
        cr_assert_lt(apart, t == 0 ? 0.01 : 0.05);
        stoker_trainer_destroy(&narrow);
    }
    stoker_trainer_destroy(&wide);
    stoker_model_destroy(&model);
}

CleanTest(trainer_precision, a_network_learns_in_16_bits)
{
    static struct data data;
    stoker_model *model = network();
    for (int t = 0; t < ways_here(); t++) {
        stoker_trainer_options options = options_in(all_ways[t].type);
        options.backend = all_ways[t].backend;
        stoker_trainer *trainer = trainer_of(model, options);
        stoker_step first = { 0 };
        stoker_step last = { 0 };
        cr_assert_eq(stoker_trainer_step(trainer, fill(&data), &first), STOKER_OK);
        check_half_weights(trainer, trainer->stage[0]->arenas.parameters);
        for (int i = 0; i < 25; i++)
            cr_assert_eq(stoker_trainer_step(trainer, fill(&data), &last), STOKER_OK);
        cr_assert_lt(last.loss, first.loss * 0.7);
        check_half_weights(trainer, trainer->stage[0]->arenas.parameters);
        stoker_trainer_destroy(&trainer);
    }
    stoker_model_destroy(&model);
}

/* Let the first BatchNorm's outputs be so small that float16 stores most of them as 0. */
static void make_small(stoker_trainer *trainer)
{
    const struct stk_layer *layer = &trainer->model->layers[2];
    cr_assert_eq(layer->kind, STK_BATCH_NORM);
    const struct stk_parameter *gamma = &trainer->model->parameters[layer->weight];
    for (uint64_t i = 0; i < gamma->elements; i++)
        trainer->stage[0]->arenas.parameters[gamma->offset + i] = 2e-8F;
    trainer->stage[0]->half_weights_from = NULL;
}

/* What is made again is made with the same bits: of values in 16 bits, too, whose zeros may be
 * values that were too small, and let no gradient through. */
CleanTest(trainer_precision, recomputation_changes_no_bit)
{
    static struct data data;
    stoker_model *model = network();
    for (int t = 0; t < ways_here(); t++) {
        stoker_trainer_options options = options_in(all_ways[t].type);
        options.backend = all_ways[t].backend;
        stoker_step step;
        options.loss_scale = 64; /* no update is left out */
        stoker_trainer *plain = trainer_of(model, options);
        options.recompute_batch_norm = true;
        stoker_trainer *again = trainer_of(model, options);
        options.checkpoint_segments = 3;
        stoker_trainer *segments = trainer_of(model, options);
        make_small(plain);
        make_small(again);
        make_small(segments);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(stoker_trainer_step(plain, fill(&data), &step), STOKER_OK);
            cr_assert(step.updated && isfinite(step.loss));
            cr_assert_eq(stoker_trainer_step(again, fill(&data), NULL), STOKER_OK);
            cr_assert_eq(stoker_trainer_step(segments, fill(&data), NULL), STOKER_OK);
        }
        const size_t bytes = model->parameter_floats * sizeof(float);
        cr_assert_eq(
            memcmp(plain->stage[0]->arenas.parameters, again->stage[0]->arenas.parameters, bytes),
            0);
        cr_assert_eq(memcmp(plain->stage[0]->arenas.parameters,
                            segments->stage[0]->arenas.parameters, bytes),
                     0);
        stoker_trainer_destroy(&plain);
        stoker_trainer_destroy(&again);
        stoker_trainer_destroy(&segments);
    }
    stoker_model_destroy(&model);
}

/* An evaluation with the moving average borrows the 16-bit weights; the next pass has its own
 * again. Saved weights are the float32 ones, whatever they are stored in besides. */
static void check_stored_weights(const struct way *way)
{
    static struct data data;
    stoker_model *model = network();
    stoker_trainer_options options = options_in(way->type);
    options.backend = way->backend;
    options.ema_decay = 0.5F;
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_trainer *other = trainer_of(model, options);
    stoker_evaluation sum = { 0 };
    char path[] = "/tmp/stoker_precision_XXXXXX";
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    cr_assert_eq(stoker_trainer_step(trainer, fill(&data), NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_evaluate(trainer, fill(&data), &sum), STOKER_OK);
    check_half_weights(trainer, trainer->stage[0]->ema);
    cr_assert_eq(stoker_trainer_step(trainer, fill(&data), NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_step(other, fill(&data), NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_step(other, fill(&data), NULL), STOKER_OK);
    cr_assert_eq(memcmp(trainer->stage[0]->arenas.parameters, other->stage[0]->arenas.parameters,
                        trainer->memory.parameters),
                 0, "an evaluation between two steps changes nothing");
    check_half_weights(trainer, trainer->stage[0]->arenas.parameters);

    cr_assert_eq(stoker_trainer_step(other, fill(&data), NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_save(trainer, path, NULL, 0, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_load(other, path, NULL, 0, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_step(other, fill(&data), NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_step(trainer, fill(&data), NULL), STOKER_OK);
    cr_assert_eq(memcmp(trainer->stage[0]->arenas.parameters, other->stage[0]->arenas.parameters,
                        trainer->memory.parameters),
                 0, "what was loaded is what is computed with");
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&other);
    stoker_model_destroy(&model);
    char state[sizeof(path) + 80];
    (void)snprintf(state, sizeof(state), "rm -f %s*", path);
    cr_assert_eq(system(state), 0);
}

CleanTest(trainer_precision, the_stored_weights_follow_the_average_and_what_is_loaded)
{
    for (int t = 0; t < ways_here(); t++)
        check_stored_weights(&all_ways[t]);
}

/* The same if it comes before the end of a group that is not whole: that moves the average on. */
CleanTest(trainer_precision, an_average_that_moved_is_stored_again)
{
    static struct data data;
    stoker_model *model = network();
    stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT16);
    options.ema_decay = 0.5F;
    options.accumulate = 2;
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_evaluation sum = { 0 };
    stoker_step step;
    cr_assert_eq(stoker_trainer_step(trainer, fill(&data), &step), STOKER_OK);
    cr_assert_eq(stoker_trainer_evaluate(trainer, fill(&data), &sum), STOKER_OK);
    check_half_weights(trainer, trainer->stage[0]->ema);
    cr_assert_eq(stoker_trainer_flush(trainer, &step), STOKER_OK);
    cr_assert(step.updated);
    cr_assert_eq(stoker_trainer_evaluate(trainer, fill(&data), &sum), STOKER_OK);
    check_half_weights(trainer, trainer->stage[0]->ema);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

CleanTest(trainer_precision, predictions_come_out_as_floats)
{
    static struct data data;
    stoker_model *model = network();
    float wide_outputs[BATCH * CLASSES];
    stoker_trainer *wide = trainer_of(model, options_in(STOKER_DTYPE_FLOAT32));
    (void)fill(&data);
    cr_assert_eq(stoker_trainer_predict(wide, data.images, BATCH, wide_outputs), STOKER_OK);
    for (int t = 0; t < 2; t++) {
        float outputs[BATCH * CLASSES];
        stoker_trainer_options options = options_in(narrow_types[t]);
        options.evaluation_batch_size = 3; /* the last part is shorter */
        stoker_trainer *narrow = trainer_of(model, options);
        cr_assert_eq(stoker_trainer_predict(narrow, data.images, BATCH, outputs), STOKER_OK);
        for (int i = 0; i < BATCH * CLASSES; i++)
            cr_assert(stk_rounded(outputs[i], narrow_types[t]) == outputs[i]);
        cr_assert_lt(relative_distance(outputs, wide_outputs, BATCH * CLASSES, 1),
                     t == 0 ? 0.005 : 0.03);
        stoker_trainer_destroy(&narrow);
    }
    stoker_trainer_destroy(&wide);
    stoker_model_destroy(&model);
}

/* Samples that are classified wrongly with certainty have gradients of 1: scaled by 65536 each, as
 * large as PyTorch scales their mean, they would be infinite in float16. */
CleanTest(trainer_precision, the_first_scale_overflows_no_earlier_than_one_of_the_mean)
{
    static struct data data;
    stoker_model *model = stk_test_begin(SIDE, SIDE, 2);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0);
    model = stk_test_end(model);
    for (int i = 0; i < 2; i++) {
        stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT16);
        options.dynamic_loss_scale = true;
        options.loss_scale = i == 0 ? STOKER_LOSS_SCALE_AUTO : STK_LOSS_SCALE_START;
        stoker_trainer *trainer = trainer_of(model, options);
        stoker_step step;
        const stoker_batch *const batch = fill(&data);
        for (int k = 0; k < BATCH * PIXELS; k++)
            ((float *)batch->images.data)[k] *= 100;
        cr_assert_eq(stoker_trainer_step(trainer, batch, &step), STOKER_OK);
        cr_assert_eq(step.skipped, i == 1);
        stoker_trainer_destroy(&trainer);
    }
    stoker_model_destroy(&model);
}

/* A scale that is too large makes infinities: the update is left out and the scale halved. */
CleanTest(trainer_precision, an_overflow_leaves_the_update_out)
{
    static struct data data;
    stoker_model *model = network();
    stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT16);
    options.dynamic_loss_scale = true;
    options.loss_scale = 0x1p23F;
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_step step;
    cr_assert_eq(stoker_trainer_step(trainer, fill(&data), &step), STOKER_OK);
    cr_assert(step.skipped);
    cr_assert_eq(stoker_trainer_updates(trainer), 0);
    for (int i = 0; i < 30 && step.skipped; i++)
        cr_assert_eq(stoker_trainer_step(trainer, fill(&data), &step), STOKER_OK);
    cr_assert(step.updated);
    cr_assert_lt(step.loss_scale, 0x1p22F);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* Every allocation fails once; the trainer that is made at last works. */
CleanTest(trainer_precision, creating_survives_each_allocation_failure)
{
    stoker_model *model = network();
    const stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT16);
    stoker_trainer *trainer = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_trainer_create(&trainer, model, &options, &sweep.error);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* ---- the printed table, and what is refused ---- */

CleanTest(trainer_precision, the_printed_table_shows_what_is_saved)
{
    stoker_model *model = stk_test_mnist();
    stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT16);
    options.batch_size = 64;
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_trainer_memory memory;
    char text[2000];
    stoker_trainer_get_memory(trainer, &memory);
    cr_assert_lt(stoker_trainer_memory_table(trainer, text, sizeof(text)), sizeof(text));
    cr_assert_eq(memory.precision, STOKER_DTYPE_FLOAT16);
    cr_assert_eq(memory.stored_parameters, memory.parameters / 2);
    cr_assert_eq(memory.activations_float32, 27361280);
    cr_assert_eq(memory.activations, 14075904);
    cr_assert_eq(memory.peak, memory.parameters + memory.gradients + memory.optimizer_state +
                                  memory.statistics + memory.stored_parameters +
                                  memory.activations + memory.workspace);
    cr_assert_not_null(strstr(text,
                              "\nactivations                14,075,904  (in float32 27,361,280: "
                              "1.9 times as much)\n"),
                       "%s", text);
    cr_assert_not_null(strstr(text, "\n16-bit parameters           2,399,7"), "%s", text);
    cr_assert_not_null(strstr(text, "batch size 64, activations in float16\n"), "%s", text);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

CleanTest(trainer_precision, what_a_back_end_cannot_do_is_refused_with_a_reason)
{
    stoker_model *model = network();
    static const struct {
        const char *backend;
        stoker_dtype precision;
        bool benchmark, tf32;
        const char *message;
    } cases[] = {
        { "cpu", STOKER_DTYPE_FLOAT16, false, false,
          "precision float16: back end cpu computes in float32 and bfloat16 only" },
        { "cpu", STOKER_DTYPE_FLOAT64, false, false, "float32, float16 and bfloat16 are allowed" },
        { "ref", STOKER_DTYPE_INT64, false, false, "float32, float16 and bfloat16 are allowed" },
        { "auto", (stoker_dtype)100, false, false, "float32, float16 and bfloat16 are allowed" },
        { "cpu", STOKER_DTYPE_FLOAT32, true, false,
          "benchmark: back end cpu has no algorithms to choose from" },
        { "ref", STOKER_DTYPE_FLOAT32, true, false, "benchmark: back end ref" },
        { "cpu", STOKER_DTYPE_FLOAT32, false, true, "tf32: back end cpu rounds no factors" },
        { "ref", STOKER_DTYPE_FLOAT32, false, true, "tf32: back end ref" },
        { "cuda", STOKER_DTYPE_FLOAT16, false, true, "only with precision float32" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_trainer *trainer = NULL;
        stoker_error error = { .code = 0 };
        stoker_trainer_options options = options_in(cases[i].precision);
        options.backend = cases[i].backend;
        options.benchmark = cases[i].benchmark;
        options.tf32 = cases[i].tf32;
        cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, cases[i].message), "%s", error.message);
        cr_assert_null(trainer);
    }
    stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT32);
    options.deterministic = true; /* always so */
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* Whatever machine this is: no runtime is found. What the CPU can do as well it does. */
CleanTest(trainer_precision, without_a_gpu_its_options_are_refused)
{
    stoker_model *model = network();
    static const struct {
        stoker_dtype precision;
        bool benchmark, tf32;
        const char *message;
    } cases[] = {
        { STOKER_DTYPE_FLOAT16, false, false,
          "precision float16: back end cpu computes in float32 and bfloat16 only (leave it out, or "
          "choose back end ref, which is slow), and no GPU is available: " },
        { STOKER_DTYPE_FLOAT32, true, false,
          "benchmark: back end cpu has no algorithms to choose from (leave it out), and no GPU is "
          "available: " },
        { STOKER_DTYPE_FLOAT32, false, true,
          "tf32: back end cpu rounds no factors (leave it out), and no GPU is available: " },
    };
    cr_assert_eq(setenv("STOKER_CUDART", "/nowhere/libcudart.so", 1), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_trainer *trainer = NULL;
        stoker_error error = { .code = 0 };
        stoker_trainer_options options = options_in(cases[i].precision);
        options.backend = "auto";
        options.benchmark = cases[i].benchmark;
        options.tf32 = cases[i].tf32;
        cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_EDEVICE);
        cr_assert_null(trainer);
        cr_assert_eq(strncmp(error.message, cases[i].message, strlen(cases[i].message)), 0, "%s",
                     error.message);
        cr_assert_null(strstr(error.message, stoker_strerror(STOKER_EDEVICE)), "%s", error.message);
    }
    stoker_trainer_options options = options_in(STOKER_DTYPE_FLOAT32);
    options.backend = "auto";
    stoker_trainer *trainer = trainer_of(model, options);
    cr_assert_str_eq(stoker_trainer_backend(trainer), "cpu");
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}
