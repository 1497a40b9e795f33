/* describe.h - what was read of a CSV file and what was not, in one line. */
#ifndef STK_DATASETS_CSV_DESCRIBE_H
#define STK_DATASETS_CSV_DESCRIBE_H

#include "datasets/csv/table.h"

struct stk_csv_summary {
    const struct stk_csv_layout *layout;
    const struct stk_csv_choice *choice;
    const struct stk_csv_table *table;
    bool columns_named; /* the spec names the features */
    uint64_t dropped_count;
    uint64_t filled_count;
};

/* Make the line, to be freed by stk_free(); NULL if every column was read as numbers and no row was changed or left
 * out. STOKER_ENOMEM. */
int stk_csv_describe(char **out, const struct stk_csv_summary *summary);

#endif
