/* test_nodes.c - the nodes of a captured training step, by kind: presets of MNIST in several
 * precisions, alone and as one of two passes of an update. A GPU pays for each node, whatever it
 * does, and small networks pay for little else.
 *
 * Compared with tests/golden/step_nodes.txt; on a difference the whole table is printed as that
 * file should be. Libraries count one node a call here; on a GPU some of their calls take more.
 */
#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"
#include "support/trainer/opened_trainer.h"
#include "trainer/programs/networks.h"

#include <cuda_runtime_api.h>

enum { SIDE = 16, BATCH = 2, CLASSES = 10, TEXT_BYTES = 16384 };

/* Memory of zeros. A fill is queued on the default stream, which the trainer's own stream does not
 * wait for. */
static void *on_device(size_t bytes)
{
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    cr_assert_eq(cudaMemset(memory, 0, bytes), cudaSuccess);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    return memory;
}

static stoker_batch batch_on_device(void)
{
    return (stoker_batch){ .struct_size = sizeof(stoker_batch),
                           .images = { .data = on_device(sizeof(float) * BATCH * SIDE * SIDE),
                                       .dtype = STOKER_DTYPE_FLOAT32,
                                       .rank = 4,
                                       .shape = { BATCH, SIDE, SIDE, 1 } },
                           .labels = { .data = on_device(sizeof(int64_t) * BATCH),
                                       .dtype = STOKER_DTYPE_INT64,
                                       .rank = 1,
                                       .shape = { BATCH } },
                           .count = BATCH,
                           .device = STOKER_DEVICE_CUDA };
}

static stoker_model *network_of(const struct arguments *arguments)
{
    const stoker_dataset_info samples = { .rank = 3,
                                          .shape = { SIDE, SIDE, 1 },
                                          .class_count = CLASSES };
    stoker_model *model = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(network_build(&model, arguments, &samples, &error), STOKER_OK, "%s",
                 error.message);
    return model;
}

static stoker_trainer_options options_of(const struct arguments *arguments, stoker_dtype precision,
                                         uint32_t accumulate)
{
    return stk_trainer_options(.backend = "cuda", .batch_size = BATCH,
                               .optimizer = arguments->optimizer, .precision = precision,
                               .accumulate = accumulate, .metrics_interval = 1000);
}

/* Removes what all kernels' names begin with. */
static void shorten(char *text)
{
    static const char prefix[] = "stk_train_";
    for (char *at = strstr(text, prefix); at != NULL; at = strstr(at, prefix))
        memmove(at, at + strlen(prefix), strlen(at + strlen(prefix)) + 1);
}

/* Appends what the last pass took. */
static void append(char *text, const char *name, uint64_t copies)
{
    char kinds[TEXT_BYTES / 4];
    const uint32_t nodes = standin_cuda_last_graph(kinds, sizeof(kinds));
    shorten(kinds);
    const size_t used = strlen(text);
    const int wanted =
        snprintf(text + used, TEXT_BYTES - used, "%s: %u nodes, %u copies before them\n    %s\n",
                 name, (unsigned)nodes, (unsigned)copies, kinds);
    cr_assert_lt((size_t)wanted, TEXT_BYTES - used);
}

/* Until each pass of an update is launched as a graph: it is queued once, then captured. */
static void count_passes(char *text, enum preset preset, stoker_dtype precision,
                         uint32_t accumulate)
{
    enum { GROUPS = 4 };
    static const char *const places[] = { "", ", first pass of two", ", second pass of two" };
    struct arguments arguments;
    preset_apply(&arguments, preset);
    stoker_model *model = network_of(&arguments);
    stoker_trainer *trainer = trainer_of(model, options_of(&arguments, precision, accumulate));
    stoker_batch batch = batch_on_device();
    for (uint32_t i = 0; i < GROUPS * accumulate; i++) {
        const uint64_t before = standin_cuda_copies();
        char name[128];
        cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_OK, "%s",
                     stoker_trainer_error(trainer)->message);
        (void)snprintf(name, sizeof(name), "%s, %s%s", preset_name(preset),
                       stoker_dtype_name(precision),
                       places[accumulate == 1 ? 0 : 1 + i % accumulate]);
        if (i >= (GROUPS - 1) * accumulate)
            append(text, name, standin_cuda_copies() - before);
    }
    stoker_trainer_destroy(&trainer);
    cr_assert_eq(cudaFree(batch.images.data), cudaSuccess);
    cr_assert_eq(cudaFree(batch.labels.data), cudaSuccess);
    stoker_model_destroy(&model);
}

static void read_golden(char *text)
{
    FILE *file = fopen(STOKER_TEST_SOURCES "/tests/golden/step_nodes.txt", "r");
    cr_assert_not_null(file);
    text[fread(text, 1, TEXT_BYTES - 1, file)] = 0;
    cr_assert_eq(fclose(file), 0);
}

CleanTest(trainer_cuda_nodes, of_a_step_are_as_many_as_the_table_has)
{
    static const struct {
        enum preset preset;
        stoker_dtype precision;
        uint32_t passes;
    } steps[] = {
        { PRESET_FAST, STOKER_DTYPE_FLOAT32, 1 },     { PRESET_FAST, STOKER_DTYPE_FLOAT32, 2 },
        { PRESET_FAST, STOKER_DTYPE_FLOAT16, 1 },     { PRESET_FAST, STOKER_DTYPE_FLOAT16, 2 },
        { PRESET_FAST, STOKER_DTYPE_BFLOAT16, 1 },    { PRESET_PYTORCH, STOKER_DTYPE_FLOAT32, 1 },
        { PRESET_PYTORCH, STOKER_DTYPE_FLOAT32, 2 },  { PRESET_PYTORCH, STOKER_DTYPE_FLOAT16, 1 },
        { PRESET_PYTORCH, STOKER_DTYPE_BFLOAT16, 1 }, { PRESET_BATCHNORM, STOKER_DTYPE_FLOAT32, 1 },
    };
    static char found[TEXT_BYTES], expected[TEXT_BYTES];
    found[0] = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        standin_cuda_reset(1);
        standin_cuda_delay(0);
        standin_cuda_use_kernels();
        count_passes(found, steps[i].preset, steps[i].precision, steps[i].passes);
    }
    read_golden(expected);
    cr_assert_str_eq(found, expected, "tests/golden/step_nodes.txt should be:\n%s", found);
}
