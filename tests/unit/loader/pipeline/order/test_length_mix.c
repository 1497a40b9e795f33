/* test_length_mix.c - batches of a bounded number of values from a mix: shares at the ends of
 * windows, changes of weights, and resumes with any number of ranks.
 */
#include "loader/base/rng.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/document_set.h"

enum {
    SOURCES = 3,
    DOCUMENTS = 90,
    LONGEST = 40,
    BUDGET = 120,
    ROWS = 9,
    WINDOW = 50,
    EPOCH = 420,
    EPOCHS = 2,
    BATCHES_MAX = 600,
    STATE_BYTES = 512
};

static const double weights[SOURCES] = { 5, 3, 2 };
static const double later[SOURCES] = { 1, 0, 4 };
static stoker_dataset *sources[SOURCES], *mix;

static void make_mix(void)
{
    stoker_mix how = STOKER_MIX_INIT;
    stoker_error error = { 0 };
    uint64_t lengths[DOCUMENTS];
    for (uint32_t s = 0; s < SOURCES; s++) {
        const uint64_t count = DOCUMENTS - 20 * s;
        for (uint64_t i = 0; i < count; i++)
            lengths[i] = 1 + stk_mix64(i * SOURCES + s) % LONGEST;
        sources[s] = stk_documents_of(STK_DOCUMENTS_MEMORY, lengths, count);
    }
    how.weights = weights;
    how.epoch_samples = EPOCH;
    cr_assert_eq(stoker_dataset_mix(&mix, sources, SOURCES, &how, &error), STOKER_OK, "%s",
                 error.message);
}

static void close_mix(void)
{
    stoker_dataset_close(&mix);
    for (uint32_t s = 0; s < SOURCES; s++)
        stoker_dataset_close(&sources[s]);
    stk_test_check_leaks();
}

TestSuite(length_mix, .init = make_mix, .fini = close_mix);

static stoker_loader_options options_of(uint32_t rank, uint32_t world_size)
{
    stoker_loader_options options =
        stk_default_options(.batch_size = ROWS, .seed = 5, .epochs = EPOCHS, .num_workers = 2);
    options.prefetch_batches = 2; /* few windows are planned ahead */
    options.rank = rank;
    options.world_size = world_size;
    options.batch_values_max = BUDGET;
    options.batch_window = WINDOW;
    options.device = STOKER_DEVICE_CPU;
    return options;
}

static uint64_t hash_of(const stoker_batch *batch)
{
    uint64_t hash = batch->count;
    for (uint32_t i = 0; i < batch->count; i++)
        hash = stk_mix64(hash ^ batch->ids[i]);
    return hash;
}

/* The next batch, beyond ends of epochs. */
static int next(stoker_loader *loader, stoker_batch *batch)
{
    int rc = stoker_loader_next(loader, batch, -1);
    while (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(loader, batch, -1);
    cr_assert(rc == STOKER_OK || rc == STOKER_FINISHED, "%s", stoker_loader_error(loader)->message);
    return rc;
}

static int change_at(stoker_loader *loader, uint64_t position, stoker_error *error)
{
    return stoker_loader_change_mix(
        loader, &(stoker_mix_change){ .position = position, .weights = later }, error);
}

/* One rank without interruption: the sequence of batches. */
static uint32_t list_batches(uint64_t change, uint64_t hashes[BATCHES_MAX])
{
    const stoker_loader_options options = options_of(0, 1);
    stoker_loader *loader = loader_of(mix, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t samples = 0, counts[SOURCES] = { 0 }, expected[SOURCES];
    uint32_t count = 0;
    if (change > 0)
        cr_assert_eq(change_at(loader, change, NULL), STOKER_OK);
    while (next(loader, &batch) == STOKER_OK) {
        cr_assert_lt(count, BATCHES_MAX);
        hashes[count++] = hash_of(&batch);
        for (uint32_t i = 0; i < batch.count; i++, samples++) {
            uint32_t source;
            cr_assert_eq(stoker_mix_source(mix, batch.ids[i], &source, NULL), STOKER_OK);
            counts[source]++;
        }
        stoker_batch_release(&batch);
        if (samples % EPOCH % WINDOW > 0)
            continue;
        cr_assert_eq(stoker_loader_mix_counts(loader, expected, SOURCES, NULL), STOKER_OK);
        cr_assert_arr_eq(counts, expected, sizeof(counts), "after %d", (int)samples);
    }
    cr_assert_eq(samples, (uint64_t)EPOCH * EPOCHS);
    stoker_loader_destroy(&loader);
    return count;
}

/* Some steps of `world_size` ranks from batch `at` on, resumed with *state unless it is empty.
 * Returns the batch behind them. */
static uint32_t run_leg(const uint64_t *hashes, uint32_t count, uint32_t at, uint32_t world_size,
                        uint32_t steps, uint64_t change, uint8_t state[STATE_BYTES], size_t *bytes)
{
    stoker_loader *ranks[8];
    for (uint32_t r = 0; r < world_size; r++) {
        stoker_loader_options options = options_of(r, world_size);
        options.resume = *bytes > 0 ? state : NULL;
        options.resume_size = *bytes;
        ranks[r] = loader_of(mix, &options);
        if (*bytes == 0)
            cr_assert_eq(change_at(ranks[r], change, NULL), STOKER_OK);
    }
    for (uint32_t step = 0; step < steps && at < count; step++)
        for (uint32_t r = 0; r < world_size; r++) {
            stoker_batch batch = STOKER_BATCH_INIT;
            cr_assert_eq(next(ranks[r], &batch), STOKER_OK);
            if (batch.count > 0) /* the last step of an epoch may have less */
                cr_assert_eq(hash_of(&batch), hashes[at++], "batch %d", (int)at);
            stoker_batch_release(&batch);
        }
    stoker_error error = { 0 };
    cr_assert_eq(stoker_loader_state(ranks[0], state, STATE_BYTES, bytes, &error), STOKER_OK, "%s",
                 error.message);
    for (uint32_t r = 0; r < world_size; r++)
        stoker_loader_destroy(&ranks[r]);
    return at;
}

Test(length_mix, windows_keep_the_shares)
{
    static uint64_t plain[BATCHES_MAX], changed[BATCHES_MAX];
    const uint32_t count = list_batches(0, plain);
    cr_assert_gt(count, EPOCHS * EPOCH / ROWS);
    (void)list_batches(6 * WINDOW + 17, changed);
    cr_assert_arr_neq(plain, changed, sizeof(plain));
}

Test(length_mix, resumes_with_any_number_of_ranks_and_changes)
{
    static uint64_t hashes[BATCHES_MAX];
    const uint64_t change = 6 * WINDOW + 17;
    const uint32_t count = list_batches(change, hashes);
    for (uint64_t turn = 0; turn < 6; turn++) {
        uint8_t state[STATE_BYTES];
        size_t bytes = 0;
        uint32_t at = 0;
        for (uint64_t leg = 0; at < count; leg++) {
            const uint64_t drawn = stk_mix64(turn * 100 + leg);
            at = run_leg(hashes, count, at, 1 + (uint32_t)(drawn % 5),
                         1 + (uint32_t)(drawn >> 32) % 30, change, state, &bytes);
        }
        cr_assert_eq(at, count);
    }
}

/* A window that is planned has its samples: weights change behind it, whatever has been
 * delivered. */
Test(length_mix, a_change_in_a_planned_window_is_refused)
{
    const stoker_loader_options options = options_of(0, 1);
    stoker_loader *loader = loader_of(mix, &options);
    stoker_error error = { 0 };
    cr_assert_eq(change_at(loader, WINDOW - 1, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "the earliest is"), "%s", error.message);
    const uint64_t earliest = strtoull(strrchr(error.message, ' ') + 1, NULL, 10);
    cr_assert(earliest >= WINDOW && earliest % WINDOW == 0, "%s", error.message);
    stoker_loader_destroy(&loader);
}
