/* cpu_mask.c - see cpu_mask.h. A part of stoker_testing. */
#include "support/cpu_mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The levels of the x86-64 psABI. Haswell, the first of v3, also multiplies without carries. */
enum {
    V2 = STK_CPU_SSE41 | STK_CPU_SSE42,
    V3 = V2 | STK_CPU_PCLMUL | STK_CPU_BMI2 | STK_CPU_AVX2 | STK_CPU_FMA | STK_CPU_F16C,
    V4 = V3 | STK_CPU_AVX512F | STK_CPU_AVX512BW | STK_CPU_AVX512DQ | STK_CPU_AVX512VL,
};

const struct stk_cpu_level stk_cpu_levels[] = {
    { "v1", 0 }, { "v2", V2 }, { "v3", V3 }, { "v4", V4 }, { NULL, UINT32_MAX },
};

uint32_t stk_cpu_shown = UINT32_MAX;

__attribute__((constructor)) static void show_what_is_asked_for(void)
{
    const char *const name = getenv("STOKER_TEST_CPU");
    if (name == NULL)
        return;
    const struct stk_cpu_level *level = stk_cpu_levels;
    while (level->name != NULL && strcmp(level->name, name) != 0)
        level++;
    if (level->name == NULL) {
        (void)fprintf(stderr, "STOKER_TEST_CPU=%s: v1, v2, v3 or v4\n", name);
        abort();
    }
    stk_cpu_shown = level->features;
}
