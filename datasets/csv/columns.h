/* columns.h - choose the columns of a CSV file and what becomes of each. */
#ifndef STK_DATASETS_CSV_COLUMNS_H
#define STK_DATASETS_CSV_COLUMNS_H

#include "datasets/csv/number.h"

enum {
    STK_CSV_COLUMNS_MAX = 65535,
    STK_CSV_EXTRA_MAX = 127 /* columns that are fields of their own */
};
#define STK_CSV_NO_COLUMN UINT32_MAX

/* What becomes of a column. */
enum stk_csv_use {
    STK_CSV_UNUSED = 0,
    STK_CSV_FEATURE, /* a number of the row, float32 */
    STK_CSV_VALUE,   /* a label: float32 */
    STK_CSV_CLASS,   /* a label: a whole number, int64 */
    STK_CSV_WORD,    /* a word: its place among the column's words, int64 */
    STK_CSV_BYTES    /* the text as it is */
};

/* How labels are read. */
enum stk_csv_label_type {
    STK_CSV_LABEL_AUTO, /* words if the first value is text, else float */
    STK_CSV_LABEL_FLOAT,
    STK_CSV_LABEL_INT,
    STK_CSV_LABEL_WORD
};

/* What is known before the first row is parsed. */
struct stk_csv_layout {
    const struct stk_csv_text *text;
    const struct stk_csv_field *names; /* the header's, or NULL */
    const struct stk_csv_field *first; /* the first row's */
    uint32_t count;                    /* columns of the file, 1..STK_CSV_COLUMNS_MAX */
    locale_t plain;
};

/* Lists of columns, separated by commas, as the spec gives them; "" = none. A column is given by name or
 * by number from 1; %2C is a comma in a name. */
struct stk_csv_lists {
    const char *labels;
    /* "" = all others whose first value is, or should be, a number */
    const char *features;
    const char *words;
    const char *bytes;
    enum stk_csv_label_type label_type;
};

struct stk_csv_choice {
    uint8_t *use; /* [layout->count], an enum stk_csv_use each */
    /* [layout->count], of which feature_count are set: the row, in this order */
    uint32_t *features;
    uint32_t feature_count;
    uint32_t extra[STK_CSV_EXTRA_MAX]; /* labels, then words, then bytes */
    uint32_t extra_count;
    uint32_t label_count;
};

/* Choose; use and features are the caller's, all 0. STOKER_EINVAL: no such column, or named twice;
 * STOKER_ELIMIT: more than STK_CSV_EXTRA_MAX; STOKER_EFORMAT: no column holds numbers. */
int stk_csv_choose(const struct stk_csv_layout *layout, const struct stk_csv_lists *lists,
                   struct stk_csv_choice *choice);

/* Decode %XX in text[0..bytes). Returns the length of out, at most that of text, or -1 if a % is
 * not followed by two hexadecimal digits. */
int stk_csv_decode(const char *text, size_t bytes, char *out);

#endif
