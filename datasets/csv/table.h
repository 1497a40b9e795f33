/* table.h - a CSV file as rows of float32 in memory. */
#ifndef STK_DATASETS_CSV_TABLE_H
#define STK_DATASETS_CSV_TABLE_H

#include <stoker/dataset.h>

#include "datasets/parameters.h"
#include "loader/base/memory.h"

enum stk_csv_header { STK_CSV_HEADER_AUTO, STK_CSV_HEADER_YES, STK_CSV_HEADER_NO };
enum stk_csv_split { STK_CSV_ALL, STK_CSV_TRAIN, STK_CSV_TEST };

/* The parameters of the spec. */
struct stk_csv_wish {
    char label[STK_PARAMETER_BYTES_MAX];   /* "" = none */
    char columns[STK_PARAMETER_BYTES_MAX]; /* "" = all that hold numbers */
    enum stk_csv_header header;
    char delimiter;
    bool label_is_class;  /* int64 labels, else float32 */
    uint64_t class_count; /* 0 = largest label + 1 */
    enum stk_csv_split split;
    double test; /* share of the rows, 0..<1; not 0 with TRAIN and TEST */
    uint64_t seed;
    bool zscore;
};

struct stk_csv_table {
    struct stk_region rows;   /* [count][columns] float */
    struct stk_region labels; /* [count] float or int64_t; not mapped: no labels */
    uint64_t count;
    uint32_t columns;
    stoker_dtype label_dtype;
    uint32_t class_count;
};

/* Load a plain or gzip file. The file and the table may take max_bytes each. On failure *out is
 * untouched. */
int stk_csv_load(struct stk_csv_table *out, const char *path, const struct stk_csv_wish *wish,
                 uint64_t max_bytes, stoker_error *error);
void stk_csv_unload(struct stk_csv_table *table);

#endif
