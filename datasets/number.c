/* number.c - see number.h. */
#include "datasets/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static size_t count_digits(const char *text, size_t bytes)
{
    size_t count = 0;
    while (count < bytes && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

static size_t count_signs(const char *text, size_t bytes)
{
    return bytes > 0 && (text[0] == '+' || text[0] == '-') ? 1 : 0;
}

/* Check the form first: strtod also takes hexadecimal, "nan(...)" and leading line breaks. */
static bool is_decimal(const char *text, size_t bytes)
{
    size_t at = count_signs(text, bytes);
    const size_t whole = count_digits(text + at, bytes - at);
    size_t decimals = 0;
    at += whole;
    if (at < bytes && text[at] == '.') {
        decimals = count_digits(text + at + 1, bytes - at - 1);
        at += decimals + 1;
    }
    if (whole + decimals == 0)
        return false;
    if (at < bytes && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += count_signs(text + at, bytes - at);
        const size_t exponent = count_digits(text + at, bytes - at);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return at == bytes;
}

static bool is_not_finite(const char *text, size_t bytes)
{
    static const char *const words[] = { "nan", "inf", "infinity" };
    const size_t signs = count_signs(text, bytes);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == bytes - signs &&
            strncasecmp(words[i], text + signs, bytes - signs) == 0)
            return true;
    return false;
}

enum stk_number_kind stk_number_parse(const char *text, size_t bytes, double *out)
{
    char copy[STK_NUMBER_BYTES_MAX + 1] = "";
    if (!is_decimal(text, bytes))
        return is_not_finite(text, bytes) ? STK_NUMBER_NOT_FINITE : STK_NUMBER_TEXT;
    if (bytes > STK_NUMBER_BYTES_MAX)
        return STK_NUMBER_OVERLONG;
    memcpy(copy, text, bytes);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* allocates nothing */
    const double value = strtod_l(copy, NULL, plain);
    freelocale(plain);
    if (fabs(value) > (double)FLT_MAX)
        return STK_NUMBER_TOO_LARGE;
    *out = value;
    return STK_NUMBER;
}
