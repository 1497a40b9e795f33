/* test_orders.c - weights and the caller's own order: each position has its sample; the state
 * of another order is refused; and an order that is wrong says how.
 */
#include "loader/sampler/window.h"
#include "support/runs/opened_loader.h"
#include "support/sets/positions.h"
#include "support/sets/several_set.h"
#include "support/sweep.h"

enum { SAMPLES = 40, EPOCHS = 2, LENGTH_MAX = 70 };

static struct stk_positions oracle;
static struct stk_positions found;

static stoker_loader_options order_options(const stoker_order *order)
{
    return stk_small_options(.batch_size = 8, .order = order);
}

/* That no world, setting or stop changes an order is test_determinism.c's. */
static void run_plain(const stoker_dataset *dataset, stoker_loader_options options, uint64_t length)
{
    cr_assert_eq(stk_positions_plain(&oracle, dataset, options, length), STOKER_FINISHED, "%s",
                 oracle.error.message);
    cr_assert_eq(oracle.filled, EPOCHS * length);
}

/* ---- weights -------------------------------------------------------------------------- */

/* Even ids only, the higher the likelier. */
static void make_weights(double weights[SAMPLES])
{
    for (int i = 0; i < SAMPLES; i++)
        weights[i] = i % 2 == 0 ? i : 0.0;
}

static void expect_weighted(uint64_t length)
{
    uint32_t repeated = 0;
    for (uint64_t at = 0; at < EPOCHS * length; at++) {
        cr_assert_eq(oracle.ids[at] % 2, 0);
        cr_assert_neq(oracle.ids[at], 0);
        repeated += oracle.ids[at] == oracle.ids[at % length];
    }
    cr_assert_lt(repeated, EPOCHS * length, "both epochs are alike");
}

CleanTest(orders, weighted_by_the_options)
{
    double weights[SAMPLES];
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    stoker_order order = STOKER_ORDER_INIT;
    make_weights(weights);
    order.kind = STOKER_ORDER_WEIGHTED;
    order.weights = weights;
    order.weight_count = SAMPLES;
    for (uint64_t length = 0; length <= LENGTH_MAX; length += 35) {
        order.length = length > 0 ? length : STOKER_LENGTH_AUTO;
        run_plain(dataset, order_options(&order), length > 0 ? length : SAMPLES);
        expect_weighted(oracle.length);
    }
    stoker_dataset_close(&dataset);
}

/* The weights of a balanced data set draw the same as these weights in the options. */
CleanTest(orders, weighted_by_the_data_set)
{
    double weights[SAMPLES];
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3&classes=3");
    stoker_dataset *balanced = NULL;
    cr_assert_eq(stoker_dataset_balance(&balanced, dataset, NULL), STOKER_OK);
    stoker_loader_options options = order_options(NULL);
    options.cache = STOKER_CACHE_AUTO;
    run_plain(balanced, options, SAMPLES);
    stoker_order order = STOKER_ORDER_INIT;
    for (int i = 0; i < SAMPLES; i++)
        weights[i] = 1.0 / (i % 3 == 0 ? 14 : 13);
    order.kind = STOKER_ORDER_WEIGHTED;
    order.weights = weights;
    order.weight_count = SAMPLES;
    options.order = &order;
    found = oracle;
    cr_assert_eq(stk_positions_plain(&oracle, dataset, options, SAMPLES), STOKER_FINISHED);
    cr_assert(stk_positions_equal(&oracle, &found, EPOCHS));
    options = order_options(NULL);
    options.shuffle = false; /* then each sample once, in order */
    cr_assert_eq(stk_positions_plain(&oracle, balanced, options, SAMPLES), STOKER_FINISHED);
    for (uint64_t at = 0; at < EPOCHS * SAMPLES; at++)
        cr_assert_eq(oracle.ids[at], at % SAMPLES);
    stoker_dataset_close(&balanced);
    stoker_dataset_close(&dataset);
}

/* Every id is drawn about as often as any other, and some positions repeat one, as a permutation
 * cannot. */
CleanTest(orders, drawn_alike)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    stoker_order order = STOKER_ORDER_INIT;
    uint32_t drawn[SAMPLES] = { 0 };
    order.kind = STOKER_ORDER_UNIFORM;
    order.length = LENGTH_MAX;
    run_plain(dataset, order_options(&order), LENGTH_MAX);
    for (uint64_t at = 0; at < EPOCHS * LENGTH_MAX; at++)
        drawn[oracle.ids[at]]++;
    uint32_t missing = 0;
    for (uint32_t id = 0; id < SAMPLES; id++)
        missing += drawn[id] == 0 ? 1 : 0;
    cr_assert_lt(missing, 5, "%u of 140 draws", missing); /* 1.2 are expected */
    cr_assert_arr_neq(oracle.ids, oracle.ids + LENGTH_MAX, LENGTH_MAX * sizeof(oracle.ids[0]));
    order.weights = (const double[]){ 1.0 };
    stoker_loader_options options = order_options(&order);
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_EINVAL);
    stoker_dataset_close(&dataset);
}

/* ---- the caller's own ------------------------------------------------------------------ */

static int backwards(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
                     uint64_t *ids, stoker_error *error)
{
    (void)error;
    const uint64_t step = *(const uint64_t *)self;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = (epoch + (position + i * stride) * step) % SAMPLES;
    return 0;
}

CleanTest(orders, of_the_caller)
{
    uint64_t step = SAMPLES - 1;
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    stoker_order order = stk_order_of(.kind = STOKER_ORDER_OWN, .ids = backwards, .self = &step);
    for (uint64_t length = 0; length <= LENGTH_MAX; length += 35) {
        order.length = length > 0 ? length : STOKER_LENGTH_AUTO;
        run_plain(dataset, order_options(&order), length > 0 ? length : SAMPLES);
        for (uint64_t at = 0; at < EPOCHS * oracle.length; at++)
            cr_assert_eq(oracle.ids[at],
                         (at / oracle.length + at % oracle.length * step) % SAMPLES);
    }
    stoker_dataset_close(&dataset);
}

/* The rows that fill up the last batch are those of the epoch's first positions. */
CleanTest(orders, padded_at_the_end)
{
    enum { LENGTH = 35, WORLD = 3, BATCH = 8 };
    uint64_t step = 7;
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    stoker_order order =
        stk_order_of(.kind = STOKER_ORDER_OWN, .ids = backwards, .self = &step, .length = LENGTH);
    stoker_loader_options options = order_options(&order);
    options.last = STOKER_LAST_PAD;
    options.world_size = WORLD;
    options.epochs = 1;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        options.rank = rank;
        stoker_loader *loader = loader_of(dataset, &options);
        for (uint64_t index = 0; index < 2; index++) {
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
            cr_assert_eq(batch.count, BATCH);
            for (uint32_t row = 0; row < BATCH; row++) {
                const uint64_t position = (index * BATCH + row) * WORLD + rank;
                cr_assert_eq(batch.ids[row], position % LENGTH * step % SAMPLES);
            }
            stoker_batch_release(&batch);
        }
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}

static int failing(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
                   uint64_t *ids, stoker_error *error)
{
    const int kind = *(const int *)self;
    for (uint32_t i = 0; i < count; i++)
        if (kind != 2 || position + i * stride != 20)
            ids[i] = kind == 1 && epoch == 1 && position + i * stride == 13 ? SAMPLES : 0;
    if (kind == 0)
        (void)snprintf(error->message, sizeof(error->message), "no more\nids");
    return kind == 0 ? STOKER_EIO : kind == 3 ? 7 : 0;
}

CleanTest(orders, that_are_wrong_end_the_run_and_say_why)
{
    static const struct {
        int code;
        const char *words;
    } cases[] = { { STOKER_EIO, ": no more?ids" },
                  { STOKER_EINVAL, "epoch 1, position 13: id 40 of a data set of 40 samples" },
                  { STOKER_EINVAL, "epoch 0, position 20: id 18446744073709551615" },
                  { STOKER_EINVAL, "returned 7" } };
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    for (int kind = 0; kind < 4; kind++)
        for (int32_t workers = 0; workers < 3; workers++) {
            int self = kind;
            stoker_order order =
                stk_order_of(.kind = STOKER_ORDER_OWN, .ids = failing, .self = &self);
            stoker_loader_options options = order_options(&order);
            options.num_workers = workers;
            options.on_bad_sample = STOKER_ON_BAD_SKIP; /* an order is no sample */
            stoker_loader *loader = loader_of(dataset, &options);
            static struct stk_run run;
            run = (struct stk_run){ 0 };
            stk_run_on(loader, &run, UINT32_MAX);
            cr_assert_eq(run.rc, cases[kind].code);
            cr_assert_not_null(strstr(stoker_loader_error(loader)->message, cases[kind].words),
                               "%s", stoker_loader_error(loader)->message);
            stoker_loader_destroy(&loader);
        }
    stoker_dataset_close(&dataset);
}

/* ---- windows of blocks ------------------------------------------------------------------- */

/* A loader that begins anywhere, as any rank of any world: two batches of it. */
static void resume_somewhere(const stoker_dataset *dataset, const stoker_order *order, uint64_t n)
{
    const uint64_t drawn = stk_mix64(n);
    const uint64_t epoch = drawn % EPOCHS;
    const uint64_t position = (drawn >> 8) % SAMPLES;
    stoker_loader_options options = order_options(order);
    uint8_t state[STOKER_STATE_BYTES];
    memcpy(state, oracle.state, sizeof(state));
    cr_assert_eq(stoker_state_seek(state, sizeof(state), epoch, position, NULL), STOKER_OK);
    options.num_workers = n % 64 == 0 ? 2 : 0;
    options.batch_size = 1 + (uint32_t)(drawn >> 16) % 9;
    options.world_size = 1 + (uint32_t)(drawn >> 24) % 7;
    options.rank = (uint32_t)(drawn >> 32) % options.world_size;
    options.deal = (stoker_deal)(drawn >> 40 & 1);
    options.resume = state;
    options.resume_size = sizeof(state);
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    for (uint64_t begun = 0; begun < 2; begun++) {
        const uint64_t first =
            position + begun * options.batch_size * options.world_size; /* of the global batch */
        if (stoker_loader_next(loader, &batch, -1) != STOKER_OK || batch.epoch != epoch)
            break;
        for (uint32_t row = 0; row < batch.count; row++) {
            const uint64_t at = stk_positions_of(&options, first, row);
            cr_assert_eq(batch.ids[row], oracle.ids[epoch * SAMPLES + at], "resume %llu",
                         (unsigned long long)n);
        }
        stoker_batch_release(&batch);
    }
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

CleanTest(orders, windows_resume_anywhere_in_any_world)
{
    enum { RESUMES = 10000 };
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    const stoker_order order = stk_order_of(.kind = STOKER_ORDER_WINDOW, .window_blocks = 2,
                                            .lanes = 3, .block_samples = 4);
    uint8_t seen[SAMPLES] = { 0 };
    run_plain(dataset, order_options(&order), SAMPLES);
    for (uint64_t at = 0; at < SAMPLES; at++)
        cr_assert_eq(seen[oracle.ids[at]]++, 0);
    for (uint64_t n = 0; n < RESUMES; n++)
        resume_somewhere(dataset, &order, n);
    stoker_dataset_close(&dataset);
}

/* The ids of epochs 0 and 1, by the window alone. */
static void expect_window(uint64_t seed, const uint64_t *ids, uint64_t count)
{
    const struct stk_blocks blocks = { .count = SEVERAL_COUNT,
                                       .block_count = SEVERAL_BLOCKS,
                                       .first = several_block_first };
    struct stk_window *window = NULL;
    struct stk_window_line *line = NULL;
    cr_assert_eq(stk_window_make(&window, &blocks, 2, 3, seed), 0);
    for (uint64_t i = 0; i < count; i++) {
        cr_assert_eq(stk_window_begin(window, i / SEVERAL_COUNT, &line), 0);
        cr_assert_eq(ids[i], stk_window_id(window, line, i % SEVERAL_COUNT), "%llu",
                     (unsigned long long)i);
    }
    stk_window_free(window);
}

/* Shuffled, whether asked for windows or not; each source of a mix with its own seed. */
CleanTest(orders, declared_blocks_make_windows)
{
    static struct several_set set;
    cr_assert(several_make(&set));
    stoker_dataset *blocks = several_in_blocks(&set);
    for (int kind = 0; kind < 2; kind++) {
        const stoker_order order =
            stk_order_of(.kind = kind == 0 ? STOKER_ORDER_DEFAULT : STOKER_ORDER_WINDOW,
                         .window_blocks = 2, .lanes = 3);
        stoker_loader_options options = order_options(&order);
        options.shuffle = kind == 0;
        run_plain(blocks, options, SEVERAL_COUNT);
        expect_window(options.seed, oracle.ids, 2 * SEVERAL_COUNT);
    }
    stoker_dataset *mix = NULL;
    stoker_mix shares = STOKER_MIX_INIT;
    uint64_t ids[2][2 * SEVERAL_COUNT], counts[2] = { 0 };
    shares.weights = (const double[]){ 0.5, 0.5 };
    cr_assert_eq(
        stoker_dataset_mix(&mix, (stoker_dataset *[]){ set.dataset, blocks }, 2, &shares, NULL), 0);
    const stoker_order order = stk_order_of(.window_blocks = 2, .lanes = 3);
    const stoker_loader_options options = order_options(&order);
    run_plain(mix, options, 2 * SEVERAL_COUNT);
    for (uint64_t at = 0; at < 4 * SEVERAL_COUNT; at++) {
        const uint64_t source = oracle.ids[at] / SEVERAL_COUNT;
        ids[source][counts[source]++] = oracle.ids[at] % SEVERAL_COUNT;
    }
    cr_assert_eq(counts[1], 2 * SEVERAL_COUNT);
    expect_window(stk_mix64(options.seed ^ stk_mix64(UINT64_C(0x6d697820736574) + 1)), ids[1],
                  counts[1]);
    stoker_dataset_close(&mix);
    stoker_dataset_close(&blocks);
    several_remove(&set);
}

/* What AUTO makes of 40 samples: one block, so that the order is the permutation. */
CleanTest(orders, windows_of_one_block_are_the_permutation)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    const stoker_order order = stk_order_of(.kind = STOKER_ORDER_WINDOW);
    run_plain(dataset, order_options(NULL), SAMPLES);
    found = oracle;
    run_plain(dataset, order_options(&order), SAMPLES);
    cr_assert(stk_positions_equal(&oracle, &found, EPOCHS));
    cr_assert_eq(memcmp(oracle.state, found.state, sizeof(found.state)), 0);
    stoker_dataset_close(&dataset);
}

/* ---- states ------------------------------------------------------------------------------ */

CleanTest(orders, a_state_knows_its_order)
{
    enum { ORDERS = 12, WINDOWS = 8 }; /* windows are the last ones */
    double weights[SAMPLES], others[SAMPLES];
    uint64_t step = 3;
    stoker_order orders[ORDERS];
    uint8_t states[ORDERS][STOKER_STATE_BYTES];
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    make_weights(weights);
    make_weights(others);
    others[39] = 0.5;
    for (int i = 0; i < ORDERS; i++) {
        orders[i] = (stoker_order)STOKER_ORDER_INIT;
        if (i == 0)
            continue;
        if (i >= WINDOWS) {
            orders[i].kind = STOKER_ORDER_WINDOW;
            orders[i].block_samples = i == 9 ? 5 : 4;
            orders[i].window_blocks = i == 10 ? 3 : 2;
            orders[i].lanes = i == 11 ? 1 : 2;
            continue;
        }
        orders[i].kind = i < 4 ? STOKER_ORDER_WEIGHTED : STOKER_ORDER_OWN;
        orders[i].weights = i == 1 || i == 2 ? weights : i == 3 ? others : NULL;
        orders[i].weight_count = i < 4 ? SAMPLES : 0;
        orders[i].length = i == 2 || i == 7 ? 50 : STOKER_LENGTH_AUTO;
        orders[i].ids = i < 4 ? NULL : backwards;
        orders[i].self = &step;
        orders[i].name = i == 5 ? "backwards" : NULL;
        orders[i].fingerprint = i == 6 ? 1 : 0;
    }
    for (int i = 0; i < ORDERS; i++) {
        stoker_loader_options options = order_options(&orders[i]);
        options.shuffle = i >= WINDOWS;
        stoker_loader *loader = loader_of(dataset, &options);
        cr_assert_eq(stoker_loader_state(loader, states[i], sizeof(states[i]), NULL, NULL),
                     STOKER_OK);
        stoker_loader_destroy(&loader);
    }
    for (int from = 0; from < ORDERS; from++)
        for (int to = 0; to < ORDERS; to++) {
            stoker_loader_options options = order_options(to == 0 ? NULL : &orders[to]);
            options.shuffle = false; /* a window has it anyway */
            stoker_loader *loader = NULL;
            stoker_error error = { .message = "" };
            options.resume = states[from];
            options.resume_size = sizeof(states[from]);
            cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error),
                         from == to ? STOKER_OK : STOKER_ESTATE, "%d %d: %s", from, to,
                         error.message);
            cr_assert(from == to || strstr(error.message, "another options.order") != NULL, "%s",
                      error.message);
            stoker_loader_destroy(&loader);
        }
    stoker_dataset_close(&dataset);
}

/* ---- what is refused ------------------------------------------------------------------------ */

CleanTest(orders, that_make_no_sense_are_refused)
{
    double weights[SAMPLES] = { 0 };
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    const struct {
        stoker_order order;
        int code;
        const char *words;
    } cases[] = {
        { { .struct_size = 1 }, STOKER_EINVAL, "order: struct_size 1" },
        { { .struct_size = sizeof(stoker_order), .kind = (stoker_order_kind)5 },
          STOKER_EINVAL,
          "order.kind 5" },
        { { .struct_size = sizeof(stoker_order), .kind = STOKER_ORDER_WEIGHTED },
          STOKER_EINVAL,
          "neither order.weights nor the data set" },
        { { .struct_size = sizeof(stoker_order), .kind = STOKER_ORDER_OWN },
          STOKER_EINVAL,
          "order.ids" },
        { { .struct_size = sizeof(stoker_order), .ids = backwards }, STOKER_EINVAL, "order.ids" },
        { { .struct_size = sizeof(stoker_order), .length = 3 }, STOKER_EINVAL, "order.length 3" },
        { { .struct_size = sizeof(stoker_order) }, STOKER_EINVAL, "order.length 0 is neither" },
        { { .struct_size = sizeof(stoker_order), .length = STOKER_LENGTH_AUTO, .weight_count = 3 },
          STOKER_EINVAL,
          "order.weights needs" },
        { { .struct_size = sizeof(stoker_order),
            .kind = STOKER_ORDER_OWN,
            .ids = backwards,
            .length = (UINT64_C(1) << 62) + 1 },
          STOKER_ELIMIT,
          "2^62" },
        { stk_order_of(.kind = STOKER_ORDER_WINDOW, .length = 50), STOKER_EINVAL,
          "order.length 50" },
        { stk_order_of(.kind = STOKER_ORDER_WINDOW, .window_blocks = 0), STOKER_EINVAL,
          "order.window_blocks 0" },
        { stk_order_of(.lanes = 0), STOKER_EINVAL, "order.lanes 0" },
        { stk_order_of(.lanes = 65537), STOKER_EINVAL, "order.lanes 65537" },
        { stk_order_of(.kind = STOKER_ORDER_WINDOW, .block_samples = 0), STOKER_EINVAL,
          "order.block_samples 0" },
        { stk_order_of(.block_samples = 9), STOKER_EINVAL, "needs order.kind WINDOW" },
        { stk_order_of(.kind = STOKER_ORDER_UNIFORM, .lanes = 8), STOKER_EINVAL, "kind WINDOW" },
    };
    stoker_loader *loader = NULL;
    stoker_error error;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const stoker_loader_options options = order_options(&cases[i].order);
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), cases[i].code, "%s",
                     error.message);
        cr_assert_not_null(strstr(error.message, cases[i].words), "%s", error.message);
    }
    stoker_order order = STOKER_ORDER_INIT;
    order.kind = STOKER_ORDER_UNIFORM;
    order.length = 7; /* shorter than a batch of 8 */
    stoker_loader_options whole = order_options(&order);
    whole.last = STOKER_LAST_DROP;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &whole, &error), STOKER_EBATCH);
    order = stk_order_of(.kind = STOKER_ORDER_WEIGHTED, .weights = weights,
                         .weight_count = SAMPLES - 1);
    const stoker_loader_options options = order_options(&order);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "39 is not the 40"), "%s", error.message);
    order.weight_count = SAMPLES;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "weights are 0"), "%s", error.message);
    weights[5] = -0.25;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "weights[5] is -0.25"), "%s", error.message);
    stoker_dataset_close(&dataset);
}

/* ---- memory -------------------------------------------------------------------------------- */

CleanTest(orders, each_allocation_may_fail)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=40&shape=5x3");
    stoker_dataset *weighted = NULL;
    cr_assert_eq(stoker_dataset_balance(&weighted, dataset, NULL), STOKER_OK);
    stoker_loader *loader = NULL;
    stoker_loader_options options = order_options(NULL);
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    options.num_workers = 0;
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_loader_create(&loader, weighted, &options, &sweep.error);
    cr_assert_gt(sweep.failed, 4);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&weighted);
    stoker_dataset_close(&dataset);
}
