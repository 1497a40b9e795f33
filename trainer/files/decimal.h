/* decimal.h - a number as text, with a point whatever the locale says. */
#ifndef STK_TRAINER_DECIMAL_H
#define STK_TRAINER_DECIMAL_H

#include <stdio.h>

enum { STK_DECIMAL_BYTES = 32 };

static inline const char *stk_decimal(char out[STK_DECIMAL_BYTES], double value, int digits)
{
    (void)snprintf(out, STK_DECIMAL_BYTES, "%.*g", digits, value);
    for (char *at = out; *at != '\0'; at++)
        if (*at == ',')
            *at = '.';
    return out;
}

#endif
