/* random_order.h - the order in which ceilings visit samples. */
#ifndef BENCH_MATERIAL_RANDOM_ORDER_H
#define BENCH_MATERIAL_RANDOM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* `wanted` distinct numbers below count in random order when wanted == count; fewer are
 * drawn at random and may repeat. In sequence from 0 without shuffle.
 * The caller frees *out. STOKER_ENOMEM. */
int bench_random_order(uint64_t **out, uint64_t count, uint64_t wanted, bool shuffle,
                       uint64_t seed);

#endif
