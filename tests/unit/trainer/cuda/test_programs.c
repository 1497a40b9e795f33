/* test_programs.c - mnist from its command line to its exit, on a GPU: both presets end where `ref`
 * ends, --device auto is as good as naming it, and what does not go well is said. On the stand-ins.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/gpu/cuda_kernels.h"
#include "support/standin_cudnn/standin_cudnn.h"
#include "support/standin_nccl/standin_nccl.h"
#include "trainer/files/safetensors.h"
#include "trainer/programs/program.h"

enum { ARGUMENTS_MAX = 32, WEIGHTS_MAX = 2000000 };

static char folder[] = "/tmp/stoker_programs_XXXXXX";
static char path[64];
static stoker_evaluation tested;
static int gpus = 1;
static bool captures = true;

static void keep(const struct console *console, const char *of, const stoker_evaluation *test)
{
    (void)of;
    if (!console->mute) /* rank 0 */
        tested = *test;
}

/* mnist with these words, apart by single spaces, and --save PATH. Returns its exit status. */
static int mnist(const char *words)
{
    static const struct program_kind kind = { .name = "stoker-mnist",
                                              .program = PROGRAM_MNIST,
                                              .classes = true,
                                              .open = data_open_images,
                                              .report = keep };
    static char line[1000];
    char *argv[ARGUMENTS_MAX] = { NULL };
    int argc = 0;
    char *rest = NULL;
    (void)snprintf(line, sizeof(line), "mnist --quiet --save %s %s", path, words);
    for (char *word = strtok_r(line, " ", &rest); word != NULL && argc + 1 < ARGUMENTS_MAX;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    standin_cuda_reset(gpus);
    standin_cuda_delay(0);
    standin_cuda_no_capture(!captures);
    standin_cuda_use_kernels();
    return program_run(&kind, argc, argv);
}

/* The weights of the checkpoint, in the order of names. Returns their number. */
static uint64_t read_weights(float *weights)
{
    struct stk_safetensors file;
    uint64_t count = 0;
    cr_assert_eq(stk_safetensors_open(&file, path, NULL), STOKER_OK);
    for (uint32_t i = 0; i < file.set.tensor_count; i++) {
        const struct stk_named_tensor *const tensor = &file.set.tensors[i];
        if (strncmp(tensor->name, "model.", 6) != 0 || tensor->dtype != STK_FILE_F32)
            continue;
        cr_assert_lt(count + tensor->bytes / sizeof(*weights), WEIGHTS_MAX);
        memcpy(weights + count, tensor->data, tensor->bytes);
        count += tensor->bytes / sizeof(*weights);
    }
    stk_safetensors_close(&file);
    cr_assert_gt(count, 1000);
    return count;
}

static void begin(void)
{
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/weights.safetensors", folder);
    cr_redirect_stdout();
    cr_redirect_stderr();
}

static void finish(void)
{
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
}

TestSuite(trainer_cuda_programs, .init = begin, .fini = finish);

static float ours[WEIGHTS_MAX];
static float refs[WEIGHTS_MAX];

/* The same line on the GPU and on ref; two types of arithmetic apart. */
static void check_as_ref(const char *words, double most)
{
    char line[400];
    (void)snprintf(line, sizeof(line), "--device ref %s", words);
    cr_assert_eq(mnist(line), EXIT_DONE);
    const stoker_evaluation wanted = tested;
    const uint64_t count = read_weights(refs);
    (void)snprintf(line, sizeof(line), "--device cuda %s", words);
    cr_assert_eq(mnist(line), EXIT_DONE);
    cr_assert_eq(read_weights(ours), count);
    cr_assert_gt(standin_cuda_graph_launches(), 1);
    for (uint64_t i = 0; i < count; i++)
        cr_assert_lt(fabs((double)ours[i] - (double)refs[i]), most, "%s: weight %u: %g, not %g",
                     words, (unsigned)i, (double)ours[i], (double)refs[i]);
    cr_assert_eq(tested.count, wanted.count);
    cr_assert_float_eq(tested.loss_sum, wanted.loss_sum, most * wanted.loss_sum);
}

/* 40 digits: two batches of 16 and one of 8, then again. */
Test(trainer_cuda_programs, each_preset_ends_where_ref_ends)
{
    check_as_ref("--preset fast --data synth:digits?count=40 --batch-size 16 --steps 5", 2e-4);
    check_as_ref(
        "--preset pytorch --data synth:digits?count=10 --batch-size 4 --epochs 2 --eval-every 0",
        2e-3);
}

Test(trainer_cuda_programs, in_16_bits_it_ends_near_it)
{
    check_as_ref("--preset fast --data synth:digits?count=40 --batch-size 16 --steps 4 --amp fp16",
                 3e-2);
    check_as_ref("--preset batchnorm --data synth:digits?count=8 --batch-size 4 --steps 3"
                 " --amp bf16 --eval-every 0",
                 4e-2);
}

/* Two GPUs with half of each update, a thread each; their sums go by NCCL. */
Test(trainer_cuda_programs, two_gpus_as_threads_end_where_one_ends)
{
    static const char common[] =
        "--preset fast --data synth:digits?count=40 --global-batch 16 --steps 5 --deterministic";
    char line[400];
    (void)snprintf(line, sizeof(line), "--device cuda --accumulate 2 %s", common);
    cr_assert_eq(mnist(line), EXIT_DONE);
    const stoker_evaluation wanted = tested;
    const uint64_t count = read_weights(refs);
    gpus = 2;
    (void)snprintf(line, sizeof(line), "--device cuda:1,cuda --data-parallel %s", common);
    cr_assert_eq(mnist(line), EXIT_DONE);
    cr_assert_eq(read_weights(ours), count);
    for (uint64_t i = 0; i < count; i++)
        cr_assert_lt(fabs((double)ours[i] - (double)refs[i]), 2e-4, "weight %u: %g, not %g",
                     (unsigned)i, (double)ours[i], (double)refs[i]);
    cr_assert_eq(tested.count, wanted.count);
    cr_assert_float_eq(tested.loss_sum, wanted.loss_sum, 2e-4 * wanted.loss_sum);
    cr_assert_eq(standin_nccl_violations(), 0);
    cr_assert_eq(standin_nccl_live(), 0);
}

/* A device that was found is as good as one that was named: the host waits as seldom. */
Test(trainer_cuda_programs, auto_reads_losses_as_seldom_as_cuda)
{
    static const char common[] =
        "--preset fast --data synth:digits?count=64 --batch-size 2 --epochs 1 --eval-every 0";
    char line[400];
    uint64_t waits[2];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(line, sizeof(line), "--device %s %s", i == 0 ? "cuda" : "auto", common);
        cr_assert_eq(mnist(line), EXIT_DONE);
        waits[i] = standin_cuda_host().waits;
        cr_assert_gt(standin_cuda_graph_launches(), 30);
    }
    cr_assert_eq(waits[0], waits[1], "%u with cuda, %u with auto", (unsigned)waits[0],
                 (unsigned)waits[1]);
}

/* Stopped after 3 of 6 updates and resumed: the bits of one run. Dropout, a short last batch. */
Test(trainer_cuda_programs, a_stopped_run_resumes_to_the_same_bits)
{
    static const char common[] = "--device cuda --preset pytorch --data synth:digits?count=10 "
                                 "--batch-size 4 --epochs 2 --eval-every 0";
    char line[400];
    cr_assert_eq(mnist(common), EXIT_DONE);
    const uint64_t count = read_weights(refs);
    (void)snprintf(line, sizeof(line), "%s --steps 4", common);
    cr_assert_eq(mnist(line), EXIT_DONE);
    (void)snprintf(line, sizeof(line), "%s --load %s", common, path);
    cr_assert_eq(mnist(line), EXIT_DONE);
    cr_assert_eq(read_weights(ours), count);
    cr_assert_eq(memcmp(ours, refs, count * sizeof(*ours)), 0);
}

static const char *complaints(char *out, size_t bytes)
{
    FILE *const file = cr_get_redirected_stderr();
    (void)fflush(stderr);
    const size_t length = fread(out, 1, bytes - 1, file);
    out[length] = '\0';
    return out;
}

Test(trainer_cuda_programs, steps_that_cannot_be_recorded_are_complained_about)
{
    char text[1000];
    captures = false;
    cr_assert_eq(mnist("--device cuda --data synth:digits?count=40 --batch-size 4 --steps 4"),
                 EXIT_DONE);
    cr_assert_eq(standin_cuda_graph_launches(), 0);
    cr_assert_not_null(
        strstr(complaints(text, sizeof(text)),
               "stoker-mnist: steps do not run as a CUDA graph but are queued one operation "
               "at a time: cuda:0: cudaStreamBeginCapture: operation not permitted"),
        "%s", text);
}

Test(trainer_cuda_programs, engines_that_were_replaced_are_named)
{
    char text[2000];
    standin_cudnn_fail((struct standin_cudnn_failing){ .candidates = 1 });
    cr_assert_eq(mnist("--device cuda --data synth:digits?count=40 --batch-size 2 --steps 1"),
                 EXIT_DONE);
    cr_assert_not_null(strstr(complaints(text, sizeof(text)),
                              "do not run on their best engine; the first is conv_bias"),
                       "%s", text);
    cr_assert_not_null(strstr(text, "engine 12 runs instead"), "%s", text);
}
