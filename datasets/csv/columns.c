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

/* ---- features ------------------------------------------------------------------- */

static int choose_named(const struct stk_csv_layout *layout, const char *text, uint32_t label,
                        uint32_t *features, uint32_t *feature_count)
{
    for (const char *at = text;; at++) {
        size_t bytes = strcspn(at, ",");
        uint32_t column = STK_CSV_NO_COLUMN;
        int rc = find(layout, at, bytes, &column);
        if (rc != STOKER_OK)
            return rc;
        bool again = column == label;
        for (uint32_t i = 0; i < *feature_count; i++)
            again = again || features[i] == column;
        if (again)
            return refuse(layout, at, bytes, "is named twice");
        features[(*feature_count)++] = column;
        at += bytes;
        if (*at == '\0')
            return STOKER_OK;
    }
}

/* Leave out columns of words. Keep one whose first value is missing: reading it reports the error. */
static int choose_numbers(const struct stk_csv_layout *layout, uint32_t label, uint32_t *features,
                          uint32_t *feature_count)
{
    for (uint32_t column = 0; column < layout->count; column++) {
        double value;
        if (column != label &&
            stk_csv_number(&layout->first[column], layout->plain, &value) != STK_CSV_TEXT)
            features[(*feature_count)++] = column;
    }
    if (*feature_count > 0)
        return STOKER_OK;
    return stk_csv_fail(layout->text, STOKER_EFORMAT, layout->first, 0, "no column%s holds numbers",
                        label == STK_CSV_NO_COLUMN ? "" : " but the label's");
}

int stk_csv_choose(const struct stk_csv_layout *layout, const char *label_text,
                   const char *columns_text, uint32_t *label, uint32_t *features,
                   uint32_t *feature_count)
{
    *label = STK_CSV_NO_COLUMN;
    *feature_count = 0;
    if (label_text[0] != '\0') {
        int rc = find(layout, label_text, strlen(label_text), label);
        if (rc != STOKER_OK)
            return rc;
    }
    if (columns_text[0] != '\0')
        return choose_named(layout, columns_text, *label, features, feature_count);
    return choose_numbers(layout, *label, features, feature_count);
}
