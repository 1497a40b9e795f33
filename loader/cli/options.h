/* options.h - the options of a command line as one table: what each is called, what kind of value
 * it takes, where the value goes, and what --help says about it.
 *
 *   argv ──▶ cli_read_early   --help and its like, presets; nothing else, no complaints
 *        ──▶ cli_read         every option; the first mistake is one line of text
 */
#ifndef STK_CLI_OPTIONS_H
#define STK_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CLI_MESSAGE_BYTES = 256,
    CLI_LIST_MAX = 512, /* values of one list */
    CLI_OPTIONS_MAX =
        128, /* rows of a table; loaderbench and the trainer's programs have 59 each */
    CLI_DEFAULT_BYTES = 100,
    CLI_LINE_BYTES = 1000 /* a line of a text, or the help of a row */
};

/* What a row reads, and what it writes at row.at. A count's row.words are accepted beside
 * numbers; those of TEXT and OTHER only complete a word in a shell. */
enum cli_kind {
    CLI_FLAG,    /* no value; bool */
    CLI_ACTION,  /* no value; unsigned (an enum): row.min */
    CLI_STOP,    /* the same for an action that needs no more of the line, such as --version */
    CLI_HELP,    /* the same; or one of row.words behind a '='; enum cli_form: CLI_HELP_ROW */
    CLI_SWITCH,  /* on, off; bool */
    CLI_COUNT32, /* uint32_t or int32_t */
    CLI_COUNT64, /* uint64_t */
    CLI_BYTES,   /* a count, perhaps with K, M, G or T behind it; uint64_t */
    CLI_REAL,    /* double */
    CLI_PAIR,    /* two reals with a comma; double[2] */
    CLI_TEXT,    /* not empty; const char * */
    CLI_WORD,    /* one of row.words; its value, unsigned (an enum) */
    CLI_WORDS,   /* some of row.words, with commas; struct cli_list */
    CLI_RANGES,  /* "0,1,4-8"; struct cli_list */
    CLI_OTHER    /* what row.read makes of it */
};

struct cli_list {
    int32_t values[CLI_LIST_MAX];
    uint32_t count;
};

/* One word of several; the last one has text NULL. */
struct cli_word {
    const char *text;
    int64_t value;
};

struct cli_option {
    const char *name; /* NULL: help is the title of the rows that follow */
    char letter;      /* 0 = none */
    enum cli_kind kind;
    size_t at;                    /* offset in the struct that is filled */
    double min, max;              /* range of numbers */
    const char *value;            /* what --help calls it */
    const struct cli_word *words; /* NULL = none */
    const char *help;
    const char *unset; /* the default in words; NULL = the value that the struct has */
    unsigned programs; /* bits of those that have the option; 0 = all */
    bool early;        /* cli_read_early reads it */
    /* Reads text into `to`, the place at row.at. 0, or STOKER_EINVAL and a message. */
    int (*read)(const struct cli_option *row, const char *text, void *to,
                char message[CLI_MESSAGE_BYTES]);
};

struct cli_table {
    const struct cli_option *rows;
    size_t count;      /* at most CLI_OPTIONS_MAX */
    unsigned programs; /* bits of the program that reads */
};

/* The next row that the program has, titles included: the first if row is NULL; NULL = no more. */
const struct cli_option *cli_next_row(const struct cli_table *table, const struct cli_option *row);

/* Reads the rows of kinds CLI_STOP and CLI_HELP and those marked early into `out`, and ignores all
 * else, mistakes too. Returns true if there was one of the two kinds. */
bool cli_read_early(const struct cli_table *table, void *out, int argc, char *const *argv);

/* The rows that a line has. */
struct cli_given {
    bool rows[CLI_OPTIONS_MAX];
};

/* Reads every option into `out`, and adds those of the line to *given. optind is the first word
 * that is no option then. On STOKER_EINVAL message is one line that names the option. */
int cli_read(const struct cli_table *table, void *out, struct cli_given *given, int argc,
             char *const *argv, char message[CLI_MESSAGE_BYTES]);

/* Returns true if `given` has the row with that name. */
bool cli_given(const struct cli_table *table, const struct cli_given *given, const char *name);

/* "0,1,4-8,auto" with numbers in min..max; words (NULL = none) are accepted as values, too. On
 * STOKER_EINVAL *out is untouched. */
int cli_ranges(struct cli_list *out, const char *text, int32_t min, int32_t max,
               const struct cli_word *words, char message[CLI_MESSAGE_BYTES]);

/* For row.read: a whole number in min..max. */
int cli_count(const char *text, uint64_t min, uint64_t max, uint64_t *out,
              char message[CLI_MESSAGE_BYTES]);

/* For row.read: writes "'word' is not one of a, b (did you mean 'a'?)"; `known` has ", " between
 * its words. `alias` (NULL = none) is a word that means the known word `meant`. Returns
 * STOKER_EINVAL. */
int cli_not_one_of(const char *word, size_t length, const char *known, const char *alias,
                   const char *meant, char message[CLI_MESSAGE_BYTES]);

__attribute__((format(printf, 2, 3))) int cli_complain(char message[CLI_MESSAGE_BYTES],
                                                       const char *format, ...);

/* Writes the default of a row as --help has it, "" if it has none. `values`: a struct with the
 * defaults. */
void cli_default(char text[CLI_DEFAULT_BYTES], const struct cli_option *row, const void *values);

/* ---- --help ---------------------------------------------------------------------- */

enum cli_form {
    CLI_NO_HELP,
    CLI_HELP_TEXT,
    CLI_HELP_MAN,
    CLI_HELP_BASH,
    CLI_HELP_ZSH,
    CLI_HELP_FISH
};
extern const struct cli_word cli_forms[];

#define CLI_HELP_ROW(at)                                                                           \
    {                                                                                              \
        "help", 'h', CLI_HELP, (at), 0, 0, NULL, cli_forms,                                        \
            .help =                                                                                \
                "this text; --help=man: as a manual page; --help=bash, zsh or fish: completions"   \
    }

/* What every form of a program's help says. A line of a text is "# Title", "term\tmeaning", "" or
 * a paragraph, at most CLI_LINE_BYTES - 1 long, which the form wraps. */
struct cli_page {
    const char *name;     /* the program's name */
    const char *about;    /* what it does, a few words */
    const char *operands; /* "DATASET"; NULL = options only */
    const char *before;   /* text in front of the options */
    const char *after;    /* text behind them, which begins with a title */
    struct cli_table table;
    /* Writes what goes into the brackets behind a row's help, "" for nothing. */
    void (*describe_default)(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row);
    size_t (*formats)(char *text, size_t capacity); /* stoker_dataset_formats */
};

/* Prints the page as the form has it; plain text is 80 columns wide. */
void cli_print_page(FILE *file, const struct cli_page *page, enum cli_form form);

/* Prints a text as plain --help does. */
void cli_print_text(FILE *file, const char *text);

/* Reads one value as the row says: text (NULL for kinds without a value) into `to`. 0, or
 * STOKER_EINVAL and a message. */
int cli_read_value(const struct cli_option *row, const char *text, void *to,
                   char message[CLI_MESSAGE_BYTES]);

/* "64K", "3", "1T": the largest unit that divides it. */
void cli_bytes_text(char text[24], uint64_t bytes);

#endif
