/* test_schedule.c - the arithmetic of batches against a model that deals positions out one
 * by one, for every small size of everything.
 */
#include "loader/pipeline/order/schedule.h"
#include "support/leaks.h"

enum { COUNT_MAX = 50, RANKS_MAX = 5 };

struct model {
    struct stk_schedule_options options;
    uint8_t dealt[2][COUNT_MAX]; /* per epoch and position: how often over all ranks */
};

static uint64_t start_of(const struct stk_schedule_options *options, uint64_t epoch)
{
    return epoch == options->first_epoch ? options->first_position : 0;
}

/* Batches of an epoch, by dealing. */
static uint64_t model_batches(const struct stk_schedule_options *options, uint64_t epoch)
{
    const uint64_t global = (uint64_t)options->batch_size * options->world_size;
    uint64_t batches = 0;
    for (uint64_t at = start_of(options, epoch); at < options->count; at += global)
        batches += options->last != STOKER_LAST_DROP || at + global <= options->count;
    return batches;
}

/* The rank that takes the position `at` of a global batch. */
static uint64_t owner_of(const struct stk_schedule_options *options, uint64_t at)
{
    return options->deal == STOKER_DEAL_BATCHES ? at / options->batch_size
                                                : at % options->world_size;
}

/* Compare one batch with the model. */
static void check_batch(struct model *model, const struct stk_schedule *schedule, uint64_t batch,
                        uint64_t epoch, uint64_t index)
{
    const struct stk_schedule_options *options = &model->options;
    const struct stk_batch_place place = stk_schedule_place(schedule, batch);
    const uint64_t global = (uint64_t)options->batch_size * options->world_size;
    const uint64_t begin = start_of(options, epoch) + index * global;
    uint32_t rows = 0;
    for (uint64_t at = begin; at < begin + global && at < options->count; at++) {
        if (owner_of(options, at - begin) != options->rank)
            continue;
        cr_assert_eq(at, place.position + (uint64_t)rows * schedule->stride);
        model->dealt[epoch - options->first_epoch][at]++;
        rows++;
    }
    uint32_t padded_to = options->last == STOKER_LAST_PAD ? options->batch_size : rows;
    if (options->last == STOKER_LAST_EVEN) {
        padded_to = 0; /* rank 0's */
        for (uint64_t at = begin; at < begin + global && at < options->count; at++)
            padded_to += owner_of(options, at - begin) == 0;
    }
    cr_assert_eq(place.rows, padded_to);
    cr_assert_eq(place.padded, padded_to - rows);
    cr_assert_eq(owner_of(options, place.position - begin), options->rank); /* if empty, too */
    cr_assert_eq(place.epoch, epoch);
    cr_assert_eq(place.index, index);
    cr_assert_eq(place.last, index + 1 == model_batches(options, epoch));
    const uint64_t after = begin + global < options->count ? begin + global : options->count;
    cr_assert_eq(stk_schedule_position_after(schedule, &place), after);
}

static void check_rank(struct model *model)
{
    struct stk_schedule schedule;
    stk_schedule_init(&schedule, &model->options);
    cr_assert_geq(schedule.batch_spans * schedule.span_rows, model->options.batch_size);
    cr_assert_lt((schedule.batch_spans - 1) * schedule.span_rows, model->options.batch_size);
    uint64_t batch = 0;
    for (uint64_t epoch = model->options.first_epoch; epoch < model->options.epochs; epoch++)
        for (uint64_t i = 0; i < model_batches(&model->options, epoch); i++)
            check_batch(model, &schedule, batch++, epoch, i);
    cr_assert_eq(schedule.batches, batch); /* the same for each rank: the model knows no rank */
}

/* Every position that is not dropped is dealt to one rank, once. */
static void check_dealt(const struct model *model)
{
    const struct stk_schedule_options *options = &model->options;
    const uint64_t global = (uint64_t)options->batch_size * options->world_size;
    for (uint64_t epoch = options->first_epoch; epoch < options->epochs; epoch++) {
        const uint64_t start = start_of(options, epoch);
        const uint64_t whole = start + (options->count - start) / global * global;
        for (uint64_t at = 0; at < options->count; at++) {
            const bool wanted = at >= start && (options->last != STOKER_LAST_DROP || at < whole);
            cr_assert_eq(model->dealt[epoch - options->first_epoch][at], wanted,
                         "count %llu batch %u world %u start %llu position %llu",
                         (unsigned long long)options->count, options->batch_size,
                         options->world_size, (unsigned long long)start, (unsigned long long)at);
        }
    }
}

static void check_world(struct stk_schedule_options options)
{
    struct model model = { .options = options };
    for (uint32_t rank = 0; rank < options.world_size; rank++) {
        model.options.rank = rank;
        check_rank(&model);
    }
    check_dealt(&model);
}

/* Two epochs, the first from each of some positions. */
static void check_starts(struct stk_schedule_options options)
{
    const uint64_t starts[] = { 0, 1, options.count / 2, options.count - 1, options.count };
    options.epochs = 7;
    options.first_epoch = 5;
    for (int last = STOKER_LAST_SHORT; last <= STOKER_LAST_EVEN; last++)
        for (int deal = STOKER_DEAL_POSITIONS; deal <= STOKER_DEAL_BATCHES; deal++)
            for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
                options.last = (stoker_last)last;
                options.deal = (stoker_deal)deal;
                options.first_position = starts[i];
                check_world(options);
            }
}

CleanTest(schedule, deals_like_the_model)
{
    static const uint32_t batch_sizes[] = { 1, 2, 3, 4, 7, 8, 16, 50 };
    static const uint32_t span_rows[] = { 1, 3, 16, 64 };
    for (uint64_t count = 1; count <= COUNT_MAX; count++)
        for (size_t b = 0; b < sizeof(batch_sizes) / sizeof(batch_sizes[0]); b++)
            for (uint32_t world = 1; world <= RANKS_MAX; world++)
                if (batch_sizes[b] <= count && (uint64_t)batch_sizes[b] * world <= count + 20)
                    check_starts((struct stk_schedule_options){
                        .count = count,
                        .batch_size = batch_sizes[b],
                        .world_size = world,
                        .span_rows = span_rows[(count + b) % 4],
                    });
}

/* Deal `batches` batches of each rank to `dealt`; returns the position reached. */
static uint64_t deal_on(const struct stk_schedule_options *given, uint64_t batches, uint8_t *dealt)
{
    struct stk_schedule_options options = *given;
    uint64_t after = options.first_position;
    for (options.rank = 0; options.rank < options.world_size; options.rank++) {
        struct stk_schedule schedule;
        stk_schedule_init(&schedule, &options);
        for (uint64_t b = 0; b < batches && b < schedule.batches; b++) {
            const struct stk_batch_place place = stk_schedule_place(&schedule, b);
            for (uint32_t row = 0; row < place.rows; row++)
                dealt[place.position + (uint64_t)row * schedule.stride]++;
            after = stk_schedule_position_after(&schedule, &place);
        }
    }
    return after;
}

/* Stop with 4 ranks of 8 after any batch, resume with 2 of 16, 3 of 5, or 1 of 1. */
CleanTest(schedule, resumes_with_another_world_size)
{
    static const uint32_t others[][2] = { { 2, 16 }, { 3, 5 }, { 1, 1 }, { 5, 16 } };
    enum { COUNT = 413 };
    for (uint64_t stop = 0; stop <= (COUNT + 31) / 32; stop++)
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            uint8_t dealt[COUNT] = { 0 };
            struct stk_schedule_options options = {
                .count = COUNT, .batch_size = 8, .world_size = 4, .span_rows = 4, .epochs = 1
            };
            options.deal = (stoker_deal)(stop % 2);
            options.first_position = deal_on(&options, stop, dealt);
            options.deal = (stoker_deal)(stop / 2 % 2);
            options.world_size = others[i][0];
            options.batch_size = others[i][1];
            cr_assert_eq(deal_on(&options, UINT64_MAX, dealt), COUNT);
            for (uint32_t at = 0; at < COUNT; at++)
                cr_assert_eq(dealt[at], 1, "stop %llu position %u", (unsigned long long)stop, at);
        }
}

/* The batches of N ranks are those that one rank takes one after the other, the last ones, too. */
CleanTest(schedule, ranks_take_the_passes_of_one)
{
    for (uint64_t count = 1; count <= COUNT_MAX; count++)
        for (uint32_t world = 1; world <= RANKS_MAX; world++) {
            struct stk_schedule one;
            struct stk_schedule mine;
            struct stk_schedule_options options = {
                .count = count, .batch_size = 3, .world_size = 1, .span_rows = 2, .epochs = 1
            };
            options.deal = STOKER_DEAL_BATCHES;
            stk_schedule_init(&one, &options);
            options.world_size = world;
            for (options.rank = 0; options.rank < world; options.rank++) {
                stk_schedule_init(&mine, &options);
                for (uint64_t batch = 0; batch < mine.batches; batch++) {
                    const uint64_t pass = batch * world + options.rank;
                    const struct stk_batch_place found = stk_schedule_place(&mine, batch);
                    const struct stk_batch_place wanted = stk_schedule_place(&one, pass);
                    cr_assert_eq(mine.stride, one.stride);
                    cr_assert_eq(found.rows, pass < one.batches ? wanted.rows : 0);
                    cr_assert(found.rows == 0 || found.position == wanted.position);
                }
            }
        }
}

CleanTest(schedule, counts_epochs_without_overflow)
{
    struct stk_schedule schedule;
    struct stk_schedule_options options = {
        .count = 1000000000000, .batch_size = 1, .world_size = 1, .span_rows = 1
    };
    stk_schedule_init(&schedule, &options);
    cr_assert_eq(schedule.batches, UINT64_MAX);
    options.epochs = UINT64_MAX;
    stk_schedule_init(&schedule, &options);
    cr_assert_eq(schedule.batches, UINT64_MAX);
    options.epochs = 3;
    stk_schedule_init(&schedule, &options);
    cr_assert_eq(schedule.batches, 3000000000000U);
    const struct stk_batch_place place = stk_schedule_place(&schedule, 2999999999999U);
    cr_assert_eq(place.epoch, 2);
    cr_assert_eq(place.position, 999999999999U);
    cr_assert(place.last);
    options.first_epoch = 3; /* resumed after the last epoch */
    stk_schedule_init(&schedule, &options);
    cr_assert_eq(schedule.batches, 0);
}

/* Pieces of any size cover each row of each batch once, the incomplete one's, too. */
CleanTest(schedule, parts_of_tickets_cover_each_row_once)
{
    for (uint32_t span_rows = 1; span_rows <= 13; span_rows++)
        for (uint32_t share_rows = 1; share_rows <= span_rows; share_rows++)
            for (uint32_t rows = 0; rows <= 13; rows++) {
                const struct stk_schedule_options options = {
                    .count = 100,
                    .batch_size = 13,
                    .world_size = 1,
                    .span_rows = span_rows,
                    .share_rows = share_rows,
                };
                struct stk_schedule schedule;
                stk_schedule_init(&schedule, &options);
                uint32_t next = 0;
                for (uint64_t span = 0; span < schedule.batch_spans; span++)
                    for (uint32_t share = 0; share < schedule.span_shares; share += 2) {
                        const struct stk_rows found =
                            stk_schedule_rows(&schedule, rows, 7 * schedule.batch_spans + span,
                                              share, share + 1 < schedule.span_shares ? 2 : 1);
                        cr_assert(found.count == 0 || found.first == next);
                        cr_assert_leq(found.count, 2 * share_rows);
                        next += found.count;
                    }
                cr_assert_eq(next, rows);
            }
}
