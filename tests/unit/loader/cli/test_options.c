/* test_options.c - the option table: every kind of value, what it refuses, and the forms of
 * --help. */
#include <getopt.h>

#include <stoker/error.h>

#include "loader/cli/options.h"
#include "support/leaks.h"

enum { WORDS_MAX = 12, FIRST_PROGRAM = 1, SECOND_PROGRAM = 2 };
enum action { ACT_RUN, ACT_LIST, ACT_VERSION };

struct values {
    enum action action;
    enum cli_form help;
    bool flag, toggle;
    uint32_t count;
    int32_t workers;
    uint64_t large, bytes;
    double real, pair[2];
    const char *text;
    unsigned word;
    struct cli_list ranges, words;
};

#define AT(field) offsetof(struct values, field)
static const struct cli_word colors[] = { { "red", 7 }, { "green", 9 }, { NULL, 0 } };
static const struct cli_word auto_word[] = { { "auto", -1 }, { NULL, 0 } };
static const struct cli_option rows[] = {
    { .help = "Values" },
    { "flag", 'f', CLI_FLAG, AT(flag), 0, 0, NULL, NULL, .help = "a flag" },
    { "toggle", 0, CLI_SWITCH, AT(toggle), 0, 0, "on|off", NULL, .help = "a switch" },
    { "count", 'c', CLI_COUNT32, AT(count), 2, 40, "N", NULL, .help = "a count" },
    { "workers", 0, CLI_COUNT32, AT(workers), 0, 8, "N", auto_word, .help = "or auto" },
    { "large", 0, CLI_COUNT64, AT(large), 0, 0x1p64, "N", NULL, .help = "64 bits" },
    { "bytes", 0, CLI_BYTES, AT(bytes), 0x1p10, 0x1p30, "SIZE", NULL, .help = "a size" },
    { "real", 0, CLI_REAL, AT(real), 0.5, 2, "X", NULL, .help = "a real", .unset = "none" },
    { "pair", 0, CLI_PAIR, AT(pair), 0, 1, "A,B", NULL, .help = "two" },
    { "text", 0, CLI_TEXT, AT(text), 0, 0, "TEXT", NULL, .help = "a text" },
    { "word", 0, CLI_WORD, AT(word), 0, 0, "WORD", colors, .help = "a word", .early = true },
    { "ranges", 0, CLI_RANGES, AT(ranges), 0, 9, "LIST", auto_word, .help = "numbers" },
    { "words", 0, CLI_WORDS, AT(words), 0, 0, "LIST", colors, .help = "some words" },
    { "second", 0, CLI_FLAG, AT(flag), 0, 0, NULL, NULL, .help = "x", .programs = SECOND_PROGRAM },
    { "list", 0, CLI_ACTION, AT(action), ACT_LIST, 0, NULL, NULL, .help = "lists" },
    { "version", 0, CLI_STOP, AT(action), ACT_VERSION, 0, NULL, NULL, .help = "it" },
    CLI_HELP_ROW(AT(help)),
};
static const struct cli_table table = { rows, sizeof(rows) / sizeof(rows[0]), FIRST_PROGRAM };

struct line {
    char text[256];
    char *words[WORDS_MAX + 1];
    int count;
};

static void split(struct line *line, const char *text)
{
    line->count = 1;
    line->words[0] = line->text + sizeof(line->text) - 1;
    snprintf(line->text, sizeof(line->text), "%s", text);
    for (char *word = strtok(line->text, " "); word != NULL; word = strtok(NULL, " "))
        line->words[line->count++] = word;
    cr_assert_leq(line->count, WORDS_MAX);
    line->words[line->count] = NULL;
}

static int parse(struct values *out, struct cli_given *given, const char *text, char *message)
{
    static struct line line; /* the values point into it */
    split(&line, text);
    *given = (struct cli_given){ 0 };
    message[0] = '\0';
    return cli_read(&table, out, given, line.count, line.words, message);
}

Test(cli_options, every_kind_is_read_into_its_place)
{
    struct values values = { 0 };
    struct cli_given given = { 0 };
    char message[CLI_MESSAGE_BYTES];
    cr_assert_eq(parse(&values, &given, "-f --toggle on -c 40 --workers auto --bytes 3K", message),
                 STOKER_OK, "%s", message);
    cr_assert(values.flag);
    cr_assert(values.toggle);
    cr_assert_eq(values.count, 40);
    cr_assert_eq(values.workers, -1);
    cr_assert_eq(values.bytes, 3072);
    cr_assert(cli_given(&table, &given, "count"));
    cr_assert_not(cli_given(&table, &given, "text"));

    cr_assert_eq(
        parse(&values, &given, "--large 18446744073709551615 --real 0.5 --pair 0,1 rest", message),
        STOKER_OK, "%s", message);
    cr_assert_eq(values.large, UINT64_MAX);
    cr_assert_eq(values.real, 0.5);
    cr_assert_eq(values.pair[1], 1.0);
    cr_assert_eq(optind, 7);

    cr_assert_eq(parse(&values, &given,
                       "--text=a --word green --ranges 1,3-5,auto --words red,green", message),
                 STOKER_OK, "%s", message);
    cr_assert_str_eq(values.text, "a");
    cr_assert_eq(values.word, 9);
    cr_assert_eq(values.ranges.count, 5);
    cr_assert_eq(values.ranges.values[3], 5);
    cr_assert_eq(values.ranges.values[4], -1);
    cr_assert_eq(values.words.count, 2);
    cr_assert_eq(values.words.values[0], 7);
    cr_assert_eq(parse(&values, &given, "--list", message), STOKER_OK);
    cr_assert_eq(values.action, ACT_LIST);
    stk_test_check_leaks();
}

Test(cli_options, mistakes_are_refused_with_one_line_that_names_the_option)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        { "--toggle yes", "--toggle: 'yes' is neither on nor off" },
        { "--count 1", "--count: '1' is not a whole number from 2 to 40" },
        { "--count 2x", "--count: '2x' is not a whole number from 2 to 40" },
        { "--workers 9", "--workers: '9' is not a whole number from 0 to 8 or auto" },
        { "--large -1", "--large: '-1' is not a whole number from 0 to 18446744073709551615" },
        { "--bytes 1023", "--bytes: '1023' is not a size from 1K to 1G, like 64M or 2G" },
        { "--bytes 2G", "--bytes: '2G' is not a size from 1K to 1G, like 64M or 2G" },
        { "--bytes 17179869184G",
          "--bytes: '17179869184G' is not a size from 1K to 1G, like 64M or 2G" },
        { "--real nan", "--real: 'nan' is not a number from 0.5 to 2" },
        { "--pair 0.5", "--pair: '0.5' is not two numbers from 0 to 1, like 0.9,0.999" },
        { "--text=", "--text: the value is empty" },
        { "--word gren", "--word: 'gren' is not one of red, green (did you mean 'green'?)" },
        { "--words red,", "--words: '' is not one of red, green" },
        { "--second", "unknown option '--second'" },
        { "--count", "a value is missing after '--count'" },
    };
    struct values values = { 0 };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cli_given given = { 0 };
        char message[CLI_MESSAGE_BYTES];
        cr_assert_eq(parse(&values, &given, cases[i].line, message), STOKER_EINVAL, "%s",
                     cases[i].line);
        cr_assert_str_eq(message, cases[i].message);
    }
    stk_test_check_leaks();
}

/* The last row of the longest table is given alone. */
Test(cli_options, each_row_of_a_long_table_counts_by_itself)
{
    _Static_assert(CLI_OPTIONS_MAX == 128, "row127 is the last");
    static struct cli_option many[CLI_OPTIONS_MAX];
    static char names[CLI_OPTIONS_MAX][8];
    const struct cli_table full = { .rows = many, .count = CLI_OPTIONS_MAX };
    struct cli_given given = { 0 };
    struct line line;
    char message[CLI_MESSAGE_BYTES] = "";
    bool flag = false;
    for (int i = 0; i < CLI_OPTIONS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "row%d", i);
        many[i] = (struct cli_option){ .name = names[i], .kind = CLI_FLAG };
    }
    split(&line, "--row127");
    cr_assert_eq(cli_read(&full, &flag, &given, line.count, line.words, message), STOKER_OK);
    cr_assert(flag);
    for (int i = 0; i < CLI_OPTIONS_MAX; i++)
        cr_assert_eq(cli_given(&full, &given, names[i]), i == CLI_OPTIONS_MAX - 1, "row %d", i);
    stk_test_check_leaks();
}

Test(cli_options, early_rows_are_read_past_mistakes)
{
    struct values values = { 0 };
    struct line line;
    split(&line, "--nonsense --count 0 --word green");
    cr_assert_not(cli_read_early(&table, &values, line.count, line.words));
    cr_assert_eq(values.word, 9);
    cr_assert_eq(values.count, 0);
    split(&line, "--nonsense --list -h --version");
    cr_assert(cli_read_early(&table, &values, line.count, line.words));
    cr_assert_eq(values.help, CLI_HELP_TEXT);
    cr_assert_eq(values.action, ACT_RUN);
    stk_test_check_leaks();
}

static void describe(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row)
{
    static const struct values defaults = { .toggle = true,
                                            .count = 0, /* below its range: no default */
                                            .workers = -1,
                                            .bytes = 64 << 20,
                                            .pair = { 0.25, 0.5 },
                                            .word = 9,
                                            .words = { { 7, 9 }, 2 } };
    cli_default(text, row, &defaults);
}

static size_t formats(char *text, size_t capacity)
{
    return (size_t)snprintf(text, capacity, "mnist:DIR\tdigits\nsynth:a\tone\nsynth:b\ttwo\n");
}

static char *page_text(enum cli_form form)
{
    const struct cli_page page = {
        .name = "stoker-x",
        .about = "test a page",
        .operands = "DATASET",
        .before = ".hidden\\word isn't a command; this paragraph is longer than the eighty columns "
                  "that a line of it may have.\n\nterm\tits meaning\n",
        .after = "# Exit status\n0\tdone\n",
        .table = table,
        .describe_default = describe,
        .formats = formats,
    };
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    cr_assert_not_null(file);
    cli_print_page(file, &page, form);
    fclose(file);
    return text;
}

/* The page in that form has these texts, and no option of another program. */
static void check_page(enum cli_form form, const char *const *want, size_t count)
{
    char *text = page_text(form);
    for (size_t i = 0; i < count; i++)
        cr_assert_not_null(strstr(text, want[i]), "no \"%s\" in:\n%s", want[i], text);
    cr_assert_null(strstr(text, "second"));
    free(text);
    stk_test_check_leaks();
}

#define CHECK_PAGE(form, ...)                                                                      \
    do {                                                                                           \
        static const char *const want[] = { __VA_ARGS__ };                                         \
        check_page(form, want, sizeof(want) / sizeof(want[0]));                                    \
    } while (0)

Test(cli_options, help_has_the_defaults_and_fits_80_columns)
{
    CHECK_PAGE(CLI_HELP_TEXT, "usage: stoker-x [options] DATASET\n",
               "\n  term                     its", "the eighty columns\nthat a line", "\nValues\n",
               "-f, --flag", "a switch (on)", "a count\n", "or auto (auto)", "a size (64M)",
               "a real (none)", "two (0.25,0.5)", "a word (green)", "some words (red,green)",
               "\nExit status\n  0  ");
    char *text = page_text(CLI_HELP_TEXT);
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n") + 1)
        cr_assert_leq(strcspn(at, "\n"), 80, "%.100s", at);
    free(text);
}

Test(cli_options, a_manual_page_has_no_command_of_troff_in_a_text)
{
    CHECK_PAGE(CLI_HELP_MAN, "\nstoker\\-x \\- test a page\n",
               "\n\\&.hidden\\(rsword isn\\(aqt a command", ".TP\n\\fBterm\\fR\nits meaning\n",
               "\n.SS \"Values\"\n", "\\fB\\-c\\fR, \\fB\\-\\-count\\fR \\fIN\\fR\na count\n",
               "\n.SH \"EXIT STATUS\"\n");
}

Test(cli_options, shells_complete_options_words_and_specs)
{
    CHECK_PAGE(CLI_HELP_BASH, "--word) words='red green' ;;", "--toggle) words='on off' ;;",
               "-c | --count) return ;;", "--flag --toggle --count", "words='mnist: synth:'",
               "complete -F _stoker_x stoker-x\n");
    CHECK_PAGE(CLI_HELP_ZSH, "#compdef stoker-x\n", "'--word=[a word (green)]:WORD:(red green)'",
               "'-c[a count]:N:'", ":LIST:_sequence compadd - red green'",
               "'*:DATASET:_stoker_x_spec'");
    CHECK_PAGE(CLI_HELP_FISH, "-l word -x -a 'red green' -d 'a word (green)'\n", "-l flag -s f -d");
}

Test(cli_options, help_takes_a_form_and_refuses_others)
{
    struct values values = { 0 };
    struct cli_given given;
    struct line line;
    char message[CLI_MESSAGE_BYTES];
    split(&line, "--count 0 --help=man");
    cr_assert(cli_read_early(&table, &values, line.count, line.words));
    cr_assert_eq(values.help, CLI_HELP_MAN);
    values.help = CLI_NO_HELP;
    split(&line, "--help=perl");
    cr_assert_not(cli_read_early(&table, &values, line.count, line.words));
    cr_assert_eq(values.help, CLI_NO_HELP);
    cr_assert_eq(parse(&values, &given, "--help=perl", message), STOKER_EINVAL);
    cr_assert_str_eq(message, "--help: 'perl' is not one of man, bash, zsh, fish");
    stk_test_check_leaks();
}
