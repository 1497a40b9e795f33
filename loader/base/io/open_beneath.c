/* open_beneath.c - see open_beneath.h. */
#include "loader/base/io/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t stk_open_beneath_resolve(int directory)
{
    return directory == AT_FDCWD ? 0 : RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
}

/* What openat2 refuses, as far as the name alone shows it. */
static bool leads_out(const char *path)
{
    if (path[0] == '/')
        return true;
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += part[0] == '/' ? 1 : 0;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

/* Copy the next part of a non-empty path and advance *path past it. Returns 0 or -ENAMETOOLONG. */
static int next_part(const char **path, char part[NAME_MAX + 1])
{
    *path += strspn(*path, "/");
    const size_t length = strcspn(*path, "/");
    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(part, *path, length);
    part[length] = '\0';
    *path += length;
    return 0;
}

/* Open a part that is not a link (-ELOOP). With O_DIRECTORY Linux says ENOTDIR for a link, too:
 * look again. */
static int open_part(int directory, const char *part, int flags)
{
    struct stat status;
    const int fd = openat(directory, part, flags | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        return fd;
    const int os_errno = errno;
    const bool link = os_errno == ENOTDIR &&
                      fstatat(directory, part, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISLNK(status.st_mode);
    return link ? -ELOOP : -os_errno;
}

/* Without openat2: open part by part, each relative to the previous descriptor, even if that was
 * renamed. */
static int walk(int directory, const char *path, int flags)
{
    char part[NAME_MAX + 1];
    int fd = -1; /* the previous part; -1 = `directory` */
    int rc = path[0] == '\0' ? -ENOENT : next_part(&path, part);
    while (rc == 0) {
        const bool last = path[0] == '\0';
        const bool folder = path[0] != '\0' && path[strspn(path, "/")] == '\0'; /* "a/" */
        const int way = O_PATH | O_DIRECTORY;
        const int next = open_part(fd < 0 ? directory : fd, part,
                                   last     ? flags
                                   : folder ? flags | O_DIRECTORY
                                            : way);
        if (fd >= 0)
            close(fd);
        if (next < 0 || last || folder)
            return next;
        fd = next;
        rc = next_part(&path, part);
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Linux cannot decide whether ".." leads out if anything at all was renamed or mounted meanwhile:
 * EAGAIN. A rename takes less time than an open, so that even on a machine that renames all the
 * time few tries are enough. */
static long open_decided(int directory, const char *path, const struct open_how *how)
{
    enum { TRIES_MAX = 100 };
    long fd = -1;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        fd = syscall(SYS_openat2, directory, path, how, sizeof(*how));
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

int stk_open_beneath(int directory, const char *path, int flags)
{
    if (directory == AT_FDCWD) {
        const int fd = openat(AT_FDCWD, path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    const struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                                  .resolve = stk_open_beneath_resolve(directory) };
    const long fd = open_decided(directory, path, &how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        if (leads_out(path))
            return -EXDEV;
        return walk(directory, path, flags);
    }
    return fd < 0 ? -errno : (int)fd;
}

/* O_NONBLOCK: the file may have been replaced by a pipe without a writer. */
int stk_open_beneath_to_read(int directory, const char *path)
{
    return stk_open_beneath(directory, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
}

ssize_t stk_read_beneath(int directory, const char *path, void *to, size_t bytes, uint64_t offset)
{
    const int fd = stk_open_beneath_to_read(directory, path);
    if (fd < 0)
        return fd;
    const ssize_t got = pread(fd, to, bytes, (off_t)offset);
    const ssize_t result = got < 0 ? -errno : got;
    close(fd);
    return result;
}

ssize_t stk_read_all_beneath(int directory, const char *path, void *to, size_t bytes,
                             uint64_t offset)
{
    int fd;
    do
        fd = stk_open_beneath_to_read(directory, path);
    while (fd == -EINTR);
    if (fd < 0)
        return fd;
    size_t done = 0;
    ssize_t got = 1;
    while (done < bytes && got != 0) {
        got = pread(fd, (uint8_t *)to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    const ssize_t result = got < 0 && done < bytes ? -errno : (ssize_t)done;
    close(fd);
    return result;
}
