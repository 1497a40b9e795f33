/* shard_sum.h - CRC-32C, the checksum of shards.
 *
 * CRC-32C because x86 and ARM have an instruction for it, because it finds each error burst of up
 * to 32 bits for certain, and because any language has it at hand: a shard can be checked
 * without us.
 */
#ifndef STK_DATASETS_SHARD_SUM_H
#define STK_DATASETS_SHARD_SUM_H

#include <stddef.h>
#include <stdint.h>

/* Go on from `sum` (0 at the start) over more bytes. */
uint32_t stk_shard_sum(uint32_t sum, const void *bytes, size_t size);

/* The variants: plain C, with the instruction of x86-64, and with that and carry-less multiplication
 * of 256 bits at once. NULL = not for this machine. */
typedef uint32_t stk_shard_sum_fn(uint32_t sum, const void *bytes, size_t size);
stk_shard_sum_fn *stk_shard_sum_plain(void);
stk_shard_sum_fn *stk_shard_sum_sse42(void);
stk_shard_sum_fn *stk_shard_sum_avx2(void);

/* The fastest of them, for who sums often. */
stk_shard_sum_fn *stk_shard_sum_fastest(void);

#endif
