/* test_last.c - the last batch of an epoch: options.last. PAD fills it with the epoch's first
 * samples again, by position modulo count, whatever the rank, the number of workers and the place
 * of a resume; EVEN does, up to the rows of rank 0.
 */
#include "loader/sampler/sampler.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/made_set.h"

enum { COUNT = 53, BATCH = 6, EPOCHS = 2, BATCHES_MAX = 64 };

static stoker_dataset *dataset;

static void begin(void)
{
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=53&shape=5", NULL, NULL), 0);
}

static void finish(void)
{
    stoker_dataset_close(&dataset);
    stk_test_check_leaks();
}

TestSuite(last, .init = begin, .fini = finish);

static stoker_loader_options padded_options(uint32_t rank, uint32_t world)
{
    return stk_small_options(.batch_size = BATCH, .epochs = EPOCHS, .last = STOKER_LAST_PAD,
                             .rank = rank, .world_size = world);
}

/* The position of a row in a batch of that rank that belongs to the global batch at `start`. */
static uint64_t position_of(const stoker_loader_options *options, uint64_t start, uint32_t row)
{
    return options->deal == STOKER_DEAL_BATCHES
               ? start + (uint64_t)options->rank * BATCH + row
               : start + options->rank + (uint64_t)row * options->world_size;
}

static uint64_t id_at(const stoker_loader_options *options, uint64_t epoch, uint64_t position)
{
    struct stk_sampler sampler;
    struct stk_sampler_order order;
    uint64_t id;
    stk_sampler_init(&sampler, COUNT, options->seed, options->shuffle);
    stk_sampler_begin(&sampler, epoch, &order);
    cr_assert_eq(stk_sampler_ids(&sampler, &order, position % COUNT, 1, 1, &id, NULL), 0);
    return id;
}

/* Rows of each rank's batch that belongs to the global batch at `start`. */
static uint32_t rows_of(const stoker_loader_options *options, uint64_t start)
{
    const uint64_t left = COUNT - start;
    const uint64_t first = options->deal == STOKER_DEAL_BATCHES
                               ? left
                               : (left + options->world_size - 1) / options->world_size;
    return options->last == STOKER_LAST_PAD || first > BATCH ? BATCH : (uint32_t)first;
}

/* The rank's batch `index`, which starts at `start` in its epoch, as the header promises it. */
static void expect_batch(const stoker_batch *batch, const stoker_loader_options *options,
                         uint64_t start)
{
    uint32_t padded = 0;
    cr_assert_eq(batch->count, rows_of(options, start));
    for (uint32_t row = 0; row < batch->count; row++) {
        const uint64_t position = position_of(options, start, row);
        padded += position >= COUNT;
        cr_assert_eq(batch->ids[row], id_at(options, batch->epoch, position), "position %u",
                     (unsigned)position);
    }
    cr_assert_eq(batch->padded, padded);
}

static uint64_t run(const stoker_loader_options *options, uint64_t start,
                    uint64_t hashes[BATCHES_MAX])
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t at = start, batches = 0;
    int rc;
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    while ((rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED) {
        if (rc == STOKER_EPOCH_END) {
            cr_assert_geq(at, (uint64_t)COUNT);
            at = 0;
            continue;
        }
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_error_name(rc));
        expect_batch(&batch, options, at);
        at += (uint64_t)BATCH * options->world_size;
        hashes[batches++] = stk_batch_hash(&batch);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return batches;
}

Test(last, every_rank_gets_equally_many_batches_of_equally_many_rows)
{
    for (uint32_t world = 1; world <= 12; world++) /* a global batch may exceed the data set */
        for (uint32_t rank = 0; rank < world; rank++)
            for (int variant = 0; variant < 8; variant++) {
                uint64_t hashes[2][BATCHES_MAX];
                stoker_loader_options options = padded_options(rank, world);
                options.shuffle = variant % 2 == 1;
                options.deal = (stoker_deal)(variant / 2 % 2);
                options.last = variant < 4 ? STOKER_LAST_PAD : STOKER_LAST_EVEN;
                const uint64_t global = (uint64_t)BATCH * world;
                const uint64_t expected = EPOCHS * ((COUNT + global - 1) / global);
                options.num_workers = 0;
                cr_assert_eq(run(&options, 0, hashes[0]), expected);
                options.num_workers = 3;
                cr_assert_eq(run(&options, 0, hashes[1]), expected);
                cr_assert_arr_eq(hashes[0], hashes[1], expected * sizeof(hashes[0][0]));
            }
}

/* Resumed after any batch, the rest of the run is the same. */
Test(last, a_resume_pads_alike)
{
    for (uint32_t variant = 0; variant < 12; variant++) {
        uint64_t hashes[BATCHES_MAX], rest[BATCHES_MAX];
        const uint32_t world = 1 + variant / 2 % 3;
        stoker_loader_options options = padded_options(world - 1, world);
        options.deal = (stoker_deal)(variant % 2);
        options.last = variant < 6 ? STOKER_LAST_PAD : STOKER_LAST_EVEN;
        const uint64_t batches = run(&options, 0, hashes);
        for (uint64_t stop = 1; stop <= batches; stop++) {
            stoker_loader *loader = NULL;
            stoker_batch batch = STOKER_BATCH_INIT;
            uint8_t state[STOKER_STATE_BYTES];
            stoker_loader_options first = options;
            cr_assert_eq(stoker_loader_create(&loader, dataset, &first, NULL), STOKER_OK);
            for (uint64_t i = 0; i < stop;) {
                const int rc = stoker_loader_next(loader, &batch, 20000);
                i += rc == STOKER_OK;
                stoker_batch_release(&batch);
            }
            save_and_destroy(&loader, &first, state, sizeof(state));
            const uint64_t global = (uint64_t)BATCH * world;
            const uint64_t of_epoch = (COUNT + global - 1) / global;
            const uint64_t start = stop % of_epoch * global;
            cr_assert_eq(run(&first, stop % of_epoch == 0 ? COUNT : start, rest), batches - stop);
            cr_assert_arr_eq(rest, &hashes[stop], (batches - stop) * sizeof(rest[0]));
        }
    }
}

Test(last, an_epoch_that_divides_needs_no_padding)
{
    stoker_loader_options options = padded_options(0, 1);
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    options.batch_size = COUNT;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_batches_per_epoch(loader), 1U);
    cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
    cr_assert_eq(batch.count, (uint32_t)COUNT);
    cr_assert_eq(batch.padded, 0U);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

Test(last, the_others_pad_nothing)
{
    for (int last = STOKER_LAST_SHORT; last <= STOKER_LAST_DROP; last++) {
        stoker_loader_options options = padded_options(0, 1);
        stoker_loader *loader = NULL;
        stoker_batch batch = STOKER_BATCH_INIT;
        uint32_t samples = 0;
        int rc;
        options.last = (stoker_last)last;
        options.epochs = 1;
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
        while ((rc = stoker_loader_next(loader, &batch, 20000)) == STOKER_OK) {
            cr_assert_eq(batch.padded, 0U);
            samples += batch.count;
            stoker_batch_release(&batch);
        }
        cr_assert_eq(rc, STOKER_EPOCH_END);
        cr_assert_eq(samples, last == STOKER_LAST_DROP ? COUNT / BATCH * BATCH : COUNT);
        stoker_loader_destroy(&loader);
    }
}

/* The loader shares the data set: the program's own handle is closed here first. */
Test(last, an_epoch_that_is_shorter_than_a_batch_is_one_batch)
{
    for (int last = STOKER_LAST_SHORT; last <= STOKER_LAST_EVEN; last++)
        for (uint32_t world = 1; world <= 8; world += 7) {
            stoker_dataset *own = NULL;
            stoker_loader_options options = padded_options(world / 2, world);
            stoker_loader *loader = NULL;
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_error error = { .code = 0 };
            options.batch_size = 3 * COUNT;
            cr_assert_eq(stoker_dataset_open(&own, "synth:bytes?count=53&shape=5", NULL, NULL), 0);
            options.last = (stoker_last)last;
            const int rc = stoker_loader_create(&loader, own, &options, &error);
            stoker_dataset_close(&own);
            if (last == STOKER_LAST_DROP) {
                cr_assert_eq(rc, STOKER_EBATCH);
                continue;
            }
            cr_assert_eq(rc, STOKER_OK, "%s", error.message);
            for (int epoch = 0; epoch < EPOCHS; epoch++) {
                cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
                const uint32_t share = (COUNT - options.rank + world - 1) / world;
                cr_assert_eq(batch.count - batch.padded, share);
                cr_assert_eq(batch.count, last == STOKER_LAST_PAD    ? 3U * COUNT
                                          : last == STOKER_LAST_EVEN ? (COUNT + world - 1) / world
                                                                     : share);
                for (uint32_t row = 0; row < batch.count; row++)
                    cr_assert_eq(batch.ids[row],
                                 id_at(&options, (uint64_t)epoch, position_of(&options, 0, row)));
                stoker_batch_release(&batch);
                cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_EPOCH_END);
            }
            stoker_loader_destroy(&loader);
        }
}

Test(last, an_unknown_choice_is_refused)
{
    stoker_loader_options options = padded_options(0, 1);
    stoker_error error = { .code = 0 };
    stoker_loader *loader = NULL;
    options.last = (stoker_last)4;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
    cr_assert(strstr(error.message, "last 4") != NULL, "%s", error.message);
}

/* ---- bad samples among the padding ---- */

static enum stk_made_kind every_fifth_is_broken(uint64_t id)
{
    return id % 5 == 2 ? STK_MADE_BROKEN : STK_MADE_MEMORY;
}

/* Skipped rows leave gaps that are closed: what is left of the padding stays last, and is
 * counted. */
Test(last, padding_that_is_skipped_is_not_counted)
{
    struct stk_made_set set = { .count = COUNT, .row_bytes = 7, .kind_of = every_fifth_is_broken };
    cr_assert(stk_made_set_open(&set));
    for (uint32_t rank = 0; rank < 4; rank++) {
        stoker_loader_options options = padded_options(rank, 4);
        stoker_loader *loader = NULL;
        stoker_batch batch = STOKER_BATCH_INIT;
        uint64_t at = 0;
        options.on_bad_sample = STOKER_ON_BAD_SKIP;
        options.epochs = 1;
        options.num_workers = (int32_t)rank % 3;
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
        while (stoker_loader_next(loader, &batch, 20000) == STOKER_OK) {
            uint32_t count = 0, padded = 0;
            for (uint32_t row = 0; row < BATCH; row++, at += 4) {
                const uint64_t id = id_at(&options, 0, at + rank);
                if (every_fifth_is_broken(id) == STK_MADE_BROKEN)
                    continue;
                cr_assert_eq(batch.ids[count++], id);
                padded += at + rank >= COUNT;
            }
            cr_assert_eq(batch.count, count);
            cr_assert_eq(batch.padded, padded);
            stoker_batch_release(&batch);
        }
        cr_assert_geq(at, (uint64_t)COUNT);
        stoker_loader_destroy(&loader);
    }
    stk_made_set_close(&set);
}
