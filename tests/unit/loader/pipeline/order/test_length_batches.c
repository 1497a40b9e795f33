/* test_length_batches.c - batches of a bounded number of values: every sample once, never too much
 * in a batch, the same batches for any number of ranks, and a run resumes at any place with any
 * number of them.
 *
 * Method: documents of random lengths in memory. The sequence of batches of one rank is the
 * reference; whatever ranks and resumes are drawn, the ranks' batches, dealt in turns, must be that
 * sequence.
 */
#include "loader/base/rng.h"
#include "loader/pipeline/order/length_batches.h"
#include "loader/sampler/window.h"
#include "support/runs/opened_loader.h"
#include "support/sets/document_set.h"
#include "support/sweep.h"

enum { DOCUMENTS = 500, LONGEST = 40, BUDGET = 100, ROWS = 16, WINDOW = 64, EPOCHS = 3 };

static void draw_lengths(uint64_t lengths[DOCUMENTS])
{
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        lengths[i] = stk_mix64(i) % (stk_mix64(~i) % LONGEST + 1) + 1;
    for (uint64_t i = 3; i < DOCUMENTS; i += 5)
        lengths[i] = 0;
    lengths[5] = LONGEST;
}

/* ---- the plan of a window --------------------------------------------------------------- */

static void expect_plan(const struct stk_length_rule *rule, uint64_t key, const uint64_t *lengths,
                        uint32_t count)
{
    static uint32_t order[DOCUMENTS];
    static uint32_t room[DOCUMENTS];
    static struct stk_length_cut cuts[DOCUMENTS];
    uint8_t seen[DOCUMENTS] = { 0 };
    uint32_t rows = 0;
    const uint32_t batches = stk_length_plan(rule, key, lengths, count, order, cuts, room);
    cr_assert_leq(batches, count);
    for (uint32_t b = 0; b < batches; b++) {
        uint64_t longest = 0;
        uint64_t sum = 0;
        cr_assert_geq(cuts[b].rows, 1);
        cr_assert_leq(cuts[b].rows, rule->rows_max);
        for (uint32_t i = cuts[b].first; i < cuts[b].first + cuts[b].rows; i++, rows++) {
            cr_assert_lt(order[i], count);
            cr_assert_eq(seen[order[i]]++, 0); /* with the number of rows: each once */
            sum += lengths[order[i]];
            longest = lengths[order[i]] > longest ? lengths[order[i]] : longest;
        }
        cr_assert_leq(stk_length_values(rule, cuts[b].rows, longest, sum), rule->values_max);
    }
    cr_assert_eq(rows, count);
}

CleanTest(length_batches, plans_hold_each_sample_once_within_the_budget)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths);
    for (uint64_t turn = 0; turn < 300; turn++) {
        const struct stk_length_rule rule = { .values_max = LONGEST + 8 + stk_mix64(turn) % 200,
                                              .rows_max = 1 + (uint32_t)(stk_mix64(~turn) % 30),
                                              .multiple = turn % 3 == 2 ? 8 : turn % 3 };
        expect_plan(&rule, turn, lengths, 1 + (uint32_t)(stk_mix64(turn + 999) % DOCUMENTS));
    }
}

/* Padded rows of a batch are about as long as each other; batches come in another order for another
 * key. */
CleanTest(length_batches, rows_of_a_batch_have_about_the_same_length)
{
    uint64_t lengths[DOCUMENTS];
    uint32_t order[DOCUMENTS], room[DOCUMENTS];
    struct stk_length_cut cuts[DOCUMENTS], others[DOCUMENTS];
    const struct stk_length_rule rule = { .values_max = 300, .rows_max = 64, .multiple = 1 };
    uint64_t values = 0;
    uint64_t taken = 0;
    draw_lengths(lengths);
    const uint32_t batches = stk_length_plan(&rule, 1, lengths, DOCUMENTS, order, cuts, room);
    for (uint32_t b = 0; b < batches; b++) {
        uint64_t sum = 0;
        for (uint32_t i = cuts[b].first; i < cuts[b].first + cuts[b].rows; i++)
            sum += lengths[order[i]];
        values += sum;
        taken += stk_length_values(&rule, cuts[b].rows, lengths[order[cuts[b].first]], sum);
    }
    cr_assert_lt((double)(taken - values) / (double)taken, 0.1);
    cr_assert_eq(stk_length_plan(&rule, 2, lengths, DOCUMENTS, order, others, room), batches);
    cr_assert_arr_neq(cuts, others, batches * sizeof(cuts[0]));
}

/* ---- the planner: any ranks, any place ------------------------------------------------------- */

struct fixture {
    stoker_dataset *documents;
    struct stk_sampler sampler;
    struct stk_length_options options;
};

static void begin(struct fixture *fixture, uint64_t multiple, stoker_last last)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths);
    fixture->documents = stk_documents_of(STK_DOCUMENTS_MADE, lengths, DOCUMENTS);
    stk_sampler_init(&fixture->sampler, DOCUMENTS, 11, true);
    fixture->options = (struct stk_length_options){
        .dataset = fixture->documents,
        .sampler = &fixture->sampler,
        .rule = { .values_max = BUDGET, .rows_max = ROWS, .multiple = multiple },
        .window = WINDOW,
        .length = DOCUMENTS,
        .world_size = 1,
        .last = last,
        .epochs = EPOCHS,
    };
}

static struct stk_length_batches *start(const struct stk_length_options *options)
{
    stoker_error error = { .message = "" };
    struct stk_length_batches *lengths = calloc(1, sizeof(*lengths));
    cr_assert_eq(stk_length_batches_start(lengths, options, &error), STOKER_OK, "%s",
                 error.message);
    return lengths;
}

static void stop(struct stk_length_batches *lengths)
{
    stk_length_batches_free(lengths);
    free(lengths);
}

/* One batch of the reference. */
struct reference {
    uint64_t epoch, after, hash;
    uint32_t rows;
    bool last;
};

static uint64_t hash_of(const uint64_t *ids, uint32_t rows)
{
    uint64_t hash = rows;
    for (uint32_t i = 0; i < rows; i++)
        hash = stk_mix64(hash ^ ids[i]);
    return hash;
}

static uint32_t list_batches(const struct fixture *fixture, struct reference *list, uint32_t most)
{
    struct stk_length_batches *lengths = start(&fixture->options);
    stoker_error error;
    uint32_t count = 0;
    uint8_t seen[EPOCHS][DOCUMENTS] = { { 0 } };
    for (uint64_t batch = 0; batch < atomic_load(&lengths->batches); batch++) {
        const struct stk_batch_place *place = stk_length_batches_at(lengths, batch);
        const uint64_t *ids = stk_length_batches_ids(lengths, batch, &error);
        cr_assert_lt(count, most);
        cr_assert_leq(place->room, BUDGET);
        cr_assert_leq(place->values, place->room);
        list[count++] = (struct reference){ place->epoch, place->after, hash_of(ids, place->rows),
                                            place->rows, place->last };
        for (uint32_t i = 0; i < place->rows; i++)
            cr_assert_eq(seen[place->epoch][ids[i]]++, 0);
    }
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint32_t i = 0; i < DOCUMENTS; i++)
            cr_assert_eq(seen[epoch][i], 1); /* each sample once in each epoch */
    stop(lengths);
    return count;
}

static uint32_t find_place(const struct reference *list, uint32_t count, uint64_t epoch,
                           uint64_t position)
{
    uint32_t at = 0;
    while (at < count &&
           (list[at].epoch < epoch || (list[at].epoch == epoch && list[at].after <= position)))
        at++;
    return at;
}

/* `steps` steps of `world_size` ranks from batch `at` of the reference on: each rank has its batch
 * of each. Returns the batch behind them. */
static uint32_t expect_steps(const struct fixture *fixture, const struct reference *list,
                             uint32_t count, uint32_t at, uint32_t world_size, uint32_t steps)
{
    stoker_error error;
    uint32_t end = at;
    for (uint32_t rank = 0; rank < world_size; rank++) {
        struct stk_length_options options = fixture->options;
        const bool fresh = at == 0 || list[at - 1].last;
        options.rank = rank;
        options.world_size = world_size;
        options.first_epoch = list[at].epoch;
        options.first_position = fresh ? 0 : list[at - 1].after;
        struct stk_length_batches *lengths = start(&options);
        uint32_t next = at;
        for (uint32_t step = 0; step < steps && next < count; step++) {
            const struct stk_batch_place *place = stk_length_batches_at(lengths, step);
            uint32_t own = next + rank;
            uint32_t behind = next;
            while (behind < count && behind - next < world_size &&
                   (behind == next || !list[behind - 1].last))
                behind++;
            cr_assert_eq(place->epoch, list[next].epoch);
            cr_assert_eq(place->after, list[behind - 1].after);
            cr_assert_eq(place->last, list[behind - 1].last);
            if (own < behind)
                cr_assert_eq(hash_of(stk_length_batches_ids(lengths, step, &error), place->rows),
                             list[own].hash);
            else
                cr_assert_eq(place->rows, 0);
            next = behind;
        }
        end = next;
        stop(lengths);
    }
    return end;
}

CleanTest(length_batches, resume_at_any_place_with_any_number_of_ranks)
{
    static const struct stk_blocks blocks = { .count = DOCUMENTS,
                                              .block_count = (DOCUMENTS + 16) / 17,
                                              .block_samples = 17 };
    for (uint64_t kind = 0; kind < 3; kind++) {
        struct fixture fixture;
        static struct reference list[EPOCHS * DOCUMENTS];
        begin(&fixture, kind == 1, STOKER_LAST_SHORT);
        if (kind == 2)
            cr_assert_eq(stk_window_make(&fixture.sampler.window, &blocks, 2, 3, 11), 0);
        const uint32_t count = list_batches(&fixture, list, EPOCHS * DOCUMENTS);
        for (uint64_t turn = 0; turn < 40; turn++) {
            uint32_t at = 0;
            for (uint64_t leg = 0; at < count; leg++) {
                const uint64_t drawn = stk_mix64(turn * 1000 + leg);
                at = expect_steps(&fixture, list, count, at, 1 + (uint32_t)(drawn % 7),
                                  1 + (uint32_t)(drawn >> 32) % 40);
            }
            cr_assert_eq(at, count);
        }
        stk_window_free(fixture.sampler.window);
        stoker_dataset_close(&fixture.documents);
    }
}

/* The state of a position inside a batch: what is left of it comes first, so that no sample is lost
 * or comes twice. */
CleanTest(length_batches, start_inside_a_batch)
{
    uint64_t sequence[DOCUMENTS]; /* the samples of epoch 0, by position */
    stoker_error error;
    struct fixture fixture;
    static struct reference list[EPOCHS * DOCUMENTS];
    begin(&fixture, 1, STOKER_LAST_SHORT);
    const uint32_t count = list_batches(&fixture, list, EPOCHS * DOCUMENTS);
    struct stk_length_batches *whole = start(&fixture.options);
    for (uint64_t batch = 0; stk_length_batches_at(whole, batch)->epoch == 0; batch++) {
        const struct stk_batch_place *place = stk_length_batches_at(whole, batch);
        memcpy(sequence + place->position, stk_length_batches_ids(whole, batch, &error),
               place->rows * sizeof(sequence[0]));
    }
    stop(whole);
    for (uint64_t position = 0; position < DOCUMENTS; position++) {
        struct stk_length_options options = fixture.options;
        options.first_position = position;
        struct stk_length_batches *lengths = start(&options);
        const struct stk_batch_place *place = stk_length_batches_at(lengths, 0);
        const uint32_t at = find_place(list, count, 0, position);
        cr_assert_eq(place->rows, list[at].after - position);
        cr_assert_eq(place->after, list[at].after);
        cr_assert_arr_eq(stk_length_batches_ids(lengths, 0, &error), sequence + position,
                         place->rows * sizeof(sequence[0]));
        stop(lengths);
    }
    stoker_dataset_close(&fixture.documents);
}

/* Steps of a rank. Its rows are counted, without those that EVEN adds, and so are those. */
static uint64_t count_rows(const struct stk_length_options *options, uint64_t *rows,
                           uint64_t *padded)
{
    struct stk_length_batches *lengths = start(options);
    uint64_t batch = 0;
    for (; batch < atomic_load(&lengths->batches); batch++) {
        const struct stk_batch_place *place = stk_length_batches_at(lengths, batch);
        cr_assert_geq(place->rows, 1);
        cr_assert(place->padded == 0 || (place->last && place->padded == place->rows));
        *rows += place->rows - place->padded;
        *padded += place->padded;
    }
    stop(lengths);
    return batch;
}

CleanTest(length_batches, drop_and_even_give_all_ranks_equally_many_steps_with_rows)
{
    struct fixture fixture;
    uint64_t padded = 0;
    begin(&fixture, 1, STOKER_LAST_DROP);
    for (uint32_t ranks = 2; ranks <= 5; ranks++)
        for (int last = STOKER_LAST_DROP; last <= STOKER_LAST_EVEN; last += 2) {
            struct stk_length_options options = fixture.options;
            uint64_t steps = 0, rows = 0;
            options.last = (stoker_last)last;
            options.world_size = ranks;
            for (; options.rank < ranks; options.rank++) {
                const uint64_t more = count_rows(&options, &rows, &padded);
                cr_assert(options.rank == 0 || more == steps);
                steps = more;
            }
            if (last == STOKER_LAST_EVEN)
                cr_assert_eq(rows, EPOCHS * DOCUMENTS); /* nothing is left out */
            else
                cr_assert_leq(rows, EPOCHS * DOCUMENTS);
        }
    cr_assert_gt(padded, 0);
    struct stk_length_batches none = { .failed = 0 };
    stoker_error error = { .message = "" };
    fixture.options.world_size = 1000; /* more than an epoch has batches */
    cr_assert_eq(stk_length_batches_start(&none, &fixture.options, &error), STOKER_EBATCH);
    stk_length_batches_free(&none);
    stoker_dataset_close(&fixture.documents);
}

CleanTest(length_batches, nothing_is_left_after_the_last_epoch)
{
    struct fixture fixture;
    begin(&fixture, 1, STOKER_LAST_SHORT);
    fixture.options.first_epoch = EPOCHS - 1;
    fixture.options.first_position = DOCUMENTS;
    struct stk_length_batches *lengths = start(&fixture.options);
    cr_assert_eq(atomic_load(&lengths->batches), 0);
    cr_assert(lengths->first_is_empty);
    cr_assert_eq(stk_length_batches_at(lengths, 0)->rows, 0);
    stop(lengths);
    fixture.options.first_epoch = 0; /* the next epoch follows */
    lengths = start(&fixture.options);
    cr_assert(lengths->first_is_empty);
    cr_assert_eq(stk_length_batches_at(lengths, 0)->epoch, 1);
    stop(lengths);
    stoker_dataset_close(&fixture.documents);
}

/* ---- through a loader ------------------------------------------------------------------------ */

static stoker_loader_options small_options(int32_t workers)
{
    return stk_default_options(.batch_size = ROWS, .shuffle = true, .seed = 11,
                               .num_workers = workers, .epochs = EPOCHS, .batch_values_max = BUDGET,
                               .batch_window = WINDOW);
}

static void expect_rows(const stoker_batch *batch, const uint64_t *lengths)
{
    const stoker_field *field = &batch->fields[0];
    const uint64_t width = batch->count == 0 ? 0 : field->values.shape[1];
    const uint16_t *values = field->values.data;
    cr_assert_leq(batch->count * width, BUDGET);
    for (uint32_t i = 0; i < batch->count; i++) {
        const uint64_t length = (uint64_t)(field->offsets[i + 1] - field->offsets[i]);
        cr_assert_eq(length, lengths[batch->ids[i]]);
        for (uint64_t t = 0; t < length; t++)
            cr_assert_eq(values[i * width + t], stk_document_token(batch->ids[i], t));
    }
}

/* Ends of epochs come where they should, no batch exceeds the budget, and statistics say what
 * padding took. */
static void run_all(enum stk_document_kind kind, stoker_field_form form, int32_t workers)
{
    uint64_t lengths[DOCUMENTS];
    uint64_t values = 0;
    uint64_t room = 0;
    uint32_t ends = 0;
    uint32_t seen[DOCUMENTS] = { 0 };
    stoker_field_options padded = STOKER_FIELD_OPTIONS_INIT;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_stats stats = STOKER_STATS_INIT;
    stoker_loader_options options = small_options(workers);
    draw_lengths(lengths);
    stoker_dataset *documents = stk_documents_of(kind, lengths, DOCUMENTS);
    padded.name = "tokens";
    padded.form = form;
    options.fields = &padded;
    options.field_count = 1;
    stoker_loader *loader = loader_of(documents, &options);
    cr_assert_eq(stoker_loader_batches_per_epoch(loader), 0);
    for (int rc = STOKER_OK; rc != STOKER_FINISHED;) {
        rc = stoker_loader_next(loader, &batch, -1);
        ends += rc == STOKER_EPOCH_END;
        if (rc != STOKER_OK)
            continue;
        cr_assert_eq(batch.epoch, ends);
        expect_rows(&batch, lengths);
        room += batch.count * batch.fields[0].values.shape[1];
        for (uint32_t i = 0; i < batch.count; i++) {
            cr_assert_eq(seen[batch.ids[i]]++, ends);
            values += lengths[batch.ids[i]];
        }
        stoker_batch_release(&batch);
    }
    cr_assert_eq(ends, EPOCHS);
    for (uint32_t i = 0; i < DOCUMENTS; i++)
        cr_assert_eq(seen[i], EPOCHS);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.length_values, values);
    cr_assert_eq(stats.length_room, room);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&documents);
}

CleanTest(length_batches, loaders_deliver_them)
{
    for (int kind = 0; kind < STK_DOCUMENT_KINDS; kind++)
        for (int32_t workers = 0; workers < 4; workers += 3) {
            run_all((enum stk_document_kind)kind, STOKER_FIELD_FORM_PADDED, workers);
            run_all((enum stk_document_kind)kind, STOKER_FIELD_FORM_PADDED_MAX, workers);
        }
}

/* batch_size is only the most that a batch may have: ranks x batch_size may exceed the number of
 * samples. */
CleanTest(length_batches, batch_size_may_exceed_the_samples)
{
    uint64_t lengths[DOCUMENTS];
    stoker_error error = { .message = "" };
    stoker_loader_options options = small_options(0);
    options.batch_size = DOCUMENTS + 1;
    options.last = STOKER_LAST_DROP;
    options.epochs = 1;
    options.world_size = 8;
    draw_lengths(lengths);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_MEMORY, lengths, DOCUMENTS);
    stoker_loader *loader = loader_of(documents, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_geq(batch.count, 1);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    options.world_size = 1000;
    cr_assert_eq(stoker_loader_create(&loader, documents, &options, &error), STOKER_EBATCH, "%s",
                 error.message);
    cr_assert_not_null(strstr(error.message, "fewer batches"), "%s", error.message);
    stoker_dataset_close(&documents);
}

CleanTest(length_batches, states_resume_and_know_how_batches_were_cut)
{
    uint64_t lengths[DOCUMENTS];
    uint8_t state[STOKER_STATE_BYTES];
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error = { .message = "" };
    stoker_loader_options options = small_options(2);
    draw_lengths(lengths);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_MEMORY, lengths, DOCUMENTS);
    stoker_loader *loader = loader_of(documents, &options);
    uint64_t due = 0;
    for (uint32_t i = 0; i < 12; i++) {
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        if (i == 10)
            cr_assert_eq(
                stoker_loader_state(loader, state, sizeof(state), &options.resume_size, NULL),
                STOKER_OK);
        due = hash_of(batch.ids, batch.count);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    options.resume = state;
    loader = loader_of(documents, &options);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_eq(hash_of(batch.ids, batch.count), due);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    options.batch_values_max++;
    cr_assert_eq(stoker_loader_create(&loader, documents, &options, &error), STOKER_ESTATE);
    cr_assert_not_null(strstr(error.message, "batch_values_max"), "%s", error.message);
    stoker_dataset_close(&documents);
}

CleanTest(length_batches, options_that_contradict_are_refused)
{
    uint64_t lengths[DOCUMENTS];
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    draw_lengths(lengths);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_MEMORY, lengths, DOCUMENTS);
    stoker_dataset *digits = dataset_of("synth:digits?count=100");
    stoker_loader_options options = small_options(0);
    options.batch_values_max = LONGEST - 1;
    cr_assert_eq(stoker_loader_create(&loader, documents, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "longest"), "%s", error.message);
    options = small_options(0);
    options.batch_window = 0;
    cr_assert_eq(stoker_loader_create(&loader, documents, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "batch_window"), "%s", error.message);
    options = small_options(0);
    options.last = STOKER_LAST_PAD;
    cr_assert_eq(stoker_loader_create(&loader, documents, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "PAD"), "%s", error.message);
    options = small_options(0);
    cr_assert_eq(stoker_loader_create(&loader, digits, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "varies"), "%s", error.message);
    stoker_dataset_close(&digits);
    stoker_dataset_close(&documents);
}

/* ---- failures -------------------------------------------------------------------------------- */

static _Atomic uint32_t calls_left;

static int failing_lengths(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                           uint64_t *out)
{
    if (atomic_fetch_sub(&calls_left, 1) == 0)
        return STOKER_EIO;
    return stk_document_lengths(self, field, ids, count, out);
}

/* Lengths that are not available end the run with their error, wherever in it, and with any number
 * of workers. */
CleanTest(length_batches, a_failure_of_lengths_ends_the_run)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_CODED, lengths, DOCUMENTS);
    stoker_dataset_ops ops = *documents->ops;
    const stoker_dataset_ops *before = documents->ops;
    ops.lengths = failing_lengths;
    documents->ops = &ops;
    for (uint32_t calls = 0; calls < 20; calls++) {
        stoker_loader *loader = NULL;
        stoker_error error = { .message = "" };
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_loader_options options = small_options((int32_t)(calls % 3));
        atomic_store(&calls_left, calls);
        int rc = stoker_loader_create(&loader, documents, &options, &error);
        for (uint32_t i = 0; i < 500 && (rc == STOKER_OK || rc == STOKER_EPOCH_END); i++) {
            rc = stoker_loader_next(loader, &batch, -1);
            stoker_batch_release(&batch);
        }
        cr_assert_eq(rc, STOKER_EIO, "%u calls: %d", calls, rc);
        stoker_loader_destroy(&loader);
    }
    documents->ops = before;
    stoker_dataset_close(&documents);
}

CleanTest(length_batches, create_survives_each_allocation_failure)
{
    struct fixture fixture;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    begin(&fixture, 1, STOKER_LAST_SHORT);
    while (stk_sweep_next(&sweep)) {
        struct stk_length_batches lengths = { .failed = 0 };
        sweep.rc = stk_length_batches_start(&lengths, &fixture.options, &sweep.error);
        stk_length_batches_free(&lengths);
    }
    stoker_dataset_close(&fixture.documents);
}
