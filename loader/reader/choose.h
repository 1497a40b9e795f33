/* choose.h - chooses the reader of this process, and gives the reason. */
#ifndef STK_READER_CHOOSE_H
#define STK_READER_CHOOSE_H

#include <stddef.h>
#include <stoker/reader.h>

/* *out = the reader that the environment variable STOKER_READER names (uring, pread); if it is not
 * set, io_uring if a ring opens and works here, else pread. reason gets one line that explains
 * the choice, cut to reason_bytes.
 *
 * Errors, with *out and reason untouched: STOKER_EINVAL (STOKER_READER names no reader),
 * STOKER_EREADER (it names uring, which is not available), STOKER_ENOMEM.
 *
 * A worker may still fail to open its own ring, when descriptors or locked memory run out: if its
 * open returns STOKER_EREADER, the worker takes pread. */
int stk_reader_choose(const stoker_reader **out, char *reason, size_t reason_bytes,
                      stoker_error *error);

#endif
