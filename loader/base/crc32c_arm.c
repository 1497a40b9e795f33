/* crc32c_arm.c - CRC-32C by the instruction of 64-bit ARM, in one sum or, where the processor multiplies without carries, in
 * three at a time.
 *
 * Processors of servers have both. Some small ones have the first alone.
 *
 * In this file a sum is the instruction's state: the interface's checksum, inverted.
 */
#include "loader/base/cpu_features.h"
#include "loader/base/crc32c.h"

#if defined(__aarch64__)
#include <arm_neon.h>

/* gcc and clang name features and instructions differently, and arm_acle.h needs flags for the whole file. */
#if defined(__clang__)
#define CRC      __attribute__((target("crc,aes")))
#define ADD_WORD __builtin_arm_crc32cd
#define ADD_BYTE __builtin_arm_crc32cb
#else
#define CRC      __attribute__((target("+crc+crypto")))
#define ADD_WORD __builtin_aarch64_crc32cx
#define ADD_BYTE __builtin_aarch64_crc32cb
#endif
#define CRC_INLINE CRC static inline __attribute__((always_inline))

CRC_INLINE uint64_t add_word(uint64_t sum, uint64_t word)
{
    return ADD_WORD((uint32_t)sum, word);
}

CRC_INLINE uint64_t add_byte(uint64_t sum, uint8_t byte)
{
    return ADD_BYTE((uint32_t)sum, byte);
}

CRC_INLINE uint64_t multiply(uint64_t sum, uint32_t power)
{
    return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64(sum, power)), 0);
}

#include "loader/base/crc32c_strips.h"

CRC static uint32_t sum_arm(uint32_t sum_before, const void *bytes, size_t size)
{
    return ~sum_words(~sum_before, bytes, size);
}

CRC static uint32_t sum_arm_strips(uint32_t sum_before, const void *bytes, size_t size)
{
    return ~sum_all(~sum_before, bytes, size);
}

stk_crc32c_fn *stk_crc32c_arm(void)
{
    return stk_cpu_has(STK_CPU_ARM_CRC32) ? sum_arm : NULL;
}

stk_crc32c_fn *stk_crc32c_arm_strips(void)
{
    return stk_cpu_has(STK_CPU_ARM_CRC32 | STK_CPU_ARM_PMULL) ? sum_arm_strips : NULL;
}
#else
stk_crc32c_fn *stk_crc32c_arm(void)
{
    return NULL;
}

stk_crc32c_fn *stk_crc32c_arm_strips(void)
{
    return NULL;
}
#endif
