/* pread.c - see pread.h. */
#include "loader/base/io/pread.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

int stk_pread_all(int fd, void *to, size_t bytes, struct stk_place place, stoker_error *error)
{
    assert(place.offset != STOKER_NO_OFFSET);
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (uint8_t *)to + done, bytes - done, (off_t)place.offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            place.os_errno = errno;
            return stk_error_set(error, stk_error_from_errno(errno), STOKER_STAGE_READ, &place,
                                 NULL);
        }
        if (got == 0)
            return stk_error_set(error, STOKER_ETRUNCATED, STOKER_STAGE_READ, &place, NULL);
        done += (size_t)got;
        place.offset += (uint64_t)got;
    }
    return 0;
}
