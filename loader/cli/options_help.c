/* options_help.c - prints the rows of an option table, each with its default, which is what the
 * program's own defaults put there and so cannot differ from what it does. */
#include "loader/cli/options.h"

#include <inttypes.h>
#include <string.h>

enum { LEFT_COLUMNS = 26, COLUMNS = 80, TEXT_BYTES = 500 };

/* ---- defaults ------------------------------------------------------------------- */

/* The word that has the value; NULL = none. */
static const char *word_of(const struct cli_option *row, int64_t value)
{
    for (const struct cli_word *word = row->words; word != NULL && word->text != NULL; word++)
        if (word->value == value)
            return word->text;
    return NULL;
}

static void list_text(char text[CLI_DEFAULT_BYTES], const struct cli_option *row,
                      const struct cli_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const size_t used = strlen(text);
        const char *word = word_of(row, list->values[i]);
        char number[16];
        (void)snprintf(number, sizeof(number), "%" PRId32, list->values[i]);
        (void)snprintf(text + used, CLI_DEFAULT_BYTES - used, "%s%s", i == 0 ? "" : ",",
                       word != NULL ? word : number);
    }
}

/* The place holds a uint32_t or an int32_t; negative numbers are words ("auto"). */
static void count32_text(char text[CLI_DEFAULT_BYTES], const struct cli_option *row, uint32_t count)
{
    const char *word = word_of(row, count);
    if (word == NULL)
        word = word_of(row, (int32_t)count);
    if (word != NULL)
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%s", word);
    else if ((int32_t)count >= row->min)
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%" PRIu32, count);
}

static void count64_text(char text[CLI_DEFAULT_BYTES], const struct cli_option *row, uint64_t count)
{
    if ((double)count < row->min)
        return;
    if (row->kind == CLI_BYTES)
        cli_bytes_text(text, count);
    else
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%" PRIu64, count);
}

static void real_text(char text[CLI_DEFAULT_BYTES], const struct cli_option *row,
                      const double *value)
{
    if (value[0] < row->min || (value[0] <= 0 && row->unset != NULL))
        return;
    if (row->kind == CLI_PAIR)
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%g,%g", value[0], value[1]);
    else
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%g", value[0]);
}

/* Writes the value at `at`, or nothing if it is none that the option could give. */
static void value_text(char text[CLI_DEFAULT_BYTES], const struct cli_option *row, const void *at)
{
    uint32_t narrow = 0;
    uint64_t count = 0;
    switch (row->kind) {
    case CLI_SWITCH:
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%s", *(const bool *)at ? "on" : "off");
        return;
    case CLI_WORD:
        memcpy(&narrow, at, sizeof(narrow));
        if (word_of(row, narrow) != NULL)
            (void)snprintf(text, CLI_DEFAULT_BYTES, "%s", word_of(row, narrow));
        return;
    case CLI_COUNT32:
        memcpy(&narrow, at, sizeof(narrow));
        count32_text(text, row, narrow);
        return;
    case CLI_COUNT64:
    case CLI_BYTES:
        memcpy(&count, at, sizeof(count));
        count64_text(text, row, count);
        return;
    case CLI_REAL:
    case CLI_PAIR:
        real_text(text, row, at);
        return;
    case CLI_WORDS:
    case CLI_RANGES:
        list_text(text, row, at);
        return;
    default:
        return;
    }
}

void cli_default(char text[CLI_DEFAULT_BYTES], const struct cli_option *row, const void *values)
{
    text[0] = '\0';
    value_text(text, row, (const char *)values + row->at);
    if (text[0] == '\0' && row->unset != NULL)
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%s", row->unset);
}

/* ---- printing ------------------------------------------------------------------- */

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

static void print_row(FILE *file, const struct cli_option *row, const char *text)
{
    char left[60];
    const int used = row->letter != 0 ? snprintf(left, sizeof(left), "-%c, ", row->letter) : 0;
    (void)snprintf(left + used, sizeof(left) - (size_t)used, "--%s%s%s", row->name,
                   row->value == NULL ? "" : " ", row->value == NULL ? "" : row->value);
    const char *lead = left;
    if (strlen(left) > LEFT_COLUMNS - 3) { /* a line of its own */
        fprintf(file, "  %s\n", left);
        lead = "";
    }
    for (const char *at = text; *at != '\0'; lead = "") {
        const size_t length = line_length(at, COLUMNS - LEFT_COLUMNS - 1);
        fprintf(file, "  %-*s %.*s\n", LEFT_COLUMNS - 2, lead, (int)length, at);
        at += length;
        at += *at == ' ' ? 1 : 0;
    }
}

void cli_print_options(FILE *file, const struct cli_table *table,
                       void (*describe_default)(char text[2 * CLI_DEFAULT_BYTES + 40],
                                                const struct cli_option *row))
{
    for (size_t i = 0; i < table->count; i++) {
        const struct cli_option *row = &table->rows[i];
        if (row->programs != 0 && (row->programs & table->programs) == 0)
            continue;
        if (row->name == NULL) {
            fprintf(file, "\n%s\n", row->help);
            continue;
        }
        char by_default[2 * CLI_DEFAULT_BYTES + 40] = "";
        char text[TEXT_BYTES];
        describe_default(by_default, row);
        (void)snprintf(text, sizeof(text), by_default[0] == '\0' ? "%s" : "%s (%s)", row->help,
                       by_default);
        print_row(file, row, text);
    }
}
