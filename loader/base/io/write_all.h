/* write_all.h - write all bytes; continues after EINTR and short writes. */
#ifndef STK_BASE_WRITE_ALL_H
#define STK_BASE_WRITE_ALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* False: errno has the reason; a part may be written. */
static inline bool stk_write_all(int fd, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count > 0) {
        const ssize_t written = write(fd, at, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        at += written;
        count -= (size_t)written;
    }
    return true;
}

#endif
