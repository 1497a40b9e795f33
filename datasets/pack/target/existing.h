/* existing.h - compare an existing file with the bytes that would be written.
 *
 *   open ──▶ next ... ──▶ ends ──▶ close
 *
 * Only its bytes show that a file can be kept: after a power loss a file that was never synced can
 * have its name and size without its bytes.
 */
#ifndef PACK_EXISTING_H
#define PACK_EXISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct pack_existing {
    FILE *file;  /* NULL = closed */
    uint64_t at; /* bytes that matched */
};

/* Returns false and sets errno on failure; EINVAL if it is not a regular file. */
bool pack_existing_open(struct pack_existing *existing, const char *path);
bool pack_existing_next(struct pack_existing *existing, const void *bytes, size_t size);
bool pack_existing_ends(struct pack_existing *existing);
void pack_existing_close(struct pack_existing *existing); /* a closed one is allowed */

/* Returns true if a file holds exactly these bytes. */
bool pack_existing_is(const char *path, const void *bytes, size_t size);

#endif
