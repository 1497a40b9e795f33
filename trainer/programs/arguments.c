/* arguments.c - see arguments.h. The line is read twice: for the preset, then for what changes
 * it. */
#include "trainer/programs/arguments.h"

#include <getopt.h>
#include <inttypes.h>
#include <stoker/error.h>
#include <string.h>

bool arguments_give(const struct arguments *arguments, const char *name)
{
    const struct cli_table table = option_table(arguments->program);
    return cli_given(&table, &arguments->given, name);
}

bool optimizer_takes_betas(stoker_optimizer optimizer)
{
    return optimizer == STOKER_OPTIMIZER_ADAM || optimizer == STOKER_OPTIMIZER_ADAMW ||
           optimizer == STOKER_OPTIMIZER_ADAMAX;
}

static bool takes_momentum(stoker_optimizer optimizer)
{
    return optimizer == STOKER_OPTIMIZER_SGD || optimizer == STOKER_OPTIMIZER_RMSPROP;
}

static bool writes_files(const struct arguments *arguments)
{
    return arguments->save != NULL || arguments->log != NULL || arguments->log_dir != NULL ||
           arguments->trace != NULL;
}

/* Rate and betas of a preset are those of its optimizer: another one has its own. */
static void suit_optimizer(struct arguments *arguments, stoker_optimizer of_preset)
{
    if (arguments->optimizer == of_preset)
        return;
    if (!arguments_give(arguments, "lr"))
        arguments->learning_rate = (double)STOKER_OPTIMIZER_DEFAULT;
    if (!arguments_give(arguments, "betas")) {
        arguments->betas[0] = 0.9;
        arguments->betas[1] = 0.999;
    }
}

static int check_devices(const struct arguments *arguments, char *message)
{
    struct device_list devices;
    const bool several = arguments->device != NULL && strchr(arguments->device, ',') != NULL;
    if (arguments->data_parallel && arguments->split > 0)
        return cli_complain(
            message, "--split and --data-parallel: a rank has one device; choose one of them");
    if (arguments->data_parallel && arguments->device == NULL)
        return cli_complain(message,
                            "--data-parallel: name the devices, as in --device cuda:0,cuda:1");
    if (arguments->data_parallel)
        return device_list_read(&devices, arguments->device, message);
    if (several && arguments->split == 0)
        return cli_complain(
            message, "--device %.80s: what are several devices for: --data-parallel, or --split?",
            arguments->device);
    return STOKER_OK;
}

static int check_together(const struct arguments *arguments, char *message)
{
    if (arguments->load != NULL && arguments->weights != NULL)
        return cli_complain(message, "--load brings weights along: leave out --weights");
    if (arguments->action == ACTION_EVALUATE && arguments->load == NULL &&
        arguments->weights == NULL)
        return cli_complain(message, "--eval-only: say what to test with --load or --weights");
    if (arguments->save_every != 0 && arguments->save == NULL)
        return cli_complain(message, "--save-every: say where to with --save");
    if ((arguments->std > 0.0) != (arguments->mean >= 0.0))
        return cli_complain(message, "--mean and --std go together");
    if (arguments->nesterov &&
        (arguments->optimizer != STOKER_OPTIMIZER_SGD || arguments->momentum <= 0.0))
        return cli_complain(message, "--nesterov goes with --optimizer sgd and a --momentum");
    if (arguments_give(arguments, "momentum") && !takes_momentum(arguments->optimizer))
        return cli_complain(
            message, "--momentum has no effect on %s: it goes with --optimizer sgd or rmsprop",
            optimizer_name(arguments->optimizer));
    if (arguments_give(arguments, "betas") && !optimizer_takes_betas(arguments->optimizer))
        return cli_complain(message,
                            "--betas has no effect on %s: it goes with adam, adamw and adamax",
                            optimizer_name(arguments->optimizer));
    if (arguments_give(arguments, "gamma") && arguments->schedule != STOKER_SCHEDULE_STEP)
        return cli_complain(message, "--gamma has no effect on %s: it goes with --schedule step",
                            schedule_name(arguments->schedule));
    if (arguments->action == ACTION_EVALUATE && writes_files(arguments))
        return cli_complain(message,
                            "--eval-only trains nothing: leave out --save, --log, --log-dir "
                            "and --trace");
    if (arguments->schedule == STOKER_SCHEDULE_ONE_CYCLE && arguments->warmup != 0)
        return cli_complain(message, "--warmup: one-cycle has a rise of its own");
    if (arguments->global_batch > 0 && arguments_give(arguments, "batch-size"))
        return cli_complain(message,
                            "--global-batch gives the --batch-size of each rank: leave it out");
    return check_devices(arguments, message);
}

int arguments_divide_batch(struct arguments *arguments, uint32_t world_size,
                           char message[CLI_MESSAGE_BYTES])
{
    const uint64_t passes = (uint64_t)world_size * arguments->accumulate;
    const uint32_t samples = arguments->global_batch;
    if (samples == 0)
        return STOKER_OK;
    if (samples % passes != 0)
        return cli_complain(message,
                            "--global-batch %" PRIu32 " is no multiple of %" PRIu32
                            " ranks x --accumulate %" PRIu32,
                            samples, world_size, arguments->accumulate);
    if (samples / passes > STOKER_BATCH_MAX)
        return cli_complain(message,
                            "--global-batch %" PRIu32 ": a pass has at most %d samples; give more "
                            "--accumulate",
                            samples, STOKER_BATCH_MAX);
    arguments->batch_size = (uint32_t)(samples / passes);
    return STOKER_OK;
}

static int read_all(struct arguments *out, const struct cli_table *table, int argc,
                    char *const *argv, char *message)
{
    const int rc = cli_read(table, out, &out->given, argc, argv, message);
    if (rc == STOKER_OK && optind < argc)
        return cli_complain(message, "'%.80s' is no option", argv[optind]);
    return rc;
}

int arguments_parse(struct arguments *out, enum program program, const enum preset *preset,
                    int argc, char *const *argv, char message[CLI_MESSAGE_BYTES])
{
    const struct cli_table table = option_table(program);
    struct arguments first = { .preset = preset != NULL               ? *preset
                                         : program == PROGRAM_HOUSING ? PRESET_HOUSING
                                                                      : PRESET_FAST };
    const bool stop = cli_read_early(&table, &first, argc, argv);
    preset_apply(out, first.preset);
    out->program = program;
    out->action = first.action;
    out->help = first.help;
    if (stop)
        return STOKER_OK;
    /* The preset's count of updates holds only if the line does not give the length. */
    const struct arguments own = *out;
    out->epochs = 0;
    out->steps = 0;
    int rc = read_all(out, &table, argc, argv, message);
    out->steps_alone = out->epochs == 0 && out->steps != 0;
    if (out->epochs == 0 && out->steps == 0)
        out->steps = own.steps;
    if (out->epochs == 0)
        out->epochs = own.epochs;
    suit_optimizer(out, own.optimizer);
    return rc == STOKER_OK ? check_together(out, message) : rc;
}

/* ---- printing it again ------------------------------------------------------------ */

/* A word as a shell reads it back. */
static void print_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+%@";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        fputs(word, file);
        return;
    }
    fputc('\'', file);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\''", file);
        else
            fputc(*word, file);
    }
    fputc('\'', file);
}

void arguments_print_again(FILE *file, int argc, char *const *argv, const char *load)
{
    print_word(file, argv[0]);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--load") == 0 || strcmp(argv[i], "--weights") == 0) {
            i++; /* and its value */
            continue;
        }
        if (strncmp(argv[i], "--load=", 7) == 0 || strncmp(argv[i], "--weights=", 10) == 0)
            continue;
        fputc(' ', file);
        print_word(file, argv[i]);
    }
    fputs(" --load ", file);
    print_word(file, load);
    fputc('\n', file);
}

/* ---- presets ----
 *
 *   fast      234 updates, Adam with a one-cycle rate: settings after tuomaso's train_mnist_fast,
 *             and smoothed labels
 *   pytorch   those of PyTorch's examples/mnist
 *   batchnorm those of fast
 *   housing   Adam at a constant rate
 */
void preset_apply(struct arguments *out, enum preset preset)
{
    *out = (struct arguments){ .action = ACTION_TRAIN,
                               .preset = preset,
                               .mean = -1.0,
                               .workers = STOKER_WORKERS_AUTO,
                               .batch_size = 64,
                               .accumulate = 1,
                               .optimizer = STOKER_OPTIMIZER_ADAM,
                               .betas = { 0.9, 0.999 },
                               .gamma = 0.1,
                               .peer_timeout = 120,
                               .eval_every = 1 };
    if (preset == PRESET_PYTORCH) {
        out->epochs = 3;
        out->optimizer = STOKER_OPTIMIZER_ADADELTA;
        out->learning_rate = 1.0;
        out->schedule = STOKER_SCHEDULE_STEP;
        out->gamma = 0.7;
    } else if (preset == PRESET_HOUSING) {
        out->epochs = 300;
        out->batch_size = 128;
        out->learning_rate = 0.01;
        out->eval_every = 50;
    } else {
        out->epochs = 1;
        out->steps = 234; /* the whole batches of an epoch: a GPU captures a step for each size */
        out->batch_size = 256;
        out->learning_rate = 0.015;
        out->label_smoothing = 0.1; /* without it one epoch is not enough */
        out->betas[0] = 0.7;
        out->betas[1] = 0.9;
        out->schedule = STOKER_SCHEDULE_ONE_CYCLE;
    }
}

/* ---- the devices of --data-parallel ---- */

static int add(struct device_list *list, const char *name, size_t length, const char *text,
               char *message)
{
    if (length == 0)
        return cli_complain(message, "--device %.80s: a name is empty", text);
    if (length >= DEVICE_BYTES)
        return cli_complain(message, "--device: '%.*s' is no device", (int)length, name);
    if (list->count == DEVICES_MAX)
        return cli_complain(message, "--device: more than %d devices", DEVICES_MAX);
    char *const added = list->name[list->count];
    memcpy(added, name, length);
    added[length] = '\0';
    if (strcmp(added, "cuda") == 0)
        memcpy(added, "cuda:0", sizeof("cuda:0"));
    /* A GPU has memory for one rank, and NCCL wants one rank on each. */
    for (uint32_t d = 0; d < list->count && strncmp(added, "cuda", 4) == 0; d++)
        if (strcmp(list->name[d], added) == 0)
            return cli_complain(message, "--device %.80s: a GPU takes one rank, %s is named twice",
                                text, added);
    list->count++;
    return STOKER_OK;
}

int device_list_read(struct device_list *out, const char *text, char message[CLI_MESSAGE_BYTES])
{
    int rc = STOKER_OK;
    out->count = 0;
    for (const char *name = text; rc == STOKER_OK; name += strcspn(name, ",") + 1) {
        const size_t length = strcspn(name, ",");
        rc = add(out, name, length, text, message);
        if (name[length] == '\0')
            break;
    }
    return rc;
}
