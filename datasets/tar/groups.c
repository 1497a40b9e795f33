/* groups.c - see groups.h. A hash table with open addresses, at most half full. */
#include "datasets/tar/groups.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"

enum { FIRST_SLOTS = 64, FIRST_ELEMENTS = 64, GROUPS_MAX = 1 << 30 };

void stk_tar_groups_init(struct stk_tar_groups *groups, uint32_t more_count, uint64_t bytes_max)
{
    *groups = (struct stk_tar_groups){ .more_count = more_count, .bytes_max = bytes_max };
    /* Without it the order is the same, and only a hostile archive slower. */
    (void)!getrandom(&groups->seed, sizeof(groups->seed), GRND_NONBLOCK);
}

void stk_tar_groups_free(struct stk_tar_groups *groups)
{
    stk_free(groups->at);
    stk_free(groups->more);
    stk_free(groups->slots);
    stk_free(groups->keys);
    *groups = (struct stk_tar_groups){ 0 };
}

void stk_tar_groups_clear(struct stk_tar_groups *groups)
{
    if (groups->slots != NULL)
        memset(groups->slots, 0, groups->slot_count * sizeof(groups->slots[0]));
    groups->count = 0;
    groups->keys_bytes = 0;
}

int stk_tar_grow(void **array, size_t element_bytes, size_t count, size_t *capacity,
                 uint64_t *bytes, uint64_t bytes_max)
{
    assert(count <= *capacity);
    const size_t more = *capacity == 0 ? FIRST_ELEMENTS : *capacity * 2;
    const uint64_t grown = *bytes + (more - *capacity) * element_bytes;
    if (grown > bytes_max)
        return STOKER_ELIMIT;
    void *longer = stk_calloc(more, element_bytes);
    if (longer == NULL)
        return STOKER_ENOMEM;
    if (count > 0)
        memcpy(longer, *array, count * element_bytes);
    stk_free(*array);
    *array = longer;
    *capacity = more;
    *bytes = grown;
    return STOKER_OK;
}

/* The seed is random, so that no archive can be made whose keys all collide. */
static uint64_t hash_of(const struct stk_tar_groups *groups, const char *key, size_t bytes)
{
    uint64_t hash = groups->seed ^ bytes;
    for (uint64_t word = 0; bytes > 0; word = 0) {
        const size_t piece = bytes < sizeof(word) ? bytes : sizeof(word);
        memcpy(&word, key, piece);
        hash = stk_mix64(hash ^ word);
        key += piece;
        bytes -= piece;
    }
    return hash;
}

static bool is_key(const struct stk_tar_groups *groups, const struct stk_tar_group *group,
                   uint64_t hash, const char *key, size_t key_bytes)
{
    return group->hash == hash && group->key_bytes == key_bytes &&
           memcmp(groups->keys + group->key, key, key_bytes) == 0;
}

/* The slot of a key, or the empty one where it belongs. */
static size_t slot_of(const struct stk_tar_groups *groups, uint64_t hash, const char *key,
                      size_t key_bytes)
{
    size_t slot = (size_t)hash & (groups->slot_count - 1);
    while (groups->slots[slot] != 0 &&
           !is_key(groups, &groups->at[groups->slots[slot] - 1], hash, key, key_bytes))
        slot = (slot + 1) & (groups->slot_count - 1);
    return slot;
}

static int make_slots(struct stk_tar_groups *groups)
{
    const size_t more = groups->slot_count == 0 ? FIRST_SLOTS : groups->slot_count * 2;
    const uint64_t grown = groups->bytes + (more - groups->slot_count) * sizeof(groups->slots[0]);
    if (grown > groups->bytes_max)
        return STOKER_ELIMIT;
    uint32_t *slots = stk_calloc(more, sizeof(slots[0]));
    if (slots == NULL)
        return STOKER_ENOMEM;
    stk_free(groups->slots);
    groups->slots = slots;
    groups->slot_count = more;
    groups->bytes = grown;
    for (size_t i = 0; i < groups->count; i++) {
        const struct stk_tar_group *group = &groups->at[i];
        slots[slot_of(groups, group->hash, groups->keys + group->key, group->key_bytes)] =
            (uint32_t)i + 1;
    }
    return STOKER_OK;
}

/* Make room for one more group with a key of key_bytes bytes. */
static int make_room(struct stk_tar_groups *groups, size_t key_bytes)
{
    int rc = STOKER_OK;
    if (groups->count == GROUPS_MAX)
        return STOKER_ELIMIT;
    if (groups->count == groups->capacity) {
        void *array = groups->at;
        rc = stk_tar_grow(&array, sizeof(groups->at[0]), groups->count, &groups->capacity,
                          &groups->bytes, groups->bytes_max);
        groups->at = array;
    }
    while (rc == STOKER_OK && groups->more_capacity < (groups->count + 1) * groups->more_count) {
        void *array = groups->more;
        rc = stk_tar_grow(&array, sizeof(groups->more[0]), groups->count * groups->more_count,
                          &groups->more_capacity, &groups->bytes, groups->bytes_max);
        groups->more = array;
    }
    while (rc == STOKER_OK && groups->keys_capacity - groups->keys_bytes < key_bytes) {
        void *array = groups->keys;
        rc = stk_tar_grow(&array, 1, groups->keys_bytes, &groups->keys_capacity, &groups->bytes,
                          groups->bytes_max);
        groups->keys = array;
    }
    if (rc == STOKER_OK && groups->slot_count < 2 * (groups->count + 1))
        rc = make_slots(groups);
    return rc;
}

int stk_tar_groups_find(struct stk_tar_groups *groups, const char *key, size_t key_bytes,
                        struct stk_tar_group **out)
{
    const uint64_t hash = hash_of(groups, key, key_bytes);
    int rc = make_room(groups, key_bytes);
    if (rc != STOKER_OK)
        return rc;
    const size_t slot = slot_of(groups, hash, key, key_bytes);
    if (groups->slots[slot] == 0) {
        memcpy(groups->keys + groups->keys_bytes, key, key_bytes);
        groups->at[groups->count] = (struct stk_tar_group){ .hash = hash,
                                                            .key = groups->keys_bytes,
                                                            .key_bytes = (uint32_t)key_bytes,
                                                            .first.offset = STK_TAR_NONE,
                                                            .label_at = STK_TAR_NONE };
        for (uint32_t i = 0; i < groups->more_count; i++)
            groups->more[groups->count * groups->more_count + i] =
                (struct stk_tar_extent){ .offset = STK_TAR_NONE };
        groups->keys_bytes += key_bytes;
        groups->slots[slot] = (uint32_t)++groups->count;
    }
    *out = &groups->at[groups->slots[slot] - 1];
    return STOKER_OK;
}
