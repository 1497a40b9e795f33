/* index.h - save a scanned tree in a file, so that the next open need not scan.
 *
 *   header    magic, version, sizes, extensions, checksum
 *   body      the tree's memory: folders, classes, files, names (tree.h)
 *
 * Integers have the byte order of the machine; an index of another byte order is ignored and
 * replaced.
 *
 * An index is used only if its checksum and its contents are valid, extensions and classes are the
 * same, and every folder has the same inode and times. Creating, deleting or renaming a file
 * changes the times of its folder. Writing to a file changes only the file: its size is checked at
 * each read.
 *
 * A folder that changed less than two seconds before the scan may change again within the same
 * clock tick, so its index is not used the next time.
 */
#ifndef STK_DATASETS_FOLDER_INDEX_H
#define STK_DATASETS_FOLDER_INDEX_H

#include "datasets/folder/tree.h"

/* Load the tree from the file. Returns false, with an empty *tree, if there is no valid index. */
bool stk_folder_index_load(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                           const char *path);

/* Write a scanned tree to the file, atomically. */
int stk_folder_index_save(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                          const char *path, stoker_error *error);

#endif
