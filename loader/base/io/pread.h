/* pread.h - read all bytes, or report where the file ended. */
#ifndef STK_BASE_PREAD_H
#define STK_BASE_PREAD_H

#include <stddef.h>
#include <stoker/error.h>

#include "loader/base/error.h"

/* Read `bytes` bytes at place.offset; continues after EINTR and short reads. Returns 0,
 * STOKER_ETRUNCATED, or what the errno means (a bad fd, too: it may be a user's); *error has the
 * place that failed. */
int stk_pread_all(int fd, void *to, size_t bytes, struct stk_place place, stoker_error *error);

#endif
