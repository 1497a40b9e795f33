/* list.h - one folder: the files of it that are samples, and the folders in it.
 *
 *   an entry                              becomes
 *   .anything                             nothing
 *   a folder                              a folder to list in turn
 *   a file with one of the extensions     a sample
 *   a link with one of the extensions     a sample, if it leads to a file in the tree
 *   anything else                         nothing
 *
 * Links to folders are not followed: no sample comes twice, and no loop is walked.
 */
#ifndef STK_DATASETS_FOLDER_LIST_H
#define STK_DATASETS_FOLDER_LIST_H

#include "datasets/folder/tree.h"

/* Bytes that grow; zeroed memory all the same. */
struct stk_folder_buffer {
    uint8_t *base;
    size_t used;
    size_t capacity;
};

void stk_folder_release(struct stk_folder_buffer *buffer);

struct stk_folder_entry {
    uint64_t name; /* offset in names */
    uint32_t bytes;
    uint32_t raw; /* STK_FOLDER_RAW or 0 */
};

struct stk_folder_listing {
    char *path; /* of the folder, beneath the root; owned */
    uint32_t label;
    struct stk_folder_directory stamp; /* but for its path */
    struct stk_folder_buffer names;    /* of samples */
    struct stk_folder_buffer entries;  /* struct stk_folder_entry, sorted by name */
    struct stk_folder_buffer folders;  /* names, one after the other */
    uint64_t passed_over;
};

/* List the folder at listing->path, which the caller has set. */
int stk_folder_list(struct stk_folder_listing *listing, const struct stk_folder_wish *wish,
                    stoker_error *error);

void stk_folder_listing_free(struct stk_folder_listing *listing); /* path included */

/* Inode and times of a folder beneath the root. 0 or an errno. */
int stk_folder_stamp(int root, const char *path, struct stk_folder_directory *out);

#endif
