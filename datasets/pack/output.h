/* output.h - a file that is whole under its name, or not there.
 *
 *   begin: a hidden name ──▶ write ... ──▶ commit: on the disk, then renamed
 *
 * A kill at any moment leaves the hidden name at most, which the next run writes over.
 */
#ifndef PACK_OUTPUT_H
#define PACK_OUTPUT_H

#include <stdio.h>

#include "datasets/pack/target.h"

enum { PACK_PATH_BYTES = 4096 };

struct pack_output {
    FILE *file; /* NULL = none is open */
    char path[PACK_PATH_BYTES];
    char hidden[PACK_PATH_BYTES];
};

/* The file will be DIRECTORY/NAME: sets its path and its hidden one, and opens nothing. */
bool pack_output_name(struct pack_output *output, const char *directory, const char *name,
                      struct pack_failure *failure);

/* Name it, and open it under its hidden name. */
bool pack_output_begin(struct pack_output *output, const char *directory, const char *name,
                       struct pack_failure *failure);
bool pack_output_write(struct pack_output *output, const void *bytes, size_t size,
                       struct pack_failure *failure);
bool pack_output_zeros(struct pack_output *output, uint64_t count, struct pack_failure *failure);
bool pack_output_rewind(struct pack_output *output, struct pack_failure *failure);

/* sync: wait for the disk, too; else the caller does for many files at once. */
bool pack_output_commit(struct pack_output *output, bool sync, struct pack_failure *failure);
void pack_output_drop(struct pack_output *output); /* nothing open is allowed */

/* Wait until the name of a file or folder is on the disk: that is when the folder it lies in is. */
bool pack_sync_parent(const char *path, struct pack_failure *failure);

/* Split DIR/NAME, slashes at the end left out; a name alone is in ".". Returns the name, in `path`. */
const char *pack_path_split(const char *path, char directory[PACK_PATH_BYTES]);

#endif
