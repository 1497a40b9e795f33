/* rng.c - see stoker/rng.h. */
#include <stoker/rng.h>

#include <math.h>

#include "loader/base/exact_math.h"
#include "loader/base/rng.h"

_Static_assert(sizeof(stoker_rng) == 48, "the size is part of the ABI");

void stoker_rng_init(stoker_rng *rng, uint64_t seed, uint64_t epoch, uint64_t sample,
                     uint64_t purpose)
{
    *rng = (stoker_rng){ .key = stk_rng_key(seed, purpose), .epoch = epoch, .sample = sample };
}

uint64_t stoker_rng_u64(stoker_rng *rng)
{
    const uint64_t n = rng->drawn++;
    if (n % 2 == 1)
        return rng->spare;
    const struct stk_random block = stk_philox(rng->key + n / 2, rng->epoch, rng->sample);
    rng->spare = block.word[2] | (uint64_t)block.word[3] << 32;
    return block.word[0] | (uint64_t)block.word[1] << 32;
}

double stoker_rng_double(stoker_rng *rng)
{
    return (double)(stoker_rng_u64(rng) >> 11) * 0x1p-53;
}

float stoker_rng_float(stoker_rng *rng)
{
    return (float)(stoker_rng_u64(rng) >> 40) * 0x1p-24F;
}

/* The high and the low half of a product. */
struct product {
    uint64_t high, low;
};

static struct product multiply(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    const uint64_t other = a0 * b1 + (uint32_t)middle;
    return (struct product){ a1 * b1 + (middle >> 32) + (other >> 32), a * b };
}

uint64_t stoker_rng_below(stoker_rng *rng, uint64_t n)
{
    if (n <= 1)
        return 0;
    struct product product = multiply(stoker_rng_u64(rng), n);
    if (product.low <
        n) { /* rejects the 2^64 mod n lowest products, which one value would have too many of */
        const uint64_t least = (0 - n) % n;
        while (product.low < least)
            product = multiply(stoker_rng_u64(rng), n);
    }
    return product.high;
}

double stoker_rng_normal(stoker_rng *rng)
{
    for (;;) {
        const double x = 2.0 * stoker_rng_double(rng) - 1.0;
        const double y = 2.0 * stoker_rng_double(rng) - 1.0;
        const double square = x * x + y * y;
        if (square > 0.0 && square < 1.0)
            return x * sqrt(-2.0 * stk_exact_log(square) / square);
    }
}
