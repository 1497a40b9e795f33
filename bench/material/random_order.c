/* random_order.c - the order in which ceilings visit samples. */
#include "bench/material/random_order.h"

#include <assert.h>
#include <stdlib.h>
#include <stoker/error.h>

/* splitmix64: good enough to defeat a prefetcher. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void permute(uint64_t *order, uint64_t count, uint64_t seed)
{
    for (uint64_t left = count; left > 1; left--) {
        uint64_t other = draw(&seed) % left;
        uint64_t held = order[left - 1];
        order[left - 1] = order[other];
        order[other] = held;
    }
}

int bench_random_order(uint64_t **out, uint64_t count, uint64_t wanted, bool shuffle, uint64_t seed)
{
    assert(wanted >= 1);
    assert(wanted <= count);
    uint64_t *order = calloc(wanted, sizeof(order[0]));
    if (order == NULL)
        return STOKER_ENOMEM;
    for (uint64_t index = 0; index < wanted; index++)
        order[index] = shuffle && wanted < count ? draw(&seed) % count : index;
    if (shuffle && wanted == count)
        permute(order, count, seed);
    *out = order;
    return STOKER_OK;
}
