/* short_number.c - see short_number.h. */
#include "bench/output/short_number.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

const char *bench_short_number(char out[16], double value)
{
    static const char units[] = { ' ', 'k', 'M', 'G', 'T' };
    if (!isfinite(value)) {
        snprintf(out, 16, "-");
        return out;
    }
    size_t unit = 0;
    while (fabs(value) >= 999.5 && unit + 1 < sizeof(units)) {
        value /= 1000;
        unit++;
    }
    int digits = fabs(value) >= 99.95 ? 0 : fabs(value) >= 9.995 ? 1 : 2;
    if (unit == 0)
        snprintf(out, 16, "%.*f", digits, value);
    else
        snprintf(out, 16, "%.*f %c", digits, value, units[unit]);
    return out;
}
