/* options_help.c - prints a program's page, by default as plain text. Each option has its default,
 * which is what the program's own defaults put there and so cannot differ from what it does. */
#include "loader/cli/page_forms.h"

#include <inttypes.h>
#include <string.h>

enum { LEFT_COLUMNS = 27, COLUMNS = 80 };

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

/* ---- lines ---------------------------------------------------------------------- */

bool cli_next_line(const char **text, struct cli_line *line)
{
    const size_t length = strcspn(*text, "\n");
    if (**text == '\0')
        return false;
    (void)snprintf(line->bytes, sizeof(line->bytes), "%.*s", (int)length, *text);
    *text += length + ((*text)[length] == '\n' ? 1 : 0);
    char *const tab = strchr(line->bytes, '\t');
    line->title = strncmp(line->bytes, "# ", 2) == 0;
    line->term = tab != NULL ? line->bytes : NULL;
    line->words = tab != NULL ? tab + 1 : line->bytes + (line->title ? 2 : 0);
    if (tab != NULL)
        *tab = '\0';
    return true;
}

void cli_row_help(char text[CLI_LINE_BYTES], const struct cli_page *page,
                  const struct cli_option *row)
{
    char by_default[2 * CLI_DEFAULT_BYTES + 40] = "";
    page->describe_default(by_default, row);
    (void)snprintf(text, CLI_LINE_BYTES, by_default[0] == '\0' ? "%s" : "%s (%s)", row->help,
                   by_default);
}

/* ---- plain text ----------------------------------------------------------------- */

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

/* Prints the words in a column that begins at `indent`; `lead` is in front of it, or on a line of
 * its own. */
static void print_words(FILE *file, const char *lead, int indent, const char *words)
{
    if ((int)strlen(lead) > indent - 2 && indent > 0) {
        fprintf(file, "%s\n", lead);
        lead = "";
    }
    do {
        const size_t length = line_length(words, (size_t)(COLUMNS - indent));
        fprintf(file, "%-*s%.*s\n", indent, lead, (int)length, words);
        words += length + (words[length] == ' ' ? 1 : 0);
        lead = "";
    } while (*words != '\0');
}

void cli_print_text(FILE *file, const char *text)
{
    struct cli_line line;
    while (cli_next_line(&text, &line)) {
        char lead[CLI_LINE_BYTES + 2] = "";
        if (line.term != NULL)
            (void)snprintf(lead, sizeof(lead), "  %s", line.term);
        print_words(file, lead, line.term != NULL ? LEFT_COLUMNS : 0, line.words);
    }
}

static void print_row(FILE *file, const struct cli_page *page, const struct cli_option *row)
{
    char lead[60];
    char text[CLI_LINE_BYTES];
    const int used = row->letter != 0 ? snprintf(lead, sizeof(lead), "  -%c, ", row->letter)
                                      : snprintf(lead, sizeof(lead), "  ");
    (void)snprintf(lead + used, sizeof(lead) - (size_t)used, "--%s%s%s", row->name,
                   row->value == NULL ? "" : " ", row->value == NULL ? "" : row->value);
    cli_row_help(text, page, row);
    print_words(file, lead, LEFT_COLUMNS, text);
}

static void print_plain(FILE *file, const struct cli_page *page)
{
    fprintf(file, "usage: %s [options]%s%s\n\n", page->name, page->operands == NULL ? "" : " ",
            page->operands == NULL ? "" : page->operands);
    cli_print_text(file, page->before);
    for (const struct cli_option *row = NULL; (row = cli_next_row(&page->table, row)) != NULL;)
        if (row->name == NULL)
            fprintf(file, "\n%s\n", row->help);
        else
            print_row(file, page, row);
    fputc('\n', file);
    cli_print_text(file, page->after);
}

/* ---- all forms ------------------------------------------------------------------ */

const struct cli_word cli_forms[] = { { "man", CLI_HELP_MAN },
                                      { "bash", CLI_HELP_BASH },
                                      { "zsh", CLI_HELP_ZSH },
                                      { "fish", CLI_HELP_FISH },
                                      { NULL, 0 } };

void cli_print_page(FILE *file, const struct cli_page *page, enum cli_form form)
{
    if (form == CLI_HELP_MAN)
        cli_print_man(file, page);
    else if (form == CLI_HELP_TEXT)
        print_plain(file, page);
    else
        cli_print_completion(file, page, form);
}
