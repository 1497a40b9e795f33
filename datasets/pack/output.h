/* output.h - write a file atomically.
 *
 *   begin: a hidden name ──▶ write ... ──▶ commit: sync, then rename
 *
 * The hidden file is locked (flock), so that two processes never write the same one. If the process
 * is killed, at most the hidden file is left, and the next run overwrites it.
 */
#ifndef PACK_OUTPUT_H
#define PACK_OUTPUT_H

#include <stdio.h>

#include "datasets/pack/target/target.h"

enum { PACK_PATH_BYTES = 4096 };

struct pack_output {
    FILE *file;   /* NULL = closed */
    char *buffer; /* large write buffer; NULL = none */
    char path[PACK_PATH_BYTES];
    char hidden[PACK_PATH_BYTES];
};

/* Lock a file or folder; fails if another process holds the lock, which ends when fd is closed. */
bool pack_lock(int fd, const char *path, struct pack_failure *failure);

/* Open a folder, created and synced if it is missing. Returns a descriptor; -1 on failure. */
int pack_folder_make(const char *path, struct pack_failure *failure);

/* Set the paths, and open and lock the file under its hidden name. */
bool pack_output_begin(struct pack_output *output, const char *directory, const char *name,
                       struct pack_failure *failure);

/* Directly after begin: write in pieces of 2 MiB, for files that are read again and again. The page
 * cache keeps a piece in large folios, which are read up to 20 % faster than pages of 4 KiB.
 * Without memory for it nothing changes. */
void pack_output_widen(struct pack_output *output);

bool pack_output_write(struct pack_output *output, const void *bytes, size_t size,
                       struct pack_failure *failure);
bool pack_output_zeros(struct pack_output *output, uint64_t count, struct pack_failure *failure);
bool pack_output_rewind(struct pack_output *output, struct pack_failure *failure);

/* sync: wait for the disk; without it the caller syncs many files at once. */
bool pack_output_commit(struct pack_output *output, bool sync, struct pack_failure *failure);
void pack_output_drop(struct pack_output *output); /* a closed one is allowed */

/* Sync the name of a file or folder, by syncing its parent folder. */
bool pack_sync_parent(const char *path, struct pack_failure *failure);

/* Split DIR/NAME, ignoring trailing slashes; the directory of a bare name is ".". Returns the name,
 * a pointer into `path`. */
const char *pack_path_split(const char *path, char directory[PACK_PATH_BYTES]);

#endif
