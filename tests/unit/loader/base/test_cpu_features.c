/* test_cpu_features.c - a test that hides features gets the choices of a CPU without them. */
#include "kernels/convert/variants.h"
#include "loader/base/crc32c/crc32c.h"
#include "loader/codec/png/unfilter.h"
#include "support/cpu_mask.h"
#include "support/leaks.h"

static bool unfilters_by_sse41(void)
{
    return stk_png_unfilter_sse41() != NULL;
}

static bool sums_by_sse42(void)
{
    return stk_crc32c_sse42() != NULL;
}

static bool sums_by_arm(void)
{
    return stk_crc32c_arm() != NULL;
}

enum {
    SSE42 = STK_CPU_SSE42 | STK_CPU_PCLMUL,
    AVX2 = STK_CPU_AVX2 | STK_CPU_FMA | STK_CPU_F16C,
    AVX512 = AVX2 | STK_CPU_AVX512F | STK_CPU_AVX512BW | STK_CPU_AVX512VL,
};

static const struct {
    const char *name;
    uint32_t needs;
    bool (*chosen)(void);
} choices[] = {
    { "unfilter sse4.1", STK_CPU_SSE41, unfilters_by_sse41 },
    { "crc32c sse4.2", SSE42, sums_by_sse42 },
    { "crc32c arm", STK_CPU_ARM_CRC32, sums_by_arm },
#ifdef __x86_64__
    { "convert avx2", AVX2, stk_convert_runs_on_avx2 },
    { "convert avx512", AVX512, stk_convert_runs_on_avx512 },
#endif
};

CleanTest(cpu_features, each_level_has_its_own_choices)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        stk_cpu_shown = UINT32_MAX;
        const bool here = choices[i].chosen();
        for (const struct stk_cpu_level *level = stk_cpu_levels; level->name != NULL; level++) {
            stk_cpu_shown = level->features;
            const bool shown = (choices[i].needs & ~level->features) == 0;
            cr_assert_eq(choices[i].chosen(), here && shown, "%s, %s", choices[i].name,
                         level->name);
        }
    }
}

CleanTest(cpu_features, what_another_kind_of_cpu_has_is_absent)
{
    stk_cpu_shown = UINT32_MAX;
    cr_assert(stk_cpu_has(0));
    cr_assert_not(stk_cpu_has(STK_CPU_ARM_CRC32) && stk_cpu_has(STK_CPU_SSE42));
}
