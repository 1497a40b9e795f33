/* folder_files.h - write the files of a packing into a folder, or compare those that exist.
 *
 *   empty folder    ──▶ write a mark ──▶ files ──▶ sync, remove the mark
 *   our mark        ──▶ resume: keep files with the right bytes, write the others again
 *   files, no mark  ──▶ complete or foreign: compare only, change nothing
 */
#ifndef PACK_FOLDER_FILES_H
#define PACK_FOLDER_FILES_H

#include "datasets/pack/target/target.h"

struct pack_folder {
    const struct pack_plan *plan;
    int fd;     /* the folder, locked; -1 = not open */
    bool whole; /* complete: compare only */
};

/* Lock the plan's target, and find out whether files are written or compared: ours are never mixed
 * with foreign ones. */
bool pack_folder_open(struct pack_folder *folder, const struct pack_plan *plan,
                      struct pack_failure *failure);

/* Write DIRECTORY/NAME, which must be beneath the target and whose directory exists; *kept: a file
 * with these bytes was there. */
bool pack_folder_add(struct pack_folder *folder, const char *directory, const char *name,
                     const void *bytes, size_t size, bool *kept, struct pack_failure *failure);

/* Sync all files, then remove the mark. */
bool pack_folder_finish(struct pack_folder *folder, struct pack_failure *failure);
void pack_folder_close(struct pack_folder *folder); /* after a failed open, too */

#endif
