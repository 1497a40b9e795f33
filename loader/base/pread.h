/* pread.h - read all of it, or say where it ended. */
#ifndef STK_BASE_PREAD_H
#define STK_BASE_PREAD_H

#include <stddef.h>
#include <stoker/error.h>

#include "loader/base/error.h"

/* Read `bytes` bytes at place.offset, going on after EINTR and short reads. Returns 0, or
 * STOKER_ETRUNCATED or what the errno means (a bad fd, too: it may be a user's), with *error telling
 * the place that failed. */
int stk_pread_all(int fd, void *to, size_t bytes, struct stk_place place, stoker_error *error);

#endif
