/* stamps.h - what the open files of a data set looked like when it was made, and whether one looks different by now.
 *
 *   data set made ──▶ fstat: size, time of the last change ──▶ ... rows are read ... ──▶ fstat: the same?
 *
 * A file that is written to in place shows it by either, as long as nobody sets the time back. Not looked at:
 * files without a descriptor, what is no regular file, and whole files by name, which are opened for one read.
 */
#ifndef STK_STAMPS_H
#define STK_STAMPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/base/error.h"

struct stk_stamp {
    int fd; /* the data set's; -1 = not looked at */
    uint64_t size;
    int64_t modified_ns; /* since 1970 */
};

struct stk_stamps {
    struct stk_stamp *each; /* by number of the file; NULL = there are none */
    uint32_t count;
};

/* Note all files of a set that is made. 0 or STOKER_ENOMEM; all zero then. */
int stk_stamps_take(struct stk_stamps *stamps, const stoker_dataset_ops *ops, const void *self,
                    uint32_t file_count);
void stk_stamps_free(struct stk_stamps *stamps); /* all zero is allowed */

/* Returns true if one file looks as it did. */
bool stk_stamp_holds(const struct stk_stamps *stamps, uint32_t file);

/* The number of the first file that does not, or UINT32_MAX. */
uint32_t stk_stamps_first_changed(const struct stk_stamps *stamps);

/* The error of a file that changed; place.path names it. Returns STOKER_ECHANGED. */
int stk_stamps_refuse(const struct stk_stamps *stamps, uint32_t file, struct stk_place place,
                      stoker_error *error);

#endif
