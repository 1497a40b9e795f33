/* test_trainer.c - the trainer on a GPU: gradients against `ref`, twenty steps against PyTorch's,
 * recorded steps against queued ones, a run against itself, its memory against the driver's count,
 * batches that lie on the GPU against the host's, a checkpoint against an uninterrupted run.
 *
 * Runs every check even if others fail; each prints its result. Exits 77 with the reason if there
 * is no GPU or no kernels, 1 if a check failed.
 *
 * usage: gpu_trainer [quick]    quick: only the small network, for a stand-in or under a profiler
 */
#define STK_TEST_PLAIN 1
#include "support/trainer/trainer_golden_runs.h"

#include <dlfcn.h>
#include <string.h>

#include "first_gpu.h"
#include "kernels/train/train.h"
#include <stoker/stoker.h>

enum { FEW = 16, STEPS = 6, MIB = 1 << 20 };

static struct stk_cuda_runtime cuda;

static stoker_trainer *trainer_of(const stoker_model *model, stoker_trainer_options options)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    if (stoker_trainer_create(&trainer, model, &options, &error) != STOKER_OK)
        stk_plain_unexpected(__FILE__, __LINE__, "create: %s", error.message);
    return trainer;
}

static stoker_trainer_options options_of(const char *backend, stoker_dtype precision)
{
    return stk_trainer_options(.backend = backend, .batch_size = FEW, .precision = precision,
                               .loss_scale =
                                   precision == STOKER_DTYPE_FLOAT16 ? 64 : STOKER_LOSS_SCALE_AUTO,
                               .seed = 7, .threads = 2, .deterministic = true);
}

/* The same for every trainer; count <= FEW. */
static stoker_batch batch_of(const stoker_model *model, uint64_t key, uint32_t count)
{
    static float images[FEW * 32 * 32 * 3];
    static int64_t labels[FEW];
    const struct stk_shape in = model->layers[0].out;
    golden_fill(images, count * stk_shape_elements(in), 4000 + key, 1.0F);
    for (uint32_t i = 0; i < count; i++)
        labels[i] = (int64_t)((key + i) * 7 % CLASSES);
    return (stoker_batch){
        .struct_size = sizeof(stoker_batch),
        .images = { .data = images,
                    .dtype = STOKER_DTYPE_FLOAT32,
                    .rank = 4,
                    .shape = { count, in.h, in.w, in.c } },
        .labels = { .data = labels, .dtype = STOKER_DTYPE_INT64, .rank = 1, .shape = { count } },
        .count = count,
    };
}

static bool step(stoker_trainer *trainer, uint64_t key, uint32_t count, stoker_step *told)
{
    const stoker_batch batch = batch_of(trainer->model, key, count);
    const int rc = stoker_trainer_step(trainer, &batch, told);
    EXPECT(rc == STOKER_OK, "step %u: %s", (unsigned)key,
           rc == STOKER_OK ? "" : stoker_trainer_error(trainer)->message);
    return rc == STOKER_OK;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* |a - b| / |b| */
static double distance(const float *a, const float *b, uint64_t count)
{
    double apart = 0;
    double whole = 0;
    for (uint64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        whole += (double)b[i] * (double)b[i];
    }
    return whole > 0 ? sqrt(apart / whole) : sqrt(apart);
}

static void compare_gradients(const stoker_trainer *gpu, const stoker_trainer *ref,
                              const char *name, double most)
{
    struct stk_view view;
    double worst = 0;
    if (stk_view_read(&view, gpu->stage[0], gpu->stage[0]->arenas.gradients, gpu->memory.gradients,
                      NULL) != STOKER_OK) {
        stk_plain_unexpected(__FILE__, __LINE__, "%s: gradients cannot be read", name);
        return;
    }
    for (uint32_t p = 0; p < gpu->model->parameter_count; p++) {
        const struct stk_parameter *const parameter = &gpu->model->parameters[p];
        const double apart =
            distance(view.floats + parameter->offset,
                     ref->stage[0]->arenas.gradients + parameter->offset, parameter->elements);
        EXPECT(apart <= most, "%s: gradient of %s is %.3g off ref's", name, parameter->name, apart);
        worst = apart > worst ? apart : worst;
    }
    printf("%s: gradients are within %.3g of ref's\n", name, worst);
    stk_view_close(&view);
}

/* The first of two passes: its gradients are still there. */
static void check_gradients(stoker_model *model, const char *name, stoker_dtype precision,
                            double most)
{
    stoker_trainer_options options = options_of("cuda", precision);
    options.accumulate = 2;
    stoker_trainer *gpu = trainer_of(model, options);
    options.backend = "ref";
    stoker_trainer *ref = trainer_of(model, options);
    if (gpu != NULL && ref != NULL && step(gpu, 1, FEW, NULL) && step(ref, 1, FEW, NULL))
        compare_gradients(gpu, ref, name, most);
    stoker_trainer_destroy(&gpu);
    stoker_trainer_destroy(&ref);
    stoker_model_destroy(&model);
}

/* ---- the same bits --------------------------------------------------------------------------- */

static void compare_bits(const stoker_trainer *a, const stoker_trainer *b, const char *what)
{
    struct stk_view va;
    struct stk_view vb;
    const size_t bytes = a->memory.parameters;
    CHECK(stk_view_read(&va, a->stage[0], a->stage[0]->arenas.parameters, bytes, NULL) ==
          STOKER_OK);
    CHECK(stk_view_read(&vb, b->stage[0], b->stage[0]->arenas.parameters, bytes, NULL) ==
          STOKER_OK);
    EXPECT(memcmp(va.floats, vb.floats, bytes) == 0, "%s: %.3g apart", what,
           distance(va.floats, vb.floats, bytes / sizeof(float)));
    stk_view_close(&va);
    stk_view_close(&vb);
}

static void train(stoker_trainer *trainer, uint64_t first, uint64_t steps)
{
    for (uint64_t i = first; i < first + steps; i++)
        if (!step(trainer, i, i % 4 == 3 ? FEW / 2 : FEW, NULL))
            return;
}

/* Recorded, recorded again, and queued one by one. */
static void check_recorded(const stoker_model *model, stoker_dtype precision)
{
    stoker_trainer_options options = options_of("cuda", precision);
    options.optimizer = STOKER_OPTIMIZER_ADADELTA;
    options.metrics_interval = 100;
    stoker_trainer *first = trainer_of(model, options);
    stoker_trainer *again = trainer_of(model, options);
    options.uncaptured = true;
    stoker_trainer *queued = trainer_of(model, options);
    if (first != NULL && again != NULL && queued != NULL) {
        train(first, 0, 2 * STEPS);
        train(again, 0, 2 * STEPS);
        train(queued, 0, 2 * STEPS);
        stoker_trainer_capture capture;
        stoker_trainer_get_capture(first, &capture);
        EXPECT(capture.reason == NULL, "not recorded: %s",
               capture.reason == NULL ? "" : capture.reason);
        EXPECT(capture.launched >= 2 * STEPS - 4, "%u steps were graphs",
               (unsigned)capture.launched);
        compare_bits(first, again, "the same run twice");
        compare_bits(first, queued, "recorded and queued");
        printf("%s: recorded twice and queued: %u steps\n", stoker_dtype_name(precision),
               2 * STEPS);
    }
    stoker_trainer_destroy(&first);
    stoker_trainer_destroy(&again);
    stoker_trainer_destroy(&queued);
}

/* Stopped within a group and resumed by another trainer. */
static void check_resume(const stoker_model *model)
{
    char folder[] = "/tmp/stoker_gpu_trainer_XXXXXX";
    char path[64];
    char command[64];
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/model.safetensors", folder);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    stoker_trainer_options options = options_of("cuda", STOKER_DTYPE_FLOAT16);
    options.accumulate = 2;
    options.optimizer = STOKER_OPTIMIZER_ADAM;
    stoker_trainer *straight = trainer_of(model, options);
    stoker_trainer *stopped = trainer_of(model, options);
    stoker_trainer *resumed = trainer_of(model, options);
    if (straight != NULL && stopped != NULL && resumed != NULL) {
        stoker_error error = { .code = 0 };
        train(straight, 0, 9);
        train(stopped, 0, 5);
        EXPECT(stoker_trainer_save(stopped, path, NULL, 0, &error) == STOKER_OK, "%s",
               error.message);
        EXPECT(stoker_trainer_load(resumed, path, NULL, 0, NULL, &error) == STOKER_OK, "%s",
               error.message);
        train(resumed, 5, 4);
        compare_bits(resumed, straight, "stopped and resumed");
    }
    stoker_trainer_destroy(&straight);
    stoker_trainer_destroy(&stopped);
    stoker_trainer_destroy(&resumed);
    CHECK(system(command) == 0);
    printf("a checkpoint resumes\n");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t free_bytes(void)
{
    size_t left = 0;
    size_t all = 0;
    CHECK(cuda.cudaMemGetInfo(&left, &all) == cudaSuccess);
    return left;
}

/* The driver counts pages, and its libraries load code on demand: so this measures the second
 * trainer and allows for some more pages. */
static void check_memory(const stoker_model *model, stoker_dtype precision)
{
    enum { PAGE = 2 * MIB, ALLOCATIONS = 12 };
    stoker_trainer_options options = options_of("cuda", precision);
    stoker_trainer_memory memory;
    options.optimizer = STOKER_OPTIMIZER_ADAM;
    stoker_trainer *first = trainer_of(model, options);
    if (first == NULL)
        return;
    train(first, 0, STEPS);
    const uint64_t before = free_bytes();
    stoker_trainer *trainer = trainer_of(model, options);
    if (trainer != NULL) {
        stoker_trainer_get_memory(trainer, &memory);
        const double taken = (double)before - (double)free_bytes();
        train(trainer, 0, STEPS);
        const double later = (double)before - (double)free_bytes();
        const uint64_t trimmed = stoker_trainer_trim(trainer);
        const double kept = (double)before - (double)free_bytes();
        printf("%s: the table says %.1f MiB, the driver %.1f, after %d steps %.1f; trimmed by %.1f "
               "MiB: %.1f\n",
               stoker_dtype_name(precision), (double)memory.peak / MIB, taken / MIB, STEPS,
               later / MIB, (double)trimmed / MIB, kept / MIB);
        EXPECT(taken >= (double)memory.peak - PAGE, "less than the table says");
        /* A real driver also pays for a second cuDNN handle and the like: how much is unknown. */
        if (dlsym(RTLD_DEFAULT, "standin_cuda_reset") != NULL) {
            EXPECT(taken <= (double)memory.peak + (double)ALLOCATIONS * PAGE, "more than it says");
            EXPECT(later <= (double)memory.peak + (double)ALLOCATIONS * PAGE + 16.0 * MIB,
                   "steps took more: not the graphs alone");
        }
        EXPECT(later - kept >= (double)trimmed - (double)ALLOCATIONS * PAGE,
               "what was trimmed did not come back");
        train(trainer, STEPS, 1);
    }
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&first);
}

/* The largest batch within a budget runs. */
static void check_budget(const stoker_model *model)
{
    stoker_trainer_options options = options_of("cuda", STOKER_DTYPE_FLOAT16);
    stoker_trainer_memory memory;
    options.batch_size = STOKER_BATCH_SIZE_AUTO;
    options.memory_budget = 8 * (uint64_t)MIB;
    stoker_trainer *trainer = trainer_of(model, options);
    if (trainer == NULL)
        return;
    stoker_trainer_get_memory(trainer, &memory);
    EXPECT(memory.peak <= options.memory_budget, "%llu bytes of %llu",
           (unsigned long long)memory.peak, (unsigned long long)options.memory_budget);
    train(trainer, 0, 2);
    printf("batch size %u fits in 8 MiB\n", memory.batch_size);
    stoker_trainer_destroy(&trainer);
}

/* ---- batches on the GPU ---------------------------------------------------------------------- */

static int train_from(stoker_trainer *trainer, const stoker_dataset *digits, stoker_device device,
                      stoker_evaluation *test)
{
    static const float mean = 0.1307F;
    static const float deviation = 0.3081F;
    stoker_loader_options options =
        stk_default_options(.device = device, .batch_size = FEW, .epochs = 2, .shuffle = true,
                            .dtype = STOKER_DTYPE_FLOAT32);
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    options.mean = &mean;
    options.std = &deviation;
    options.mean_count = 1;
    int rc = stoker_loader_create(&loader, digits, &options, NULL);
    while (rc >= STOKER_OK && rc != STOKER_FINISHED) {
        rc = stoker_loader_next(loader, &batch, -1);
        if (rc != STOKER_OK)
            continue;
        rc = stoker_trainer_step(trainer, &batch, NULL);
        if (rc == STOKER_OK)
            rc = stoker_trainer_evaluate(trainer, &batch, NULL);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return rc < STOKER_OK ? rc : stoker_trainer_evaluated(trainer, test);
}

static void check_loader(const stoker_model *model)
{
    stoker_dataset *digits = NULL;
    stoker_trainer_options options = options_of("cuda", STOKER_DTYPE_FLOAT32);
    stoker_evaluation tests[2] = { 0 };
    options.metrics_interval = 100;
    CHECK(stoker_dataset_open(&digits, "synth:digits?count=100", NULL, NULL) == STOKER_OK);
    stoker_trainer *host = trainer_of(model, options);
    stoker_trainer *there = trainer_of(model, options);
    if (host != NULL && there != NULL) {
        EXPECT(train_from(host, digits, STOKER_DEVICE_CPU, &tests[0]) == STOKER_OK, "host");
        EXPECT(train_from(there, digits, STOKER_DEVICE_CUDA, &tests[1]) == STOKER_OK, "device");
        EXPECT(tests[0].count == 200, "%u samples", (unsigned)tests[0].count);
        EXPECT(memcmp(&tests[0], &tests[1], sizeof(tests[0])) == 0, "losses: %.9g and %.9g",
               tests[0].loss_sum, tests[1].loss_sum);
        compare_bits(host, there, "batches of the host and of the GPU");
        printf("batches on the GPU train as those of the host\n");
    }
    stoker_trainer_destroy(&host);
    stoker_trainer_destroy(&there);
    stoker_dataset_close(&digits);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void check_small(void)
{
    stoker_model *residual = golden_residual();
    check_gradients(golden_residual(), "residual network, float32", STOKER_DTYPE_FLOAT32, 1e-5);
    check_gradients(golden_residual(), "residual network, float16", STOKER_DTYPE_FLOAT16, 1e-2);
    check_gradients(golden_residual(), "residual network, bfloat16", STOKER_DTYPE_BFLOAT16, 1e-2);
    check_recorded(residual, STOKER_DTYPE_FLOAT32);
    check_recorded(residual, STOKER_DTYPE_BFLOAT16);
    check_resume(residual);
    check_memory(residual, STOKER_DTYPE_FLOAT16);
    check_budget(residual);
    stoker_model_destroy(&residual);
}

static void check_large(void)
{
    stoker_model *mnist = stk_test_mnist();
    check_gradients(stk_test_mnist(), "MNIST network, float32", STOKER_DTYPE_FLOAT32, 1e-5);
    check_gradients(stk_test_mnist(), "MNIST network, float16", STOKER_DTYPE_FLOAT16, 1e-2);
    check_gradients(stk_test_mnist(), "MNIST network, bfloat16", STOKER_DTYPE_BFLOAT16, 1e-2);
    check_recorded(mnist, STOKER_DTYPE_FLOAT16);
    check_memory(mnist, STOKER_DTYPE_FLOAT32);
    check_loader(mnist);
    stoker_model_destroy(&mnist);
}

static void check_golden(bool large)
{
    for (int i = 0; i < GOLDEN_RUNS; i++)
        if (large || golden_runs[i].residual) {
            golden_train(&golden_runs[i], "cuda");
            printf("twenty steps of %s: compared with PyTorch's\n", golden_runs[i].name);
        }
}

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    size_t bytes;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *const missing =
        stk_train_fatbin(&bytes) == NULL ? "built without nvcc" : stk_gpu_missing(&cuda);
    if (missing != NULL)
        return stk_gpu_skip(missing);
    check_small();
    if (!quick)
        check_large();
    check_golden(!quick);
    printf("%u checks failed\n", *stk_plain_failures());
    return *stk_plain_failures() == 0 ? 0 : 1;
}
