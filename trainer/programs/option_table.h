/* option_table.h - the options of stoker-mnist and stoker-housing: one row for each. */
#ifndef STK_PROGRAMS_OPTION_TABLE_H
#define STK_PROGRAMS_OPTION_TABLE_H

#include "loader/cli/options.h"
#include "trainer/programs/arguments.h"

struct cli_table option_table(enum program program);

#endif
