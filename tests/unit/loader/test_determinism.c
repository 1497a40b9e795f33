/* test_determinism.c - the order and every byte are a pure function of (seed, epoch, position):
 * each kind of data set, view, hook and order gives the same batches in all 36 settings of
 * support/runs/settings.h, on the stand-in's GPU, too; and the same samples if the run stops at any
 * batch and resumes in another setting, world and batch size; and the same batches if
 * several ranks take them by turns (STOKER_DEAL_BATCHES).
 *
 * A subject is a row of the table in support/sets/subjects.h. If a setting shares the cache,
 * another loader with other rows of the same samples has filled a part of it.
 */
#include "support/leaks.h"
#include "support/runs/settings.h"
#include "support/sets/positions.h"
#include "support/sets/subjects.h"
#ifdef STOKER_TEST_STANDIN_CUDA
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#endif

enum { EPOCHS = 2, BATCH = 7 };

/* ---- batches on a GPU ------------------------------------------------------------ */

#ifdef STOKER_TEST_STANDIN_CUDA
static struct stk_cuda_consumer consumer;

static void gpu_begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    standin_cuda_use_kernels();
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
}

static void gpu_end(void)
{
    stk_cuda_consumer_destroy(&consumer);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0U);
}

static void show(struct stk_shown_batch *shown)
{
    if (shown->batch.device != STOKER_DEVICE_CUDA)
        return;
    cr_assert_eq(stoker_batch_wait_on(&shown->batch, consumer.stream), STOKER_OK);
    stk_cuda_consumer_wait(&consumer);
    shown->batch.device_ids = standin_cuda_view(shown->batch.device_ids);
    for (uint32_t i = 0; i < shown->batch.field_count; i++) {
        stoker_field *field = &shown->fields[i];
        field->values.data = standin_cuda_view(field->values.data);
        if (field->device_offsets != NULL)
            field->device_offsets = standin_cuda_view(field->device_offsets);
    }
}

static const bool gpu = true;
#else
static void gpu_begin(void)
{
}

static void gpu_end(void)
{
}

static void show(struct stk_shown_batch *shown)
{
    (void)shown;
}

static const bool gpu = false;
#endif

/* ---- runs ------------------------------------------------------------------------ */

static struct stk_positions expected;
static struct stk_positions found;
static int expected_rc;

/* The plainest run: one rank, no workers, no cache, pread. */
static void expect_plain(const struct subject *subject, const stoker_dataset *dataset,
                         stoker_loader_options options)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    options.reader = stoker_reader_pread();
    const bool longer = options.order != NULL && options.order->length != STOKER_LENGTH_AUTO;
    expected_rc =
        stk_positions_plain(&expected, dataset, options, longer ? options.order->length : count);
    if ((subject->rules & FAILS) != 0)
        cr_assert(expected_rc < 0 && expected.error.sample != STOKER_NO_SAMPLE, "%s",
                  subject->name);
    else
        cr_assert_eq(expected_rc, STOKER_FINISHED, "%s: %s", subject->name, expected.error.message);
    cr_assert_null(expected.wrong, "%s: %s", subject->name, expected.wrong);
    if ((subject->rules & COMPLETE) != 0)
        cr_assert_eq(expected.filled, EPOCHS * expected.length, "%s", subject->name);
    cr_assert(expected.hashes[0] != expected.hashes[expected.length] || expected.batches == 0,
              "%s: both epochs begin alike", subject->name);
}

/* A loader that AUTO lets share its cache: one of two processes of a job on this node. The job is
 * this process's own. */
static void begin_job(void)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "determinism-%d", (int)getpid());
    (void)setenv("PMIX_NAMESPACE", name, 1);
    (void)setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    (void)setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    (void)setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    (void)setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
}

static void begin(void)
{
    begin_job();
    gpu_begin();
    make_subjects();
}

static void end(void)
{
    remove_subjects();
    gpu_end();
    stk_test_check_leaks();
}

TestSuite(determinism, .init = begin, .fini = end);

/* The other loader of a shared cache, and the most loaders that it has seen there. */
static stoker_loader *sharer;
static uint32_t most_sharers;

/* The other rank's batches are of the same samples, and one of its batches comes first: the cache
 * holds some of them. */
static void begin_sharer(const stoker_dataset *dataset, stoker_loader_options options)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    most_sharers = 0;
    options.rank = 1;
    options.world_size = 2;
    if (options.share_cache == STOKER_SWITCH_OFF)
        return;
    sharer = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_next(sharer, &batch, 20000), STOKER_OK);
    stoker_batch_release(&batch);
}

static void show_beside_sharer(struct stk_shown_batch *shown)
{
    stoker_stats stats = STOKER_STATS_INIT;
    show(shown);
    if (sharer == NULL)
        return;
    cr_assert_eq(stoker_loader_stats(sharer, &stats), STOKER_OK);
    most_sharers = stats.cache_sharers > most_sharers ? stats.cache_sharers : most_sharers;
}

static void expect_same(const struct subject *subject, const stoker_dataset *dataset,
                        const stoker_loader_options *options, uint32_t setting)
{
    stk_positions_begin(&found, dataset, expected.length, show_beside_sharer);
    const int rc = stk_positions_continue(&found, *options, UINT32_MAX);
    cr_assert_eq(rc, expected_rc, "%s, setting %u: %s", subject->name, setting,
                 found.error.message);
    cr_assert_null(found.wrong, "%s, setting %u: %s", subject->name, setting, found.wrong);
    cr_assert_arr_eq(found.hashes, expected.hashes, sizeof(found.hashes), "%s, setting %u",
                     subject->name, setting);
    cr_assert_eq(found.all, expected.all, "%s, setting %u: padding, offsets or shapes differ",
                 subject->name, setting);
}

/* Returns the number of settings in which two loaders shared a cache. */
static uint32_t check_settings(const struct subject *subject, uint32_t number)
{
    const bool few = (subject->rules & FEW) != 0;
    uint32_t shared = 0;
    stoker_loader_options options;
    stoker_dataset *dataset = open_subject(subject, BATCH, EPOCHS, &options);
    expect_plain(subject, dataset, options);
    for (uint32_t setting = few ? number % 3 : 0; setting < STK_SETTINGS; setting += few ? 3 : 1) {
        stk_setting_apply(setting, gpu, dataset, &options);
        begin_sharer(dataset, options);
        expect_same(subject, dataset, &options, setting);
        stoker_loader_destroy(&sharer);
        cr_assert_eq(atomic_load(&hooks.open), 0);
        shared += most_sharers == 2;
    }
    stoker_dataset_close(&dataset);
    return shared;
}

Test(determinism, every_subject_is_the_same_in_every_setting)
{
    for (int i = 0; i < SUBJECTS; i++) {
        if ((subjects[i].rules & GPU) != 0)
            continue;
        const uint32_t shared = check_settings(&subjects[i], (uint32_t)i);
        const bool shares = (subjects[i].rules & SHARES) != 0;
        const uint32_t most =
            subjects[i].rules & PIECES ? STK_SETTINGS_SHARED_PIECES : STK_SETTINGS_SHARED;
        if ((subjects[i].rules & FEW) == 0)
            cr_assert_eq(shared, shares ? most : 0, "%s: %u", subjects[i].name, shared);
    }
}

#ifdef STOKER_TEST_STANDIN_CUDA
/* Without a cache: a batch launches as many kernels as the row says; most mixed ones, one more. */
static void expect_kernels(const struct subject *subject, const stoker_dataset *dataset,
                           stoker_loader_options options)
{
    const uint32_t kernels = subject->images.kernels;
    const bool mixes = options.blend.mixup_alpha > 0.0F || options.blend.cutmix_alpha > 0.0F;
    const uint64_t before = standin_cuda_launches();
    stk_setting_apply(STK_SETTING_GPU, true, dataset, &options);
    expect_same(subject, dataset, &options, STK_SETTING_GPU);
    const uint64_t launches = standin_cuda_launches() - before;
    if (mixes && kernels > 0)
        cr_assert(launches > found.batches * kernels && launches <= found.batches * (kernels + 1),
                  "%s: %u launches", subject->name, (unsigned)launches);
    else
        cr_assert_eq(launches, found.batches * kernels, "%s: %u launches", subject->name,
                     (unsigned)launches);
}

/* Cache AUTO, on the GPU: rows that it keeps come from there in the second epoch. */
static void expect_kept(const struct subject *subject, const stoker_dataset *dataset,
                        stoker_loader_options options)
{
    options.device = STOKER_DEVICE_CUDA;
    options.cache = STOKER_CACHE_AUTO;
    for (options.num_workers = 0; options.num_workers <= 3; options.num_workers += 3) {
        stoker_stats stats = STOKER_STATS_INIT;
        stoker_loader *loader = loader_of(dataset, &options);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        stoker_loader_destroy(&loader);
        cr_assert_eq(stats.cache == STOKER_CACHE_DEVICE, (subject->rules & KEPT) != 0, "%s: %s",
                     subject->name, stats.cache_reason);
        expect_same(subject, dataset, &options, STK_SETTINGS);
    }
}

Test(determinism, every_subject_is_the_same_on_a_gpu)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    for (int i = 0; i < SUBJECTS; i++) {
        stoker_loader_options options;
        stoker_dataset *dataset = open_subject(&subjects[i], BATCH, EPOCHS, &options);
        expect_plain(&subjects[i], dataset, options);
        expect_kept(&subjects[i], dataset, options);
        expect_kernels(&subjects[i], dataset, options);
        const uint32_t step = subjects[i].rules & GPU ? 6 : STK_SETTINGS;
        for (uint32_t n = STK_SETTING_GPU + 1 + (uint32_t)i % 6; n < STK_SETTINGS; n += step) {
            stk_setting_apply(n, true, dataset, &options);
            options.share_cache = STOKER_SWITCH_OFF;
            expect_same(&subjects[i], dataset, &options, n);
        }
        stoker_dataset_close(&dataset);
    }
}
#endif

/* Some batches of one world, one of another, the rest of a third; no world, batch size, setting or
 * way of dealing is that before. Rows that depend on their batch stay in their world. */
static void stop_twice(const struct subject *subject, const stoker_dataset *dataset,
                       stoker_loader_options options, uint32_t stop)
{
    static const struct {
        uint32_t world, batch;
    } legs[] = { { 1, BATCH }, { 2, 5 }, { 3, 4 } };
    const bool moves = (subject->rules & RESUMES) != 0;
    int rc = STOKER_OK;
    stk_positions_begin(&found, dataset, expected.length, show);
    for (uint32_t leg = 0; leg < 3 && rc >= 0 && rc != STOKER_FINISHED; leg++) {
        options.deal = moves ? (stoker_deal)((stop + leg) % 2) : STOKER_DEAL_POSITIONS;
        options.world_size = legs[moves ? leg : 0].world;
        options.batch_size = legs[moves ? leg : 0].batch;
        stk_setting_apply((stop * 7 + leg * 13) % STK_SETTINGS, gpu, dataset, &options);
        rc = stk_positions_continue(&found, options, leg == 0 ? stop : leg == 1 ? 1 : UINT32_MAX);
    }
    cr_assert_eq(rc, STOKER_FINISHED, "%s, stop %u: %s", subject->name, stop, found.error.message);
    cr_assert_null(found.wrong, "%s, stop %u: %s", subject->name, stop, found.wrong);
    if (moves)
        cr_assert(stk_positions_equal(&expected, &found, EPOCHS), "%s, stop %u", subject->name,
                  stop);
    else
        cr_assert_eq(found.all, expected.all, "%s, stop %u", subject->name, stop);
}

Test(determinism, every_subject_resumes_at_every_batch)
{
    for (int i = 0; i < SUBJECTS; i++) {
        stoker_loader_options options;
        if ((subjects[i].rules & GPU) != 0)
            continue;
        stoker_dataset *dataset = open_subject(&subjects[i], BATCH, EPOCHS, &options);
        expect_plain(&subjects[i], dataset, options);
        for (uint32_t stop = 0; stop <= expected.batches; stop += subjects[i].rules & FEW ? 3 : 1)
            stop_twice(&subjects[i], dataset, options, stop);
        stoker_dataset_close(&dataset);
    }
}

/* ---- batches dealt to ranks ------------------------------------------------------ */

enum { PASSES_MAX = 32, WORLD_MAX = 4 };

static uint64_t passes[EPOCHS][PASSES_MAX];
static uint32_t pass_count; /* in an epoch */

/* Batch k of rank r of w is pass k * w + r of its epoch: one rank sets it, several are compared
 * with it. Returns the number of passes taken. */
static uint32_t take_passes(const struct subject *subject, const stoker_dataset *dataset,
                            const stoker_loader_options *options)
{
    static struct stk_shown_batch shown;
    const bool sets = options->world_size == 1;
    stoker_loader *loader = loader_of(dataset, options);
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = STOKER_OK;
    uint32_t taken = 0;
    while (rc != STOKER_FINISHED) {
        rc = stoker_loader_next(loader, &batch, 20000);
        cr_assert_geq(rc, 0, "%s", subject->name);
        if (rc != STOKER_OK)
            continue;
        const uint32_t pass = (uint32_t)batch.index * options->world_size + options->rank;
        stk_shown_begin(&shown, dataset, &batch, show);
        shown.batch.index = 0;
        cr_assert_lt(pass, PASSES_MAX);
        pass_count = sets && pass >= pass_count ? pass + 1 : pass_count;
        cr_assert(sets || pass < pass_count || batch.count == batch.padded, "%s", subject->name);
        if (sets)
            passes[batch.epoch][pass] = stk_shown_hash(&shown);
        else if (pass < pass_count)
            cr_assert_eq(stk_shown_hash(&shown), passes[batch.epoch][pass],
                         "%s: rank %u of %u, pass %u", subject->name, options->rank,
                         options->world_size, pass);
        taken += pass < pass_count;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return taken;
}

Test(determinism, every_subject_is_dealt_by_batches)
{
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        stoker_loader_options options;
        if ((subjects[i].rules & GPU) != 0)
            continue;
        stoker_dataset *dataset = open_subject(&subjects[i], BATCH, EPOCHS, &options);
        pass_count = 0;
        options.num_workers = 0;
        options.reader = stoker_reader_pread();
        cr_assert_eq(take_passes(&subjects[i], dataset, &options), EPOCHS * pass_count);
        options.deal = STOKER_DEAL_BATCHES;
        for (options.world_size = 2; options.world_size <= WORLD_MAX; options.world_size++) {
            uint32_t taken = 0;
            for (options.rank = 0; options.rank < options.world_size; options.rank++) {
                stk_setting_apply((i + options.rank * 13 + options.world_size * 5) % STK_SETTINGS,
                                  gpu, dataset, &options);
                taken += take_passes(&subjects[i], dataset, &options);
            }
            cr_assert_eq(taken, EPOCHS * pass_count, "%s", subjects[i].name);
        }
        stoker_dataset_close(&dataset);
    }
}

/* ---- the list itself ------------------------------------------------------------- */

Test(determinism, any_two_values_of_any_two_dimensions_meet)
{
    static const uint32_t levels[STK_DIMENSIONS] = { 4, 4, 3, 3, 3, 3, 2, 2, 2, 2 };
    for (int one = 0; one < STK_DIMENSIONS; one++)
        for (int other = 0; other < one; other++) {
            bool met[STK_LEVELS_MAX][STK_LEVELS_MAX] = { { false } };
            uint32_t pairs = 0;
            for (uint32_t i = 0; i < STK_SETTINGS; i++) {
                uint32_t at[STK_DIMENSIONS];
                const struct stk_setting setting = stk_setting_of(i);
                memcpy(at, &setting, sizeof(at));
                pairs += met[at[one]][at[other]] ? 0 : 1;
                met[at[one]][at[other]] = true;
            }
            cr_assert_eq(pairs, levels[one] * levels[other], "dimensions %d and %d", one, other);
        }
}
