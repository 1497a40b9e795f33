/* source.c - see source.h. */
#include "datasets/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/io/pread.h"

static int system_failure(const char *path, int os_errno, const char *call, stoker_error *error)
{
    struct stk_place place = stk_at(path, STOKER_NO_OFFSET);
    place.os_errno = os_errno;
    return stk_error_set(error, stk_error_from_errno(os_errno), STOKER_STAGE_OPEN, &place, "%s",
                         call);
}

/* Only a regular file has a size and an end. */
static int check_kind(struct stk_source *source, stoker_error *error)
{
    struct stat status;
    if (fstat(source->fd, &status) != 0)
        return system_failure(source->path, errno, "fstat", error);
    if (S_ISDIR(status.st_mode))
        return system_failure(source->path, EISDIR, "open", error);
    if (!S_ISREG(status.st_mode)) {
        return stk_refuse_file(error, STOKER_ENOTSUP, source->path, STOKER_NO_OFFSET,
                               "not a regular file, but a %s",
                               S_ISFIFO(status.st_mode) ? "pipe" : "device or socket");
    }
    source->size = (uint64_t)status.st_size;
    source->stamp = stk_file_stamp_of(&status);
    return STOKER_OK;
}

/* Clear O_NONBLOCK, or io_uring would return EAGAIN instead of waiting. Set O_NOATIME if allowed,
 * which the kernel permits only to the owner: updating the time costs a twentieth of a small
 * read. */
static bool set_read_flags(int fd)
{
    return fcntl(fd, F_SETFL, O_NOATIME) == 0 || fcntl(fd, F_SETFL, 0) == 0;
}

int stk_source_open(struct stk_source *source, const char *path, stoker_error *error)
{
    *source = (struct stk_source)STK_SOURCE_CLOSED;
    source->path = path;
    /* O_NONBLOCK: do not wait for a writer of a pipe. */
    source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (source->fd < 0)
        return system_failure(path, errno, "open", error);
    int rc = check_kind(source, error);
    if (rc == STOKER_OK && !set_read_flags(source->fd))
        rc = system_failure(path, errno, "fcntl", error);
    if (rc != STOKER_OK)
        stk_source_close(source);
    return rc;
}

void stk_source_close(struct stk_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

int stk_source_read(const struct stk_source *source, void *to, size_t bytes, uint64_t offset,
                    stoker_error *error)
{
    assert(source->fd >= 0);
    return stk_pread_all(source->fd, to, bytes, stk_at(source->path, offset), error);
}

int stk_source_check(const struct stk_source *source, stoker_error *error)
{
    struct stat status;
    if (fstat(source->fd, &status) != 0)
        return system_failure(source->path, errno, "fstat", error);
    const struct stk_file_stamp now = stk_file_stamp_of(&status);
    if (stk_file_stamp_holds(&source->stamp, &now))
        return STOKER_OK;
    return stk_refuse_file(error, STOKER_ECHANGED, source->path, STOKER_NO_OFFSET,
                           "written to while it was being opened");
}
