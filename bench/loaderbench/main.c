/* main.c - loaderbench: measures the loader and its ceilings.
 *
 * Exit status: 0 all cells measured and right, 1 a cell or the run failed, 2 bad usage, 3 the
 * machine is busy and --strict, 130 interrupted.
 */
#include "bench/loaderbench/arguments.h"
#include "bench/loaderbench/like_pytorch.h"
#include "bench/loaderbench/machine.h"
#include "bench/loaderbench/opening.h"
#include "bench/loaderbench/output/output.h"
#include "bench/loaderbench/sweep.h"
#include "bench/loaderbench/timing.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Memory for the rows of the gather ceiling, beside the loader's own copy: a quarter of the
 * machine's, at most 1 GiB. Larger sets are represented by a part. */
static uint64_t rows_budget(uint64_t memory_bytes)
{
    uint64_t quarter = memory_bytes / 4;
    return quarter < (uint64_t)1 << 30 ? quarter : (uint64_t)1 << 30;
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "loaderbench: %s: %s\n", what, why);
    return EXIT_FAILED;
}

/* A data set's error usually starts with its name. */
static int complain_of_data(const char *spec, const stoker_error *error, int rc)
{
    const char *why = error->message[0] != '\0' ? error->message : stoker_strerror(rc);
    if (spec[0] != '\0' && strncmp(why, spec, strlen(spec)) != 0)
        return complain(spec, why);
    fprintf(stderr, "loaderbench: %s\n", why);
    return EXIT_FAILED;
}

/* Measure; with --html the page is written as well. */
static int run_sweep(struct bench_bench *bench, struct bench_machine *machine, FILE *file)
{
    const struct bench_arguments *arguments = bench->arguments;
    struct bench_target page;
    struct bench_sheet sheets[2] = {
        { .form = bench_form_of(arguments->format), .file = file },
        { .form = bench_form_of(BENCH_FORMAT_HTML) },
    };
    if (arguments->html == NULL)
        return bench_sweep_run(bench, machine, sheets, 1);
    if (bench_target_open(&page, arguments->html) != STOKER_OK)
        return complain(arguments->html, stk_output_reason(errno));
    sheets[1].file = page.file;
    const int status = bench_sweep_run(bench, machine, sheets, 2);
    return bench_target_close(&page, status != BENCH_SWEEP_NOTHING) == STOKER_OK
               ? status
               : complain(arguments->html, strerror(errno));
}

/* Measure, then write the trace. */
static int run_traced(struct bench_bench *bench, struct bench_machine *machine, FILE *file,
                      struct bench_target *trace)
{
    const struct bench_arguments *arguments = bench->arguments;
    int status = run_sweep(bench, machine, file);
    int rc = bench_trace_write(&bench->trace, trace->file);
    int closed = bench_target_close(trace, rc == STOKER_OK);
    if (rc == STOKER_ENOMEM)
        return complain(arguments->trace, stoker_strerror(rc));
    return rc != STOKER_OK || closed != STOKER_OK
               ? complain(arguments->trace, stk_output_reason(errno))
               : status;
}

/* Files are opened first, so that a bad name is reported at once. */
static int run_open(struct bench_bench *bench, struct bench_machine *machine,
                    const struct bench_arguments *arguments)
{
    struct bench_target target;
    struct bench_target trace;
    struct bench_pinning beside;
    if (bench_target_open(&target, arguments->output) != STOKER_OK)
        return complain(arguments->output, stk_output_reason(errno));
    int status = EXIT_GOOD;
    if (arguments->trace != NULL && bench_target_open(&trace, arguments->trace) != STOKER_OK)
        status = complain(arguments->trace, stk_output_reason(errno));
    else if (bench_like_pytorch_beside(arguments->beside, &beside) != STOKER_OK)
        status = EXIT_FAILED;
    if (status != EXIT_GOOD) {
        (void)bench_target_close(&target, false);
        return status;
    }
    if (arguments->action == BENCH_LIKE_PYTORCH) {
        char moment[BENCH_MOMENT_BYTES];
        bench_machine_moment(machine, moment);
        fprintf(target.file, "# %s\n", moment);
        status = bench_like_pytorch(bench, arguments->beside == NULL ? NULL : &beside, target.file);
    } else if (arguments->trace != NULL)
        status = run_traced(bench, machine, target.file, &trace);
    else
        status = run_sweep(bench, machine, target.file);
    if (bench_target_close(&target, status != BENCH_SWEEP_NOTHING) != STOKER_OK)
        return complain(arguments->output == NULL ? "standard output" : arguments->output,
                        strerror(errno));
    return status == BENCH_SWEEP_NOTHING ? BENCH_SWEEP_INTERRUPTED : status;
}

/* Opens nothing itself: --open times that. */
static int run_opening(const struct bench_arguments *arguments, int argc, char *const *argv)
{
    struct bench_target target;
    struct bench_machine machine;
    bench_machine_describe(&machine, argc, argv);
    if (bench_target_open(&target, arguments->output) != STOKER_OK)
        return complain(arguments->output, stk_output_reason(errno));
    bench_opening_measure(arguments, &machine, target.file);
    if (bench_target_close(&target, true) != STOKER_OK)
        return complain(arguments->output == NULL ? "standard output" : arguments->output,
                        strerror(errno));
    return EXIT_GOOD;
}

/* Checks that all output was written. */
static int finish_output(void)
{
    return fflush(stdout) == 0 && ferror(stdout) == 0
               ? EXIT_GOOD
               : complain("standard output", strerror(errno));
}

/* Means and deviations: one for all channels, or one per channel. */
static bool fits_channels(uint32_t values, const stoker_dataset *dataset)
{
    const stoker_dataset_info *set = stoker_dataset_get_info(dataset);
    const uint64_t channels = set->rank > 0 ? set->shape[set->rank - 1] : 1;
    if (values <= 1 || values == channels)
        return true;
    fprintf(stderr,
            "loaderbench: --mean: %" PRIu32 " values, where a row has %" PRIu64 " channel%s\n",
            values, channels, channels == 1 ? "" : "s");
    return false;
}

/* Opens the GPU and sets up the consumer's step there. */
static int begin_gpu(struct bench_bench *bench, struct bench_gpu_step *step,
                     struct bench_machine *machine)
{
    const struct bench_arguments *arguments = bench->arguments;
    struct bench_gpu *gpu = NULL;
    char why[BENCH_GPU_WHY_BYTES] = "";
    if (arguments->device == STOKER_DEVICE_CPU)
        return EXIT_GOOD;
    int rc = bench_gpu_open(&gpu, arguments->device_index, why);
    if (rc == STOKER_OK)
        rc = bench_gpu_step_create(step, gpu, (uint64_t)arguments->step_us * 1000, why);
    if (rc != STOKER_OK) {
        bench_gpu_close(&gpu);
        return complain("--device", why[0] != '\0' ? why : stoker_strerror(rc));
    }
    bench->gpu = step;
    bench_gpu_name(gpu, machine->gpu);
    return EXIT_GOOD;
}

static void end_gpu(struct bench_bench *bench)
{
    if (bench->gpu == NULL)
        return;
    struct bench_gpu *gpu = bench->gpu->gpu;
    bench_gpu_step_destroy(bench->gpu);
    bench_gpu_close(&gpu);
}

/* All ranks have opened the same data set. */
static int reach_ready(struct bench_ranks *ranks, const stoker_dataset *dataset)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    struct bench_word word = { .sync_point = BENCH_SYNC_READY,
                               .number = { stoker_dataset_fingerprint(dataset), count } };
    const struct bench_word *all = NULL;
    if (!bench_ranks_several(ranks))
        return EXIT_GOOD;
    if (bench_ranks_reach(ranks, &word, &all) != STOKER_OK)
        return EXIT_FAILED;
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++)
        if (memcmp(all[rank].number, word.number, sizeof(word.number)) != 0) {
            snprintf(ranks->why, sizeof(ranks->why), "rank %" PRIu32 " has opened another data set",
                     rank);
            return EXIT_FAILED;
        }
    if (count >= bench_ranks_count(ranks))
        return EXIT_GOOD;
    snprintf(ranks->why, sizeof(ranks->why), "%" PRIu64 " samples for %" PRIu32 " ranks", count,
             bench_ranks_count(ranks));
    return EXIT_FAILED;
}

static int run_dataset(struct bench_arguments *arguments, struct bench_machine *machine,
                       const stoker_dataset *dataset, struct bench_ranks *ranks)
{
    stoker_error error = { 0 };
    struct bench_gpu_step step = { .gpu = NULL };
    struct bench_bench bench = {
        .arguments = arguments, .dataset = dataset, .cpus = bench_ranks_cpus(), .ranks = ranks
    };
    bench_arguments_default_mean(arguments, stoker_dataset_name(dataset));
    if (!fits_channels(arguments->mean.count, dataset))
        return EXIT_USAGE;
    struct bench_material_options options = { .shuffle = arguments->shuffle,
                                              .seed = arguments->seed,
                                              .rows_bytes_max =
                                                  rows_budget(machine->memory_bytes) };
    int rc = bench_material_create(&bench.material, dataset, &options, &error);
    if (rc != STOKER_OK)
        return complain_of_data(arguments->dataset, &error, rc);
    int status = begin_gpu(&bench, &step, machine);
    if (status != EXIT_GOOD)
        status = EXIT_FAILED;
    else if (arguments->cold && !bench_material_is_readable(&bench.material)) {
        complain("--cold", "the samples of this data set lie in no file that can be dropped");
        status = EXIT_USAGE;
    } else {
        bench_machine_describe_dataset(machine, dataset, arguments->dataset,
                                       bench.material.file.path);
        status = reach_ready(ranks, dataset);
        if (status == EXIT_GOOD)
            status = run_open(&bench, machine, arguments);
    }
    end_gpu(&bench);
    bench_pool_destroy(&bench.pool);
    bench_trace_destroy(&bench.trace);
    bench_material_destroy(&bench.material);
    return status;
}

/* What several ranks do not measure together; NULL = they do. */
static const char *refused_of_ranks(const struct bench_arguments *arguments)
{
    if (arguments->action == BENCH_LIKE_PYTORCH)
        return "--like-pytorch compares one process with another's figures";
    if (arguments->trace != NULL)
        return "--trace records the threads of one process";
    if (arguments->headspace)
        return "--headspace replays the batches of one process";
    if (arguments->cold)
        return "--cold drops a file that the other ranks are reading";
    return arguments->device != STOKER_DEVICE_CPU ? "--device measures the GPU of one process"
                                                  : NULL;
}

static int run_alone(struct bench_arguments *arguments, int argc, char *const *argv,
                     struct bench_ranks *ranks)
{
    struct bench_machine machine;
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    bench_sleep_sharply();
    /* Return large blocks to the system when freed; otherwise those of one cell count as memory of
     * the next. */
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    bench_machine_describe(&machine, argc, argv);
    machine.ranks = bench_ranks_count(ranks);
    snprintf(machine.launcher, sizeof(machine.launcher), "%s",
             stoker_launcher_name(ranks->place.launcher));
    int rc = stoker_dataset_open(&dataset, arguments->dataset, NULL, &error);
    if (rc != STOKER_OK)
        return complain_of_data(arguments->dataset, &error, rc);
    int status = run_dataset(arguments, &machine, dataset, ranks);
    stoker_dataset_close(&dataset);
    return status;
}

/* Rank 0 prints; the others measure the same, and write nowhere. */
static int run(struct bench_arguments *arguments, int argc, char *const *argv)
{
    struct bench_ranks ranks;
    if (!bench_ranks_join(&ranks, arguments->peer_timeout_s))
        return complain("ranks", ranks.why);
    const char *why = bench_ranks_several(&ranks) ? refused_of_ranks(arguments) : NULL;
    if (ranks.place.rank > 0) {
        arguments->output = "/dev/null";
        arguments->quiet = true;
    }
    int status =
        why != NULL ? complain("several ranks", why) : run_alone(arguments, argc, argv, &ranks);
    bench_ranks_end(&ranks,
                    status == BENCH_SWEEP_INTERRUPTED ? BENCH_INTERRUPTED
                    : status == EXIT_GOOD             ? STOKER_OK
                                                      : STOKER_EINVAL,
                    "it has printed why");
    if (ranks.why[0] != '\0') {
        fprintf(stderr, "loaderbench: rank %" PRIu32 ": %s\n", ranks.place.rank, ranks.why);
        status = EXIT_FAILED;
    }
    bench_ranks_leave(&ranks);
    return status;
}

int main(int argc, char **argv)
{
    struct bench_arguments arguments;
    char message[CLI_MESSAGE_BYTES] = "";
    if (bench_arguments_parse(&arguments, argc, argv, bench_ranks_cpus(), message) != STOKER_OK) {
        fprintf(stderr, "loaderbench: %s; try --help\n", message);
        return EXIT_USAGE;
    }
    if (arguments.help != CLI_NO_HELP) {
        bench_arguments_help(stdout, arguments.help);
        return finish_output();
    }
    switch (arguments.action) {
    case BENCH_LIST:
        bench_arguments_list(stdout);
        return finish_output();
    case BENCH_VERSION:
        printf("loaderbench %s, libstoker %s\n", STOKER_VERSION_STRING, stoker_version());
        return finish_output();
    case BENCH_OPEN:
        return run_opening(&arguments, argc, argv);
    default:
        return run(&arguments, argc, argv);
    }
}
