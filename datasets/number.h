/* number.h - parse a decimal number, the same in every locale. */
#ifndef STK_DATASETS_NUMBER_H
#define STK_DATASETS_NUMBER_H

#include <stddef.h>

enum stk_number_kind {
    STK_NUMBER,
    STK_NUMBER_TEXT,       /* not a number */
    STK_NUMBER_NOT_FINITE, /* nan, inf or infinity, with or without a sign, in any case */
    STK_NUMBER_OVERLONG,   /* more than STK_NUMBER_BYTES_MAX characters */
    STK_NUMBER_TOO_LARGE   /* for float32 */
};

enum { STK_NUMBER_BYTES_MAX = 64 };

/* Parse [+-]digits[.digits][e[+-]digits]. Sets *out for STK_NUMBER only. */
enum stk_number_kind stk_number_parse(const char *text, size_t bytes, double *out);

#endif
