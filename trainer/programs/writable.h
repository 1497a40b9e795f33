/* writable.h - whether a file that is written at the end of a run can be: asked at its begin. */
#ifndef STK_PROGRAMS_WRITABLE_H
#define STK_PROGRAMS_WRITABLE_H

#include <stoker/error.h>

/* STOKER_OK if a file may be made at `path` or put in the place of the one there; NULL: there is
 * none to be written. Else *error says why not. It may still fail later: a disk can fill up. */
int writable_check(const char *path, stoker_error *error);

#endif
