/* number.h - parse a field as a number, or classify it. */
#ifndef STK_DATASETS_CSV_NUMBER_H
#define STK_DATASETS_CSV_NUMBER_H

#include <locale.h>

#include "datasets/csv/record.h"

enum stk_csv_kind {
    STK_CSV_NUMBER,
    STK_CSV_MISSING,    /* empty, NA, N/A, null, none, ?, - */
    STK_CSV_NOT_FINITE, /* nan, inf, infinity with or without a sign */
    STK_CSV_OVERLONG,   /* a number of more than STK_CSV_NUMBER_BYTES_MAX characters */
    STK_CSV_TOO_LARGE,  /* for float32 */
    STK_CSV_TEXT        /* anything else */
};

/* Returns true if a field of this kind has no value: MISSING, or "nan" without a sign. */
bool stk_csv_is_missing(const struct stk_csv_field *field, enum stk_csv_kind kind);

enum { STK_CSV_NUMBER_BYTES_MAX = 64 };

/* Parse [+-]digits[.digits][e[+-]digits]. `plain` is the locale "C", so that the decimal point is
 * a dot in every locale. *out is written for STK_CSV_NUMBER only. */
enum stk_csv_kind stk_csv_number(const struct stk_csv_field *field, locale_t plain, double *out);

#endif
