/* test_memory.c - lives, offsets, what recomputation saves, and choices by budget.
 */
#include "support/trainer/plan_models.h"

#include "support/leaks.h"
#include "trainer/plan/budget.h"

enum { OTHER_BYTES = 100000 };

static struct stk_plan make(const stoker_model *model, struct stk_plan_options options)
{
    struct stk_plan plan;
    cr_assert_eq(stk_plan_make(&plan, model, &options, NULL), STOKER_OK);
    return plan;
}

static uint64_t activation_bytes(const stoker_model *model, struct stk_plan_options options)
{
    struct stk_plan plan = make(model, options);
    const uint64_t bytes = plan.activation_bytes;
    stk_plan_free(&plan);
    return bytes;
}

/* ---- lives and offsets ---- */

/* By each operation, the buffers alive then: none may touch another, and the most bytes alive at
 * one time are what the plan says. */
static void check_by_force(const struct stk_plan *plan)
{
    uint64_t most_bytes = 0;
    for (uint32_t op = 0; op < plan->op_count; op++) {
        uint64_t live_bytes = 0;
        for (uint32_t i = 0; i < plan->buffer_count; i++) {
            const struct stk_buffer *a = &plan->buffers[i];
            if (op < a->first_op || op > a->last_op)
                continue;
            live_bytes += a->bytes;
            cr_assert_leq(a->offset + a->bytes, plan->activation_bytes);
            for (uint32_t j = i + 1; j < plan->buffer_count; j++) {
                const struct stk_buffer *b = &plan->buffers[j];
                if (op >= b->first_op && op <= b->last_op)
                    cr_assert(a->offset + a->bytes <= b->offset ||
                              b->offset + b->bytes <= a->offset);
            }
        }
        most_bytes = live_bytes > most_bytes ? live_bytes : most_bytes;
    }
    cr_assert_eq(most_bytes, plan->live_bytes_max);
    cr_assert_geq(plan->activation_bytes, plan->live_bytes_max);
}

static void check_model(stoker_model *model, double *waste)
{
    for (uint32_t segments = 0; segments <= 6; segments += 2)
        for (int bits = 0; bits < 4; bits++) {
            uint32_t a, b;
            struct stk_plan plan =
                make(model, (struct stk_plan_options){ .batch = 7,
                                                       .train = (bits & 1) != 0,
                                                       .recompute_batch_norm = (bits & 2) != 0,
                                                       .exact_segments = (segments & 4) != 0,
                                                       .checkpoint_segments = segments });
            cr_assert_not(stk_plan_overlaps(&plan, &a, &b));
            check_by_force(&plan);
            const double ratio = (double)plan.activation_bytes / (double)plan.live_bytes_max;
            *waste = ratio > *waste ? ratio : *waste;
            stk_plan_free(&plan);
        }
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan_memory, buffers_alive_at_one_time_never_touch)
{
    double waste = 1;
    check_model(stk_test_mnist(), &waste);
    check_model(stk_test_bn_net(), &waste);
    check_model(stk_test_residual(), &waste);
    check_model(stk_test_depthwise(), &waste);
    check_model(stk_test_awkward(), &waste);
    for (uint64_t seed = 0; seed < 60; seed++)
        check_model(stk_test_random(1000 + seed), &waste);
    cr_log_info("arena against the most bytes alive at one time: at worst %.3f times", waste);
    cr_assert_leq(waste, 1.25);
}

CleanTest(trainer_plan_memory, the_checker_sees_an_overlap)
{
    stoker_model *model = stk_test_bn_net();
    struct stk_plan plan = make(model, (struct stk_plan_options){ .batch = 2, .train = true });
    uint32_t a = 0, b = 0;
    uint32_t seen = 0;
    for (uint32_t i = 1; i < plan.buffer_count; i++) {
        const uint64_t kept = plan.buffers[i].offset;
        plan.buffers[i].offset = plan.buffers[i - 1].offset; /* one after the other is made */
        const bool meet = plan.buffers[i].first_op <= plan.buffers[i - 1].last_op;
        if (meet) {
            cr_assert(stk_plan_overlaps(&plan, &a, &b));
            seen++;
        }
        plan.buffers[i].offset = kept;
    }
    cr_assert_gt(seen, 10);
    cr_assert_not(stk_plan_overlaps(&plan, &a, &b));
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}

/* The most is alive while the pool's gradient is spread: the outputs of both convolutions, the
 * pool's places, its gradient and the one that is being written. */
CleanTest(trainer_plan_memory, the_mnist_example_takes_what_it_must)
{
    enum { BATCH = 64, CONV1 = 26 * 26 * 32, CONV2 = 24 * 24 * 64, POOL = 12 * 12 * 64 };
    stoker_model *model = stk_test_mnist();
    const uint64_t train_bytes = BATCH * (4ULL * (CONV1 + CONV2 + POOL + CONV2) + POOL);
    const uint64_t forward_bytes = BATCH * 4ULL * (CONV1 + CONV2);
    cr_assert_eq(
        activation_bytes(model, (struct stk_plan_options){ .batch = BATCH, .train = true }),
        train_bytes);
    cr_assert_eq(activation_bytes(model, (struct stk_plan_options){ .batch = BATCH }),
                 forward_bytes);
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan_memory, sizes_are_those_of_the_batch)
{
    stoker_model *model = stk_test_bn_net();
    static const uint32_t batches[] = { 1, 3, 64, STK_BATCH_MAX };
    for (int i = 0; i < 4; i++) {
        struct stk_plan plan =
            make(model, (struct stk_plan_options){ .batch = batches[i], .train = true });
        for (uint32_t j = 0; j < plan.buffer_count; j++) {
            const struct stk_buffer *buffer = &plan.buffers[j];
            cr_assert_eq(buffer->bytes % 64, 0);
            cr_assert_eq(buffer->offset % 64, 0);
            cr_assert_gt(buffer->bytes, 0);
            if (buffer->bytes_per_sample == 0)
                cr_assert_eq(buffer->bytes, 128, "16 means, 16 deviations");
            else
                cr_assert_eq(buffer->bytes, (buffer->bytes_per_sample * batches[i] + 63) / 64 * 64);
        }
        stk_plan_free(&plan);
    }
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan_memory, without_reuse_each_buffer_has_its_own_bytes)
{
    stoker_model *model = stk_test_residual();
    struct stk_plan plan =
        make(model, (struct stk_plan_options){ .batch = 2, .train = true, .no_reuse = true });
    uint64_t end = 0;
    for (uint32_t i = 0; i < plan.buffer_count; i++) {
        cr_assert_eq(plan.buffers[i].offset, end);
        end += plan.buffers[i].bytes;
    }
    cr_assert_eq(plan.activation_bytes, end);
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}

/* ---- recomputation ---- */

CleanTest(trainer_plan_memory, a_thousand_layers_train_in_a_tenth)
{
    stoker_model *model = stk_test_chain(1000);
    struct stk_plan_options options = { .batch = 64, .train = true, .exact_segments = true };
    const uint64_t plain_bytes = activation_bytes(model, options);
    uint64_t least_bytes = UINT64_MAX;
    for (options.checkpoint_segments = 2; options.checkpoint_segments <= 512;
         options.checkpoint_segments *= 2) {
        struct stk_plan plan = make(model, options);
        cr_assert_eq(plan.segments, options.checkpoint_segments);
        cr_log_info("1000 linear layers, %u segments: %llu bytes, 1/%.1f of %llu", plan.segments,
                    (unsigned long long)plan.activation_bytes,
                    (double)plain_bytes / (double)plan.activation_bytes,
                    (unsigned long long)plain_bytes);
        least_bytes = plan.activation_bytes < least_bytes ? plan.activation_bytes : least_bytes;
        stk_plan_free(&plan);
    }
    cr_assert_leq(least_bytes, plain_bytes / 10);
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan_memory, each_kind_of_recomputation_saves_and_both_save_more)
{
    stoker_model *models[] = { stk_test_bn_net(), stk_test_residual() };
    for (int i = 0; i < 2; i++) {
        struct stk_plan_options options = { .batch = 16, .train = true };
        const uint64_t plain_bytes = activation_bytes(models[i], options);
        options.recompute_batch_norm = true;
        const uint64_t remade_bytes = activation_bytes(models[i], options);
        options.checkpoint_segments = 4;
        const uint64_t both_bytes = activation_bytes(models[i], options);
        options.recompute_batch_norm = false;
        const uint64_t segments_bytes = activation_bytes(models[i], options);
        cr_log_info("model %d: plain %llu, batch norm again %llu, 4 segments %llu, both %llu", i,
                    (unsigned long long)plain_bytes, (unsigned long long)remade_bytes,
                    (unsigned long long)segments_bytes, (unsigned long long)both_bytes);
        cr_assert_lt(remade_bytes, plain_bytes);
        cr_assert_lt(segments_bytes, plain_bytes);
        cr_assert_leq(both_bytes, segments_bytes);
        cr_assert_leq(both_bytes, remade_bytes);
        cr_assert(i == 0 || both_bytes < remade_bytes); /* model 0 has nearly all in two layers */
        stoker_model_destroy(&models[i]);
    }
}

/* Asking for more segments never takes more: fewer are made then. */
CleanTest(trainer_plan_memory, more_segments_never_take_more)
{
    stoker_model *models[] = { stk_test_chain(200), stk_test_bn_net(), stk_test_residual() };
    for (int m = 0; m < 3; m++) {
        uint64_t before_bytes = UINT64_MAX;
        for (uint32_t segments = 1; segments <= 256; segments *= 2) {
            struct stk_plan plan =
                make(models[m], (struct stk_plan_options){
                                    .batch = 16, .train = true, .checkpoint_segments = segments });
            cr_assert_leq(plan.live_bytes_max, before_bytes);
            cr_assert_leq(plan.segments, segments);
            before_bytes = plan.live_bytes_max;
            stk_plan_free(&plan);
        }
        stoker_model_destroy(&models[m]);
    }
}

/* In a residual network a border between two blocks is crossed by one value; a border within one,
 * by two. */
CleanTest(trainer_plan_memory, borders_lie_between_blocks)
{
    stoker_model *model = stk_test_residual();
    struct stk_plan plan = make(
        model, (struct stk_plan_options){ .batch = 1, .train = true, .checkpoint_segments = 3 });
    uint32_t again_from_blocks = 0;
    cr_assert_eq(plan.segments, 3);
    for (uint32_t i = 0; i < plan.op_count; i++)
        again_from_blocks += plan.ops[i].again;
    cr_assert_gt(again_from_blocks, 10);
    uint64_t stored_bytes = 0; /* alive when the loss is taken, and written before the last block */
    uint32_t loss = 0;
    while (plan.ops[loss].kind != STK_OP_SOFTMAX_CROSS_ENTROPY)
        loss++;
    for (uint32_t i = 0; i < plan.buffer_count; i++)
        if (plan.buffers[i].first_op < loss / 2 && plan.buffers[i].last_op > loss &&
            plan.buffers[i].bytes_per_sample == 16 * 16 * 16 * 4)
            stored_bytes += plan.buffers[i].bytes;
    cr_assert_leq(stored_bytes, 2 * 16 * 16 * 16 * 4U);
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}

/* ---- budgets ---- */

static int bytes_with_others(void *context, const struct stk_plan *plan, uint64_t *bytes,
                             stoker_error *error)
{
    (void)error;
    ++*(uint32_t *)context;
    *bytes = plan->activation_bytes + OTHER_BYTES;
    return STOKER_OK;
}

static int no_bytes(void *context, const struct stk_plan *plan, uint64_t *bytes,
                    stoker_error *error)
{
    (void)context;
    (void)plan;
    (void)bytes;
    (void)error;
    return STOKER_EDEVICE;
}

CleanTest(trainer_plan_memory, a_budget_adds_as_little_recomputation_as_it_can)
{
    stoker_model *model = stk_test_residual();
    static const struct stk_plan_options ladder[] = {
        { .batch = 8, .train = true },
        { .batch = 8, .train = true, .recompute_batch_norm = true },
        { .batch = 8, .train = true, .recompute_batch_norm = true, .checkpoint_segments = 2 },
        { .batch = 8, .train = true, .recompute_batch_norm = true, .checkpoint_segments = 4 },
    };
    uint64_t before_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t asked = 0;
        uint64_t bytes = 0;
        struct stk_plan_options options = ladder[0];
        const struct stk_budget budget = { .limit_bytes =
                                               activation_bytes(model, ladder[i]) + OTHER_BYTES,
                                           .bytes_of = bytes_with_others,
                                           .context = &asked };
        cr_assert_lt(budget.limit_bytes, before_bytes, "each step of this network saves");
        before_bytes = budget.limit_bytes;
        cr_assert_eq(stk_budget_fit(&options, model, &budget, &bytes, NULL), STOKER_OK);
        cr_assert_eq(bytes, budget.limit_bytes);
        cr_assert_eq(asked, i + 1);
        cr_assert_eq(options.recompute_batch_norm, ladder[i].recompute_batch_norm);
        cr_assert_eq(options.checkpoint_segments, ladder[i].checkpoint_segments);
        cr_assert_eq(options.batch, 8);
    }
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan_memory, a_budget_too_small_changes_nothing_and_reports_the_least)
{
    stoker_model *model = stk_test_bn_net();
    for (int train = 0; train < 2; train++) {
        uint32_t asked = 0;
        uint64_t bytes = 0;
        stoker_error error = { .code = 0 };
        struct stk_plan_options options = { .batch = 8, .train = train == 1 };
        const struct stk_budget budget = { .limit_bytes = 1000,
                                           .bytes_of = bytes_with_others,
                                           .context = &asked };
        cr_assert_eq(stk_budget_fit(&options, model, &budget, &bytes, &error), STOKER_ELIMIT);
        cr_assert_not(options.recompute_batch_norm);
        cr_assert_eq(options.checkpoint_segments, 0);
        char least[32];
        (void)snprintf(least, sizeof(least), "least %llu bytes", (unsigned long long)bytes);
        cr_assert_not_null(strstr(error.message, least), "%s", error.message);
        cr_assert_gt(bytes, OTHER_BYTES);
        cr_assert(train == 1 ? asked > 4 : asked == 1);
        cr_assert_eq(stk_budget_largest_batch(&options, model, &budget, 64, &bytes, &error),
                     STOKER_ELIMIT);
        cr_assert_eq(options.batch, 8);
    }
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan_memory, the_largest_batch_fits_and_the_next_does_not)
{
    stoker_model *models[] = { stk_test_mnist(), stk_test_bn_net(), stk_test_residual() };
    static const uint64_t limits[] = { 1 << 20, 10000000, 100000000 };
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < 3; i++) {
            uint32_t asked = 0;
            uint64_t bytes = 0;
            struct stk_plan_options options = { .train = true };
            const struct stk_budget budget = { .limit_bytes = limits[i],
                                               .bytes_of = bytes_with_others,
                                               .context = &asked };
            cr_assert_eq(
                stk_budget_largest_batch(&options, models[m], &budget, STK_BATCH_MAX, &bytes, NULL),
                STOKER_OK);
            cr_assert_leq(bytes, limits[i]);
            cr_assert_eq(bytes, activation_bytes(models[m], options) + OTHER_BYTES);
            cr_assert_leq(asked, 20);
            cr_assert_not(options.recompute_batch_norm, "not asked for");
            options.batch++;
            cr_assert_gt(activation_bytes(models[m], options) + OTHER_BYTES, limits[i]);
        }
        stoker_model_destroy(&models[m]);
    }
}

CleanTest(trainer_plan_memory, the_largest_batch_has_a_bound_and_may_need_recomputation)
{
    stoker_model *model = stk_test_bn_net();
    uint32_t asked = 0;
    uint64_t bytes;
    struct stk_plan_options options = { .train = true };
    struct stk_budget budget = { .limit_bytes = UINT64_MAX,
                                 .bytes_of = bytes_with_others,
                                 .context = &asked };
    cr_assert_eq(stk_budget_largest_batch(&options, model, &budget, 1000, &bytes, NULL), STOKER_OK);
    cr_assert_eq(options.batch, 1000);

    options.batch = 1;
    budget.limit_bytes = activation_bytes(model, options) + OTHER_BYTES - 1;
    cr_assert_eq(stk_budget_largest_batch(&options, model, &budget, 1000, &bytes, NULL), STOKER_OK);
    cr_assert_eq(options.batch, 1);
    cr_assert(options.recompute_batch_norm);

    stoker_error error;
    cr_assert_eq(stk_budget_largest_batch(&options, model, &budget, 0, &bytes, &error),
                 STOKER_EINVAL);
    budget.bytes_of = no_bytes;
    cr_assert_eq(stk_budget_largest_batch(&options, model, &budget, 9, &bytes, &error),
                 STOKER_EDEVICE);
    cr_assert_eq(stk_budget_fit(&options, model, &budget, &bytes, &error), STOKER_EDEVICE);
    stoker_model_destroy(&model);
}
