/* cpu_features.h - the one place that asks what this CPU can do.
 *
 * Tests hide features, so that one machine runs what others would choose. Only test programs
 * contain stk_cpu_shown (tests/support/cpu_mask.c), so nothing can hide a feature from an installed
 * library.
 */
#ifndef STK_BASE_CPU_FEATURES_H
#define STK_BASE_CPU_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32 /* <asm/hwcap.h> */
#define HWCAP_CRC32 (1UL << 7)
#endif
#endif

enum stk_cpu_feature {
    STK_CPU_SSE41 = 1 << 0,
    STK_CPU_SSE42 = 1 << 1,
    STK_CPU_PCLMUL = 1 << 2,
    STK_CPU_BMI2 = 1 << 3,
    STK_CPU_AVX2 = 1 << 4,
    STK_CPU_FMA = 1 << 5,
    STK_CPU_F16C = 1 << 6,
    STK_CPU_AVX512F = 1 << 7,
    STK_CPU_AVX512BW = 1 << 8,
    STK_CPU_AVX512DQ = 1 << 9,
    STK_CPU_AVX512VL = 1 << 10,
    STK_CPU_AVX512_BF16 = 1 << 11,
    STK_CPU_ARM_CRC32 = 1 << 12,
    STK_CPU_EVERY_AVX512 = STK_CPU_AVX512F | STK_CPU_AVX512BW | STK_CPU_AVX512DQ |
                           STK_CPU_AVX512VL | STK_CPU_AVX512_BF16,
};

/* The features that a test shows to the library; absent elsewhere. */
extern uint32_t stk_cpu_shown __attribute__((weak, visibility("hidden")));

#if defined(__x86_64__)
/* clang cannot ask __builtin_cpu_supports() for F16C. */
static inline bool stk_cpu_has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

/* Returns true if this CPU, and its system, have all of `features`, a constant: STK_CPU_... joined
 * by |. A build with -DSTOKER_AVX512=OFF has no AVX-512. */
static inline __attribute__((always_inline)) bool stk_cpu_has(uint32_t features)
{
    if (&stk_cpu_shown != NULL && (features & ~stk_cpu_shown) != 0)
        return false;
#ifdef STOKER_NO_AVX512
    if ((features & STK_CPU_EVERY_AVX512) != 0)
        return false;
#endif
#define STK_CPU_LACKS(feature, found) ((features & (feature)) != 0 && !(found))
#if defined(__x86_64__)
    return !STK_CPU_LACKS(STK_CPU_SSE41, __builtin_cpu_supports("sse4.1")) &&
           !STK_CPU_LACKS(STK_CPU_SSE42, __builtin_cpu_supports("sse4.2")) &&
           !STK_CPU_LACKS(STK_CPU_PCLMUL, __builtin_cpu_supports("pclmul")) &&
           !STK_CPU_LACKS(STK_CPU_BMI2, __builtin_cpu_supports("bmi2")) &&
           !STK_CPU_LACKS(STK_CPU_AVX2, __builtin_cpu_supports("avx2")) &&
           !STK_CPU_LACKS(STK_CPU_FMA, __builtin_cpu_supports("fma")) &&
           !STK_CPU_LACKS(STK_CPU_AVX512F, __builtin_cpu_supports("avx512f")) &&
           !STK_CPU_LACKS(STK_CPU_AVX512BW, __builtin_cpu_supports("avx512bw")) &&
           !STK_CPU_LACKS(STK_CPU_AVX512DQ, __builtin_cpu_supports("avx512dq")) &&
           !STK_CPU_LACKS(STK_CPU_AVX512VL, __builtin_cpu_supports("avx512vl")) &&
           !STK_CPU_LACKS(STK_CPU_AVX512_BF16, __builtin_cpu_supports("avx512bf16")) &&
           !STK_CPU_LACKS(STK_CPU_F16C, stk_cpu_has_f16c()) && (features & STK_CPU_ARM_CRC32) == 0;
#elif defined(__aarch64__)
    return !STK_CPU_LACKS(STK_CPU_ARM_CRC32, getauxval(AT_HWCAP) & HWCAP_CRC32) &&
           (features & ~(uint32_t)STK_CPU_ARM_CRC32) == 0;
#else
    return features == 0;
#endif
#undef STK_CPU_LACKS
}

#endif
