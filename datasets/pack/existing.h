/* existing.h - a file that is there already, held against the bytes that would be written.
 *
 *   open ──▶ next ... ──▶ ends ──▶ close
 *
 * Nothing else tells whether a file may stay: after a power loss one that was never synced can have its name and
 * its size, and not its bytes.
 */
#ifndef PACK_EXISTING_H
#define PACK_EXISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct pack_existing {
    FILE *file;  /* NULL = none is open */
    uint64_t at; /* bytes that were as they should be */
};

/* False: errno tells; of what is no regular file, EINVAL. */
bool pack_existing_open(struct pack_existing *existing, const char *path);
bool pack_existing_next(struct pack_existing *existing, const void *bytes, size_t size);
bool pack_existing_ends(struct pack_existing *existing);
void pack_existing_close(struct pack_existing *existing); /* nothing open is allowed */

/* Whether a file holds these bytes and no others. */
bool pack_existing_is(const char *path, const void *bytes, size_t size);

#endif
