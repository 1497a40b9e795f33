/* output_file.c - see output_file.h. */
#include "loader/base/io/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40, NAMES_TRIED = 10000, STEM_MAX = 200, PROC_LINK_BYTES = 32 };

/* ---- what a path names ---------------------------------------------------------- */

/* N of /dev/fd/N, /proc/self/fd/N, /dev/stdout or /dev/stderr; -1 = another path. As regular files
 * these must not be replaced: the holder of the descriptor would keep the old file. */
static int descriptor_in(const char *path)
{
    static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const size_t length = strlen(folders[i]);
        const char *digits = path + length;
        if (strncmp(path, folders[i], length) != 0 || digits[0] == '\0' || strlen(digits) > 6 ||
            digits[strspn(digits, "0123456789")] != '\0')
            continue;
        int number = 0;
        for (; *digits != '\0'; digits++)
            number = 10 * number + (*digits - '0');
        return number;
    }
    return -1;
}

/* Start of a path's last part. */
static char *last_part(char *path)
{
    char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* What a resolved path turned out to be. */
struct target {
    char path[PATH_MAX]; /* links followed */
    int descriptor;      /* -1 = none */
    bool exists;
    struct stat about; /* if it exists */
};

/* Look at the folder that holds `path`. Returns 0 or an errno. */
static int stat_folder(const char *path, struct stat *out)
{
    char folder[PATH_MAX];
    const size_t length = strlen(path);
    if (length >= sizeof(folder))
        return ENAMETOOLONG;
    memcpy(folder, path, length + 1);
    last_part(folder)[0] = '\0';
    return stat(folder[0] == '\0' ? "." : folder, out) == 0 ? 0 : errno;
}

/* Returns true if another user owns the file, and its folder is sticky and open to others, as /tmp
 * is. */
static bool is_foreign(const struct stat *folder, const struct stat *about)
{
    return (folder->st_mode & S_ISVTX) != 0 && (folder->st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
           about->st_uid != geteuid() && about->st_uid != folder->st_uid;
}

/* Replace a link by what it contains; relative to the folder it lies in. fd: the link, by O_PATH,
 * so that the one that was checked is the one that is followed. Returns 0 or an errno. */
static int follow_link(int fd, char path[PATH_MAX])
{
    char into[PATH_MAX];
    const ssize_t length = readlinkat(fd, "", into, sizeof(into) - 1);
    if (length < 0)
        return errno;
    into[length] = '\0';
    char *const part = into[0] == '/' ? path : last_part(path);
    if ((size_t)(part - path) + (size_t)length >= PATH_MAX)
        return ENAMETOOLONG;
    memcpy(part, into, (size_t)length + 1);
    return 0;
}

/* Look at what target->path names, and follow it if it is a link. Returns 0 or an errno; *more =
 * call again. */
static int take_step(struct target *target, bool *more)
{
    struct stat there, folder = { .st_mode = 0 };
    *more = false;
    const int fd = open(target->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    int rc = fstat(fd, &target->about) == 0 ? stat_folder(target->path, &folder) : errno;
    target->exists = rc == 0 && !S_ISLNK(target->about.st_mode);
    const bool foreign = rc == 0 && !S_ISREG(target->about.st_mode) &&
                         !S_ISDIR(target->about.st_mode) && is_foreign(&folder, &target->about);
    if (rc == 0 && foreign) {
        rc = EPERM;
    } else if (rc == 0 && target->exists) {
        rc = S_ISDIR(target->about.st_mode) ? EISDIR : 0;
    } else if (rc == 0 && stat(target->path, &there) == 0 && !S_ISREG(there.st_mode)) {
        target->about = there; /* /proc/PID/fd/N leads to a pipe, but does not contain its path */
        target->exists = true;
        rc = S_ISDIR(there.st_mode) ? EISDIR : 0;
    } else if (rc == 0) {
        *more = true;
        rc = follow_link(fd, target->path);
    }
    close(fd);
    return rc;
}

/* Follow links to their end, even if nothing is there. Returns 0 or an errno. */
static int resolve(struct target *target, const char *path)
{
    *target = (struct target){ .descriptor = -1 };
    if (strlen(path) >= PATH_MAX)
        return ENAMETOOLONG;
    memcpy(target->path, path, strlen(path) + 1);
    for (int links = 0; links < LINKS_MAX; links++) {
        target->descriptor = descriptor_in(target->path);
        if (target->descriptor >= 0)
            return 0;
        bool more = false;
        const int rc = take_step(target, &more);
        if (rc != 0 || !more)
            return rc;
    }
    return ELOOP;
}

static bool is_special(const struct target *target)
{
    return target->descriptor >= 0 ||
           (target->exists && !S_ISREG(target->about.st_mode) && !S_ISDIR(target->about.st_mode));
}

bool stk_output_is_in_place(const char *path)
{
    struct target target;
    (void)resolve(&target, path); /* one that is refused is special all the same */
    return is_special(&target);
}

int stk_output_resolve(const char *path, char resolved[PATH_MAX])
{
    struct target target;
    const int rc = resolve(&target, path);
    if (rc == 0)
        memcpy(resolved, target.path, strlen(target.path) + 1);
    return rc;
}

/* Cut target->path into folder and name. Returns 0 or an errno. */
static int split(struct target *target, const char **folder, char name[NAME_MAX + 1])
{
    char *const part = last_part(target->path);
    const size_t length = strlen(part);
    if (length == 0 || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
        return target->path[0] == '\0' ? ENOENT : EISDIR;
    if (length > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(name, part, length + 1);
    part[0] = '\0';
    *folder = part == target->path ? "." : target->path;
    return 0;
}

/* ---- open ----------------------------------------------------------------------- */

static int open_in_place(const struct target *target)
{
    if (target->descriptor >= 0) {
        const int copy = fcntl(target->descriptor, F_DUPFD_CLOEXEC, 0);
        return copy < 0 ? -errno : copy;
    }
    const int fd = open(target->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat about;
    const int flags = fcntl(fd, F_GETFL);
    int os_errno = errno;
    if (flags >= 0 && fstat(fd, &about) == 0) {
        if (about.st_dev != target->about.st_dev || about.st_ino != target->about.st_ino)
            os_errno = EPERM; /* something else was put there since it was looked at */
        else if (fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0)
            return fd;
        else
            os_errno = errno;
    }
    close(fd);
    return -os_errno;
}

int stk_output_open_in_place(const char *path)
{
    struct target target;
    const int rc = resolve(&target, path);
    return rc == 0 ? open_in_place(&target) : -rc;
}

int stk_output_create(const char *path, int flags, mode_t mode)
{
    struct stat folder = { .st_mode = 0 }, about;
    const int fd = open(path, (flags & ~O_TRUNC) | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -1;
    int os_errno = fstat(fd, &about) == 0 ? stat_folder(path, &folder) : errno;
    if (os_errno == 0 && is_foreign(&folder, &about))
        os_errno = EPERM;
    if (os_errno == 0 && (flags & O_TRUNC) != 0 && ftruncate(fd, 0) != 0)
        os_errno = errno;
    if (os_errno == 0)
        return fd;
    close(fd);
    errno = os_errno;
    return -1;
}

/* Create .STEM.tmp-PID-N in a folder, of a name nothing else has. Returns the descriptor or
 * -errno. */
static int create_temporary(int folder, const char *stem, char temporary[NAME_MAX + 1])
{
    for (int n = 0; n < NAMES_TRIED; n++) {
        const int length =
            snprintf(temporary, NAME_MAX + 1, ".%s.tmp-%ld-%d", stem, (long)getpid(), n);
        if (length < 0 || length > NAME_MAX)
            return -ENAMETOOLONG;
        const int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static void proc_link(char link[PROC_LINK_BYTES], int fd)
{
    (void)snprintf(link, PROC_LINK_BYTES, "/proc/self/fd/%d", fd);
}

/* A file without a name that can be given one later, or -1. */
static int open_nameless(int folder)
{
    char link[PROC_LINK_BYTES];
    const int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    proc_link(link, fd);
    if (access(link, F_OK) == 0)
        return fd;
    close(fd); /* no /proc, by which it would get its name */
    return -1;
}

/* The stem of temporary names; a long name is cut, so that they fit. */
static void stem_of(char stem[STEM_MAX + 1], const char *name)
{
    (void)snprintf(stem, STEM_MAX + 1, "%.*s", STEM_MAX, name);
}

/* A new file in output->folder. Returns 0 or an errno. */
static int begin_output(struct stk_output *output)
{
    char stem[STEM_MAX + 1];
    output->fd = open_nameless(output->folder);
    if (output->fd >= 0)
        return 0;
    stem_of(stem, output->name);
    const int fd = create_temporary(output->folder, stem, output->temporary);
    if (fd < 0) {
        output->temporary[0] = '\0';
        return -fd;
    }
    output->fd = fd;
    return 0;
}

/* A folder that may not be listed can still be written to. */
static int open_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 && errno == EACCES ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : fd;
}

/* Give fd the owner and the mode of the regular file that it is to replace, as far as this process
 * may, unless that file is another user's in a sticky folder. */
static void keep_mode(int fd, int folder, const char *name)
{
    struct stat about, in;
    if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode) ||
        fstat(folder, &in) != 0 || is_foreign(&in, &about))
        return;
    const int refused = fchown(fd, about.st_uid, about.st_gid);
    if (refused == 0 || geteuid() == about.st_uid)
        (void)fchmod(fd, about.st_mode & 0777);
}

static int open_replacing(struct stk_output *output, struct target *target)
{
    const char *folder = ".";
    int rc = split(target, &folder, output->name);
    if (rc != 0)
        return rc;
    output->folder = open_folder(folder);
    if (output->folder < 0)
        return errno;
    rc = begin_output(output);
    if (rc == 0)
        keep_mode(output->fd, output->folder, output->name);
    return rc;
}

int stk_output_open(struct stk_output *output, const char *path)
{
    struct target target;
    *output = (struct stk_output)STK_OUTPUT_CLOSED;
    int rc = resolve(&target, path);
    if (rc != 0)
        return rc;
    if (is_special(&target)) {
        const int fd = open_in_place(&target);
        output->fd = fd < 0 ? -1 : fd;
        return fd < 0 ? -fd : 0;
    }
    rc = open_replacing(output, &target);
    if (rc != 0)
        stk_output_drop(output);
    return rc;
}

FILE *stk_output_stream(struct stk_output *output)
{
    if (output->stream == NULL)
        output->stream = fdopen(output->fd, "w");
    return output->stream;
}

/* ---- commit --------------------------------------------------------------------- */

/* Close fd, by its stream if it has one. Returns 0 or an errno. */
static int shut(struct stk_output *output)
{
    const int rc = output->stream != NULL ? fclose(output->stream) : close(output->fd);
    output->stream = NULL;
    output->fd = -1;
    return rc == 0 || errno == EINTR ? 0 : errno;
}

static int flush(struct stk_output *output)
{
    if (output->stream == NULL)
        return 0;
    errno = EIO; /* for a stream that failed earlier */
    return ferror(output->stream) == 0 && fflush(output->stream) == 0 ? 0 : errno;
}

/* A link cannot take the place of a file that is there: the name comes by way of another. */
static int give_temporary_name(struct stk_output *output)
{
    char stem[STEM_MAX + 1];
    char link[PROC_LINK_BYTES];
    if (output->temporary[0] != '\0')
        return 0;
    stem_of(stem, output->name);
    proc_link(link, output->fd);
    for (int n = 0; n < NAMES_TRIED; n++) {
        char *const name = output->temporary;
        (void)snprintf(name, sizeof(output->temporary), ".%s.tmp-%ld-%d", stem, (long)getpid(), n);
        if (linkat(AT_FDCWD, link, output->folder, name, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        const int os_errno = errno;
        name[0] = '\0';
        if (os_errno != EEXIST)
            return os_errno;
    }
    return EEXIST;
}

/* fsync of a folder; a file system that has none is no error. Returns 0 or an errno. */
static int sync_folder(int folder)
{
    /* EINVAL: a file system that does not know how; EBADF: a folder that may not be listed. */
    return fsync(folder) == 0 || errno == EINVAL || errno == EBADF ? 0 : errno;
}

static int replace(struct stk_output *output)
{
    int rc = flush(output);
    if (rc == 0 && fsync(output->fd) != 0)
        rc = errno;
    if (rc == 0)
        rc = give_temporary_name(output);
    const int closed = shut(output);
    rc = rc != 0 ? rc : closed;
    if (rc == 0 && renameat(output->folder, output->temporary, output->folder, output->name) != 0)
        rc = errno;
    if (rc != 0)
        return rc;
    output->temporary[0] = '\0';
    return sync_folder(output->folder);
}

int stk_output_commit(struct stk_output *output)
{
    int rc = 0;
    if (output->folder >= 0) {
        rc = replace(output);
    } else {
        rc = flush(output);
        const int closed = shut(output);
        rc = rc != 0 ? rc : closed;
    }
    stk_output_drop(output);
    return rc;
}

void stk_output_drop(struct stk_output *output)
{
    if (output->fd >= 0)
        (void)shut(output);
    if (output->folder >= 0) {
        if (output->temporary[0] != '\0')
            (void)unlinkat(output->folder, output->temporary, 0);
        close(output->folder);
    }
    *output = (struct stk_output)STK_OUTPUT_CLOSED;
}

/* ---- before and after ----------------------------------------------------------- */

int stk_output_check(const char *path)
{
    struct target target;
    char name[NAME_MAX + 1];
    const char *folder = ".";
    int rc = resolve(&target, path);
    if (rc != 0)
        return rc;
    if (target.descriptor >= 0)
        return fcntl(target.descriptor, F_GETFD) < 0 ? errno : 0;
    if (is_special(&target))
        return faccessat(AT_FDCWD, target.path, W_OK, AT_EACCESS) != 0 ? errno : 0;
    rc = split(&target, &folder, name);
    if (rc == 0 && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        rc = errno;
    return rc;
}

const char *stk_output_reason(int os_errno)
{
    switch (os_errno) {
    case ENXIO:
        return "nothing reads this FIFO (start its reader first), or it is a socket";
    case EPERM:
        return "Operation not permitted (another user's link, FIFO or file in a sticky folder?)";
    default:
        return strerror(os_errno);
    }
}
