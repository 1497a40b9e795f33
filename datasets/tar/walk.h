/* walk.h - from header to header through one tar archive. */
#ifndef STK_DATASETS_TAR_WALK_H
#define STK_DATASETS_TAR_WALK_H

#include "datasets/source.h"
#include "datasets/tar/header.h"

enum stk_tar_kind {
    STK_TAR_END,  /* a block of zeros */
    STK_TAR_FILE, /* its bytes lie in the archive as they are */
    STK_TAR_DIRECTORY,
    STK_TAR_LINK,   /* symbolic or hard */
    STK_TAR_DEVICE, /* or a pipe */
    STK_TAR_OTHER   /* sparse, a volume's name, a type that nobody knows */
};

struct stk_tar_member {
    const char *name;   /* in the walk, until the next step; never "" but at the end */
    uint64_t header_at; /* where its first header is */
    uint64_t offset;    /* where its bytes are */
    uint64_t bytes;     /* 0 if it is no file */
    enum stk_tar_kind kind;
};

struct stk_tar_walk;

/* Begin at the begin of the archive; source must outlive the walk. Takes all the memory it will
 * ever need. STOKER_ENOMEM. */
int stk_tar_walk_create(struct stk_tar_walk **out, const struct stk_source *source,
                        stoker_error *error);
void stk_tar_walk_destroy(struct stk_tar_walk *walk); /* NULL is allowed */

/* Step to the next member. What it says lies within the file. At the end kind is STK_TAR_END.
 * Errors: STOKER_ETRUNCATED (the archive ends before its end, or within a member),
 * STOKER_EMAGIC (it does not begin as one), STOKER_ECORRUPT (a sum is wrong), STOKER_EFORMAT,
 * STOKER_ELIMIT (a name or a PAX header is too long), and those of reading. */
int stk_tar_walk_next(struct stk_tar_walk *walk, struct stk_tar_member *out, stoker_error *error);

/* From the end of an archive to another one that follows in the same file, as "cat" puts them together:
 * sets *further, and the next step is to its first member. False: nothing but zeros follows.
 * Errors: STOKER_EFORMAT (other bytes follow), and those of reading. */
int stk_tar_walk_further(struct stk_tar_walk *walk, bool *further, stoker_error *error);

/* A few bytes (at most 512) of the archive; *out is good until the next call of anything here. */
int stk_tar_walk_read(struct stk_tar_walk *walk, uint64_t offset, size_t bytes, const uint8_t **out,
                      stoker_error *error);

#endif
