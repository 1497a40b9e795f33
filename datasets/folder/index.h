/* index.h - a scanned tree kept in a file, so that the next opening need not scan.
 *
 *   header    magic, version, sizes, what was looked for, checksum
 *   body      the tree's memory as it is: folders, classes, files, names (tree.h)
 *
 * In the byte order of the machine that wrote it: another machine's index is none, and made anew.
 *
 * An index is believed only if its checksum holds, it is sound in itself, it looked for the same
 * extensions, the classes in the root are the same, and every folder has the inode and the times
 * that it had. Files that come, go or get another name change a folder's times. A file that is
 * written to changes only its own: its size is checked whenever it is read.
 *
 * A folder that changed less than two seconds before the scan may have changed again within the
 * same tick of the clock: it is not believed the next time.
 */
#ifndef STK_DATASETS_FOLDER_INDEX_H
#define STK_DATASETS_FOLDER_INDEX_H

#include "datasets/folder/tree.h"

/* Take the tree from the file. False: there is no index that can be believed, *tree is empty. */
bool stk_folder_index_load(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                           const char *path);

/* Write the tree just scanned to the file: whole or not at all. */
int stk_folder_index_save(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                          const char *path, stoker_error *error);

#endif
