/* page_forms.h - the forms of a program's page, and what they share. */
#ifndef STK_CLI_PAGE_FORMS_H
#define STK_CLI_PAGE_FORMS_H

#include "loader/cli/options.h"

/* A line of a text: a title, a term with its meaning, or a paragraph. */
struct cli_line {
    char bytes[CLI_LINE_BYTES];
    bool title;
    const char *term; /* NULL = none */
    const char *words;
};

/* Takes the next line of *text. Returns false at its end. */
bool cli_next_line(const char **text, struct cli_line *line);

/* Writes a row's help, with its default in brackets. */
void cli_row_help(char text[CLI_LINE_BYTES], const struct cli_page *page,
                  const struct cli_option *row);

/* A manual page, as troff's macros "man" have it. */
void cli_print_man(FILE *file, const struct cli_page *page);

/* What a shell reads to complete the program's words. */
void cli_print_completion(FILE *file, const struct cli_page *page, enum cli_form form);

#endif
