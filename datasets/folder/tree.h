/* tree.h - the files of a folder of classes: names, sizes and labels, in memory.
 *
 *   DIR/cat/1.png     class 0 "cat"     files[0]   names ──▶ "cat\0cat/1.png\0cat/more/0.png\0..."
 *   DIR/cat/more/0.png                  files[1]
 *   DIR/dog/1.png     class 1 "dog"     files[2]
 *
 * Order: classes by name, then folders by path, then files by name, each by strcmp, as in
 * torchvision's ImageFolder.
 *
 * Memory: 16 bytes per file, 24 in a storage, 32 per folder, and their paths with the final 0; up
 * to twice that while scanning.
 */
#ifndef STK_DATASETS_FOLDER_TREE_H
#define STK_DATASETS_FOLDER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/memory/memory.h"
#include "loader/storage/storage.h"

enum { STK_FOLDER_CLASSES_MAX = 1 << 20, STK_FOLDER_EXTENSIONS_BYTES = 256 };

#define STK_FOLDER_RAW UINT32_C(0x80000000) /* in kind_label: a file of the extension "raw" */

struct stk_folder_file {
    uint64_t path; /* offset in names */
    uint32_t bytes;
    uint32_t kind_label;
};

/* A folder when it was scanned; creating or deleting a file in it changes the times. */
struct stk_folder_directory {
    uint64_t path; /* offset in names */
    uint64_t inode;
    int64_t modified_ns; /* mtime: its entries */
    int64_t changed_ns;  /* ctime: also its attributes */
};

struct stk_folder_tree {
    struct stk_region memory; /* holds the arrays below */
    const struct stk_folder_file *files;
    const struct stk_folder_directory *directories;
    const uint64_t *classes; /* offsets in names */
    const char *names;
    const uint64_t *versions; /* of files in a storage; NULL = not known, or local files */
    uint64_t file_count;
    uint64_t directory_count;
    uint64_t class_count;
    uint64_t name_bytes;
    int64_t scan_ns;      /* wall clock at the start of the scan */
    uint64_t passed_over; /* entries skipped: links that lead out, pipes, devices */
};

/* What to look for. */
struct stk_folder_wish {
    const struct stk_storage_folder *root;
    char extensions[STK_FOLDER_EXTENSIONS_BYTES]; /* "png,jpg": lower case, commas between */
    uint64_t bytes_max;                           /* memory for the tree */
};

static inline uint32_t stk_folder_label(const struct stk_folder_file *file)
{
    return file->kind_label & ~STK_FOLDER_RAW;
}

/* Scan the folder with a few threads. On failure *tree is empty.
 * STOKER_EEMPTY: no classes, or no files in them. */
int stk_folder_scan(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                    stoker_error *error);

/* Get the sorted names of the classes, each ended by a 0. The caller frees *names. */
int stk_folder_classes(const struct stk_folder_wish *wish, char **names, uint64_t *name_bytes,
                       uint64_t *count, stoker_error *error);

void stk_folder_tree_free(struct stk_folder_tree *tree); /* an empty tree is allowed */

/* Map memory for a tree whose counts are set, and point its arrays into it. */
int stk_folder_tree_map(struct stk_folder_tree *tree);

/* Bytes of directories, classes, files and names, in this order; UINT64_MAX = overflow. */
uint64_t stk_folder_tree_bytes(const struct stk_folder_tree *tree);

#endif
