/* test_loader.c - loader and trainer together on a GPU: batches that lie in its memory, copied or
 * kept there, converted there, waited for by events; as `mnist --device cuda` has it. On the
 * stand-in.
 *
 *   loader's stream   rows ──▶ convert ──▶ event ─┐        ┌─▶ refilled
 *   trainer's stream                              └▶ step ─┘
 */
#include "support/trainer/plan_models.h"

#include "loader/base/fault.h"
#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"
#include "trainer/api/trainer.h"
#include "trainer/stage/view.h"
#include <stoker/cuda.h>
#include <stoker/stoker.h>

#include <math.h>

enum { SAMPLES = 70, BATCH = 32, EPOCHS = 2, WEIGHTS_MAX = 20000 };
enum { LOST = 700 /* cudaErrorIllegalAddress */ };

static const float mean = 0.1307F;
static const float deviation = 0.3081F;

static void begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_delay(5);
    standin_cuda_use_kernels();
}

static stoker_model *network(void)
{
    stoker_model *model = stk_test_begin(28, 28, 1);
    (void)stoker_model_conv2d(
        model, "conv1", &(stoker_conv2d){ .filters = 4, .kernel = { 5, 5 }, .stride = { 2, 2 } });
    (void)stoker_model_max_pool2d(model, "pool1", &(stoker_pool2d){ .kernel = { 2, 2 } });
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_dropout(model, "drop", 0.25F);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc1", 10);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

/* One way to train: where batches lie, and what computes. */
struct way {
    const char *backend;
    stoker_device device;
    stoker_cache cache;
    int32_t workers;
    uint32_t epochs;
};

struct outcome {
    int rc;
    float weights[WEIGHTS_MAX];
    uint64_t floats;
    double loss; /* the last epoch's */
    stoker_evaluation test;
};

static stoker_loader_options loading_of(const struct way *way)
{
    return stk_default_options(.device = way->device, .cache = way->cache,
                               .num_workers = way->workers, .batch_size = BATCH,
                               .epochs = way->epochs, .shuffle = true, .seed = 3,
                               .dtype = STOKER_DTYPE_FLOAT32, .mean = &mean, .std = &deviation,
                               .mean_count = 1);
}

static stoker_trainer_options training_of(const struct way *way)
{
    return stk_trainer_options(.backend = way->backend, .threads = 1, .batch_size = BATCH,
                               .seed = 5, .optimizer = STOKER_OPTIMIZER_ADAM,
                               .metrics_interval = 16);
}

static int train(stoker_trainer *trainer, stoker_loader *loader, double *loss)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_step told;
    for (;;) {
        int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_OK) {
            rc = stoker_trainer_step(trainer, &batch, NULL);
            stoker_batch_release(&batch);
        } else if (rc == STOKER_EPOCH_END) {
            rc = stoker_trainer_flush(trainer, &told);
            *loss = told.loss;
        }
        if (rc != STOKER_OK)
            return rc == STOKER_FINISHED ? STOKER_OK : rc;
    }
}

/* All batches are queued before the first is over, and given back at once. */
static int test(stoker_trainer *trainer, stoker_loader *loader, stoker_evaluation *sum)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        rc = stoker_trainer_evaluate(trainer, &batch, NULL);
        stoker_batch_release(&batch);
        if (rc != STOKER_OK)
            return rc;
    }
    return rc == STOKER_EPOCH_END ? stoker_trainer_evaluated(trainer, sum) : rc;
}

static int with_loader(const struct way *way, const stoker_dataset *digits, stoker_trainer *trainer,
                       bool testing, struct outcome *out)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options = loading_of(way);
    if (testing)
        options.epochs = 1;
    int rc = stoker_loader_create(&loader, digits, &options, NULL);
    if (rc == STOKER_OK)
        rc = testing ? test(trainer, loader, &out->test) : train(trainer, loader, &out->loss);
    stoker_loader_destroy(&loader);
    return rc;
}

static int keep_weights(const stoker_trainer *trainer, struct outcome *out)
{
    struct stk_view view;
    const size_t bytes = trainer->memory.parameters;
    cr_assert_leq(bytes, sizeof(out->weights));
    const int rc =
        stk_view_read(&view, trainer->stage[0], trainer->stage[0]->arenas.parameters, bytes, NULL);
    if (rc != STOKER_OK)
        return rc;
    memcpy(out->weights, view.floats, bytes);
    out->floats = bytes / sizeof(float);
    stk_view_close(&view);
    return STOKER_OK;
}

static int run(const struct way *way, const stoker_model *model, const stoker_dataset *digits,
               struct outcome *out)
{
    stoker_trainer *trainer = NULL;
    const stoker_trainer_options options = training_of(way);
    memset(out, 0, sizeof(*out));
    out->rc = stoker_trainer_create(&trainer, model, &options, NULL);
    if (out->rc == STOKER_OK)
        out->rc = with_loader(way, digits, trainer, false, out);
    if (out->rc == STOKER_OK)
        out->rc = with_loader(way, digits, trainer, true, out);
    if (out->rc == STOKER_OK)
        out->rc = keep_weights(trainer, out);
    stoker_trainer_destroy(&trainer);
    return out->rc;
}

static stoker_dataset *digits_of(const char *spec)
{
    stoker_dataset *digits = NULL;
    cr_assert_eq(stoker_dataset_open(&digits, spec, NULL, NULL), STOKER_OK);
    return digits;
}

static struct outcome on_ref;
static struct outcome from_host;
static struct outcome found;

static void check_close(const struct outcome *a, const struct outcome *b)
{
    cr_assert_eq(a->test.count, SAMPLES);
    cr_assert_eq(a->test.count, b->test.count);
    cr_assert_float_eq(a->loss, b->loss, 1e-4 * b->loss);
    cr_assert_float_eq(a->test.loss_sum, b->test.loss_sum, 1e-4 * b->test.loss_sum);
    for (uint64_t i = 0; i < b->floats; i++)
        cr_assert_float_eq(a->weights[i], b->weights[i], 2e-4F, "weight %u", (unsigned)i);
}

/* Rows that cross the bus each time, rows that lie there, and batches of the host: one result,
 * which is ref's but for rounding. */
CleanTest(trainer_cuda_loader, batches_on_the_device_train_as_those_of_the_host)
{
    static const stoker_cache caches[] = { STOKER_CACHE_NONE, STOKER_CACHE_DECODED,
                                           STOKER_CACHE_DEVICE, STOKER_CACHE_AUTO };
    static const int32_t workers[] = { 0, 2, STOKER_WORKERS_AUTO };
    begin();
    stoker_model *model = network();
    stoker_dataset *digits = digits_of("synth:digits?count=70");
    struct way way = { "ref", STOKER_DEVICE_CPU, STOKER_CACHE_DECODED, 1, EPOCHS };
    cr_assert_eq(run(&way, model, digits, &on_ref), STOKER_OK);
    way.backend = "cuda";
    cr_assert_eq(run(&way, model, digits, &from_host), STOKER_OK);
    check_close(&from_host, &on_ref);
    way.device = STOKER_DEVICE_CUDA;
    for (int i = 0; i < 4; i++)
        for (int w = 0; w < 3; w++) {
            way.cache = caches[i];
            way.workers = workers[w];
            cr_assert_eq(run(&way, model, digits, &found), STOKER_OK);
            cr_assert_eq(memcmp(found.weights, from_host.weights, sizeof(found.weights)), 0,
                         "cache %d, workers %d", (int)way.cache, (int)way.workers);
            cr_assert_eq(memcmp(&found.test, &from_host.test, sizeof(found.test)), 0);
            cr_assert_eq(standin_cuda_violations(), 0);
        }
    stoker_dataset_close(&digits);
    stoker_model_destroy(&model);
    cr_assert_eq(standin_cuda_live(), 0);
}

/* With rows on the device a recorded step is queued without a wait and without an allocation, the
 * loader's part included. */
CleanTest(trainer_cuda_loader, no_step_waits_for_the_host)
{
    begin();
    stoker_model *model = network();
    stoker_dataset *digits = digits_of("synth:digits?count=320");
    const struct way way = { "cuda", STOKER_DEVICE_CUDA, STOKER_CACHE_DEVICE, 0, 1 };
    stoker_trainer *trainer = NULL;
    stoker_loader *loader = NULL;
    const stoker_trainer_options training = training_of(&way);
    const stoker_loader_options loading = loading_of(&way);
    cr_assert_eq(stoker_trainer_create(&trainer, model, &training, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_create(&loader, digits, &loading, NULL), STOKER_OK);
    uint64_t steps = 0;
    stoker_batch batch = STOKER_BATCH_INIT;
    struct standin_cuda_host before = { 0 };
    while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
        if (steps == 3)
            before = standin_cuda_host();
        cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_OK);
        stoker_batch_release(&batch);
        steps++;
    }
    cr_assert_eq(steps, 10);
    const struct standin_cuda_host after = standin_cuda_host();
    cr_assert_eq(after.waits, before.waits);
    cr_assert_eq(after.copies, before.copies);
    cr_assert_eq(after.allocations, before.allocations);
    cr_assert_eq(standin_cuda_graph_launches(), steps - 1);
    stoker_loader_destroy(&loader);
    stoker_trainer_destroy(&trainer);
    stoker_dataset_close(&digits);
    stoker_model_destroy(&model);
    cr_assert_eq(standin_cuda_live(), 0);
}

/* Each of the first `dense` calls, then fewer and fewer of the rest. */
static void fail_each_call(stoker_cache cache, bool lost, uint64_t dense)
{
    stoker_model *model = network();
    stoker_dataset *digits = digits_of("synth:digits?count=40");
    const struct way way = { "cuda", STOKER_DEVICE_CUDA, cache, 0, 2 };
    const int64_t live = stk_fault_live_bytes();
    uint64_t failed = 0;
    uint64_t nth = 1;
    for (;; nth += 1 + nth / dense) {
        begin();
        standin_cuda_fail(nth, LOST, lost);
        (void)run(&way, model, digits, &found);
        cr_assert_eq(standin_cuda_live(), 0, "call %u: rc %d", (unsigned)nth, found.rc);
        cr_assert_eq(stk_fault_live_bytes(), live, "call %u", (unsigned)nth);
        cr_assert(found.rc == STOKER_OK || found.rc == STOKER_EDEVICE ||
                      found.rc == STOKER_ENOMEM || found.rc == STOKER_EPIN,
                  "call %u: %d", (unsigned)nth, found.rc);
        if (!standin_cuda_failed())
            break;
        failed += found.rc != STOKER_OK;
    }
    cr_assert_gt(failed, 20);
    stoker_dataset_close(&digits);
    stoker_model_destroy(&model);
    stk_test_check_leaks();
}

Test(trainer_cuda_loader, every_call_of_the_runtime_may_fail)
{
    fail_each_call(STOKER_CACHE_DECODED, false, 32);
    fail_each_call(STOKER_CACHE_DEVICE, false, 16);
}

/* A device that is lost answers nothing any more, to either. */
Test(trainer_cuda_loader, the_device_may_be_lost_at_any_call)
{
    fail_each_call(STOKER_CACHE_DEVICE, true, 8);
}
