/* cached.h - a storage whose objects are kept in a local folder as they are read.
 *
 *   format, loader ──▶ cached storage ──┬─ the piece is in the folder ──▶ read and verify it
 *                                       └─ else ──▶ the storage below ──▶ keep the piece
 *
 * At open a format's reads take what is in the folder and go below for the rest, byte by byte as
 * asked; large ones are kept. A loader's ring fetches the whole piece (1 MiB) that a read lies in:
 *
 *   read ─▶ kept? ── yes ───────────────────────────────────────────▶ done
 *             │ no          ┌─ by this ring ─▶ fetch ─▶ keep ─▶ serve all that wait for it
 *             └─▶ claimed? ─┴─ by another ───▶ wait for its release ─▶ kept?
 *
 * A read of a whole file by its name is passed on as it is, and its pieces are kept when it ends:
 * no other read wants them. Reads of objects whose version is not known, and all reads while the
 * folder takes no more, are passed on, too.
 *
 * Nothing can wait forever: a ring releases a claim when its fetch has ended, or when it is closed,
 * and a worker with reads in flight reaps again and again.
 */
#ifndef STK_STORAGE_CACHED_H
#define STK_STORAGE_CACHED_H

#include <stoker/storage.h>

#include "loader/storage/disk_cache.h"

/* Make a storage on top of `below`, which it shares and which is not the local file system. Errors:
 * those of stk_disk_cache_open(). */
int stk_storage_cached(stoker_storage **out, stoker_storage *below, const char *folder,
                       uint64_t bytes_max, stoker_error *error);

#endif
