/* voice.c - see voice.h. */
#include "trainer/programs/voice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/text/printable.h"

static void say(const struct voice *voice, FILE *file, const char *begin, const char *format,
                va_list list)
{
    char line[2048];
    (void)vsnprintf(line, sizeof(line), format, list);
    stk_printable(line); /* names of files and data sets are not trusted */
    fprintf(file, "%s%s%s\n", begin, voice->mark, line);
    fflush(file);
}

void voice_say(const struct voice *voice, const char *format, ...)
{
    if (voice->quiet)
        return;
    va_list list;
    va_start(list, format);
    say(voice, stdout, "", format, list);
    va_end(list);
}

void voice_text(const struct voice *voice, const char *text)
{
    while (!voice->quiet && *text != '\0') {
        size_t length = strcspn(text, "\n");
        printf("%s%.*s\n", voice->mark, (int)length, text);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    fflush(stdout);
}

void voice_result(const struct voice *voice, const char *format, ...)
{
    if (voice->mute)
        return;
    va_list list;
    va_start(list, format);
    say(voice, stdout, "", format, list);
    va_end(list);
}

void voice_complain(const struct voice *voice, const char *format, ...)
{
    char begin[80];
    (void)snprintf(begin, sizeof(begin), "%.60s: ", voice->program);
    const struct voice plain = { .mark = "" };
    va_list list;
    va_start(list, format);
    say(&plain, stderr, begin, format, list);
    va_end(list);
}
