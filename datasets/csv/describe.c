/* describe.c - see describe.h. */
#include "datasets/csv/describe.h"

#include <stdarg.h>
#include <stdio.h>

#include "loader/base/memory.h"
#include "loader/base/printable.h"

enum { DESCRIPTION_BYTES = 1024, NAMED_MAX = 8, WORDS_SHOWN = 16 };

struct line {
    char *text;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    va_list arguments;
    const size_t left = DESCRIPTION_BYTES - line->used;
    va_start(arguments, format);
    const int bytes = vsnprintf(line->text + line->used, left, format, arguments);
    va_end(arguments);
    line->used += bytes < 0 ? 0 : (size_t)bytes < left ? (size_t)bytes : left - 1;
}

static uint32_t count_unread(const struct stk_csv_summary *summary)
{
    uint32_t unread = 0;
    for (uint32_t column = 0; column < summary->layout->count; column++)
        unread += summary->choice->use[column] == STK_CSV_UNUSED ? 1 : 0;
    return unread;
}

static void add_unread(const struct stk_csv_summary *summary, struct line *line, uint32_t unread)
{
    uint32_t named = 0;
    add(line, ", not read:");
    for (uint32_t column = 0; column < summary->layout->count && named < NAMED_MAX; column++) {
        char name[STK_CSV_QUOTED_BYTES];
        if (summary->choice->use[column] != STK_CSV_UNUSED)
            continue;
        if (summary->layout->names != NULL)
            add(line, "%s %s", named == 0 ? "" : ",",
                stk_csv_quote(&summary->layout->names[column], name));
        else
            add(line, "%s %u", named == 0 ? "" : ",", column + 1);
        named++;
    }
    if (unread > named)
        add(line, " and %u more", unread - named);
    if (!summary->columns_named)
        add(line, " (text: categories= or bytes= reads it)");
}

static uint32_t add_words(const struct stk_csv_summary *summary, struct line *line)
{
    uint32_t columns = 0;
    for (uint32_t i = 0; i < summary->table->extra_count; i++) {
        const struct stk_csv_column *column = &summary->table->extra[i];
        if (column->use != STK_CSV_WORD)
            continue;
        add(line, "; %s: %u words", column->name, column->class_count);
        for (uint32_t word = 0; word < column->class_count && word < WORDS_SHOWN; word++)
            add(line, "%s%s", word == 0 ? " (" : ", ", stk_csv_words_at(&column->words, word));
        add(line, column->class_count > WORDS_SHOWN ? ", ...)" : ")");
        columns++;
    }
    return columns;
}

int stk_csv_describe(char **out, const struct stk_csv_summary *summary)
{
    const uint32_t unread = count_unread(summary);
    struct line line = { .text = stk_calloc(DESCRIPTION_BYTES, 1) };
    *out = line.text;
    if (line.text == NULL)
        return STOKER_ENOMEM;
    add(&line, "%u of %u columns read", summary->layout->count - unread, summary->layout->count);
    if (unread > 0)
        add_unread(summary, &line, unread);
    const uint32_t words = add_words(summary, &line);
    if (summary->dropped_count > 0)
        add(&line, "; %llu rows with a missing value left out",
            (unsigned long long)summary->dropped_count);
    if (summary->filled_count > 0)
        add(&line, "; %llu missing values filled in", (unsigned long long)summary->filled_count);
    stk_printable(line.text);
    if (unread == 0 && words == 0 && summary->dropped_count == 0 && summary->filled_count == 0) {
        stk_free(line.text);
        *out = NULL;
    }
    return STOKER_OK;
}
