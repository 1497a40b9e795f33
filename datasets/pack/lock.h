/* lock.h - allow one stoker-pack at a time per target.
 *
 * The packer locks what it writes to, by flock(): the folder of "folder:" and "shards:", the hidden
 * file that becomes the archive of "tar:". The kernel drops the lock with the process, so a killed
 * packer leaves none behind. A second packer fails at once, and its message names the first.
 *
 * The ranks of one packing share the lock of the folder, which keeps a single packer out, and claim among themselves by
 * the same means: see sharing.h.
 */
#ifndef PACK_LOCK_H
#define PACK_LOCK_H

#include "datasets/pack/target.h"

/* Open the folder, created and synced if it is missing, and lock it; shared: other ranks may share the lock. Returns a
 * descriptor that holds the lock until it is closed; -1 on failure. */
int pack_lock_folder(const char *path, bool shared, struct pack_failure *failure);

/* The same for a hidden file, created empty if it is missing; existing contents stay. `target`: the
 * name for messages. */
int pack_lock_file(const char *path, const char *target, struct pack_failure *failure);

/* Lock the file of a claim, created if it is missing. Returns a descriptor for pack_claim_end(); -1 if another process
 * holds it (*taken; no failure is set), or on failure. */
int pack_claim(const char *path, bool *taken, struct pack_failure *failure);

/* Remove the file and give up the claim. */
void pack_claim_end(int fd, const char *path);

#endif
