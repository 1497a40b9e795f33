/* console.c - see console.h. */
#include "trainer/programs/console.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/text/printable.h"

static void say(const struct console *console, FILE *file, const char *begin, const char *format,
                va_list list)
{
    char line[2048];
    (void)vsnprintf(line, sizeof(line), format, list);
    stk_printable(line); /* names of files and data sets are not trusted */
    fprintf(file, "%s%s%s\n", begin, console->mark, line);
    fflush(file);
}

void console_say(const struct console *console, const char *format, ...)
{
    if (console->quiet)
        return;
    va_list list;
    va_start(list, format);
    say(console, stdout, "", format, list);
    va_end(list);
}

void console_text(const struct console *console, const char *text)
{
    while (!console->quiet && *text != '\0') {
        size_t length = strcspn(text, "\n");
        printf("%s%.*s\n", console->mark, (int)length, text);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    fflush(stdout);
}

void console_result(const struct console *console, const char *format, ...)
{
    if (console->mute)
        return;
    va_list list;
    va_start(list, format);
    say(console, stdout, "", format, list);
    va_end(list);
}

void console_complain(const struct console *console, const char *format, ...)
{
    char begin[80];
    (void)snprintf(begin, sizeof(begin), "%.60s: ", console->program);
    const struct console plain = { .mark = "" };
    va_list list;
    va_start(list, format);
    say(&plain, stderr, begin, format, list);
    va_end(list);
}
