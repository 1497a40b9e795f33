/* alias.h - draws sample ids by weight, in a time that does not depend on their number.
 *
 *   weights (double) ──▶ masses (integers) ──▶ columns of one height, each with up to two ids
 *
 *   draw: any column ──▶ a height in it ──▶ its own id below the threshold, else the other
 *
 * The alias method (Walker, "New fast method for generating discrete random numbers with arbitrary
 * frequency distributions", Electronics Letters 1974), built in linear time (Vose, "A linear
 * algorithm for generating random numbers with a given distribution", IEEE Transactions on Software
 * Engineering 17, 1991). Vose's table holds floating point numbers, whose rounding errors need a
 * rule of their own. Here it holds integers: a weight becomes the integer mass floor(weight x 2^s),
 * with the largest s for which all masses surely add up to at most 2^62; everything after that is
 * exact. So every machine has the same table, and each id has exactly its mass of it.
 *
 * Threads   Immutable once made: any number of threads.
 */
#ifndef STK_SAMPLER_ALIAS_H
#define STK_SAMPLER_ALIAS_H

#include <stdint.h>

struct stk_alias_column {
    uint64_t threshold; /* heights 0..threshold - 1 are the column's own id, */
    uint64_t other;     /* the others are this one */
};

struct stk_alias {
    struct stk_alias_column *columns; /* [count]; column i is id i's own */
    uint64_t count;
    uint64_t height; /* number of heights in every column; the sum of all masses */
};

/* Make the table of `count` >= 1 weights, each finite and >= 0. A weight below 2^-62 of the sum may
 * become 0. Takes 16 bytes per weight, three times that while it is made. STOKER_EINVAL: all are 0;
 * STOKER_ENOMEM. */
int stk_alias_make(struct stk_alias *alias, const double *weights, uint64_t count);
void stk_alias_free(struct stk_alias *alias); /* all zero is allowed */

/* The id for two random words. Each word is mapped to its range by multiplication (Lemire, "Fast
 * random integer generation in an interval", 2019), with a bias below range / 2^64. */
static inline uint64_t stk_alias_draw(const struct stk_alias *alias, uint64_t random_column,
                                      uint64_t random_height)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t column = (uint64_t)((wide)random_column * alias->count >> 64);
    const uint64_t height = (uint64_t)((wide)random_height * alias->height >> 64);
    const struct stk_alias_column *at = &alias->columns[column];
    return height < at->threshold ? column : at->other;
}

#endif
