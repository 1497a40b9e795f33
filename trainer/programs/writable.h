/* writable.h - checks at the start of a run that a file can be written at its end. */
#ifndef STK_PROGRAMS_WRITABLE_H
#define STK_PROGRAMS_WRITABLE_H

#include <stoker/error.h>

/* STOKER_OK if a checkpoint can be written at `path`, or path is NULL. Else *error has the reason;
 * STOKER_EINVAL: it is neither a regular file nor a new one. Writing may still fail later: a disk
 * can fill up. */
int writable_check_checkpoint(const char *path, stoker_error *error);

#endif
