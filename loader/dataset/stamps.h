/* stamps.h - notices that an open file of a data set was changed after the data set was made.
 *
 *   data set made ──▶ fstat: size and times ──▶ ... rows are read ... ──▶ fstat: the same?
 *
 * loader/base/io/file_stamp.h says which differences count. Not checked: files without a
 * descriptor, files that are not regular, and whole files by name, which are opened for one read.
 */
#ifndef STK_STAMPS_H
#define STK_STAMPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/base/error.h"
#include "loader/base/io/file_stamp.h"

struct stk_stamp {
    int fd; /* owned by the data set; -1 = not checked */
    struct stk_file_stamp file;
};

struct stk_stamps {
    struct stk_stamp *each; /* [count], by file number; NULL if count is 0 */
    uint32_t count;
    bool apart; /* a file is in a storage or in blocks: the page cache does not keep its bytes */
};

/* Note all files of a data set. Returns 0, or STOKER_ENOMEM and *stamps is all zero. */
int stk_stamps_take(struct stk_stamps *stamps, const stoker_dataset_ops *ops, const void *self,
                    uint32_t file_count);
void stk_stamps_free(struct stk_stamps *stamps); /* all zero is allowed */

/* Returns true if the file looks as it did. */
bool stk_stamp_holds(const struct stk_stamps *stamps, uint32_t file);

/* The number of the first file that changed, or UINT32_MAX. */
uint32_t stk_stamps_first_changed(const struct stk_stamps *stamps);

/* Report a changed file, which place.path names. Returns STOKER_ECHANGED. */
int stk_stamps_refuse(const struct stk_stamps *stamps, uint32_t file, struct stk_place place,
                      stoker_error *error);

#endif
