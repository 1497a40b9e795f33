/* archive.h - write a tar archive, or compare an existing one with the bytes that would be written.
 *
 *   open ──▶ add ... ──▶ finish ──▶ close      close alone leaves no archive
 *
 * POSIX ustar: a header block of 512 bytes with name and size, the file padded to whole blocks, and
 * two blocks of zeros at the end. A name of 100 bytes or more is in a PAX header before it. The
 * same files give the same archive.
 */
#ifndef PACK_ARCHIVE_H
#define PACK_ARCHIVE_H

#include "datasets/pack/output.h"
#include "datasets/pack/target/existing.h"

struct pack_archive {
    const char *path;
    struct pack_output output;
    struct pack_existing existing; /* open: compare only */
    uint64_t at;                   /* bytes written, or compared */
};

/* Begin the archive; if it exists, it is only compared. `path` must outlive it. */
bool pack_archive_open(struct pack_archive *archive, const char *path,
                       struct pack_failure *failure);

bool pack_archive_add(struct pack_archive *archive, const char *name, const void *bytes,
                      size_t size, struct pack_failure *failure);

/* End it: compare to the end, or sync and rename. */
bool pack_archive_finish(struct pack_archive *archive, struct pack_failure *failure);
void pack_archive_close(struct pack_archive *archive); /* after a failed open, too */

/* Returns true if the archive existed. */
bool pack_archive_existed(const struct pack_archive *archive);

#endif
