/* writable.c - see writable.h. Files are written aside and renamed: it is the folder that counts. */
#include "trainer/programs/writable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *path, int cause, stoker_error *error)
{
    *error = (stoker_error){ .code = STOKER_EIO, .os_errno = cause };
    (void)snprintf(error->message, sizeof(error->message), "%.400s: cannot be written: %s", path,
                   strerror(cause));
    return STOKER_EIO;
}

int writable_check(const char *path, stoker_error *error)
{
    char folder[4096] = ".";
    struct stat there;
    if (path == NULL)
        return STOKER_OK;
    const char *slash = strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (length >= sizeof(folder))
        return refuse(path, ENAMETOOLONG, error);
    if (length > 0) {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return refuse(path, EISDIR, error);
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        return refuse(path, errno, error);
    return STOKER_OK;
}
