/* table.h - a CSV file in memory: rows of float32, and columns beside them.
 *
 *   rows       [count][columns]     the features
 *   extra[i]   [count]              a label, a word's number, or text with its ends
 */
#ifndef STK_DATASETS_CSV_TABLE_H
#define STK_DATASETS_CSV_TABLE_H

#include <stoker/dataset.h>

#include "datasets/csv/columns.h"
#include "datasets/csv/words.h"
#include "datasets/parameters.h"
#include "loader/base/memory.h"

enum stk_csv_header { STK_CSV_HEADER_AUTO, STK_CSV_HEADER_YES, STK_CSV_HEADER_NO };
enum stk_csv_split { STK_CSV_ALL, STK_CSV_TRAIN, STK_CSV_TEST };

/* What becomes of a missing value. */
enum stk_csv_missing {
    STK_CSV_MISSING_ERROR,
    STK_CSV_MISSING_NUMBER, /* a missing feature is the number of the spec */
    STK_CSV_MISSING_MEAN,   /* a missing feature is the mean of the training rows that have one */
    STK_CSV_MISSING_DROP    /* the row is left out */
};

/* The parameters of the spec. */
struct stk_csv_wish {
    char label[STK_PARAMETER_BYTES_MAX];   /* "" = none */
    char columns[STK_PARAMETER_BYTES_MAX]; /* "" = all that hold numbers */
    char categories[STK_PARAMETER_BYTES_MAX];
    char bytes[STK_PARAMETER_BYTES_MAX];
    enum stk_csv_header header;
    char delimiter;
    enum stk_csv_label_type label_type;
    uint64_t class_count; /* labels that are whole numbers end below it; 0 = largest label + 1 */
    enum stk_csv_split split;
    double test; /* share of the rows, 0..<1; not 0 with TRAIN and TEST */
    uint64_t seed;
    bool zscore;
    enum stk_csv_missing missing;
    double missing_number;
};

/* A column that is a field of its own. */
struct stk_csv_column {
    char name[STK_CSV_QUOTED_BYTES]; /* for messages: the name in the header, or "column3" */
    enum stk_csv_use use;
    uint32_t at;                /* column of the file */
    struct stk_region values;   /* [count] float or int64_t; BYTES: the text */
    struct stk_region ends;     /* BYTES: [count + 1] uint64_t, where each text ends, the first 0 */
    uint32_t class_count;       /* CLASS, WORD; 0 = unknown */
    struct stk_csv_words words; /* WORD */
    int64_t largest;            /* CLASS */
    bool negative;              /* CLASS: some label is below 0 */
    uint64_t bytes_sum;         /* BYTES: of all rows */
    uint64_t bytes_max;         /* BYTES: the longest */
};

struct stk_csv_table {
    struct stk_region rows; /* [count][columns] float */
    uint64_t count;
    uint32_t columns;
    struct stk_csv_column *extra; /* [extra_count]: labels, then words, then bytes */
    uint32_t extra_count;
    uint32_t label_count;
    char *description; /* which columns and rows were read */
};

/* Load a plain or gzip file. The file and the table may take max_bytes each. On failure *out is
 * untouched. */
int stk_csv_load(struct stk_csv_table *out, const char *path, const struct stk_csv_wish *wish,
                 uint64_t max_bytes, stoker_error *error);
void stk_csv_unload(struct stk_csv_table *table);

#endif
