/* columns.h - choose the features and the label of a CSV file. */
#ifndef STK_DATASETS_CSV_COLUMNS_H
#define STK_DATASETS_CSV_COLUMNS_H

#include "datasets/csv/number.h"

enum { STK_CSV_COLUMNS_MAX = 65535 };
#define STK_CSV_NO_COLUMN UINT32_MAX

/* What is known before the first row is parsed. */
struct stk_csv_layout {
    const struct stk_csv_text *text;
    const struct stk_csv_field *names; /* the header's, or NULL */
    const struct stk_csv_field *first; /* the first row's */
    uint32_t count;                    /* columns of the file, 1..STK_CSV_COLUMNS_MAX */
    locale_t plain;
};

/* Find the label (text "" = none) and the features (text "" = all others whose first value is, or
 * should be, a number). A column is given by name or by number from 1; %2C is a comma in a name.
 * features has room for layout->count.
 * STOKER_EINVAL: no such column, or named twice; STOKER_EFORMAT: no column holds numbers. */
int stk_csv_choose(const struct stk_csv_layout *layout, const char *label_text,
                   const char *columns_text, uint32_t *label, uint32_t *features,
                   uint32_t *feature_count);

/* Decode %XX in text[0..bytes). Returns the length of out, at most that of text, or -1 if a % is
 * not followed by two hexadecimal digits. */
int stk_csv_decode(const char *text, size_t bytes, char *out);

#endif
