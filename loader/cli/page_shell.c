/* page_shell.c - a program's page as what bash, zsh and fish read to complete its words: the names
 * of options, the words that a value may be, files, and the beginnings of a data set's spec. */
#include <string.h>

#include "loader/cli/page_forms.h"

enum { SPECS_BYTES = 1000, FORMATS_BYTES = 8192 };

/* What completes a value. */
enum value_kind { VALUE_OTHER, VALUE_WORD, VALUE_WORDS, VALUE_FILE, VALUE_FOLDER, VALUE_SPEC };

static const struct cli_word on_off[] = { { "on", 1 }, { "off", 0 }, { NULL, 0 } };

static bool has_value(const struct cli_option *row)
{
    return row->name != NULL && row->value != NULL;
}

static const struct cli_word *words_of(const struct cli_option *row)
{
    return row->kind == CLI_SWITCH ? on_off : row->words;
}

static enum value_kind kind_of(const struct cli_option *row)
{
    static const struct cli_word named[] = { { "FILE", VALUE_FILE },
                                             { "DIR", VALUE_FOLDER },
                                             { "SPEC", VALUE_SPEC } };
    if (words_of(row) != NULL)
        return row->kind == CLI_WORDS || row->kind == CLI_RANGES ? VALUE_WORDS : VALUE_WORD;
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        if (strcmp(row->value, named[i].text) == 0)
            return (enum value_kind)named[i].value;
    return VALUE_OTHER;
}

static void print_words(FILE *file, const struct cli_word *words)
{
    for (const struct cli_word *word = words; word->text != NULL; word++)
        fprintf(file, "%s%s", word == words ? "" : " ", word->text);
}

/* The shells call a function of a program by its name, in which '-' is '_'. */
static void print_function(FILE *file, const struct cli_page *page)
{
    fputc('_', file);
    for (const char *at = page->name; *at != '\0'; at++)
        fputc(*at == '-' ? '_' : *at, file);
}

/* Prints the text between single quotes. `marked` are the signs that get a backslash there; fish
 * has one for a quote, too. */
static void print_quoted(FILE *file, const char *text, const char *marked)
{
    for (; *text != '\0'; text++)
        if (strchr(marked, *text) != NULL)
            fprintf(file, "\\%c", *text);
        else if (*text == '\'')
            fputs("'\\''", file);
        else
            fputc(*text, file);
}

/* Writes how specs begin: "mnist: idx: cifar:". */
static void write_specs(char specs[SPECS_BYTES], const struct cli_page *page)
{
    char formats[FORMATS_BYTES] = "";
    const char *text = formats;
    const char *last = "";
    size_t used = 0;
    struct cli_line line;
    (void)page->formats(formats, sizeof(formats));
    specs[0] = '\0';
    while (cli_next_line(&text, &line)) {
        const size_t length = strcspn(line.bytes, ":") + 1;
        if (line.term == NULL || strncmp(last, line.bytes, length) == 0 ||
            used + length + 2 > SPECS_BYTES)
            continue;
        last = specs + used + (used == 0 ? 0 : 1);
        used += (size_t)snprintf(specs + used, SPECS_BYTES - used, "%s%.*s", used == 0 ? "" : " ",
                                 (int)length, line.bytes);
    }
}

/* ---- bash ----------------------------------------------------------------------- */

/* bash splits words at '=' and ':', too. */
static const char bash_begin[] =
    "\n{\n"
    "    local first= words= word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    if [[ $word == : || $option == : ]]; then # within a spec\n"
    "        compopt -o default\n"
    "        return\n"
    "    fi\n"
    "    if [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
    "    if [[ $word == = ]]; then word=; fi\n"
    "    case $option in\n";

static void print_bash_row(FILE *file, const struct cli_option *row, const char *specs)
{
    fputs("    ", file);
    if (row->letter != 0)
        fprintf(file, "-%c | ", row->letter);
    fprintf(file, "--%s) ", row->name);
    switch (kind_of(row)) {
    case VALUE_WORDS:
        fputs("first=${word%\"${word##*,}\"}; compopt -o nospace; words='", file);
        print_words(file, words_of(row));
        fputs("' ;;\n", file);
        return;
    case VALUE_WORD:
        fputs("words='", file);
        print_words(file, words_of(row));
        fputs("' ;;\n", file);
        return;
    case VALUE_SPEC:
        fprintf(file, "compopt -o default -o nospace; words='%s' ;;\n", specs);
        return;
    case VALUE_FILE:
        fputs("compopt -o default; return ;;\n", file);
        return;
    case VALUE_FOLDER:
        fputs("compopt -o dirnames; return ;;\n", file);
        return;
    case VALUE_OTHER:
        fputs("return ;;\n", file);
    }
}

static void print_bash(FILE *file, const struct cli_page *page, const char *specs)
{
    const struct cli_option *row = NULL;
    print_function(file, page);
    fputs("()", file);
    fputs(bash_begin, file);
    while ((row = cli_next_row(&page->table, row)) != NULL)
        if (has_value(row) || row->kind == CLI_HELP)
            print_bash_row(file, row, specs);
    fputs("    *)\n"
          "        if [[ $word == -* ]]; then\n"
          "            words='",
          file);
    while ((row = cli_next_row(&page->table, row)) != NULL)
        if (row->name != NULL)
            fprintf(file, " --%s", row->name);
    fputs("'\n", file);
    if (page->operands != NULL)
        fprintf(file,
                "        else\n"
                "            compopt -o default -o nospace\n"
                "            words='%s'\n",
                specs);
    fputs("        fi\n"
          "        ;;\n"
          "    esac\n"
          "    COMPREPLY=($(compgen -P \"$first\" -W \"$words\" -- \"${word#\"$first\"}\"))\n"
          "}\n"
          "complete -F ",
          file);
    print_function(file, page);
    fprintf(file, " %s\n", page->name);
}

/* ---- zsh ------------------------------------------------------------------------ */

/* "'--name=[help]:VALUE:action'"; `dashes` and `name` are those of one of its two names. */
static void print_zsh_row(FILE *file, const struct cli_page *page, const struct cli_option *row,
                          const char *dashes, const char *name)
{
    char help[CLI_LINE_BYTES];
    const enum value_kind kind = has_value(row) ? kind_of(row) : VALUE_OTHER;
    cli_row_help(help, page, row);
    fprintf(file, " \\\n    '%s%s%s[", dashes, name,
            has_value(row) && dashes[1] != '\0' ? "=" : "");
    print_quoted(file, help, "[]:\\");
    fputc(']', file);
    if (has_value(row))
        fprintf(file, ":%s:", row->value);
    if (kind == VALUE_WORD || kind == VALUE_WORDS) {
        fputs(kind == VALUE_WORD ? "(" : "_sequence compadd - ", file);
        print_words(file, words_of(row));
        fputs(kind == VALUE_WORD ? ")" : "", file);
    } else if (kind == VALUE_SPEC) {
        print_function(file, page);
        fputs("_spec", file);
    } else if (kind == VALUE_FILE || kind == VALUE_FOLDER)
        fputs(kind == VALUE_FILE ? "_files" : "_files -/", file);
    fputc('\'', file);
}

static void print_zsh(FILE *file, const struct cli_page *page, const char *specs)
{
    print_function(file, page);
    fprintf(file,
            "_spec()\n{\n"
            "    if compset -P '*:'; then\n"
            "        _files\n"
            "    else\n"
            "        compadd -S '' - %s\n"
            "        _files\n"
            "    fi\n"
            "}\n"
            "_arguments",
            specs);
    for (const struct cli_option *row = NULL; (row = cli_next_row(&page->table, row)) != NULL;) {
        const char letter[2] = { row->letter };
        if (row->name == NULL)
            continue;
        if (row->letter != 0)
            print_zsh_row(file, page, row, "-", letter);
        print_zsh_row(file, page, row, "--", row->name);
    }
    if (page->operands != NULL) {
        fprintf(file, " \\\n    '*:%s:", page->operands);
        print_function(file, page);
        fputs("_spec'", file);
    }
    fputc('\n', file);
}

/* ---- fish ----------------------------------------------------------------------- */

static void print_fish_row(FILE *file, const struct cli_page *page, const struct cli_option *row,
                           const char *specs)
{
    char help[CLI_LINE_BYTES];
    fprintf(file, "complete -c %s -l %s", page->name, row->name);
    if (row->letter != 0)
        fprintf(file, " -s %c", row->letter);
    switch (has_value(row) ? kind_of(row) : VALUE_FILE) {
    case VALUE_WORD:
    case VALUE_WORDS:
        fputs(" -x -a '", file);
        print_words(file, words_of(row));
        fputc('\'', file);
        break;
    case VALUE_SPEC:
        fprintf(file, " -r -F -a '%s'", specs);
        break;
    case VALUE_FILE:
        fputs(has_value(row) ? " -r -F" : "", file);
        break;
    case VALUE_FOLDER:
        fputs(" -x -a '(__fish_complete_directories)'", file);
        break;
    case VALUE_OTHER:
        fputs(" -x", file);
    }
    fputs(" -d '", file);
    cli_row_help(help, page, row);
    print_quoted(file, help, "\\'");
    fputs("'\n", file);
}

static void print_fish(FILE *file, const struct cli_page *page, const char *specs)
{
    for (const struct cli_option *row = NULL; (row = cli_next_row(&page->table, row)) != NULL;)
        if (row->name != NULL)
            print_fish_row(file, page, row, specs);
    fprintf(file, page->operands != NULL ? "complete -c %s -a '%s'\n" : "complete -c %s -f\n",
            page->name, specs);
}

/* ---- all ------------------------------------------------------------------------ */

void cli_print_completion(FILE *file, const struct cli_page *page, enum cli_form form)
{
    char specs[SPECS_BYTES];
    const char *const shell = form == CLI_HELP_BASH  ? "bash"
                              : form == CLI_HELP_ZSH ? "zsh"
                                                     : "fish";
    write_specs(specs, page);
    if (form == CLI_HELP_ZSH)
        fprintf(file, "#compdef %s\n", page->name);
    fprintf(file, "# Completions for %s; printed by %s --help=%s.\n", shell, page->name, shell);
    if (form == CLI_HELP_BASH)
        print_bash(file, page, specs);
    else if (form == CLI_HELP_ZSH)
        print_zsh(file, page, specs);
    else
        print_fish(file, page, specs);
}
