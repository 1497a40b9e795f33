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

/* The file will be DIRECTORY/NAME. */
bool pack_output_begin(struct pack_output *output, const char *directory, const char *name,
                       struct pack_failure *failure);
bool pack_output_write(struct pack_output *output, const void *bytes, size_t size,
                       struct pack_failure *failure);
bool pack_output_zeros(struct pack_output *output, uint64_t count, struct pack_failure *failure);
bool pack_output_rewind(struct pack_output *output, struct pack_failure *failure);

/* sync: wait for the disk, too; else the caller does for many files at once. */
bool pack_output_commit(struct pack_output *output, bool sync, struct pack_failure *failure);
void pack_output_drop(struct pack_output *output); /* nothing open is allowed */

/* Open the folder, made if it is missing, for this process alone. -1: failed. */
int pack_folder_lock(const char *path, struct pack_failure *failure);

#endif
