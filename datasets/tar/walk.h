/* walk.h - iterate over the members of one tar archive. */
#ifndef STK_DATASETS_TAR_WALK_H
#define STK_DATASETS_TAR_WALK_H

#include "datasets/source.h"
#include "datasets/tar/header.h"

enum stk_tar_kind {
    STK_TAR_END,  /* a block of zeros */
    STK_TAR_FILE, /* stored contiguously */
    STK_TAR_DIRECTORY,
    STK_TAR_LINK,   /* symbolic or hard */
    STK_TAR_DEVICE, /* or a pipe */
    STK_TAR_OTHER   /* sparse, a volume name, an unknown type */
};

struct stk_tar_member {
    const char *name;   /* valid until the next step; "" only at the end */
    uint64_t header_at; /* offset of its first header */
    uint64_t offset;    /* offset of its contents */
    uint64_t bytes;     /* 0 if it is not a file */
    enum stk_tar_kind kind;
};

struct stk_tar_walk;

/* Start at the first member; source must outlive the walk. All memory is allocated here.
 * STOKER_ENOMEM. */
int stk_tar_walk_create(struct stk_tar_walk **out, const struct stk_source *source,
                        stoker_error *error);
void stk_tar_walk_destroy(struct stk_tar_walk *walk); /* NULL is allowed */

/* Go to the next member, which lies within the file. At the end kind is STK_TAR_END.
 * Errors: STOKER_ETRUNCATED (the archive ends without a zero block or within a member),
 * STOKER_EMAGIC (not a tar archive), STOKER_ECORRUPT (wrong checksum), STOKER_EFORMAT,
 * STOKER_ELIMIT (a name or a PAX header is too long), and those of reading. */
int stk_tar_walk_next(struct stk_tar_walk *walk, struct stk_tar_member *out, stoker_error *error);

/* At the end of an archive: look for another one in the same file, as `cat` makes them. Sets
 * *further to true if there is one, whose first member is next; false if only zeros follow. Errors:
 * STOKER_EFORMAT (other bytes follow), and those of reading. */
int stk_tar_walk_further(struct stk_tar_walk *walk, bool *further, stoker_error *error);

/* Read at most 512 bytes of the archive; *out is valid until the next call for this walk. */
int stk_tar_walk_read(struct stk_tar_walk *walk, uint64_t offset, size_t bytes, const uint8_t **out,
                      stoker_error *error);

#endif
