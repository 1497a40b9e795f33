/* columns.c - see columns.h. */
#include "datasets/csv/columns.h"

#include <string.h>

#include "datasets/parameters.h"

/* ---- names ---------------------------------------------------------------------- */

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

int stk_csv_decode(const char *text, size_t bytes, char *out)
{
    int size = 0;
    for (size_t i = 0; i < bytes; i++) {
        char byte = text[i];
        if (byte == '%') {
            int high = i + 2 < bytes ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < bytes ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        out[size++] = byte;
    }
    return size;
}

/* 1..layout->count -> 0.., anything else -> STK_CSV_NO_COLUMN. */
static uint32_t column_of_number(const struct stk_csv_layout *layout, const char *name, size_t size)
{
    uint32_t number = 0;
    for (size_t i = 0; i < size; i++) {
        if (name[i] < '0' || name[i] > '9' || number > layout->count)
            return STK_CSV_NO_COLUMN;
        number = number * 10 + (uint32_t)(name[i] - '0');
    }
    return number >= 1 && number <= layout->count ? number - 1 : STK_CSV_NO_COLUMN;
}

static int refuse(const struct stk_csv_layout *layout, const char *name, size_t size,
                  const char *why)
{
    char quoted[STK_CSV_QUOTED_BYTES];
    const struct stk_csv_field field = { .bytes = name, .size = size };
    return stk_csv_fail(layout->text, STOKER_EINVAL, NULL, 0, "column \"%s\" %s",
                        stk_csv_quote(&field, quoted), why);
}

/* A name of the header goes before a number. */
static int find(const struct stk_csv_layout *layout, const char *text, size_t bytes, uint32_t *out)
{
    char name[STK_PARAMETER_BYTES_MAX];
    int size = stk_csv_decode(text, bytes, name);
    if (size < 0)
        return refuse(layout, text, bytes, "has a % without two hexadecimal digits");
    uint32_t found = STK_CSV_NO_COLUMN;
    for (uint32_t column = 0; layout->names != NULL && column < layout->count; column++) {
        if (!stk_csv_equals(&layout->names[column], name, (size_t)size))
            continue;
        if (found != STK_CSV_NO_COLUMN)
            return refuse(layout, name, (size_t)size, "occurs twice: give its number, from 1");
        found = column;
    }
    if (found == STK_CSV_NO_COLUMN)
        found = column_of_number(layout, name, (size_t)size);
    if (found == STK_CSV_NO_COLUMN)
        return refuse(layout, name, (size_t)size,
                      layout->names != NULL ? "is not in the header and not a column number"
                                            : "is not a column number, and there is no "
                                              "header with names");
    *out = found;
    return STOKER_OK;
}

/* ---- lists ---------------------------------------------------------------------- */

static int take_column(const struct stk_csv_layout *layout, struct stk_csv_choice *choice,
                       uint32_t column, enum stk_csv_use use)
{
    choice->use[column] = (uint8_t)use;
    if (use == STK_CSV_FEATURE) {
        choice->features[choice->feature_count++] = column;
        return STOKER_OK;
    }
    if (choice->extra_count == STK_CSV_EXTRA_MAX)
        return stk_csv_fail(layout->text, STOKER_ELIMIT, NULL, 0,
                            "more than %d columns as labels, words or bytes", STK_CSV_EXTRA_MAX);
    choice->extra[choice->extra_count++] = column;
    return STOKER_OK;
}

static bool holds_text(const struct stk_csv_layout *layout, uint32_t column)
{
    double value;
    return stk_csv_number(&layout->first[column], layout->plain, &value) == STK_CSV_TEXT;
}

static enum stk_csv_use use_of_label(const struct stk_csv_layout *layout, uint32_t column,
                                     enum stk_csv_label_type type)
{
    static const enum stk_csv_use uses[] = { [STK_CSV_LABEL_FLOAT] = STK_CSV_VALUE,
                                             [STK_CSV_LABEL_INT] = STK_CSV_CLASS,
                                             [STK_CSV_LABEL_WORD] = STK_CSV_WORD };
    if (type != STK_CSV_LABEL_AUTO)
        return uses[type];
    return holds_text(layout, column) ? STK_CSV_WORD : STK_CSV_VALUE;
}

/* Take every column of a list; STK_CSV_UNUSED = labels, of the type given. */
static int take_list(const struct stk_csv_layout *layout, struct stk_csv_choice *choice,
                     const char *text, enum stk_csv_use use, enum stk_csv_label_type type)
{
    for (const char *at = text; text[0] != '\0'; at++) {
        const size_t bytes = strcspn(at, ",");
        uint32_t column = STK_CSV_NO_COLUMN;
        int rc = find(layout, at, bytes, &column);
        if (rc == STOKER_OK && choice->use[column] != STK_CSV_UNUSED)
            rc = refuse(layout, at, bytes, "is named twice");
        if (rc == STOKER_OK)
            rc = take_column(layout, choice, column,
                             use == STK_CSV_UNUSED ? use_of_label(layout, column, type) : use);
        if (rc != STOKER_OK)
            return rc;
        at += bytes;
        if (*at == '\0')
            break;
    }
    return STOKER_OK;
}

/* Leave out columns of words. Keep one whose first value is missing: reading it reports the error. */
static int take_numbers(const struct stk_csv_layout *layout, struct stk_csv_choice *choice)
{
    for (uint32_t column = 0; column < layout->count; column++) {
        if (choice->use[column] == STK_CSV_UNUSED && !holds_text(layout, column))
            (void)take_column(layout, choice, column, STK_CSV_FEATURE);
    }
    if (choice->feature_count > 0)
        return STOKER_OK;
    return stk_csv_fail(layout->text, STOKER_EFORMAT, layout->first, 0, "no column%s holds numbers",
                        choice->label_count == 0 ? "" : " but the label's");
}

int stk_csv_choose(const struct stk_csv_layout *layout, const struct stk_csv_lists *lists,
                   struct stk_csv_choice *choice)
{
    int rc = take_list(layout, choice, lists->labels, STK_CSV_UNUSED, lists->label_type);
    choice->label_count = choice->extra_count;
    if (rc == STOKER_OK)
        rc = take_list(layout, choice, lists->words, STK_CSV_WORD, STK_CSV_LABEL_AUTO);
    if (rc == STOKER_OK)
        rc = take_list(layout, choice, lists->bytes, STK_CSV_BYTES, STK_CSV_LABEL_AUTO);
    if (rc != STOKER_OK)
        return rc;
    if (lists->features[0] == '\0')
        return take_numbers(layout, choice);
    return take_list(layout, choice, lists->features, STK_CSV_FEATURE, STK_CSV_LABEL_AUTO);
}
