/* arguments.c - see arguments.h.
 *
 * getopt_long splits the line. A row of the table says what an option is called, what kind of
 * value it takes, between which bounds, where that goes, and what --help tells about it.
 * The line is read twice: for the preset, then for what changes it.
 */
#include "trainer/programs/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/programs/presets.h"

enum kind {
    COUNT32,
    COUNT64,
    REAL,
    BYTES, /* a count with K, M, G or T behind it */
    TEXT,
    FLAG,
    WORD,       /* one of row.words, kept as its index */
    BATCH_SIZE, /* a count, or max */
    WORKERS,    /* a count, or auto */
    PAIR,       /* two reals */
    ACTION      /* sets row.min */
};

struct row {
    const char *name; /* NULL: help is the title of the rows that follow */
    char letter;
    unsigned programs;
    enum kind kind;
    size_t at;       /* where in struct arguments */
    double min, max; /* of a number */
    const char *value;
    const char *const *words;
    const char *help; /* lines after the first are indented by the writer */
};

static const char *const preset_words[] = { "fast", "pytorch", NULL };
static const char *const pin_words[] = { "auto", "on", "off", NULL };
static const char *const optimizer_words[] = { "sgd",      "adam",   "adamw", "adagrad", "rmsprop",
                                               "adadelta", "adamax", "asgd",  NULL };
static const char *const amp_words[] = { "off", "fp16", "bf16", NULL };
static const char *const tf32_words[] = { "off", "on", NULL };
static const char *const fusion_words[] = { "none", "ready", "all", NULL };
static const char *const schedule_words[] = { "constant", "step", "cosine", "one-cycle", NULL };

#define AT(field) offsetof(struct arguments, field)
enum { MNIST = PROGRAM_MNIST, BOTH = PROGRAM_MNIST | PROGRAM_HOUSING };
static const double UPDATES_MAX = 1e15;

static const struct row rows[] = {
    { .programs = BOTH, .help = "Data" },
    { "data", 0, BOTH, TEXT, AT(data), 0, 0, "SPEC", NULL, NULL },
    { "test-data", 0, BOTH, TEXT, AT(test_data), 0, 0, "SPEC", NULL,
      "what to test on (the split \"test\" of --data)" },
    { "mean", 0, MNIST, REAL, AT(mean), 0, 1, "X", NULL, "of the pixels, 0..1 (mnist: 0.1307)" },
    { "std", 0, MNIST, REAL, AT(std), 1e-6, 1e6, "X", NULL,
      "their standard deviation (mnist: 0.3081)" },
    { "workers", 0, BOTH, WORKERS, AT(workers), 0, STOKER_WORKERS_MAX, "N", NULL,
      "threads that load, 0 = the training thread, or auto (auto)" },
    { "pin-memory", 0, BOTH, WORD, AT(pin_memory), 0, 0, "WORD", pin_words,
      "page-lock the batches: auto, on, off (auto)" },

    { .programs = BOTH, .help = "Training" },
    { "preset", 0, MNIST, WORD, AT(preset), 0, 0, "NAME", preset_words,
      "fast, pytorch: network and settings (fast)" },
    { "epochs", 0, BOTH, COUNT32, AT(epochs), 1, 1e9, "N", NULL,
      "(fast 1.28: 600 updates; pytorch 3; housing 300)" },
    { "steps", 0, BOTH, COUNT64, AT(steps), 1, UPDATES_MAX, "N", NULL,
      "stop after so many updates; without --epochs, as many\nepochs as they take" },
    { "batch-size", 0, BOTH, BATCH_SIZE, AT(batch_size), 1, STOKER_BATCH_MAX, "N", NULL,
      "samples of one pass, or max: the most that fits in\n--memory-budget or else half of the "
      "memory that is free\n(fast 128, pytorch 64, housing 128)" },
    { "accumulate", 0, BOTH, COUNT32, AT(accumulate), 1, 65536, "N", NULL,
      "passes to one update (1)" },
    { "seed", 0, BOTH, COUNT64, AT(seed), 0, 1.8446744073709552e19, "N", NULL,
      "of weights, order and dropout (0)" },
    { "label-smoothing", 0, MNIST, REAL, AT(label_smoothing), 0, 0.999, "X", NULL, "0..<1 (0)" },

    { .programs = BOTH, .help = "Optimiser" },
    { "optimizer", 0, BOTH, WORD, AT(optimizer), 0, 0, "NAME", optimizer_words,
      "sgd, adam, adamw, adagrad, rmsprop, adadelta, adamax, asgd\n(fast, housing: adam; pytorch: "
      "adadelta)" },
    { "lr", 0, BOTH, REAL, AT(learning_rate), 1e-12, 1e6, "X", NULL,
      "learning rate (fast, housing 0.01; pytorch 1)" },
    { "betas", 0, BOTH, PAIR, AT(betas), 0, 0.9999999, "A,B", NULL,
      "of the Adam family (0.9,0.999; fast 0.7,0.9)" },
    { "momentum", 0, BOTH, REAL, AT(momentum), 0, 0.999999, "X", NULL, "of sgd and rmsprop (0)" },
    { "nesterov", 0, BOTH, FLAG, AT(nesterov), 0, 0, NULL, NULL, "Nesterov's momentum" },
    { "weight-decay", 0, BOTH, REAL, AT(weight_decay), 0, 1e6, "X", NULL, "(0)" },
    { "clip-norm", 0, BOTH, REAL, AT(clip_norm), 0, 1e30, "X", NULL,
      "largest norm of the gradient; 0 = none (0)" },
    { "ema", 0, BOTH, REAL, AT(ema), 0, 0.9999999, "X", NULL,
      "decay of the moving average of the weights; 0 = none (0)" },
    { "schedule", 0, BOTH, WORD, AT(schedule), 0, 0, "NAME", schedule_words,
      "constant, step, cosine, one-cycle (fast: one-cycle; pytorch:\nstep; housing: constant)" },
    { "warmup", 0, BOTH, COUNT64, AT(warmup), 0, UPDATES_MAX, "N", NULL,
      "updates in which the rate rises from 0 (0)" },
    { "gamma", 0, BOTH, REAL, AT(gamma), 1e-9, 1, "X", NULL,
      "step: factor on the rate after each epoch (0.1; pytorch 0.7)" },

    { .programs = BOTH, .help = "Memory and speed" },
    { "memory-budget", 0, BOTH, BYTES, AT(memory_budget), 1, 1e15, "BYTES", NULL,
      "most memory for training, with K, M or G; chooses what is\nworked out again instead of "
      "kept" },
    { "checkpoint-segments", 0, BOTH, COUNT32, AT(checkpoint_segments), 0, 8192, "N", NULL,
      "keep activations at so many places only; 0 = keep all (0)" },
    { "recompute-batch-norm", 0, BOTH, FLAG, AT(recompute_batch_norm), 0, 0, NULL, NULL,
      "work BatchNorm's outputs out again" },
    { "device", 0, BOTH, TEXT, AT(device), 0, 0, "NAME", NULL,
      "auto, cpu, cuda, cuda:1 (the second GPU), or ref: plain loops,\nslow, to compare with "
      "(auto: a "
      "GPU if there is one)" },
    { "split", 0, BOTH, COUNT32, AT(split), 1, 8192, "K", NULL,
      "with --device A,B (cuda:0,cuda:1 or cpu,cuda:0): the first\nK layers on A, the others on B; "
      "at once with an --accumulate\nof more than 1" },
    { "amp", 0, BOTH, WORD, AT(amp), 0, 0, "TYPE", amp_words,
      "store activations in 16 bits: off, fp16 (with a dynamic loss\nscale), bf16 (off); cuda and "
      "ref "
      "only" },
    { "tf32", 0, BOTH, WORD, AT(tf32), 0, 0, "WORD", tf32_words,
      "cuda, in float32: products may round their factors to 10 bits:\noff, on (off)" },
    { "fuse-batch-norm", 0, BOTH, WORD, AT(fusion), 0, 0, "WORD", fusion_words,
      "cuda, in 16 bits: BatchNorm within convolutions: none, ready (where\ncuDNN has that ready), "
      "all "
      "(what it must compile, too)\n(none)" },
    { "benchmark", 0, BOTH, FLAG, AT(benchmark), 0, 0, NULL, NULL,
      "cuda: time the algorithms of each layer, and keep the winners" },
    { "engine-cache", 0, BOTH, TEXT, AT(engine_cache), 0, 0, "FILE", NULL,
      "where --benchmark keeps the winners for the next run" },
    { "threads", 0, BOTH, COUNT32, AT(threads), 1, 256, "N", NULL,
      "that compute (as many as there are CPUs)" },
    { "deterministic", 0, BOTH, FLAG, AT(deterministic), 0, 0, NULL, NULL,
      "one seed, the same bits: on a GPU, too; cpu and ref always\nare, for one number of "
      "threads" },

    { .programs = BOTH, .help = "Files" },
    { "save", 0, BOTH, TEXT, AT(save), 0, 0, "FILE", NULL,
      "write a checkpoint at the end (.safetensors)" },
    { "save-every", 0, BOTH, COUNT64, AT(save_every), 1, UPDATES_MAX, "N", NULL,
      "and after every N updates" },
    { "load", 0, BOTH, TEXT, AT(load), 0, 0, "FILE", NULL,
      "go on from a checkpoint, in mid-epoch too" },
    { "weights", 0, BOTH, TEXT, AT(weights), 0, 0, "FILE", NULL,
      "start from these weights: PyTorch's names and layouts" },
    { "log-dir", 0, BOTH, TEXT, AT(log_dir), 0, 0, "DIR", NULL, "write TensorBoard events" },
    { "log", 0, BOTH, TEXT, AT(log), 0, 0, "FILE", NULL, "write the same numbers as CSV" },
    { "plot", 0, BOTH, TEXT, AT(plot), 0, 0, "FILE", NULL, "draw the loss curve (.svg)" },
    { "trace", 0, BOTH, TEXT, AT(trace), 0, 0, "FILE", NULL,
      "write what each loading thread did, when: JSON for\nui.perfetto.dev" },

    { .programs = BOTH, .help = "What to do" },
    { "eval-every", 0, BOTH, COUNT32, AT(eval_every), 0, 1e9, "N", NULL,
      "test after every N epochs, 0 = at the end only\n(1; housing 50)" },
    { "eval-only", 0, BOTH, ACTION, 0, ACTION_EVALUATE, 0, NULL, NULL,
      "test the weights of --load or --weights, and stop" },
    { "summary", 0, BOTH, ACTION, 0, ACTION_SUMMARY, 0, NULL, NULL,
      "show layers and memory, and stop" },
    { "list-devices", 0, BOTH, ACTION, 0, ACTION_DEVICES, 0, NULL, NULL,
      "show what --device can be here, and why there is no GPU" },
    { "quiet", 'q', BOTH, FLAG, AT(quiet), 0, 0, NULL, NULL, "the result only" },
    { "help", 'h', BOTH, ACTION, 0, ACTION_HELP, 0, NULL, NULL, "this text" },
    { "version", 0, BOTH, ACTION, 0, ACTION_VERSION, 0, NULL, NULL, "the version" },
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]), LONG_BASE = 256 };

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

/* ---- values --------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int complain(char *message, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, ARGUMENTS_MESSAGE_MAX, format, list);
    va_end(list);
    return STOKER_EINVAL;
}

/* Digits up to *end. False if there are none, or too many. */
static bool read_count(const char *text, uint64_t *out, const char **end)
{
    char *after = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &after, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0)
        return false;
    *out = value;
    *end = after;
    return true;
}

static int take_count(const struct row *row, const char *text, uint64_t *out, char *message)
{
    const char *end = "";
    uint64_t value = 0;
    if (!read_count(text, &value, &end) || *end != '\0' || (double)value < row->min ||
        (double)value > row->max)
        return complain(message, "'%.60s' is not a whole number from %.0f to %" PRIu64, text,
                        row->min, row->max < 0x1p64 ? (uint64_t)row->max : UINT64_MAX);
    *out = value;
    return STOKER_OK;
}

static int take_bytes(const char *text, uint64_t *out, char *message)
{
    static const char suffixes[] = "KMGT";
    const char *end = "";
    uint64_t value = 0;
    bool good = read_count(text, &value, &end) && value > 0;
    const char *suffix = good && *end != '\0' ? strchr(suffixes, *end) : NULL;
    if (suffix != NULL) {
        good =
            !__builtin_mul_overflow(value, (uint64_t)1 << (10 * (suffix - suffixes + 1)), &value);
        end++;
    }
    if (!good || *end != '\0')
        return complain(message, "'%.60s' is not a size like 64M or 2G", text);
    *out = value;
    return STOKER_OK;
}

/* A number at the begin of text, within the row's bounds. */
static bool read_real(const struct row *row, const char *text, double *out, char **end)
{
    double value = strtod(text, end);
    if (*end == text || !isfinite(value) || value < row->min || value > row->max)
        return false;
    *out = value;
    return true;
}

static int take_real(const struct row *row, const char *text, double *out, char *message)
{
    char *end = NULL;
    if (!read_real(row, text, out, &end) || *end != '\0')
        return complain(message, "'%.60s' is not a number from %g to %.7g", text, row->min,
                        row->max);
    return STOKER_OK;
}

static int take_pair(const struct row *row, const char *text, double out[2], char *message)
{
    char *comma = NULL;
    char *end = NULL;
    if (!read_real(row, text, &out[0], &comma) || *comma != ',' ||
        !read_real(row, comma + 1, &out[1], &end) || *end != '\0')
        return complain(message, "'%.60s' is not two numbers from 0 to less than 1, like 0.9,0.999",
                        text);
    return STOKER_OK;
}

static int take_word(const struct row *row, const char *text, unsigned *out, char *message)
{
    char known[120] = "";
    for (unsigned index = 0; row->words[index] != NULL; index++) {
        if (strcmp(text, row->words[index]) == 0) {
            *out = index;
            return STOKER_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", index == 0 ? "" : ", ",
                 row->words[index]);
    }
    return complain(message, "'%.60s' is not one of %s", text, known);
}

/* The enums of struct arguments are as wide as int: gcc and clang both see to it. */
_Static_assert(sizeof(stoker_optimizer) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(stoker_schedule) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(stoker_switch) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(enum preset) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(enum amp) == sizeof(unsigned), "words are written as unsigned");

static int take_narrow(const struct row *row, const char *text, uint32_t *out, char *message)
{
    uint64_t count = 0;
    int rc = take_count(row, text, &count, message);
    if (rc == STOKER_OK)
        *out = (uint32_t)count;
    return rc;
}

static int take_text(const char *text, const char **out, char *message)
{
    if (text[0] == '\0')
        return complain(message, "the value is empty");
    *out = text;
    return STOKER_OK;
}

/* "max" or "auto", or else a count. */
static int take_special(const struct row *row, const char *text, void *to, char *message)
{
    uint32_t count = STOKER_BATCH_SIZE_MAX;
    const bool is_workers = row->kind == WORKERS;
    const bool special = strcmp(text, is_workers ? "auto" : "max") == 0;
    int rc = special ? STOKER_OK : take_narrow(row, text, &count, message);
    int32_t workers = special ? STOKER_WORKERS_AUTO : (int32_t)count;
    if (rc == STOKER_OK)
        memcpy(to, is_workers ? (void *)&workers : (void *)&count, sizeof(count));
    return rc;
}

static int take(struct arguments *arguments, const struct row *row, const char *text, char *message)
{
    void *to = (char *)arguments + row->at;
    switch (row->kind) {
    case COUNT32:
        return take_narrow(row, text, to, message);
    case COUNT64:
        return take_count(row, text, to, message);
    case REAL:
        return take_real(row, text, to, message);
    case BYTES:
        return take_bytes(text, to, message);
    case TEXT:
        return take_text(text, to, message);
    case WORD:
        return take_word(row, text, to, message);
    case PAIR:
        return take_pair(row, text, to, message);
    case BATCH_SIZE:
    case WORKERS:
        return take_special(row, text, to, message);
    case FLAG:
        *(bool *)to = true;
        return STOKER_OK;
    case ACTION:
        arguments->action = (enum action)row->min;
        return STOKER_OK;
    }
    return STOKER_EINVAL;
}

/* ---- the line ------------------------------------------------------------------- */

static bool takes_value(const struct row *row)
{
    return row->kind != FLAG && row->kind != ACTION;
}

static const struct row *row_of(int found, enum program program)
{
    if (found >= LONG_BASE)
        return &rows[found - LONG_BASE];
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].letter == found && found != 0 && (rows[i].programs & program) != 0)
            return &rows[i];
    return NULL;
}

/* What needs nothing else of the line. */
static bool stands_alone(enum action action)
{
    return action == ACTION_HELP || action == ACTION_VERSION || action == ACTION_DEVICES;
}

/* Walk the line once; preset_only: see nothing but --preset and what stands alone. */
static int walk(struct arguments *out, enum program program, int argc, char *const *argv,
                bool preset_only, char *message)
{
    struct option options[ROW_COUNT + 1] = { 0 };
    size_t count = 0;
    for (int i = 0; i < (int)ROW_COUNT; i++)
        if (rows[i].name != NULL && (rows[i].programs & program) != 0)
            options[count++] =
                (struct option){ rows[i].name,
                                 takes_value(&rows[i]) ? required_argument : no_argument, NULL,
                                 LONG_BASE + i };
    optind = 0; /* start anew */
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":hq", options, NULL)) != -1;) {
        const struct row *row = row_of(found, program);
        if (row == NULL && preset_only)
            continue;
        if (row == NULL)
            return complain(message, "%s '%.80s'",
                            found == ':'          ? "a value is missing after"
                            : optopt >= LONG_BASE ? "no value belongs in"
                                                  : "unknown option",
                            argv[optind - 1]);
        const bool stops = row->kind == ACTION && stands_alone((enum action)row->min);
        if (preset_only && row->at != AT(preset) && !stops)
            continue;
        char wrong[ARGUMENTS_MESSAGE_MAX] = "";
        if (take(out, row, optarg, wrong) != STOKER_OK)
            return complain(message, "--%s: %.200s", row->name, wrong);
    }
    if (!preset_only && optind < argc)
        return complain(message, "'%.80s' is no option", argv[optind]);
    return STOKER_OK;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t text_bytes = strlen(text), end_bytes = strlen(end);
    return text_bytes >= end_bytes && strcmp(text + text_bytes - end_bytes, end) == 0;
}

static int check_together(const struct arguments *arguments, char *message)
{
    if (arguments->load != NULL && arguments->weights != NULL)
        return complain(message, "--load brings weights along: leave out --weights");
    if (arguments->action == ACTION_EVALUATE && arguments->load == NULL &&
        arguments->weights == NULL)
        return complain(message, "--eval-only: say what to test with --load or --weights");
    if (arguments->save_every != 0 && arguments->save == NULL)
        return complain(message, "--save-every: say where to with --save");
    if (arguments->engine_cache != NULL && !arguments->benchmark)
        return complain(message, "--engine-cache: only --benchmark finds what to keep there");
    if ((arguments->std > 0.0) != (arguments->mean >= 0.0))
        return complain(message, "--mean and --std go together");
    if (arguments->nesterov && (arguments->optimizer != STOKER_SGD || arguments->momentum <= 0.0))
        return complain(message, "--nesterov goes with --optimizer sgd and a --momentum");
    if (arguments->plot != NULL && !ends_with(arguments->plot, ".svg"))
        return complain(message, "--plot draws SVG: give it a name that ends in .svg");
    if (arguments->schedule == STOKER_ONE_CYCLE && arguments->warmup != 0)
        return complain(message, "--warmup: one-cycle has a rise of its own");
    return STOKER_OK;
}

int arguments_parse(struct arguments *out, enum program program, int argc, char *const *argv,
                    char message[ARGUMENTS_MESSAGE_MAX])
{
    struct arguments first = { .preset =
                                   program == PROGRAM_HOUSING ? PRESET_HOUSING : PRESET_FAST };
    int rc = walk(&first, program, argc, argv, true, message);
    if (rc != STOKER_OK)
        return rc;
    preset_apply(out, first.preset);
    out->action = first.action;
    if (stands_alone(first.action))
        return STOKER_OK;
    /* The preset's count of updates holds only if the line says nothing about the length. */
    const struct arguments preset = *out;
    out->epochs = 0;
    out->steps = 0;
    rc = walk(out, program, argc, argv, false, message);
    out->steps_alone = out->epochs == 0 && out->steps != 0;
    if (out->epochs == 0 && out->steps == 0)
        out->steps = preset.steps;
    if (out->epochs == 0)
        out->epochs = preset.epochs;
    return rc == STOKER_OK ? check_together(out, message) : rc;
}

/* ---- printing ------------------------------------------------------------------- */

static void print_row(FILE *file, const struct row *row, const char *help)
{
    char left[40];
    int used = row->letter != 0 ? snprintf(left, sizeof(left), "-%c, ", row->letter) : 0;
    snprintf(left + used, sizeof(left) - (size_t)used, "--%s%s%s", row->name,
             row->value == NULL ? "" : " ", row->value == NULL ? "" : row->value);
    const char *lead = left;
    for (const char *at = help;; lead = "") {
        size_t length = strcspn(at, "\n");
        fprintf(file, "  %-24s %.*s\n", lead, (int)length, at);
        at += length;
        if (*at++ == '\0')
            return;
    }
}

void arguments_help(FILE *file, enum program program)
{
    const bool mnist = program == PROGRAM_MNIST;
    fputs(mnist ? "usage: mnist [options]\n\n"
                  "Train a network to tell images apart, and test it.\n"
                : "usage: housing [options]\n\n"
                  "Fit a small network to a table of numbers (Boston housing), and test it.\n",
          file);
    const char *data_help =
        mnist ? "images with classes: mnist:DIR, idx:IMAGES,LABELS, synth:digits\n"
                "(mnist:$STOKER_DATA/mnist, else mnist:data/mnist, else\nsynth:digits)"
              : "csv:FILE?label=COLUMN\n"
                "(csv:$STOKER_DATA/boston/BostonHousing.csv, else under\ndata/, 20 % kept for "
                "testing)";
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if ((rows[i].programs & program) == 0)
            continue;
        if (rows[i].name == NULL)
            fprintf(file, "\n%s\n", rows[i].help);
        else
            print_row(file, &rows[i], rows[i].help == NULL ? data_help : rows[i].help);
    }
    fputs("\nCtrl-C saves what was learnt and says how to go on.\n"
          "Exit status: 0 done, 1 failed, 2 bad usage, 130 stopped by Ctrl-C and saved.\n",
          file);
}

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
