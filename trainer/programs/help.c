/* help.c - what --help prints: the rows of the option table, each with the default that it has in this program.
 *
 * A default is what the program's presets put there, so it cannot differ from what is done:
 *
 *   --lr X      learning rate (fast 0.01; pytorch 1)      the presets differ
 *   --seed N    of weights, order and dropout (0)         they do not
 */
#include "trainer/programs/option_table.h"

#include <inttypes.h>
#include <string.h>

#include "trainer/programs/presets.h"

enum { LEFT_COLUMNS = 26, COLUMNS = 80, TEXT_BYTES = 400 };

/* ---- defaults --------------------------------------------------------------------- */

static void real_text(char *text, size_t bytes, const struct option_row *row, const double *value)
{
    if (row->kind == PAIR)
        (void)snprintf(text, bytes, "%g,%g", value[0], value[1]);
    else
        (void)snprintf(text, bytes, "%g", value[0]);
}

/* What stands there, or nothing where that is no value of the option. */
static void value_text(char *text, size_t bytes, const struct option_row *row,
                       const struct arguments *arguments)
{
    const void *at = (const char *)arguments + row->at;
    uint64_t count = 0;
    uint32_t narrow = 0;
    double reals[2] = { 0, 0 };
    text[0] = '\0';
    switch (row->kind) {
    case WORD:
        memcpy(&narrow, at, sizeof(narrow));
        (void)snprintf(text, bytes, "%s", row->words[narrow]);
        return;
    case WORKERS:
        (void)snprintf(text, bytes, "auto");
        return;
    case REAL:
    case PAIR:
        memcpy(reals, at, row->kind == PAIR ? sizeof(reals) : sizeof(reals[0]));
        if (reals[0] >= row->min && (reals[0] > 0 || row->unset == NULL))
            real_text(text, bytes, row, reals);
        return;
    case COUNT32:
    case BATCH_SIZE:
        memcpy(&narrow, at, sizeof(narrow));
        count = narrow;
        break;
    case COUNT64:
    case BYTES:
        memcpy(&count, at, sizeof(count));
        break;
    case TEXT:
    case FLAG:
    case ACTION:
        return;
    }
    if ((double)count >= row->min)
        (void)snprintf(text, bytes, "%" PRIu64, count);
}

static void default_of(char *text, size_t bytes, const struct option_row *row, enum preset preset)
{
    struct arguments arguments;
    preset_apply(&arguments, preset);
    value_text(text, bytes, row, &arguments);
    if (text[0] == '\0' && row->unset != NULL)
        (void)snprintf(text, bytes, "%s", row->unset);
}

/* " (fast 128; pytorch 64)", or nothing. */
static void add_default(char *text, const struct option_row *row, enum program program)
{
    char first[100];
    char second[100];
    const size_t used = strlen(text);
    const bool alone = program == PROGRAM_HOUSING || row->at == offsetof(struct arguments, preset);
    default_of(first, sizeof(first), row,
               program == PROGRAM_HOUSING ? PRESET_HOUSING : PRESET_FAST);
    default_of(second, sizeof(second), row, PRESET_PYTORCH);
    if (first[0] == '\0')
        return;
    if (alone || strcmp(first, second) == 0)
        (void)snprintf(text + used, TEXT_BYTES - used, " (%s)", first);
    else
        (void)snprintf(text + used, TEXT_BYTES - used, " (fast %s; pytorch %s)", first, second);
}

/* ---- printing --------------------------------------------------------------------- */

/* How much of the text goes on a line: whole words, but one word at least. */
static size_t line_length(const char *text, size_t most)
{
    size_t length = strcspn(text, " ");
    while (text[length] == ' ') {
        const size_t next = length + 1 + strcspn(text + length + 1, " ");
        if (next > most)
            break;
        length = next;
    }
    return length;
}

static void print_row(FILE *file, const struct option_row *row, enum program program)
{
    char left[40];
    char text[TEXT_BYTES];
    const int used = row->letter != 0 ? snprintf(left, sizeof(left), "-%c, ", row->letter) : 0;
    (void)snprintf(left + used, sizeof(left) - (size_t)used, "--%s%s%s", row->name,
                   row->value == NULL ? "" : " ", row->value == NULL ? "" : row->value);
    (void)snprintf(text, sizeof(text), "%s", row->help);
    add_default(text, row, program);
    const char *lead = left;
    for (const char *at = text; *at != '\0'; lead = "") {
        const size_t length = line_length(at, COLUMNS - LEFT_COLUMNS - 1);
        fprintf(file, "  %-*s %.*s\n", LEFT_COLUMNS - 2, lead, (int)length, at);
        at += length;
        at += *at == ' ' ? 1 : 0;
    }
}

void arguments_help(FILE *file, enum program program)
{
    fputs(program == PROGRAM_MNIST
              ? "usage: stoker-mnist [options]\n\n"
                "Train a network to tell images apart, and test it.\n"
              : "usage: stoker-housing [options]\n\n"
                "Fit a small network to a table of numbers (Boston housing), and test it.\n",
          file);
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        if ((row->programs & program) == 0)
            continue;
        if (row->name == NULL)
            fprintf(file, "\n%s\n", row->help);
        else
            print_row(file, row, program);
    }
    fputs("\nCtrl-C saves what was learnt and says how to go on.\n"
          "Exit status: 0 done, 1 failed, 2 bad usage, 130 stopped by Ctrl-C and saved.\n",
          file);
}
