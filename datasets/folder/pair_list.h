/* pair_list.h - the files of one folder and all folders below, by key: the name in the folder
 * without its extension. */
#ifndef STK_DATASETS_FOLDER_PAIR_LIST_H
#define STK_DATASETS_FOLDER_PAIR_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/memory/memory.h"
#include "loader/storage/storage.h"

struct stk_pair_file {
    uint64_t path;      /* offset of its path in paths; "/data/masks/a/0001.png" */
    uint32_t key_bytes; /* "a/0001" */
    uint32_t bytes;     /* length of the file; UINT32_MAX: that or more */
    uint64_t version;   /* in a storage; 0 = not known */
};

struct stk_pair_list {
    /* length of the folder's own path and the slash behind it: keys begin there */
    uint32_t root_bytes;
    struct stk_pair_file *files; /* sorted by key */
    const stoker_storage *storage;
    size_t count, room;
    char *paths;
    size_t paths_bytes, paths_room;
};

/* List the regular files of the folder; names that begin with a dot, links, pipes and devices are
 * left out. Memory is at most *bytes_left, which is lowered. On failure there is nothing to free.
 * Errors: those of reading the folder; STOKER_EEMPTY, STOKER_EMISMATCH (two files have one key),
 * STOKER_ELIMIT, STOKER_ENOMEM. */
int stk_pair_list_make(struct stk_pair_list *list, const stoker_storage *storage,
                       const char *folder, uint64_t *bytes_left, stoker_error *error);
/* The files with these paths, in this order; relative ones begin at the working directory. Links
 * are followed. root_bytes is 0: the key is the whole path without its extension. Errors: those of
 * looking at a file; STOKER_EISDIR, STOKER_EFORMAT (no regular file), STOKER_EINVAL (a path is NULL
 * or empty), STOKER_ELIMIT, STOKER_ENOMEM. On failure there is nothing to free. */
int stk_pair_list_of(struct stk_pair_list *list, const char *const *paths, uint64_t count,
                     uint64_t *bytes_left, stoker_error *error);
void stk_pair_list_free(struct stk_pair_list *list); /* all zero is allowed */

/* Path and key of file `at`; the key has files[at].key_bytes bytes. */
const char *stk_pair_path(const struct stk_pair_list *list, size_t at);
const char *stk_pair_key(const struct stk_pair_list *list, size_t at);

/* Compare file a of list x with file b of list y by their keys: < 0, 0, > 0. */
int stk_pair_compare(const struct stk_pair_list *x, size_t a, const struct stk_pair_list *y,
                     size_t b);

#endif
