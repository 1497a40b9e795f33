/* arguments.c - reads the command line by the option table, then checks the options that depend on
 * each other. */
#include "bench/loaderbench/arguments.h"

#include "kernels/transform/transform.h"

#include <getopt.h>
#include <string.h>

void bench_default_workers(struct cli_list *out, uint32_t cpus)
{
    out->count = 0;
    out->values[out->count++] = 0;
    for (uint32_t workers = 1; workers < cpus && workers < STOKER_WORKERS_MAX; workers *= 2)
        out->values[out->count++] = (int32_t)workers;
    uint32_t all = cpus < STOKER_WORKERS_MAX ? cpus : STOKER_WORKERS_MAX;
    out->values[out->count++] = (int32_t)all;
    out->values[out->count++] = STOKER_WORKERS_AUTO;
}

void bench_arguments_defaults(struct bench_arguments *arguments, uint32_t cpus)
{
    *arguments = (struct bench_arguments){ .action = BENCH_SWEEP,
                                           .shuffle = true,
                                           .verify = true,
                                           .ceilings = true,
                                           .repeats = 21,
                                           .budget_s = 10,
                                           .seconds = 0.06,
                                           .share_cache = STOKER_SWITCH_AUTO,
                                           .peer_timeout_s = 120,
                                           .device = STOKER_DEVICE_CPU,
                                           .format = BENCH_FORMAT_TABLE };
    bench_default_workers(&arguments->workers, cpus);
    arguments->pins =
        (struct cli_list){ .values = { STOKER_SWITCH_ON, STOKER_SWITCH_OFF }, .count = 2 };
    arguments->transform = (stoker_transform)STOKER_TRANSFORM_INIT;
    arguments->batch_sizes = (struct cli_list){ .values = { 64 }, .count = 1 };
    arguments->dtypes = (struct cli_list){ .values = { STOKER_DTYPE_FLOAT32 }, .count = 1 };
    arguments->caches = (struct cli_list){ .values = { STOKER_CACHE_AUTO }, .count = 1 };
}

/* Options of a GPU are swept there only; elsewhere each has one value. */
static int set_gpu_defaults(struct bench_arguments *arguments, char *message)
{
    const bool copies = arguments->device == STOKER_DEVICE_CUDA;
    const bool given = arguments->blockings.count > 0 || arguments->converts.count > 0;
    if (given && !copies)
        return cli_complain(message, "--non-blocking and --convert are about copies to a GPU: they "
                                     "go with --device cuda");
    if (arguments->decode != STOKER_DECODE_CPU && !copies)
        return cli_complain(message, "--decode %s lets a GPU decode: it goes with --device cuda",
                            arguments->decode == STOKER_DECODE_AUTO ? "auto" : "device");
    if (arguments->decode != STOKER_DECODE_CPU)
        arguments->verify = false;
    if (arguments->blockings.count == 0)
        arguments->blockings = (struct cli_list){ .values = { 1, 0 }, .count = copies ? 2 : 1 };
    if (arguments->converts.count == 0)
        arguments->converts =
            (struct cli_list){ .values = { STOKER_SWITCH_AUTO, STOKER_SWITCH_OFF },
                               .count = copies ? 2 : 1 };
    for (uint32_t index = 0; !copies && index < arguments->caches.count; index++)
        if (arguments->caches.values[index] == STOKER_CACHE_DEVICE)
            return cli_complain(message,
                                "--cache device keeps rows on a GPU: it goes with --device cuda");
    if (arguments->headspace && arguments->device != STOKER_DEVICE_CPU && arguments->step_us == 0)
        return cli_complain(message,
                            "on a GPU --headspace is the step alone: it goes with --step-us");
    return STOKER_OK;
}

static int check_together(const struct bench_arguments *arguments, char *message)
{
    bool needs_data = arguments->action == BENCH_SWEEP || arguments->action == BENCH_LIKE_PYTORCH ||
                      arguments->action == BENCH_OPEN;
    if (needs_data && arguments->dataset == NULL)
        return cli_complain(message, "no data set is named; try 'loaderbench synth:digits'");
    if (arguments->format != BENCH_FORMAT_TABLE && needs_data && arguments->action != BENCH_SWEEP)
        return cli_complain(message, "--format applies to the sweep only: --open prints JSON, and "
                                     "--like-pytorch its own lines");
    if (arguments->trace != NULL && arguments->output != NULL &&
        strcmp(arguments->trace, arguments->output) == 0)
        return cli_complain(message, "--output and --trace name the same file");
    if (arguments->trace != NULL && needs_data && arguments->action != BENCH_SWEEP)
        return cli_complain(message, "--trace records cells: it goes with the sweep only");
    if (arguments->html != NULL && needs_data && arguments->action != BENCH_SWEEP)
        return cli_complain(message, "--html is the page of a sweep");
    if (arguments->beside != NULL && arguments->action != BENCH_LIKE_PYTORCH)
        return cli_complain(message, "--beside goes with --like-pytorch only");
    if (arguments->mean.count != arguments->std.count)
        return cli_complain(message, "--mean and --std go together, with equally many values");
    if (arguments->cold)
        for (uint32_t index = 0; index < arguments->caches.count; index++)
            if (arguments->caches.values[index] != STOKER_CACHE_NONE)
                return cli_complain(message,
                                    "--cold measures reading: it goes with --cache none only");
    return STOKER_OK;
}

int bench_arguments_parse(struct bench_arguments *out, int argc, char *const *argv, uint32_t cpus,
                          char message[CLI_MESSAGE_BYTES])
{
    const struct cli_table table = bench_option_table();
    struct cli_given given = { 0 };
    bench_arguments_defaults(out, cpus);
    if (cli_read_early(&table, out, argc, argv))
        return STOKER_OK;
    int rc = cli_read(&table, out, &given, argc, argv, message);
    if (rc != STOKER_OK)
        return rc;
    out->pins_given = cli_given(&table, &given, "pin-memory");
    out->repeats_given = cli_given(&table, &given, "repeats");
    if (!out->pins_given && out->device == STOKER_DEVICE_CPU) /* it cannot help there */
        out->pins = (struct cli_list){ .values = { STOKER_SWITCH_OFF }, .count = 1 };
    if (rc == STOKER_OK && out->decode != STOKER_DECODE_CPU && out->verify &&
        cli_given(&table, &given, "verify"))
        return cli_complain(message, "--verify compares with what the CPU decodes: it goes with "
                                     "--decode cpu");
    if (!cli_given(&table, &given, "ceilings")) /* the plain table does not show them */
        out->ceilings = out->wide || out->html != NULL || out->format != BENCH_FORMAT_TABLE;
    if (stk_transform_wanted(&out->transform) && out->device != STOKER_DEVICE_CPU)
        out->ceilings = false; /* the GPU does a part of the transforms, which no bare loop does */
    if (out->cold && !cli_given(&table, &given, "cache"))
        out->caches.values[0] = STOKER_CACHE_NONE;
    if (optind < argc)
        out->dataset = argv[optind++];
    if (optind < argc)
        return cli_complain(message, "more than one data set: '%.80s'", argv[optind]);
    rc = set_gpu_defaults(out, message);
    return rc == STOKER_OK ? check_together(out, message) : rc;
}

void bench_arguments_default_mean(struct bench_arguments *arguments, const char *dataset_name)
{
    if (arguments->mean.count != 0 || strcmp(dataset_name, "mnist") != 0)
        return;
    arguments->mean.values[0] = 0.1307f;
    arguments->std.values[0] = 0.3081f;
    arguments->mean.count = 1;
    arguments->std.count = 1;
}
