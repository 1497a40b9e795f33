/* digits.h - a number with separators: 1199882 as "1,199,882". */
#ifndef STK_MODEL_DIGITS_H
#define STK_MODEL_DIGITS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

struct stk_digits {
    char text[32];
};

static inline struct stk_digits stk_digits(uint64_t value)
{
    char plain[24];
    struct stk_digits out;
    const int length = snprintf(plain, sizeof(plain), "%" PRIu64, value);
    size_t to = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out.text[to++] = ',';
        out.text[to++] = plain[i];
    }
    out.text[to] = '\0';
    return out;
}

#endif
