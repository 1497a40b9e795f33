/* arguments.c - see arguments.h.
 *
 * getopt_long splits the line, and option_table.c says what each word may be. The line is read twice: for the
 * preset, then for what changes it.
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

#include "bench/cli/option_fault.h"
#include "loader/base/nearest.h"
#include "trainer/programs/option_table.h"
#include "trainer/programs/presets.h"

enum { LONG_BASE = 256 };

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

static int take_count(const struct option_row *row, const char *text, uint64_t *out, char *message)
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
static bool read_real(const struct option_row *row, const char *text, double *out, char **end)
{
    double value = strtod(text, end);
    if (*end == text || !isfinite(value) || value < row->min || value > row->max)
        return false;
    *out = value;
    return true;
}

static int take_real(const struct option_row *row, const char *text, double *out, char *message)
{
    char *end = NULL;
    if (!read_real(row, text, out, &end) || *end != '\0')
        return complain(message, "'%.60s' is not a number from %g to %.7g", text, row->min,
                        row->max);
    return STOKER_OK;
}

static int take_pair(const struct option_row *row, const char *text, double out[2], char *message)
{
    char *comma = NULL;
    char *end = NULL;
    if (!read_real(row, text, &out[0], &comma) || *comma != ',' ||
        !read_real(row, comma + 1, &out[1], &end) || *end != '\0')
        return complain(message, "'%.60s' is not two numbers from 0 to less than 1, like 0.9,0.999",
                        text);
    return STOKER_OK;
}

static int take_word(const struct option_row *row, const char *text, unsigned *out, char *message)
{
    char known[120] = "";
    char question[STK_NEAREST_BYTES];
    struct stk_nearest nearest = stk_nearest_to(text, strlen(text));
    for (unsigned index = 0; row->words[index] != NULL; index++) {
        if (strcmp(text, row->words[index]) == 0) {
            *out = index;
            return STOKER_OK;
        }
        stk_nearest_try(&nearest, row->words[index], row->words[index]);
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", index == 0 ? "" : ", ",
                 row->words[index]);
    }
    return complain(message, "'%.60s' is not one of %s%s", text, known,
                    stk_nearest_question(question, &nearest, ""));
}

/* The enums of struct arguments are as wide as int: gcc and clang both see to it. */
_Static_assert(sizeof(stoker_optimizer) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(stoker_schedule) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(stoker_switch) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(enum preset) == sizeof(unsigned), "words are written as unsigned");
_Static_assert(sizeof(enum amp) == sizeof(unsigned), "words are written as unsigned");

static int take_narrow(const struct option_row *row, const char *text, uint32_t *out, char *message)
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
static int take_special(const struct option_row *row, const char *text, void *to, char *message)
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

static int take(struct arguments *arguments, const struct option_row *row, const char *text,
                char *message)
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

static bool takes_value(const struct option_row *row)
{
    return row->kind != FLAG && row->kind != ACTION;
}

static const struct option_row *row_of(int found, enum program program)
{
    if (found >= LONG_BASE)
        return &option_rows[found - LONG_BASE];
    for (size_t i = 0; i < option_row_count; i++)
        if (option_rows[i].letter == found && found != 0 &&
            (option_rows[i].programs & program) != 0)
            return &option_rows[i];
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
    struct option options[OPTION_ROWS_MAX + 1] = { 0 };
    size_t count = 0;
    for (int i = 0; i < (int)option_row_count; i++)
        if (option_rows[i].name != NULL && (option_rows[i].programs & program) != 0)
            options[count++] =
                (struct option){ option_rows[i].name,
                                 takes_value(&option_rows[i]) ? required_argument : no_argument,
                                 NULL, LONG_BASE + i };
    optind = 0; /* start anew */
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":hq", options, NULL)) != -1;) {
        const struct option_row *row = row_of(found, program);
        if (row == NULL && preset_only)
            continue;
        if (row == NULL) {
            cli_option_fault(message, ARGUMENTS_MESSAGE_MAX, found, argv, options);
            return STOKER_EINVAL;
        }
        const bool stops = row->kind == ACTION && stands_alone((enum action)row->min);
        if (preset_only && row->at != offsetof(struct arguments, preset) && !stops)
            continue;
        char wrong[ARGUMENTS_MESSAGE_MAX] = "";
        if (take(out, row, optarg, wrong) != STOKER_OK)
            return complain(message, "--%s: %.200s", row->name, wrong);
        out->given |= UINT64_C(1) << (row - option_rows);
    }
    if (!preset_only && optind < argc)
        return complain(message, "'%.80s' is no option", argv[optind]);
    return STOKER_OK;
}

bool optimizer_takes_betas(stoker_optimizer optimizer)
{
    return optimizer == STOKER_ADAM || optimizer == STOKER_ADAMW || optimizer == STOKER_ADAMAX;
}

static bool takes_momentum(stoker_optimizer optimizer)
{
    return optimizer == STOKER_SGD || optimizer == STOKER_RMSPROP;
}

static bool writes_files(const struct arguments *arguments)
{
    return arguments->save != NULL || arguments->log != NULL || arguments->log_dir != NULL ||
           arguments->trace != NULL;
}

/* Rate and betas of a preset are those of its optimiser: another one has its own. */
static void suit_optimizer(struct arguments *arguments, stoker_optimizer of_preset)
{
    if (arguments->optimizer == of_preset)
        return;
    if (!ARGUMENTS_GIVE(arguments, learning_rate))
        arguments->learning_rate = (double)STOKER_OPTIMIZER_DEFAULT;
    if (!ARGUMENTS_GIVE(arguments, betas)) {
        arguments->betas[0] = 0.9;
        arguments->betas[1] = 0.999;
    }
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
    if ((arguments->std > 0.0) != (arguments->mean >= 0.0))
        return complain(message, "--mean and --std go together");
    if (arguments->nesterov && (arguments->optimizer != STOKER_SGD || arguments->momentum <= 0.0))
        return complain(message, "--nesterov goes with --optimizer sgd and a --momentum");
    if (ARGUMENTS_GIVE(arguments, momentum) && !takes_momentum(arguments->optimizer))
        return complain(message,
                        "--momentum has no effect on %s: it goes with --optimizer sgd or rmsprop",
                        optimizer_name(arguments->optimizer));
    if (ARGUMENTS_GIVE(arguments, betas) && !optimizer_takes_betas(arguments->optimizer))
        return complain(message, "--betas has no effect on %s: it goes with adam, adamw and adamax",
                        optimizer_name(arguments->optimizer));
    if (ARGUMENTS_GIVE(arguments, gamma) && arguments->schedule != STOKER_STEP)
        return complain(message, "--gamma has no effect on %s: it goes with --schedule step",
                        schedule_name(arguments->schedule));
    if (arguments->action == ACTION_EVALUATE && writes_files(arguments))
        return complain(message, "--eval-only trains nothing: leave out --save, --log, --log-dir "
                                 "and --trace");
    if (arguments->schedule == STOKER_ONE_CYCLE && arguments->warmup != 0)
        return complain(message, "--warmup: one-cycle has a rise of its own");
    return STOKER_OK;
}

bool arguments_give(const struct arguments *arguments, size_t at)
{
    for (size_t i = 0; i < option_row_count; i++)
        if (option_rows[i].name != NULL && option_rows[i].at == at &&
            (arguments->given >> i & 1) != 0)
            return true;
    return false;
}

int arguments_parse(struct arguments *out, enum program program, const enum preset *preset,
                    int argc, char *const *argv, char message[ARGUMENTS_MESSAGE_MAX])
{
    struct arguments first = { .preset = preset != NULL               ? *preset
                                         : program == PROGRAM_HOUSING ? PRESET_HOUSING
                                                                      : PRESET_FAST };
    int rc = walk(&first, program, argc, argv, true, message);
    if (rc != STOKER_OK)
        return rc;
    preset_apply(out, first.preset);
    out->action = first.action;
    if (stands_alone(first.action))
        return STOKER_OK;
    /* The preset's count of updates holds only if the line says nothing about the length. */
    const struct arguments own = *out;
    out->epochs = 0;
    out->steps = 0;
    rc = walk(out, program, argc, argv, false, message);
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
