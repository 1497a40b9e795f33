/* option_table.c - see option_table.h. */
#include "trainer/programs/option_table.h"

#include <assert.h>

static const char *const preset_words[] = { "fast", "pytorch", NULL };
static const char *const pin_words[] = { "auto", "on", "off", NULL };
static const char *const optimizer_words[] = { "sgd",      "adam",   "adamw", "adagrad", "rmsprop",
                                               "adadelta", "adamax", "asgd",  NULL };
static const char *const amp_words[] = { "off", "fp16", "bf16", NULL };
static const char *const tf32_words[] = { "off", "on", NULL };
static const char *const schedule_words[] = { "constant", "step", "cosine", "one-cycle", NULL };

#define AT(field)   offsetof(struct arguments, field)
#define UPDATES_MAX 1e15
enum { MNIST = PROGRAM_MNIST, HOUSING = PROGRAM_HOUSING, BOTH = MNIST | HOUSING };

const struct option_row option_rows[] = {
    { .programs = BOTH, .help = "Data" },
    { "data", 0, MNIST, TEXT, AT(data), 0, 0, "SPEC", NULL,
      "images with classes: mnist:DIR, idx:IMAGES,LABELS, synth:digits",
      "mnist:$STOKER_DATA/mnist, else mnist:data/mnist, else synth:digits" },
    { "data", 0, HOUSING, TEXT, AT(data), 0, 0, "SPEC", NULL, "csv:FILE?label=COLUMN",
      "csv:$STOKER_DATA/boston/BostonHousing.csv, else under data/, 20 % kept for testing" },
    { "test-data", 0, BOTH, TEXT, AT(test_data), 0, 0, "SPEC", NULL, "what to test on",
      "the split \"test\" of --data" },
    { "mean", 0, MNIST, REAL, AT(mean), 0, 1, "X", NULL, "of the pixels, 0..1", "mnist: 0.1307" },
    { "std", 0, MNIST, REAL, AT(std), 1e-6, 1e6, "X", NULL, "their standard deviation",
      "mnist: 0.3081" },
    { "workers", 0, BOTH, WORKERS, AT(workers), 0, STOKER_WORKERS_MAX, "N", NULL,
      "threads that load, 0 = the training thread, or auto", NULL },
    { "pin-memory", 0, BOTH, WORD, AT(pin_memory), 0, 0, "WORD", pin_words,
      "page-lock the batches: auto, on, off", NULL },

    { .programs = BOTH, .help = "Training" },
    { "preset", 0, MNIST, WORD, AT(preset), 0, 0, "NAME", preset_words,
      "fast, pytorch: network and settings", NULL },
    { "epochs", 0, BOTH, COUNT32, AT(epochs), 1, 1e9, "N", NULL, "passes over the training data",
      NULL },
    { "steps", 0, BOTH, COUNT64, AT(steps), 1, UPDATES_MAX, "N", NULL,
      "stop after so many updates; without --epochs, as many epochs as they take",
      "as many as the epochs have" },
    { "batch-size", 0, BOTH, BATCH_SIZE, AT(batch_size), 1, STOKER_BATCH_MAX, "N", NULL,
      "samples of one pass, or max: the most that fits in --memory-budget or else half of the "
      "memory that is free",
      NULL },
    { "accumulate", 0, BOTH, COUNT32, AT(accumulate), 1, 65536, "N", NULL, "passes to one update",
      NULL },
    { "seed", 0, BOTH, COUNT64, AT(seed), 0, 1.8446744073709552e19, "N", NULL,
      "of weights, order and dropout", NULL },
    { "label-smoothing", 0, MNIST, REAL, AT(label_smoothing), 0, 0.999, "X", NULL, "0..<1", NULL },

    { .programs = BOTH, .help = "Optimiser" },
    { "optimizer", 0, BOTH, WORD, AT(optimizer), 0, 0, "NAME", optimizer_words,
      "sgd, adam, adamw, adagrad, rmsprop, adadelta, adamax, asgd", NULL },
    { "lr", 0, BOTH, REAL, AT(learning_rate), 0, 1e6, "X", NULL,
      "learning rate; another --optimizer has its own", NULL },
    { "betas", 0, BOTH, PAIR, AT(betas), 0, 0.9999999, "A,B", NULL, "of the Adam family", NULL },
    { "momentum", 0, BOTH, REAL, AT(momentum), 0, 0.999999, "X", NULL, "of sgd and rmsprop", NULL },
    { "nesterov", 0, BOTH, FLAG, AT(nesterov), 0, 0, NULL, NULL, "Nesterov's momentum", NULL },
    { "weight-decay", 0, BOTH, REAL, AT(weight_decay), 0, 1e6, "X", NULL,
      "part of each weight that is taken off", NULL },
    { "clip-norm", 0, BOTH, REAL, AT(clip_norm), 0, 1e30, "X", NULL,
      "largest norm of the gradient; 0 = none", NULL },
    { "ema", 0, BOTH, REAL, AT(ema), 0, 0.9999999, "X", NULL,
      "decay of the moving average of the weights, which is then what tests use; 0 = none", NULL },
    { "schedule", 0, BOTH, WORD, AT(schedule), 0, 0, "NAME", schedule_words,
      "constant, step, cosine, one-cycle", NULL },
    { "warmup", 0, BOTH, COUNT64, AT(warmup), 0, UPDATES_MAX, "N", NULL,
      "updates in which the rate rises from 0, fewer than the run has", NULL },
    { "gamma", 0, BOTH, REAL, AT(gamma), 0, 1, "X", NULL,
      "step: factor on the rate after each epoch", NULL },

    { .programs = BOTH, .help = "Memory and speed" },
    { "memory-budget", 0, BOTH, BYTES, AT(memory_budget), 1, 1e15, "BYTES", NULL,
      "most memory for training, with K, M or G; chooses what is worked out again instead of kept",
      "no limit" },
    { "checkpoint-segments", 0, BOTH, COUNT32, AT(checkpoint_segments), 0, 8192, "N", NULL,
      "keep activations at so many places only; 0 = keep all", NULL },
    { "device", 0, BOTH, TEXT, AT(device), 0, 0, "NAME", NULL,
      "auto, cpu, cuda, cuda:1 (the second GPU), or ref: plain loops, slow, to compare with",
      "auto: a GPU if there is one" },
    { "split", 0, BOTH, COUNT32, AT(split), 1, 8192, "K", NULL,
      "with --device A,B (cuda:0,cuda:1 or cpu,cuda:0): the first K layers on A, the others on B; "
      "at once with an --accumulate of more than 1",
      NULL },
    { "amp", 0, BOTH, WORD, AT(amp), 0, 0, "TYPE", amp_words,
      "store activations in 16 bits: off, fp16 (with a dynamic loss scale), bf16; cuda and ref "
      "only",
      NULL },
    { "tf32", 0, BOTH, WORD, AT(tf32), 0, 0, "WORD", tf32_words,
      "cuda only, in float32: products may round their factors to 10 bits: off, on", NULL },
    { "benchmark", 0, BOTH, FLAG, AT(benchmark), 0, 0, NULL, NULL,
      "cuda only: time the algorithms of each layer, and take the fastest", NULL },
    { "threads", 0, BOTH, COUNT32, AT(threads), 1, 256, "N", NULL, "that compute",
      "as many as there are CPUs" },
    { "deterministic", 0, BOTH, FLAG, AT(deterministic), 0, 0, NULL, NULL,
      "one seed, the same bits: on a GPU, too; cpu and ref always are, for one number of threads",
      NULL },

    { .programs = BOTH, .help = "Files" },
    { "save", 0, BOTH, TEXT, AT(save), 0, 0, "FILE", NULL,
      "write a checkpoint at the end (.safetensors)", NULL },
    { "save-every", 0, BOTH, COUNT64, AT(save_every), 1, UPDATES_MAX, "N", NULL,
      "and after every N updates", NULL },
    { "load", 0, BOTH, TEXT, AT(load), 0, 0, "FILE", NULL,
      "go on from a checkpoint, in mid-epoch too", NULL },
    { "weights", 0, BOTH, TEXT, AT(weights), 0, 0, "FILE", NULL,
      "start from these weights: PyTorch's names and layouts", NULL },
    { "log-dir", 0, BOTH, TEXT, AT(log_dir), 0, 0, "DIR", NULL, "write TensorBoard events", NULL },
    { "log", 0, BOTH, TEXT, AT(log), 0, 0, "FILE", NULL, "write the same numbers as CSV", NULL },
    { "trace", 0, BOTH, TEXT, AT(trace), 0, 0, "FILE", NULL,
      "write what each loading thread did, when: JSON for ui.perfetto.dev", NULL },

    { .programs = BOTH, .help = "What to do" },
    { "eval-every", 0, BOTH, COUNT32, AT(eval_every), 0, 1e9, "N", NULL,
      "test after every N epochs, 0 = at the end only", NULL },
    { "eval-only", 0, BOTH, ACTION, 0, ACTION_EVALUATE, 0, NULL, NULL,
      "test what --load (its averages, if it has any) or --weights names, and stop", NULL },
    { "summary", 0, BOTH, ACTION, 0, ACTION_SUMMARY, 0, NULL, NULL,
      "show layers and memory, and stop", NULL },
    { "list-devices", 0, BOTH, ACTION, 0, ACTION_DEVICES, 0, NULL, NULL,
      "show what --device can be here, and why there is no GPU", NULL },
    { "quiet", 'q', BOTH, FLAG, AT(quiet), 0, 0, NULL, NULL, "the result only", NULL },
    { "help", 'h', BOTH, ACTION, 0, ACTION_HELP, 0, NULL, NULL, "this text", NULL },
    { "version", 0, BOTH, ACTION, 0, ACTION_VERSION, 0, NULL, NULL, "the version", NULL },
};
const size_t option_row_count = sizeof(option_rows) / sizeof(option_rows[0]);

static_assert(sizeof(option_rows) / sizeof(option_rows[0]) <= OPTION_ROWS_MAX, "all have a place");

const char *preset_name(enum preset preset)
{
    return preset == PRESET_HOUSING ? "housing" : preset_words[preset];
}

const char *optimizer_name(stoker_optimizer optimizer)
{
    return optimizer_words[optimizer];
}

const char *schedule_name(stoker_schedule schedule)
{
    return schedule_words[schedule];
}

const char *amp_name(enum amp amp)
{
    return amp_words[amp];
}
