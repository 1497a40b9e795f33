/* known.c - see known.h. */
#include "datasets/shards/known.h"

#include <stoker/error.h>

#include "loader/base/memory/memory.h"

int stk_shard_known_make(struct stk_shard_known *known, const struct stk_shard_record *records,
                         uint64_t count)
{
    *known = (struct stk_shard_known){ .records = records, .count = count };
    known->words = stk_calloc((size_t)(count / 64 + 1), sizeof(known->words[0]));
    return known->words == NULL ? STOKER_ENOMEM : STOKER_OK;
}

void stk_shard_known_free(struct stk_shard_known *known)
{
    stk_free((void *)known->words);
    *known = (struct stk_shard_known){ 0 };
}

uint64_t stk_shard_known_find(const struct stk_shard_known *known, uint32_t sum, uint32_t low_bits)
{
    const uint64_t step = UINT64_C(1) << STK_SHARD_INDEX_BITS;
    uint64_t found = STK_SHARD_NO_INDEX;
    for (uint64_t index = low_bits; index < known->count; index += step) {
        if (known->records[index].sum != sum)
            continue;
        if (found != STK_SHARD_NO_INDEX)
            return STK_SHARD_NO_INDEX;
        found = index;
    }
    return found;
}
