/* list.h - list one folder: its samples and its subfolders.
 *
 *   an entry                              result
 *   .anything                             nothing
 *   a folder                              a folder to list in turn
 *   a file with a listed extension        a sample
 *   a link with a listed extension        a sample, if it leads to a file in the tree
 *   anything else                         nothing
 *
 * Links to folders are not followed, so no sample is found twice and there are no loops.
 */
#ifndef STK_DATASETS_FOLDER_LIST_H
#define STK_DATASETS_FOLDER_LIST_H

#include "datasets/folder/tree.h"

/* A growing buffer; new memory is zeroed. */
struct stk_folder_buffer {
    uint8_t *base;
    size_t used;
    size_t capacity;
};

void stk_folder_release(struct stk_folder_buffer *buffer);

struct stk_folder_entry {
    uint64_t name;    /* offset in names */
    uint64_t version; /* in a storage */
    uint32_t bytes;
    uint32_t raw; /* STK_FOLDER_RAW or 0 */
};

struct stk_folder_listing {
    char *path; /* the folder, relative to the root; owned */
    uint32_t label;
    struct stk_folder_directory stamp; /* without its path */
    struct stk_folder_buffer names;    /* the samples' */
    struct stk_folder_buffer entries;  /* struct stk_folder_entry, sorted by name */
    struct stk_folder_buffer folders;  /* names, each ended by a 0 */
    uint64_t passed_over;
};

/* List the folder at listing->path, which the caller sets. */
int stk_folder_list(struct stk_folder_listing *listing, const struct stk_folder_wish *wish,
                    stoker_error *error);

void stk_folder_listing_free(struct stk_folder_listing *listing); /* path included */

/* Get inode and times of a folder relative to the root. Returns 0 or an errno. */
int stk_folder_stamp(int root, const char *path, struct stk_folder_directory *out);

#endif
