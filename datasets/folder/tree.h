/* tree.h - what lies in a folder of classes: names, sizes and labels, all in memory.
 *
 *   DIR/cat/1.png     class 0 "cat"     files[0]   names ──▶ "cat\0cat/1.png\0cat/more/0.png\0..."
 *   DIR/cat/more/0.png                  files[1]
 *   DIR/dog/1.png     class 1 "dog"     files[2]
 *
 * Order: classes by name, then folders by path, then files by name, each byte by byte (strcmp):
 * torchvision's ImageFolder has the same. It depends on nothing but the tree.
 *
 * Memory: 16 bytes a file and its path with the final 0; 32 bytes a folder and its path. While
 * scanning up to twice that.
 */
#ifndef STK_DATASETS_FOLDER_TREE_H
#define STK_DATASETS_FOLDER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/memory.h"

enum { STK_FOLDER_CLASSES_MAX = 1 << 20, STK_FOLDER_EXTENSIONS_BYTES = 256 };

#define STK_FOLDER_RAW UINT32_C(0x80000000) /* in kind_label: a file of the extension "raw" */

struct stk_folder_file {
    uint64_t path; /* offset in names */
    uint32_t bytes;
    uint32_t kind_label;
};

/* A folder as it was when it was scanned: any file that comes or goes changes it. */
struct stk_folder_directory {
    uint64_t path; /* offset in names */
    uint64_t inode;
    int64_t modified_ns; /* its names */
    int64_t changed_ns;  /* all else of it */
};

struct stk_folder_tree {
    struct stk_region memory; /* holds all that follows */
    const struct stk_folder_file *files;
    const struct stk_folder_directory *directories;
    const uint64_t *classes; /* offsets in names */
    const char *names;
    uint64_t file_count;
    uint64_t directory_count;
    uint64_t class_count;
    uint64_t name_bytes;
    int64_t scan_ns;      /* on the wall clock: when the scan began */
    uint64_t passed_over; /* scanned: links that lead out, pipes, devices */
};

/* What to look for. */
struct stk_folder_wish {
    int directory;                                /* the root, open */
    const char *path;                             /* of the root, for messages */
    char extensions[STK_FOLDER_EXTENSIONS_BYTES]; /* "png,jpg": lower case, commas between */
    uint64_t bytes_max;                           /* of memory */
};

static inline uint32_t stk_folder_label(const struct stk_folder_file *file)
{
    return file->kind_label & ~STK_FOLDER_RAW;
}

/* Scan the folder with a few threads. On failure *tree is empty and *error told.
 * STOKER_EEMPTY: there are no classes, or no files in them. */
int stk_folder_scan(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                    stoker_error *error);

/* Names of the classes, sorted, one after the other with their final 0s. Free *names. */
int stk_folder_classes(const struct stk_folder_wish *wish, char **names, uint64_t *name_bytes,
                       uint64_t *count, stoker_error *error);

void stk_folder_tree_free(struct stk_folder_tree *tree); /* empty already is allowed */

/* Map the memory for a tree whose counts are set, and point its parts into it. */
int stk_folder_tree_map(struct stk_folder_tree *tree);

/* Bytes of the parts, in the order directories, classes, files, names; UINT64_MAX = too many. */
uint64_t stk_folder_tree_bytes(const struct stk_folder_tree *tree);

#endif
