/* known.h - remember which parts were verified since their set was opened.
 *
 * One bit per part, set by any thread. A part's codec knows its checksum and the low bits of its
 * index (decoder.h), from which the index follows: two parts with both in common are never marked.
 */
#ifndef STK_DATASETS_SHARDS_KNOWN_H
#define STK_DATASETS_SHARDS_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STK_SHARD_INDEX_BITS = 24 };
#define STK_SHARD_NO_INDEX UINT64_MAX

/* A part in memory. */
struct stk_shard_record {
    uint64_t offset;
    uint32_t bytes;
    uint32_t sum;
    uint32_t file;
    uint32_t codec; /* enum stk_shard_codec */
};

struct stk_shard_known {
    _Atomic uint64_t *words; /* NULL = nothing is marked */
    const struct stk_shard_record *records;
    uint64_t count;
};

/* Begin with no part marked. Returns 0 or STOKER_ENOMEM. */
int stk_shard_known_make(struct stk_shard_known *known, const struct stk_shard_record *records,
                         uint64_t count);
void stk_shard_known_free(struct stk_shard_known *known); /* all 0 is allowed */

/* Returns the index of the part with this checksum and these low bits; STK_SHARD_NO_INDEX if there
 * are several. */
uint64_t stk_shard_known_find(const struct stk_shard_known *known, uint32_t sum, uint32_t low_bits);

static inline bool stk_shard_known_has(const struct stk_shard_known *known, uint64_t index)
{
    return known->words != NULL && index != STK_SHARD_NO_INDEX &&
           (atomic_load_explicit(&known->words[index / 64], memory_order_relaxed) >> index % 64 &
            1) != 0;
}

static inline void stk_shard_known_mark(const struct stk_shard_known *known, uint64_t index)
{
    if (known->words != NULL && index != STK_SHARD_NO_INDEX)
        atomic_fetch_or_explicit(&known->words[index / 64], UINT64_C(1) << index % 64,
                                 memory_order_relaxed);
}

#endif
