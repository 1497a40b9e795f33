/* number.c - see number.h. */
#include "datasets/csv/number.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_one_of(const char *bytes, size_t size, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strlen(*words) == size && strncasecmp(*words, bytes, size) == 0)
            return true;
    }
    return false;
}

static size_t digits(const char *bytes, size_t size)
{
    size_t count = 0;
    while (count < size && bytes[count] >= '0' && bytes[count] <= '9')
        count++;
    return count;
}

static size_t sign(const char *bytes, size_t size)
{
    return size > 0 && (bytes[0] == '+' || bytes[0] == '-') ? 1 : 0;
}

/* strtod takes more than this: hexadecimal, "nan(...)", leading line breaks. */
static bool is_number(const char *bytes, size_t size)
{
    size_t at = sign(bytes, size);
    size_t whole = digits(bytes + at, size - at);
    size_t decimals = 0;
    at += whole;
    if (at < size && bytes[at] == '.') {
        decimals = digits(bytes + at + 1, size - at - 1);
        at += decimals + 1;
    }
    if (whole + decimals == 0)
        return false;
    if (at < size && (bytes[at] == 'e' || bytes[at] == 'E')) {
        at++;
        at += sign(bytes + at, size - at);
        size_t exponent = digits(bytes + at, size - at);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return at == size;
}

enum stk_csv_kind stk_csv_number(const struct stk_csv_field *field, locale_t plain, double *out)
{
    static const char *const missing[] = { "", "NA", "N/A", "null", "none", "?", "-", NULL };
    static const char *const not_finite[] = { "nan", "inf", "infinity", NULL };
    const char *bytes = field->bytes;
    const size_t size = field->size;
    if (is_one_of(bytes, size, missing))
        return STK_CSV_MISSING;
    const size_t signs = sign(bytes, size);
    if (is_one_of(bytes + signs, size - signs, not_finite))
        return STK_CSV_NOT_FINITE;
    if (!is_number(bytes, size))
        return STK_CSV_TEXT;
    if (size > STK_CSV_NUMBER_BYTES_MAX)
        return STK_CSV_OVERLONG;
    char text[STK_CSV_NUMBER_BYTES_MAX + 1] = "";
    memcpy(text, bytes, size);
    double value = strtod_l(text, NULL, plain);
    if (fabs(value) > (double)FLT_MAX)
        return STK_CSV_TOO_LARGE;
    *out = value;
    return STK_CSV_NUMBER;
}

bool stk_csv_is_missing(const struct stk_csv_field *field, enum stk_csv_kind kind)
{
    return kind == STK_CSV_MISSING ||
           (kind == STK_CSV_NOT_FINITE && (field->bytes[0] == 'n' || field->bytes[0] == 'N'));
}
