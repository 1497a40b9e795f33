/* vectors.h - plain loops that are compiled once for any processor and once for AVX2.
 *
 *   STK_VECTOR_BODY f_body(float *y, uint64_t count) { ... }
 *   STK_VECTORS(f, (float *y, uint64_t count), (y, count))       defines f
 *
 * The AVX2 copy has no fused multiply-add, so both give the same bits. */
#ifndef STK_TRAINER_BACKEND_COMMON_VECTORS_H
#define STK_TRAINER_BACKEND_COMMON_VECTORS_H

#include "loader/base/cpu/cpu_features.h"

#define STK_VECTOR_BODY static inline __attribute__((always_inline)) void

#if defined(__x86_64__)
#define STK_VECTORS(name, parameters, arguments)                                                   \
    __attribute__((target("avx2"))) static void name##_avx2 parameters                             \
    {                                                                                              \
        name##_body arguments;                                                                     \
    }                                                                                              \
    static void name parameters                                                                    \
    {                                                                                              \
        if (stk_cpu_has(STK_CPU_AVX2))                                                             \
            name##_avx2 arguments;                                                                 \
        else                                                                                       \
            name##_body arguments;                                                                 \
    }
#else
#define STK_VECTORS(name, parameters, arguments)                                                   \
    static void name parameters                                                                    \
    {                                                                                              \
        name##_body arguments;                                                                     \
    }
#endif

#endif
