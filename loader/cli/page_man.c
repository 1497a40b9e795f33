/* page_man.c - a program's page as a manual page. */
#include <ctype.h>

#include <stoker/version.h>

#include "loader/cli/page_forms.h"

/* Prints the text so that troff changes none of it: no command at its start, and ASCII signs where
 * it would set others. */
static void print_escaped(FILE *file, const char *text)
{
    if (*text == '.')
        fputs("\\&", file);
    for (; *text != '\0'; text++)
        switch (*text) {
        case '\\':
            fputs("\\(rs", file);
            break;
        case '-':
            fputs("\\-", file);
            break;
        case '\'':
            fputs("\\(aq", file);
            break;
        case '`':
            fputs("\\(ga", file);
            break;
        case '"':
            fputs("\\(dq", file);
            break;
        case '^':
            fputs("\\(ha", file);
            break;
        case '~':
            fputs("\\(ti", file);
            break;
        default:
            fputc(*text, file);
        }
}

/* Prints a line: `before`, the text, `after`. */
static void print_line(FILE *file, const char *before, const char *text, const char *after)
{
    fputs(before, file);
    print_escaped(file, text);
    fprintf(file, "%s\n", after);
}

static void print_text(FILE *file, const char *text)
{
    struct cli_line line;
    while (cli_next_line(&text, &line)) {
        if (line.title) {
            for (char *at = line.bytes; *at != '\0'; at++)
                *at = (char)toupper((unsigned char)*at);
            print_line(file, ".SH \"", line.words, "\"");
            continue;
        }
        if (line.term != NULL)
            print_line(file, ".TP\n\\fB", line.term, "\\fR");
        if (line.words[0] != '\0')
            print_line(file, line.term != NULL ? "" : ".PP\n", line.words, "");
    }
}

static void print_row(FILE *file, const struct cli_page *page, const struct cli_option *row)
{
    char text[CLI_LINE_BYTES];
    fputs(".TP\n", file);
    if (row->letter != 0)
        fprintf(file, "\\fB\\-%c\\fR, ", row->letter);
    fputs("\\fB\\-\\-", file);
    print_escaped(file, row->name);
    print_line(file, "\\fR \\fI", row->value == NULL ? "" : row->value, "\\fR");
    cli_row_help(text, page, row);
    print_line(file, "", text, "");
}

void cli_print_man(FILE *file, const struct cli_page *page)
{
    fprintf(file, ".\\\" Printed by %s --help=man.\n", page->name);
    print_line(file, ".TH \"", page->name,
               "\" 1 \"\" \"Stoker " STOKER_VERSION_STRING "\" \"User Commands\"");
    fputs(".ad l\n.nh\n.SH NAME\n", file);
    print_escaped(file, page->name);
    print_line(file, " \\- ", page->about, "");
    print_line(file, ".SH SYNOPSIS\n\\fB", page->name, "\\fR [options]");
    if (page->operands != NULL)
        print_line(file, "\\fI", page->operands, "\\fR");
    fputs(".SH DESCRIPTION\n", file);
    print_text(file, page->before);
    fputs(".SH OPTIONS\n", file);
    for (const struct cli_option *row = NULL; (row = cli_next_row(&page->table, row)) != NULL;)
        if (row->name == NULL)
            print_line(file, ".SS \"", row->help, "\"");
        else
            print_row(file, page, row);
    print_text(file, page->after);
}
