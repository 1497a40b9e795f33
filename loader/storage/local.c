/* local.c - the local file system: see storage.h. */
#include "loader/storage/storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/io/open_beneath.h"

stoker_storage stk_storage_local = { .ops = { .struct_size = sizeof(stoker_storage_ops),
                                              .name = "local" } };

int stk_local_failed(const char *path, int os_errno, const char *call, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.os_errno = os_errno;
    const int code = os_errno == ENAMETOOLONG ? STOKER_ELIMIT : stk_error_from_errno(os_errno);
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "%s", call);
}

/* ---- files ---------------------------------------------------------------------- */

static int check_kind(const char *path, int fd, struct stat *status, stoker_error *error)
{
    if (fstat(fd, status) != 0)
        return stk_local_failed(path, errno, "fstat", error);
    if (S_ISDIR(status->st_mode))
        return stk_local_failed(path, EISDIR, "open", error);
    return S_ISREG(status->st_mode)
               ? STOKER_OK
               : stk_refuse_file(error, STOKER_ENOTSUP, path, STOKER_NO_OFFSET,
                                 "not a regular file, but a %s",
                                 S_ISFIFO(status->st_mode) ? "pipe" : "device or socket");
}

/* Clear O_NONBLOCK, or io_uring would return EAGAIN instead of waiting. Set O_NOATIME if allowed,
 * which the kernel permits only to the owner: updating the time costs a twentieth of a small
 * read. */
static bool set_read_flags(int fd)
{
    return fcntl(fd, F_SETFL, O_NOATIME) == 0 || fcntl(fd, F_SETFL, 0) == 0;
}

int stk_local_open(const char *path, int *fd, struct stat *status, stoker_error *error)
{
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (opened < 0)
        return stk_local_failed(path, errno, "open", error);
    int rc = check_kind(path, opened, status, error);
    if (rc == STOKER_OK && !set_read_flags(opened))
        rc = stk_local_failed(path, errno, "fcntl", error);
    if (rc == STOKER_OK)
        *fd = opened;
    else
        close(opened);
    return rc;
}

int stk_local_look_beneath(int folder, const char *path, struct stat *out)
{
    const int fd = stk_open_beneath(folder, path, O_PATH);
    if (fd < 0)
        return -fd;
    const int os_errno = fstat(fd, out) != 0 ? errno : 0;
    close(fd);
    return os_errno;
}

/* ---- folders -------------------------------------------------------------------- */

int stk_listed_look(struct stk_listed *entry)
{
    struct stat status;
    if (!entry->looks)
        return 0;
    if (fstatat(entry->folder, entry->object.name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    entry->is_link = S_ISLNK(status.st_mode);
    entry->object.kind = S_ISREG(status.st_mode)   ? STOKER_OBJECT_KIND_FILE
                         : S_ISDIR(status.st_mode) ? STOKER_OBJECT_KIND_FOLDER
                                                   : STOKER_OBJECT_KIND_OTHER;
    entry->object.size = (uint64_t)status.st_size;
    entry->looks = false;
    return 0;
}

static bool is_wanted(const char *name, const char *begin)
{
    return strncmp(name, begin, strlen(begin)) == 0 && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

int stk_local_list(const struct stk_storage_folder *root, const char *path, const char *begin,
                   stk_listed_found *found, void *context, stoker_error *error)
{
    char whole[PATH_MAX] = "";
    (void)stk_storage_join(whole, root->path, path);
    const int fd =
        stk_open_beneath(root->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return stk_local_failed(whole, -fd, "opening the folder", error);
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        const int os_errno = errno;
        close(fd);
        return stk_local_failed(whole, os_errno, "listing the folder", error);
    }
    int rc = STOKER_OK;
    const struct dirent *entry;
    while (rc == STOKER_OK && (errno = 0, entry = readdir(stream)) != NULL) {
        struct stk_listed listed = {
            .object = { .name = entry->d_name,
                        .kind = entry->d_type == DT_DIR ? STOKER_OBJECT_KIND_FOLDER : 0 },
            .looks = entry->d_type != DT_DIR,
            .may_be_folder = entry->d_type == DT_UNKNOWN,
            .folder = fd,
        };
        if (is_wanted(entry->d_name, begin))
            rc = found(context, &listed);
    }
    const int os_errno = rc == STOKER_OK ? errno : 0;
    closedir(stream);
    return os_errno == 0 ? rc : stk_local_failed(whole, os_errno, "listing the folder", error);
}
