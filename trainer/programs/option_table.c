/* option_table.c - the options of stoker-mnist and stoker-housing, and what --help prints: each row
 * with its default in this program.
 *
 *   --lr X      learning rate (fast 0.01; pytorch 1)      the presets differ
 *   --seed N    of weights, order and dropout (0)         they do not
 */
#include <assert.h>
#include <string.h>

#include "trainer/programs/arguments.h"

static const struct cli_word preset_words[] = { { "fast", PRESET_FAST },
                                                { "pytorch", PRESET_PYTORCH },
                                                { "batchnorm", PRESET_BATCHNORM },
                                                { NULL, 0 } };
static const struct cli_word pin_words[] = { { "auto", STOKER_SWITCH_AUTO },
                                             { "on", STOKER_SWITCH_ON },
                                             { "off", STOKER_SWITCH_OFF },
                                             { NULL, 0 } };
static const struct cli_word optimizer_words[] = { { "sgd", STOKER_OPTIMIZER_SGD },
                                                   { "adam", STOKER_OPTIMIZER_ADAM },
                                                   { "adamw", STOKER_OPTIMIZER_ADAMW },
                                                   { "adagrad", STOKER_OPTIMIZER_ADAGRAD },
                                                   { "rmsprop", STOKER_OPTIMIZER_RMSPROP },
                                                   { "adadelta", STOKER_OPTIMIZER_ADADELTA },
                                                   { "adamax", STOKER_OPTIMIZER_ADAMAX },
                                                   { "asgd", STOKER_OPTIMIZER_ASGD },
                                                   { NULL, 0 } };
static const struct cli_word amp_words[] = {
    { "off", AMP_OFF }, { "fp16", AMP_FP16 }, { "bf16", AMP_BF16 }, { NULL, 0 }
};
static const struct cli_word tf32_words[] = { { "off", TF32_OFF }, { "on", TF32_ON }, { NULL, 0 } };
static const struct cli_word schedule_words[] = { { "constant", STOKER_SCHEDULE_CONSTANT },
                                                  { "step", STOKER_SCHEDULE_STEP },
                                                  { "cosine", STOKER_SCHEDULE_COSINE },
                                                  { "one-cycle", STOKER_SCHEDULE_ONE_CYCLE },
                                                  { NULL, 0 } };
static const struct cli_word devices[] = {
    { "auto", 0 }, { "cpu", 0 }, { "cuda", 0 }, { "ref", 0 }, { NULL, 0 }
};
static const struct cli_word auto_workers[] = { { "auto", STOKER_WORKERS_AUTO }, { NULL, 0 } };
static const struct cli_word max_batch[] = { { "max", STOKER_BATCH_SIZE_AUTO }, { NULL, 0 } };

#define AT(field)   offsetof(struct arguments, field)
#define UPDATES_MAX 1e15
enum { MNIST = PROGRAM_MNIST, HOUSING = PROGRAM_HOUSING };

static const struct cli_option rows[] = {
    { .help = "Data" },
    { "data", 0, CLI_TEXT, AT(data), 0, 0, "SPEC", NULL,
      .help = "images with classes: mnist:DIR, idx:IMAGES,LABELS, synth:digits",
      .unset = "mnist:$STOKER_DATA/mnist, else mnist:data/mnist, else synth:digits",
      .programs = MNIST },
    { "data", 0, CLI_TEXT, AT(data), 0, 0, "SPEC", NULL, .help = "csv:FILE?label=COLUMN",
      .unset = "csv:$STOKER_DATA/boston/BostonHousing.csv, else under data/, 20 % kept for testing",
      .programs = HOUSING },
    { "test-data", 0, CLI_TEXT, AT(test_data), 0, 0, "SPEC", NULL, .help = "the data to test on",
      .unset = "the split \"test\" of --data" },
    { "mean", 0, CLI_REAL, AT(mean), 0, 1, "X", NULL, .help = "of the pixels, 0..1",
      .unset = "mnist: 0.1307", .programs = MNIST },
    { "std", 0, CLI_REAL, AT(std), 1e-6, 1e6, "X", NULL, .help = "their standard deviation",
      .unset = "mnist: 0.3081", .programs = MNIST },
    { "workers", 0, CLI_COUNT32, AT(workers), 0, STOKER_WORKERS_MAX, "N", auto_workers,
      .help = "threads that load; 0 = the training thread; or auto" },
    { "pin-memory", 0, CLI_WORD, AT(pin_memory), 0, 0, "WORD", pin_words,
      .help = "page-lock the batches: auto, on, off" },

    { .help = "Training" },
    { "preset", 0, CLI_WORD, AT(preset), 0, 0, "NAME", preset_words,
      .help = "fast, pytorch, batchnorm: network and settings; batchnorm has those of fast",
      .programs = MNIST, .early = true },
    { "epochs", 0, CLI_COUNT32, AT(epochs), 1, 1e9, "N", NULL,
      .help = "passes over the training data" },
    { "steps", 0, CLI_COUNT64, AT(steps), 1, UPDATES_MAX, "N", NULL,
      .help = "stop after N updates; without --epochs, as many epochs as they take",
      .unset = "all updates of the epochs" },
    { "batch-size", 0, CLI_COUNT32, AT(batch_size), 1, STOKER_BATCH_MAX, "N", max_batch,
      .help =
          "samples of one pass, or max: the most that fits in --memory-budget or else half of the "
          "memory that is free" },
    { "accumulate", 0, CLI_COUNT32, AT(accumulate), 1, 65536, "N", NULL,
      .help = "passes to one update" },
    { "seed", 0, CLI_COUNT64, AT(seed), 0, 1.8446744073709552e19, "N", NULL,
      .help = "of weights, order and dropout" },
    { "label-smoothing", 0, CLI_REAL, AT(label_smoothing), 0, 0.999, "X", NULL, .help = "0..<1",
      .programs = MNIST },

    { .help = "Optimizer" },
    { "optimizer", 0, CLI_WORD, AT(optimizer), 0, 0, "NAME", optimizer_words,
      .help = "sgd, adam, adamw, adagrad, rmsprop, adadelta, adamax, asgd" },
    { "lr", 0, CLI_REAL, AT(learning_rate), 0, 1e6, "X", NULL,
      .help = "learning rate; another --optimizer has its own" },
    { "betas", 0, CLI_PAIR, AT(betas), 0, 0.9999999, "A,B", NULL, .help = "of the Adam family" },
    { "momentum", 0, CLI_REAL, AT(momentum), 0, 0.999999, "X", NULL, .help = "of sgd and rmsprop" },
    { "nesterov", 0, CLI_FLAG, AT(nesterov), 0, 0, NULL, NULL, .help = "Nesterov's momentum" },
    { "weight-decay", 0, CLI_REAL, AT(weight_decay), 0, 1e6, "X", NULL,
      .help = "part of each weight subtracted" },
    { "clip-norm", 0, CLI_REAL, AT(clip_norm), 0, 1e30, "X", NULL,
      .help = "largest norm of the gradient; 0 = none" },
    { "ema", 0, CLI_REAL, AT(ema), 0, 0.9999999, "X", NULL,
      .help = "decay of the moving average of the weights, which tests then use; 0 = none" },
    { "schedule", 0, CLI_WORD, AT(schedule), 0, 0, "NAME", schedule_words,
      .help = "constant, step, cosine, one-cycle" },
    { "warmup", 0, CLI_COUNT64, AT(warmup), 0, UPDATES_MAX, "N", NULL,
      .help = "updates in which the rate rises from 0, fewer than the run has" },
    { "gamma", 0, CLI_REAL, AT(gamma), 0, 1, "X", NULL,
      .help = "step: factor on the rate after each epoch" },

    { .help = "Memory and speed" },
    { "memory-budget", 0, CLI_BYTES, AT(memory_budget), 1, 0x1p50, "BYTES", NULL,
      .help = "most memory for training, with K, M or G; chooses what is worked out again instead "
              "of kept",
      .unset = "no limit" },
    { "checkpoint-segments", 0, CLI_COUNT32, AT(checkpoint_segments), 0, 8192, "N", NULL,
      .help = "keep activations at N places only; 0 = keep all" },
    { "device", 0, CLI_TEXT, AT(device), 0, 0, "NAME", devices,
      .help =
          "auto, cpu, cuda, cuda:1 (the second GPU), or ref: plain loops, slow, to compare with",
      .unset = "auto: a GPU if there is one" },
    { "split", 0, CLI_COUNT32, AT(split), 1, 8192, "K", NULL,
      .help = "with --device A,B (cuda:0,cuda:1 or cpu,cuda:0): the first K layers on A, the "
              "others on B; "
              "at once with an --accumulate of more than 1" },
    { "amp", 0, CLI_WORD, AT(amp), 0, 0, "TYPE", amp_words,
      .help =
          "store activations in 16 bits: off, fp16 (with a dynamic loss scale; not on cpu), bf16 "
          "(on cpu: with AVX512_BF16)" },
    { "tf32", 0, CLI_WORD, AT(tf32), 0, 0, "WORD", tf32_words,
      .help = "cuda only, in float32: products may round their factors to 10 bits: off, on" },
    { "benchmark", 0, CLI_FLAG, AT(benchmark), 0, 0, NULL, NULL,
      .help = "cuda only: time the algorithms of each layer, and take the fastest" },
    { "threads", 0, CLI_COUNT32, AT(threads), 1, 256, "N", NULL, .help = "threads that compute",
      .unset = "one per CPU" },
    { "deterministic", 0, CLI_FLAG, AT(deterministic), 0, 0, NULL, NULL,
      .help = "one seed, the same bits: on a GPU, too; cpu and ref always are, for one number of "
              "threads" },

    { .help = "Several ranks" },
    { "data-parallel", 0, CLI_FLAG, AT(data_parallel), 0, 0, NULL, NULL,
      .help = "with --device A,B,...: a rank on each, as threads of this program, which train one "
              "network together; mpirun starts ranks without it" },
    { "global-batch", 0, CLI_COUNT32, AT(global_batch), 1, 1e9, "N", NULL,
      .help = "samples of an update, of all ranks and passes: gives the --batch-size, so a run "
              "continues on another number of ranks",
      .unset = "--batch-size x --accumulate x ranks" },
    { "sync-batch-norm", 0, CLI_FLAG, AT(sync_batch_norm), 0, 0, NULL, NULL,
      .help =
          "with --preset batchnorm: BatchNorm takes the statistics of all ranks' samples together",
      .programs = MNIST },
    { "peer-timeout", 0, CLI_REAL, AT(peer_timeout), 0.001, 2147483, "SECONDS", NULL,
      .help = "longest wait for another rank; more than its slowest pass or save takes" },

    { .help = "Files" },
    { "save", 0, CLI_TEXT, AT(save), 0, 0, "FILE", NULL,
      .help = "write a checkpoint at the end (.safetensors)" },
    { "save-every", 0, CLI_COUNT64, AT(save_every), 1, UPDATES_MAX, "N", NULL,
      .help = "with --save: also after every N updates" },
    { "load", 0, CLI_TEXT, AT(load), 0, 0, "FILE", NULL,
      .help = "continue from a checkpoint, also within an epoch" },
    { "weights", 0, CLI_TEXT, AT(weights), 0, 0, "FILE", NULL,
      .help = "start from these weights: PyTorch's names and layouts" },
    { "log-dir", 0, CLI_TEXT, AT(log_dir), 0, 0, "DIR", NULL, .help = "write TensorBoard events" },
    { "log", 0, CLI_TEXT, AT(log), 0, 0, "FILE", NULL, .help = "write the same numbers as CSV" },
    { "trace", 0, CLI_TEXT, AT(trace), 0, 0, "FILE", NULL,
      .help = "write what each loading thread did and when, as JSON for ui.perfetto.dev" },

    { .help = "What to do" },
    { "eval-every", 0, CLI_COUNT32, AT(eval_every), 0, 1e9, "N", NULL,
      .help = "test after every N epochs, 0 = at the end only" },
    { "eval-only", 0, CLI_ACTION, AT(action), ACTION_EVALUATE, 0, NULL, NULL,
      .help = "test what --load (its averages, if it has any) or --weights names, and stop" },
    { "summary", 0, CLI_ACTION, AT(action), ACTION_SUMMARY, 0, NULL, NULL,
      .help = "show layers and memory, and stop" },
    { "list-devices", 0, CLI_STOP, AT(action), ACTION_DEVICES, 0, NULL, NULL,
      .help = "show the values of --device here, and why there is no GPU" },
    { "quiet", 'q', CLI_FLAG, AT(quiet), 0, 0, NULL, NULL, .help = "print the result only" },
    CLI_HELP_ROW(AT(help)),
    { "version", 0, CLI_STOP, AT(action), ACTION_VERSION, 0, NULL, NULL, .help = "the version" },
};

static_assert(sizeof(rows) / sizeof(rows[0]) <= CLI_OPTIONS_MAX, "the rows that a line has");

struct cli_table option_table(enum program program)
{
    return (struct cli_table){ rows, sizeof(rows) / sizeof(rows[0]), program };
}

const char *preset_name(enum preset preset)
{
    return preset == PRESET_HOUSING ? "housing" : preset_words[preset].text;
}

const char *optimizer_name(stoker_optimizer optimizer)
{
    return optimizer_words[optimizer].text;
}

const char *schedule_name(stoker_schedule schedule)
{
    return schedule_words[schedule].text;
}

const char *amp_name(enum amp amp)
{
    return amp_words[amp].text;
}

/* ---- --help ---------------------------------------------------------------------- */

static void default_of(char text[CLI_DEFAULT_BYTES], const struct cli_option *row,
                       enum preset preset)
{
    struct arguments arguments;
    preset_apply(&arguments, preset);
    cli_default(text, row, &arguments);
}

static void housing_default(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row)
{
    default_of(text, row, PRESET_HOUSING);
}

static void mnist_default(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row)
{
    char fast[CLI_DEFAULT_BYTES];
    char pytorch[CLI_DEFAULT_BYTES];
    default_of(fast, row, PRESET_FAST);
    default_of(pytorch, row, PRESET_PYTORCH);
    if (row->at == offsetof(struct arguments, preset) || strcmp(fast, pytorch) == 0)
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%s", fast);
    else
        (void)snprintf(text, 2 * CLI_DEFAULT_BYTES + 40, "fast %s; pytorch %s", fast, pytorch);
}

void arguments_help(FILE *file, enum program program, enum cli_form form)
{
    const bool mnist = program == PROGRAM_MNIST;
    const struct cli_page page = {
        .name = mnist ? "stoker-mnist" : "stoker-housing",
        .about = mnist ? "train a network to classify images" : "fit a network to a table",
        .before = mnist ? "Train a network to classify images, and test it.\n"
                        : "Fit a small network to a table of numbers (Boston housing), and test "
                          "it.\n",
        .after = "# Exit status\n"
                 "0\tdone\n"
                 "1\tfailed\n"
                 "2\tbad usage\n"
                 "130\tstopped by Ctrl-C, which saves what was learnt and prints the command "
                 "that continues\n",
        .table = option_table(program),
        .describe_default = mnist ? mnist_default : housing_default,
        .formats = stoker_dataset_formats,
    };
    cli_print_page(file, &page, form);
}
