/* option_table.h - the options of loaderbench: one row for each. */
#ifndef BENCH_OPTION_TABLE_H
#define BENCH_OPTION_TABLE_H

#include "loader/cli/options.h"

/* Fills a struct bench_arguments. */
struct cli_table bench_option_table(void);

#endif
