/* stoker/rng.h - random numbers for augmentations: a pure function of (seed, epoch, sample,
 * purpose).
 *
 * The generator is Philox4x32-10, an encrypted counter (Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011). Number n is from block n / 2, which has the key of
 * (seed, purpose) plus n / 2 and the 128-bit counter (epoch, sample). Floating-point results use
 * only operations that IEEE 754 defines to the bit, so the same calls return the same bits on every
 * machine, with any number of threads, and after a resume.
 *
 * Hooks receive a seeded generator. Use a generator in one thread at a time; copies are
 * independent.
 */
#ifndef STOKER_RNG_H
#define STOKER_RNG_H

#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

/* Its size never changes, and it has no pointers. Private: copy it to repeat the numbers that
 * follow, but do not change a member. */
typedef struct stoker_rng {
    uint64_t key;    /* made from seed and purpose */
    uint64_t epoch;  /* high half of the counter */
    uint64_t sample; /* low half of the counter */
    uint64_t drawn;  /* 64-bit numbers drawn so far */
    uint64_t spare;  /* second half of the last block, the next number if `drawn` is odd */
    uint64_t reserved;
} stoker_rng;

/* Start the stream of (seed, epoch, sample, purpose). purpose: any number below 2^63, to separate
 * streams that would otherwise be equal; the library uses those from 2^63 on. */
STOKER_API void stoker_rng_init(stoker_rng *rng, uint64_t seed, uint64_t epoch, uint64_t sample,
                                uint64_t purpose);

/* Return 64 random bits. */
STOKER_API uint64_t stoker_rng_u64(stoker_rng *rng);

/* Return a multiple of 2^-53 in [0, 1), each equally likely. */
STOKER_API double stoker_rng_double(stoker_rng *rng);

/* Return a multiple of 2^-24 in [0, 1), each equally likely. */
STOKER_API float stoker_rng_float(stoker_rng *rng);

/* Return one of 0 .. n - 1, each exactly equally likely (Lemire, "Fast random integer generation
 * in an interval", ACM TOMACS 29, 2019); 0 if n is 0 or 1. Draws one number, rarely more. */
STOKER_API uint64_t stoker_rng_below(stoker_rng *rng, uint64_t n);

/* Return a number from the normal distribution with mean 0 and deviation 1, by the polar method
 * (Marsaglia, Bray, "A convenient method for generating normal variables", SIAM Review 6, 1964).
 * Draws two numbers or more. */
STOKER_API double stoker_rng_normal(stoker_rng *rng);

STOKER_END_DECLS
#endif
