/* options.c - see options.h. getopt_long splits the line; the table says what each word may be. */
#include "loader/cli/options.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <stoker/error.h>

#include "loader/base/text/nearest.h"

enum { LONG_BASE = 256 };

static bool takes_value(const struct cli_option *row)
{
    return row->kind != CLI_FLAG && row->kind != CLI_ACTION && row->kind != CLI_STOP &&
           row->kind != CLI_HELP;
}

const struct cli_option *cli_next_row(const struct cli_table *table, const struct cli_option *row)
{
    row = row == NULL ? table->rows : row + 1;
    while (row < table->rows + table->count && row->programs != 0 &&
           (row->programs & table->programs) == 0)
        row++;
    return row < table->rows + table->count ? row : NULL;
}

/* The next one that is no title. */
static const struct cli_option *next_option(const struct cli_table *table,
                                            const struct cli_option *row)
{
    do
        row = cli_next_row(table, row);
    while (row != NULL && row->name == NULL);
    return row;
}

/* What getopt_long needs: the options that this program has. */
struct words {
    struct option options[CLI_OPTIONS_MAX + 1];
    char letters[2 * CLI_OPTIONS_MAX + 2];
};

static void set_words(struct words *words, const struct cli_table *table)
{
    size_t count = 0;
    size_t letters = 0;
    memset(words, 0, sizeof(*words));
    words->letters[letters++] = ':';
    for (const struct cli_option *row = NULL; (row = next_option(table, row)) != NULL;) {
        const int argument = row->kind == CLI_HELP ? optional_argument
                             : takes_value(row)    ? required_argument
                                                   : no_argument;
        words->options[count++] =
            (struct option){ row->name, argument, NULL, LONG_BASE + (int)(row - table->rows) };
        if (row->letter == 0)
            continue;
        words->letters[letters++] = row->letter;
        if (takes_value(row))
            words->letters[letters++] = ':';
    }
}

static const struct cli_option *row_of(const struct cli_table *table, int found)
{
    assert(table->rows != NULL);
    if (found >= LONG_BASE)
        return &table->rows[found - LONG_BASE];
    for (const struct cli_option *row = NULL; (row = next_option(table, row)) != NULL;)
        if (row->letter == found && found != 0)
            return row;
    return NULL;
}

/* Returns true if the word names one of the options, or begins one. */
static bool is_known(const char *name, size_t bytes, const struct option *options)
{
    for (; options->name != NULL; options++)
        if (strncmp(options->name, name, bytes) == 0)
            return true;
    return false;
}

static int unknown(char message[CLI_MESSAGE_BYTES], const char *word, const struct option *options)
{
    char question[STK_NEAREST_BYTES];
    const char *const name = word + 2;
    struct stk_nearest nearest = stk_nearest_to(name, strcspn(name, "="));
    for (; options->name != NULL; options++)
        stk_nearest_try(&nearest, options->name, options->name);
    return cli_complain(message, "unknown option '%.80s'%s", word,
                        stk_nearest_question(question, &nearest, "--"));
}

/* What is wrong with an option that getopt_long() refused: found is '?', or ':' for a missing
 * value. */
static int explain_refused(char message[CLI_MESSAGE_BYTES], int found, char *const *argv,
                           const struct option *options)
{
    const char *const word = argv[optind - 1];
    if (found == ':')
        return cli_complain(message, "a value is missing after '%.80s'", word);
    if (strncmp(word, "--", 2) !=
        0) /* for -xyz, word may be another option: optopt has the letter */
        return cli_complain(message, "unknown option '-%c'", optopt);
    if (!is_known(word + 2, strcspn(word + 2, "="), options))
        return unknown(message, word, options);
    if (optopt != 0)
        return cli_complain(message, "no value belongs in '%.80s'", word);
    return cli_complain(message, "'%.80s' may mean several options", word);
}

static void start_anew(void)
{
    optind = 0;
    opterr = 0;
}

bool cli_read_early(const struct cli_table *table, void *out, int argc, char *const *argv)
{
    struct words words;
    char ignored[CLI_MESSAGE_BYTES];
    bool stop = false;
    set_words(&words, table);
    start_anew();
    for (int found; (found = getopt_long(argc, argv, words.letters, words.options, NULL)) != -1;) {
        const struct cli_option *row = row_of(table, found);
        const bool stops = row != NULL && (row->kind == CLI_STOP || row->kind == CLI_HELP);
        if (row == NULL || (!row->early && (!stops || stop)))
            continue;
        if (cli_read_value(row, optarg, (char *)out + row->at, ignored) == STOKER_OK)
            stop = stop || stops;
    }
    return stop;
}

int cli_read(const struct cli_table *table, void *out, struct cli_given *given, int argc,
             char *const *argv, char message[CLI_MESSAGE_BYTES])
{
    struct words words;
    assert(table->count <= CLI_OPTIONS_MAX);
    set_words(&words, table);
    start_anew();
    for (int found; (found = getopt_long(argc, argv, words.letters, words.options, NULL)) != -1;) {
        const struct cli_option *row = row_of(table, found);
        if (row == NULL)
            return explain_refused(message, found, argv, words.options);
        char wrong[CLI_MESSAGE_BYTES] = "";
        if (cli_read_value(row, optarg, (char *)out + row->at, wrong) != STOKER_OK)
            return cli_complain(message, "--%s: %.200s", row->name, wrong);
        given->rows[row - table->rows] = true;
    }
    return STOKER_OK;
}

bool cli_given(const struct cli_table *table, const struct cli_given *given, const char *name)
{
    for (const struct cli_option *row = NULL; (row = next_option(table, row)) != NULL;)
        if (strcmp(row->name, name) == 0)
            return given->rows[row - table->rows];
    assert(false); /* no such row */
    return false;
}
