/* test_mix.c - mixes of data sets: shares and ids as a loader delivers them; weights that change
 * while it runs, and a state that carries the changes to other ranks; specs; and what is refused,
 * with a word about why.
 */
#include <math.h>

#include "support/files/folder_files.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/drawn_set.h"
#include "support/sets/positions.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"

enum { SOURCES = 5, EPOCH = 610, LAST = 3 * EPOCH, BATCH = 10 };

#define SET(n) "synth:bytes?shape=8&count=" #n

static const char spec_of_five[] =
    "mix:0.5*(" SET(200) ")+0.05*(" SET(9) ")+0.2*(concat:(" SET(30) ")+(" SET(
        50) "))+0.15*(concat:(" SET(40) ")+(" SET(40) "))+0.1*(" SET(300) "?test=0.5)"
                                                                          "?epoch_samples=610";
static const double shares_of_five[SOURCES] = { 0.5, 0.05, 0.2, 0.15, 0.1 };

static stoker_dataset *mix_of(stoker_dataset *const *datasets, uint32_t count,
                              const double *weights)
{
    stoker_dataset *dataset = NULL;
    stoker_mix mix = STOKER_MIX_INIT;
    stoker_error error = { .message = "" };
    mix.weights = weights;
    cr_assert_eq(stoker_dataset_mix(&dataset, datasets, count, &mix, &error), STOKER_OK, "%s",
                 error.message);
    return dataset;
}

/* ---- the data set -------------------------------------------------------------------------- */

CleanTest(mix, has_the_samples_of_its_sources)
{
    static const double weights[] = { 2, 1 };
    stoker_dataset *inner[2] = { dataset_of(SET(4)), dataset_of(SET(3)) };
    stoker_dataset *mix = mix_of(inner, 2, weights);
    uint32_t source = 9;
    uint64_t id = 9;
    uint64_t word;
    stoker_dataset_close(&inner[0]); /* the mix keeps them */
    stoker_dataset_close(&inner[1]);
    cr_assert_eq(stoker_dataset_get_info(mix)->count, 7);
    cr_assert_eq(stoker_mix_source_count(mix), 2);
    for (uint64_t at = 0; at < 7; at++) {
        cr_assert_eq(stoker_mix_source(mix, at, &source, &id), STOKER_OK);
        cr_assert_eq(source, at < 4 ? 0 : 1);
        cr_assert_eq(id, at < 4 ? at : at - 4);
        cr_assert_eq(stk_read_row(mix, at, &word, 8, NULL, NULL), STOKER_OK);
        cr_assert_eq(word, id);
    }
    cr_assert_eq(stoker_mix_source(mix, 7, &source, &id), STOKER_EINVAL);
    cr_assert_eq(stoker_mix_source(NULL, 0, &source, &id), STOKER_EINVAL);
    cr_assert_eq(stoker_mix_source(mix, 5, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_mix_source_count(NULL), 0);
    stoker_dataset_close(&mix);
}

/* With and without the curriculum, any position. */
CleanTest(mix, counts_its_sources)
{
    static const double first[] = { 0.7, 0.3 };
    static const double later[] = { 0, 1 };
    const stoker_mix_change changes[] = { { .position = 1000, .weights = later } };
    stoker_dataset *inner[2] = { dataset_of(SET(4)), dataset_of(SET(3)) };
    stoker_dataset *dataset = NULL;
    stoker_mix mix = STOKER_MIX_INIT;
    uint64_t counts[2];
    stoker_error error = { .message = "" };
    mix.weights = first;
    mix.changes = changes;
    mix.change_count = 1;
    cr_assert_eq(stoker_dataset_mix(&dataset, inner, 2, &mix, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_mix_counts(dataset, 1000, counts, 2, &error), STOKER_OK);
    cr_assert(counts[0] == 700 && counts[1] == 300);
    cr_assert_eq(stoker_mix_counts(dataset, UINT64_C(1) << 62, counts, 2, &error), STOKER_OK);
    cr_assert(counts[0] == 700 && counts[1] == (UINT64_C(1) << 62) - 700);
    cr_assert_eq(stoker_mix_counts(dataset, (UINT64_C(1) << 62) + 1, counts, 2, &error),
                 STOKER_EINVAL);
    cr_assert_eq(stoker_mix_counts(dataset, 5, counts, 3, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_mix_counts(inner[0], 5, counts, 1, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_mix_counts(dataset, 5, NULL, 2, &error), STOKER_EINVAL);
    for (int i = 0; i < 2; i++)
        stoker_dataset_close(&inner[i]);
    stoker_dataset_close(&dataset);
}

static int try_mix(stoker_dataset *const *datasets, uint32_t count, const stoker_mix *mix,
                   stoker_error *error)
{
    stoker_dataset *dataset = NULL;
    *error = (stoker_error){ .message = "" };
    const int rc = stoker_dataset_mix(&dataset, datasets, count, mix, error);
    cr_assert_null(dataset);
    cr_assert_eq(error->code, rc);
    return rc;
}

CleanTest(mix, refuses_weights_that_mean_nothing)
{
    static const struct {
        double weights[2];
        const char *says;
    } rows[] = {
        { { 0, 0 }, "all weights are 0" },
        { { 1, -0.5 }, "weights[1] is -0.5" },
        { { (double)NAN, 1 }, "weights[0] is" },
        { { 1e-7, 1 }, "weights[0] is 1e-07, below 1 / 1048576" },
    };
    stoker_dataset *inner[2] = { dataset_of(SET(4)), dataset_of(SET(3)) };
    stoker_error error;
    stoker_mix mix = STOKER_MIX_INIT;
    cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const stoker_mix_change change = { .position = 3, .weights = rows[i].weights };
        static const double good[] = { 1, 2 };
        mix = (stoker_mix)STOKER_MIX_INIT;
        mix.weights = rows[i].weights;
        cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, rows[i].says), "%s", error.message);
        mix.weights = good;
        mix.changes = &change;
        mix.change_count = 1;
        cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, "changes[0]."), "%s", error.message);
    }
    stoker_dataset_close(&inner[0]);
    stoker_dataset_close(&inner[1]);
}

CleanTest(mix, refuses_changes_epochs_and_sizes_that_mean_nothing)
{
    static const double good[] = { 1, 2 };
    stoker_mix_change changes[] = { { .position = 5, .weights = good },
                                    { .position = 5, .weights = good } };
    stoker_dataset *inner[2] = { dataset_of(SET(4)), dataset_of(SET(3)) };
    stoker_error error;
    stoker_mix mix = STOKER_MIX_INIT;
    mix.weights = good;
    mix.changes = changes;
    mix.change_count = 2;
    cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "changes[1].position 5"), "%s", error.message);
    changes[1].position = (UINT64_C(1) << 62) + 1;
    cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
    changes[1] = (stoker_mix_change){ .position = 6, .weights = NULL };
    cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
    mix.changes = NULL;
    cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
    mix.change_count = 0;
    mix.epoch_samples = 0;
    cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "STOKER_MIX_INIT"), "%s", error.message);
    mix.epoch_samples = 5;
    mix.struct_size = 3;
    cr_assert_eq(try_mix(inner, 2, &mix, &error), STOKER_EINVAL);
    mix.struct_size = sizeof(mix);
    cr_assert_eq(try_mix(inner, 0, &mix, &error), STOKER_EINVAL);
    cr_assert_eq(try_mix(inner, 2, NULL, &error), STOKER_EINVAL);
    stoker_dataset_close(&inner[0]);
    stoker_dataset_close(&inner[1]);
}

/* ---- specs ----------------------------------------------------------------------------------- */

CleanTest(mix, refuses_specs_and_says_where)
{
    static const struct stk_refused_spec rows[] = {
        { "mix:", NULL, STOKER_ESPEC, "WEIGHT*(SPEC)" },
        { "mix:(" SET(3) ")", NULL, STOKER_ESPEC, "WEIGHT*(SPEC)" },
        { "mix:0.5(" SET(3) ")", NULL, STOKER_ESPEC, "WEIGHT*(SPEC)" },
        { "mix:half*(" SET(3) ")", NULL, STOKER_ESPEC, "decimal" },
        { "mix:*(" SET(3) ")", NULL, STOKER_ESPEC, "decimal" },
        { "mix:1*(" SET(3) "", NULL, STOKER_ESPEC, "WEIGHT*(SPEC)" },
        { "mix:1*(" SET(3) ")2*(" SET(3) ")", NULL, STOKER_ESPEC, "'+'" },
        { "mix:1*(" SET(3) ")+", NULL, STOKER_ESPEC, "WEIGHT*(SPEC)" },
        { "mix:-1*(" SET(3) ")+2*(" SET(3) ")", NULL, STOKER_EINVAL, "weights[0] is -1" },
        { "mix:1*(" SET(3) ")?epoch_samples=0", NULL, STOKER_EINVAL, "epoch_samples" },
        { "mix:1*(" SET(3) ")?epoch=3", NULL, STOKER_ESPEC, "epoch" },
        { "mix:1*(" SET(3) ")+1*(synth:bytes?shape=9&count=3)", NULL, STOKER_EMISMATCH, "row" },
        { "mix:1*(mix:1*(" SET(3) "))", NULL, STOKER_ENOTSUP, "mix views instead" },
        { "concat:(mix:1*(" SET(3) "))", NULL, STOKER_ENOTSUP, "mix views instead" },
        { "mix:1*(" SET(9) ")?test=0.5", NULL, STOKER_ENOTSUP, "mix views instead" },
        { "packed:8:(mix:1*(" SET(9) "))", NULL, STOKER_ENOTSUP, "mix packed rows instead" },
        { "mix:1*(synth:digits?count=20&weighted=balanced)", NULL, STOKER_ENOTSUP, "weights" },
        { "mix:1*(nothing:here)", NULL, STOKER_ESPEC, NULL },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

static stoker_loader_options mix_options(void)
{
    return stk_small_options(.batch_size = BATCH, .epochs = 3, .prefetch_batches = 2);
}

/* ---- sources that make their samples, beside some that read them ----------------------------- */

static void write_tokens(struct stk_memory_file *file)
{
    uint16_t tokens[400];
    for (uint16_t i = 0; i < 400; i++)
        tokens[i] = i % 7 == 6 ? 0 : (uint16_t)(i + 1000);
    *file = stk_memory_file((const char *)tokens, sizeof(tokens));
}

/* Sample by sample, and by a loader. */
CleanTest(mix, takes_packed_rows_beside_windows)
{
    struct stk_memory_file file;
    char spec[600];
    char windows[200];
    char rows[200];
    uint16_t found_row[16];
    uint16_t inner_row[16];
    write_tokens(&file);
    (void)snprintf(windows, sizeof(windows), "tokens:%s?length=16&stored=uint16", file.path);
    (void)snprintf(rows, sizeof(rows), "packed:16:(documents:%s?eos=0&stored=uint16)?fields=tokens",
                   file.path);
    (void)snprintf(spec, sizeof(spec), "mix:0.3*(%s)+0.7*(%s)", windows, rows);
    stoker_dataset *inner[2] = { dataset_of(windows), dataset_of(rows) };
    stoker_dataset *dataset = dataset_of(spec);
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    cr_assert_eq(count, stoker_dataset_get_info(inner[0])->count +
                            stoker_dataset_get_info(inner[1])->count);
    stoker_loader_options options = mix_options();
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t seen[2] = { 0 };
    cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
    for (uint32_t row = 0; row < batch.count; row++) {
        uint32_t source;
        uint64_t id;
        const uint16_t *delivered = (const uint16_t *)batch.images.data + 16 * (size_t)row;
        cr_assert_eq(stoker_mix_source(dataset, batch.ids[row], &source, &id), STOKER_OK);
        cr_assert_eq(stk_read_row(inner[source], id, inner_row, 32, NULL, NULL), STOKER_OK);
        cr_assert_eq(stk_read_row(dataset, batch.ids[row], found_row, 32, NULL, NULL), STOKER_OK);
        cr_assert_arr_eq(found_row, inner_row, 32);
        cr_assert_arr_eq(delivered, inner_row, 32);
        seen[source]++;
    }
    cr_assert(seen[0] == 3 && seen[1] == 7);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    for (int i = 0; i < 2; i++)
        stoker_dataset_close(&inner[i]);
    stoker_dataset_close(&dataset);
    close(file.fd);
}

/* ---- loaders --------------------------------------------------------------------------------- */

static struct stk_positions whole;
static struct stk_positions found;

static void check_prefixes(const stoker_dataset *dataset, const uint64_t *ids)
{
    uint64_t counts[SOURCES] = { 0 };
    uint64_t expected[SOURCES];
    for (uint64_t at = 0; at < LAST; at++) {
        uint32_t source;
        cr_assert_eq(stoker_mix_source(dataset, ids[at], &source, NULL), STOKER_OK);
        counts[source]++;
        for (uint32_t i = 0; i < SOURCES; i++)
            cr_assert_lt(fabs((double)counts[i] - shares_of_five[i] * (double)(at + 1)), 1.0 - 1e-9,
                         "source %u after %u samples", i, (unsigned)at + 1);
        cr_assert_eq(stoker_mix_counts(dataset, at + 1, expected, SOURCES, NULL), STOKER_OK);
        cr_assert_arr_eq(counts, expected, sizeof(counts));
    }
}

CleanTest(mix, delivers_every_source_its_share)
{
    stoker_dataset *dataset = dataset_of(spec_of_five);
    const stoker_loader_options options = mix_options();
    uint64_t counts[SOURCES];
    uint64_t again[SOURCES];
    cr_assert_eq(stk_positions_plain(&whole, dataset, options, EPOCH), STOKER_FINISHED, "%s",
                 whole.error.message);
    cr_assert_null(whole.wrong, "%s", whole.wrong);
    cr_assert_eq(whole.filled, LAST);
    check_prefixes(dataset, whole.ids);
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    for (uint32_t at = 0; at < 7; at++) {
        cr_assert_eq(stoker_loader_mix_counts(loader, counts, SOURCES, NULL), STOKER_OK);
        cr_assert_eq(stoker_mix_counts(dataset, at * BATCH, again, SOURCES, NULL), STOKER_OK);
        cr_assert_arr_eq(counts, again, sizeof(counts));
        cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
        stoker_batch_release(&batch);
    }
    cr_assert_eq(stoker_loader_mix_counts(loader, counts, 2, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_mix_counts(NULL, counts, SOURCES, NULL), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(mix, resumes_in_any_world)
{
    stoker_dataset *dataset = dataset_of(spec_of_five);
    stoker_loader_options options = mix_options();
    cr_assert_eq(stk_positions_plain(&whole, dataset, options, EPOCH), STOKER_FINISHED);
    for (uint32_t world = 1; world <= 4; world++) {
        stoker_loader_options later = options;
        options.num_workers = (int32_t)world - 1;
        options.world_size = world;
        options.deal = world % 2 == 0 ? STOKER_DEAL_BATCHES : STOKER_DEAL_POSITIONS;
        later.world_size = 1 + world % 3;
        later.batch_size = 7;
        for (uint32_t stop = 0; stop <= 20; stop += 10) {
            (void)stk_positions_divided(&found, dataset, options, later, EPOCH, stop);
            cr_assert(stk_positions_equal(&whole, &found, 3), "world %u, stop %u: %s", world, stop,
                      found.error.message);
        }
    }
    stoker_dataset_close(&dataset);
}

/* A substitute is of the source that the bad sample was of, so shares stay as they are. */
CleanTest(mix, substitutes_within_a_source)
{
    static const double weights[] = { 1, 1, 2 };
    struct stk_drawn_set drawn[3];
    stoker_dataset *inner[3];
    uint32_t substitutes = 0;
    for (int i = 0; i < 3; i++) {
        inner[i] = stk_drawn_open(&drawn[i]);
        drawn[i].broken = 5 + (uint64_t)i;
    }
    stoker_dataset *dataset = mix_of(inner, 3, weights);
    stoker_loader_options options = mix_options();
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t place = 0;
    options.shuffle = false;
    options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
    options.batch_size = 4;
    stoker_loader *loader = loader_of(dataset, &options);
    for (uint64_t taken[3] = { 0 }; place < 100; stoker_batch_release(&batch)) {
        cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
        for (uint32_t row = 0; row < batch.count; row++, place++) {
            uint32_t source;
            uint64_t id;
            uint64_t before[3];
            uint64_t after[3];
            cr_assert_eq(stoker_mix_source(dataset, batch.ids[row], &source, &id), STOKER_OK);
            cr_assert_eq(stoker_mix_counts(dataset, place, before, 3, NULL), STOKER_OK);
            cr_assert_eq(stoker_mix_counts(dataset, place + 1, after, 3, NULL), STOKER_OK);
            cr_assert_eq(after[source], before[source] + 1, "position %u", (unsigned)place);
            substitutes += id != taken[source] % STK_DRAWN_COUNT;
            taken[source]++;
        }
    }
    cr_assert_eq(substitutes,
                 4); /* one of each source, and of the last one again in its next epoch */
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    for (int i = 0; i < 3; i++)
        stoker_dataset_close(&inner[i]);
}

/* Other orders and weights than those of the mix that the state is of. */
CleanTest(mix, knows_another_mix_by_its_state)
{
    static const char *const others[] = { "mix:0.6*(" SET(20) ")+0.4*(" SET(9) ")",
                                          "mix:0.7*(" SET(20) ")+0.3*(" SET(9) ")?epoch_samples=30",
                                          "concat:(" SET(20) ")+(" SET(9) ")" };
    stoker_dataset *dataset = dataset_of("mix:0.7*(" SET(20) ")+0.3*(" SET(9) ")");
    stoker_loader_options options = mix_options();
    uint8_t state[STOKER_STATE_BYTES];
    stoker_error error = { .message = "" };
    stoker_loader *loader = loader_of(dataset, &options);
    save_and_destroy(&loader, &options, state, sizeof(state));
    stoker_dataset_close(&dataset);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        dataset = dataset_of(others[i]);
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_ESTATE, "%s",
                     others[i]);
        stoker_dataset_close(&dataset);
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

static const double changed[SOURCES] = { 0.1, 0.0, 0.3, 0.3, 0.3 };
static const double changed_again[SOURCES] = { 0.2, 0.2, 0.2, 0.2, 0.2 };
static const stoker_mix_change the_changes[] = { { .position = 403, .weights = changed },
                                                 { .position = 1111, .weights = changed_again } };

static uint8_t state_bytes[4096];
static size_t state_size; /* 0 = from the start */

/* Some batches on each rank, from the state on, which then is the one behind them. Rank by rank, so
 * that each makes its changes. */
static void run_leg(const stoker_dataset *dataset, uint32_t world, uint32_t batches, uint64_t *ids)
{
    stoker_loader_options options = mix_options();
    uint8_t next[sizeof(state_bytes)];
    size_t next_size = 0;
    options.world_size = world;
    options.num_workers = (int32_t)world % 3;
    options.resume = state_size == 0 ? NULL : state_bytes;
    options.resume_size = state_size;
    for (options.rank = 0; options.rank < world; options.rank++) {
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_error error = { .message = "" };
        if (state_size == 0)
            cr_assert_eq(stoker_loader_change_mix(loader, &the_changes[0], &error), STOKER_OK, "%s",
                         error.message);
        for (uint32_t done = 0; done < batches;) {
            uint64_t counts[SOURCES];
            uint64_t first = 0;
            cr_assert_eq(stoker_loader_mix_counts(loader, counts, SOURCES, NULL), STOKER_OK);
            for (uint32_t i = 0; i < SOURCES; i++)
                first += counts[i];
            const int rc = stoker_loader_next(loader, &batch, 20000);
            if (rc == STOKER_EPOCH_END)
                continue;
            if (rc == STOKER_FINISHED)
                break;
            cr_assert_eq(rc, STOKER_OK);
            for (uint32_t row = 0; row < batch.count; row++)
                ids[first + row * world + options.rank] = batch.ids[row];
            stoker_batch_release(&batch);
            if (++done == 2 && state_size == 0)
                cr_assert_eq(stoker_loader_change_mix(loader, &the_changes[1], &error), STOKER_OK,
                             "%s", error.message);
        }
        next[0] = 1;
        cr_assert_eq(stoker_loader_state(loader, next, STOKER_STATE_BYTES, &next_size, NULL),
                     STOKER_ELIMIT);
        cr_assert_eq(next_size, STOKER_STATE_BYTES + 2 * (8 + 8 * SOURCES));
        cr_assert_eq(next[0], 1);
        cr_assert_eq(stoker_loader_state(loader, next, next_size, NULL, NULL), STOKER_OK);
        stoker_loader_destroy(&loader);
    }
    memcpy(state_bytes, next, next_size);
    state_size = next_size;
}

/* Weights that change while ranks run, and a state that is all that the next ones know of it. */
CleanTest(mix, carries_changes_in_its_state)
{
    static uint64_t planned[LAST];
    static uint64_t ids[LAST];
    stoker_dataset *dataset = dataset_of(spec_of_five);
    state_size = 0;
    run_leg(dataset, 1, UINT32_MAX, planned);
    for (uint64_t at = 0; at < LAST; at++) { /* source 1 has no weight */
        uint32_t source;
        cr_assert_eq(stoker_mix_source(dataset, planned[at], &source, NULL), STOKER_OK);
        cr_assert(source != 1 || at < 403 || at >= 1111);
    }
    state_size = 0;
    run_leg(dataset, 2, 4, ids);
    run_leg(dataset, 3, 11, ids);
    run_leg(dataset, 1, 5, ids);
    run_leg(dataset, 5, UINT32_MAX, ids);
    cr_assert_arr_eq(ids, planned, sizeof(ids));
    stoker_dataset_close(&dataset);
}

/* Each prefix of a state with changes, and each flipped bit. */
CleanTest(mix, refuses_a_state_that_is_not_whole)
{
    static uint64_t ids[LAST];
    stoker_dataset *dataset = dataset_of(spec_of_five);
    stoker_loader *loader = NULL;
    stoker_loader_options options = mix_options();
    stoker_error error = { .message = "" };
    state_size = 0;
    run_leg(dataset, 1, 4, ids);
    options.resume = state_bytes;
    for (size_t size = 0; size < state_size; size++) {
        options.resume_size = size;
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error),
                     size == 0 ? STOKER_EINVAL : STOKER_ESTATE, "%zu bytes", size);
        cr_assert(size < STOKER_STATE_BYTES || size % 8 != 0 ||
                      strstr(error.message, "bytes of a state of 160") != NULL,
                  "%s", error.message);
    }
    options.resume_size = state_size;
    for (size_t bit = 0; bit < 8 * state_size; bit++) {
        state_bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_ESTATE,
                     "bit %zu", bit);
        state_bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    stoker_dataset_close(&dataset);
}

/* Back and ahead: the changes stay where they were. */
CleanTest(mix, moves_a_state_with_its_changes)
{
    static uint64_t planned[LAST];
    static uint64_t ids[LAST];
    static const uint64_t positions[] = { 0, 402, 404, 1000 };
    uint8_t taken[sizeof(state_bytes)];
    stoker_dataset *dataset = dataset_of(spec_of_five);
    stoker_error error = { .message = "" };
    state_size = 0;
    run_leg(dataset, 1, UINT32_MAX, planned);
    state_size = 0;
    run_leg(dataset, 1, 4, ids);
    const size_t size = state_size;
    memcpy(taken, state_bytes, size);
    for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
        const uint64_t from = positions[i];
        memcpy(state_bytes, taken, size);
        cr_assert_eq(stoker_state_seek(state_bytes, size, from / EPOCH, from % EPOCH, &error),
                     STOKER_OK, "%s", error.message);
        memset(ids, 0xFF, sizeof(ids));
        run_leg(dataset, 1, UINT32_MAX, ids);
        cr_assert_arr_eq(ids + from, planned + from, (LAST - from) * sizeof(ids[0]));
    }
    taken[100] ^= 1;
    cr_assert_eq(stoker_state_seek(taken, size, 0, 0, &error), STOKER_ESTATE);
    taken[100] ^= 1;
    for (size_t bytes = 0; bytes < size; bytes++)
        cr_assert_eq(stoker_state_seek(taken, bytes, 0, 0, &error), STOKER_ESTATE);
    cr_assert_eq(stoker_state_seek(NULL, size, 0, 0, &error), STOKER_EINVAL);
    stoker_dataset_close(&dataset);
}

static void expect_no_change(stoker_loader *loader, uint64_t position, const double *weights,
                             const char *says)
{
    const stoker_mix_change change = { .position = position, .weights = weights };
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_loader_change_mix(loader, &change, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, says), "%s", error.message);
}

CleanTest(mix, refuses_changes_that_come_too_late)
{
    static const double bad[SOURCES] = { 1, 1, -1, 1, 1 };
    stoker_dataset *plain = dataset_of(SET(40));
    stoker_dataset *dataset = dataset_of(spec_of_five);
    stoker_loader_options options = mix_options();
    stoker_loader *loader = loader_of(plain, &options);
    expect_no_change(loader, 500, changed, "no mix");
    expect_no_change(NULL, 500, changed, "NULL");
    stoker_loader_destroy(&loader);
    loader = loader_of(dataset, &options);
    expect_no_change(loader, 2 * BATCH - 1, changed, "the earliest is 20");
    expect_no_change(loader, 500, bad, "weights[2]");
    expect_no_change(loader, 500, NULL, "NULL");
    expect_no_change(loader, UINT64_MAX, changed, "2^62");
    cr_assert_eq(
        stoker_loader_change_mix(
            loader, &(stoker_mix_change){ .position = 2 * BATCH, .weights = changed }, NULL),
        STOKER_OK);
    expect_no_change(loader, 2 * BATCH, changed, "not above 20");
    cr_assert_eq(stoker_loader_change_mix(loader, NULL, NULL), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    stoker_dataset_close(&plain);
}
