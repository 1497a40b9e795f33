/* writable.h - asks at the begin of a run if a file that is written at its end can be. */
#ifndef STK_PROGRAMS_WRITABLE_H
#define STK_PROGRAMS_WRITABLE_H

#include <stoker/error.h>

/* STOKER_OK if a checkpoint can be written at `path`, or path is NULL. Else *error says why not; STOKER_EINVAL: it
 * is neither a regular file nor a new one. Writing may still fail later: a disk can fill up. */
int writable_check_checkpoint(const char *path, stoker_error *error);

#endif
