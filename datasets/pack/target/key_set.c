/* key_set.c - see key_set.h. Open addressing; at most half of the slots are in use. */
#include "datasets/pack/target/key_set.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 1024 };

/* FNV-1a, its high bits folded into the low ones that choose a slot; never 0. */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = 0xCBF29CE484222325U;
    for (; *key != '\0'; key++)
        hash = (hash ^ (uint8_t)*key) * 0x100000001B3U;
    hash ^= hash >> 32;
    return hash == 0 ? 1 : hash;
}

/* The slot of the hash, or the empty one where it belongs. */
static uint64_t *find_slot(uint64_t *slots, size_t slot_count, uint64_t hash)
{
    size_t at = (size_t)hash & (slot_count - 1);
    while (slots[at] != 0 && slots[at] != hash)
        at = (at + 1) & (slot_count - 1);
    return &slots[at];
}

static bool grow_key_set(struct pack_key_set *set)
{
    const size_t slot_count = set->slot_count == 0 ? FIRST_SLOTS : 2 * set->slot_count;
    uint64_t *slots = calloc(slot_count, sizeof(*slots));
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < set->slot_count; i++)
        if (set->slots[i] != 0)
            *find_slot(slots, slot_count, set->slots[i]) = set->slots[i];
    free(set->slots);
    set->slots = slots;
    set->slot_count = slot_count;
    return true;
}

bool pack_key_set_add(struct pack_key_set *set, const char *key, bool *twice)
{
    const uint64_t hash = hash_of(key);
    if (2 * (set->count + 1) > set->slot_count && !grow_key_set(set))
        return false;
    uint64_t *slot = find_slot(set->slots, set->slot_count, hash);
    *twice = *slot != 0;
    set->count += *twice ? 0 : 1;
    *slot = hash;
    return true;
}

void pack_key_set_free(struct pack_key_set *set)
{
    free(set->slots);
    *set = (struct pack_key_set){ .slots = NULL };
}
