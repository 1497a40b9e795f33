/* columns.h - which columns of a CSV file are features, and which one is the label. */
#ifndef STK_DATASETS_CSV_COLUMNS_H
#define STK_DATASETS_CSV_COLUMNS_H

#include "datasets/csv/number.h"

enum { STK_CSV_COLUMNS_MAX = 65535 };
#define STK_CSV_NO_COLUMN UINT32_MAX

/* What is known before the first row is read. Fields are those of a record. */
struct stk_csv_layout {
    const struct stk_csv_text *text;
    const struct stk_csv_field *names; /* of the header, or NULL */
    const struct stk_csv_field *first; /* of the first row */
    uint32_t count;                    /* columns of the file, 1..STK_CSV_COLUMNS_MAX */
    locale_t plain;
};

/* Find the label (text "" = none) and the features (text "" = all others whose first value is a
 * number, or should be one). Texts name columns, or count them from 1; %2C stands for a comma in
 * a name. features has room for layout->count.
 * STOKER_EINVAL: no such column, named twice; STOKER_EFORMAT: no column holds numbers. */
int stk_csv_choose(const struct stk_csv_layout *layout, const char *label_text,
                   const char *columns_text, uint32_t *label, uint32_t *features,
                   uint32_t *feature_count);

/* Undo %XX in text[0..bytes). Returns the length of what is in out (as long as text, at most),
 * or -1 if a % is not followed by two hexadecimal digits. */
int stk_csv_decode(const char *text, size_t bytes, char *out);

#endif
