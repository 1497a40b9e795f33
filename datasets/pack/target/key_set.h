/* key_set.h - remember which keys were seen. Stores a 64-bit hash per key, so keys with equal
 * hashes count as one; among 2^32 keys the chance of such a pair is about one half.
 */
#ifndef PACK_KEY_SET_H
#define PACK_KEY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_key_set {
    uint64_t *slots; /* 0 = empty */
    size_t slot_count;
    size_t count;
};

/* *twice: it was there. False: out of memory. */
bool pack_key_set_add(struct pack_key_set *set, const char *key, bool *twice);
void pack_key_set_free(struct pack_key_set *set); /* all zero is allowed */

#endif
