/* lock.h - allow one stoker-pack at a time per target.
 *
 * The packer locks what it writes to, by flock(): the folder of "folder:" and "shards:", the hidden
 * file that becomes the archive of "tar:". The kernel drops the lock with the process, so a killed
 * packer leaves none behind. A second packer fails at once, and its message names the first.
 */
#ifndef PACK_LOCK_H
#define PACK_LOCK_H

#include "datasets/pack/target.h"

/* Open the folder, created and synced if it is missing, and lock it. Returns a descriptor that holds
 * the lock until it is closed; -1 on failure. */
int pack_lock_folder(const char *path, struct pack_failure *failure);

/* The same for a hidden file, created empty if it is missing; existing contents stay. `target`: the
 * name for messages. */
int pack_lock_file(const char *path, const char *target, struct pack_failure *failure);

#endif
