/* writable.h - asks at the begin of a run if a file that is written at its end can be. */
#ifndef STK_PROGRAMS_WRITABLE_H
#define STK_PROGRAMS_WRITABLE_H

#include <stoker/error.h>

/* STOKER_OK if an output can be written at `path` (loader/base/output_file.h); NULL: there is none to be
 * written. Else *error says why not. It may still fail later: a disk can fill up. */
int writable_check(const char *path, stoker_error *error);

/* The same for a checkpoint, which must be a regular file or a new one: STOKER_EINVAL for others. */
int writable_check_checkpoint(const char *path, stoker_error *error);

#endif
