/* rng.h - random numbers that are pure functions of a key and a counter.
 *
 * Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011. No state: draw n of key k is the same from any thread.
 * The mixer is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
 *
 * Integers only, so that a GPU compiling the same lines draws the same words.
 */
#ifndef STK_BASE_RNG_H
#define STK_BASE_RNG_H

#include <stdint.h>

#ifdef __CUDACC__
#define STK_RNG static __host__ __device__ inline
#else
#define STK_RNG static inline
#endif

struct stk_random {
    uint32_t word[4];
};

/* Four 32-bit words for a 64-bit key and a 128-bit counter. */
STK_RNG struct stk_random stk_philox(uint64_t key, uint64_t counter_high, uint64_t counter_low)
{
    uint32_t k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_low;
    uint32_t c1 = (uint32_t)(counter_low >> 32);
    uint32_t c2 = (uint32_t)counter_high;
    uint32_t c3 = (uint32_t)(counter_high >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t even = (uint64_t)0xD2511F53U * c0;
        uint64_t odd = (uint64_t)0xCD9E8D57U * c2;
        c0 = (uint32_t)(odd >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)odd;
        c2 = (uint32_t)(even >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)even;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    const struct stk_random random = { { c0, c1, c2, c3 } };
    return random;
}

/* A bijection on 64 bits in which every input bit moves every output bit. */
STK_RNG uint64_t stk_mix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/* "stokerng": separates the keys of stoker_rng (stoker/rng.h) from those of orders and frames. */
#define STK_RNG_STREAM UINT64_C(0x73746F6B65726E67)

/* Key of stoker_rng's block 0 for a seed and a purpose; block n has this key + n. */
STK_RNG uint64_t stk_rng_key(uint64_t seed, uint64_t purpose)
{
    return stk_mix64(stk_mix64(purpose ^ STK_RNG_STREAM) ^ seed);
}

/* The library's own purposes: 2^63 and above. */
enum { STK_RNG_RETOUCH, STK_RNG_MIX, STK_RNG_ROW_HOOK, STK_RNG_BATCH_HOOK, STK_RNG_MAKE };
#define STK_RNG_OWN(purpose) (UINT64_C(0x8000000000000000) + (purpose))

#endif
