/* output.c - see output.h. */
#include "datasets/pack/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/io/output_file.h"
#include "loader/base/text/printable.h"

enum { PIECE_BYTES = 2 << 20 };

bool pack_fail(struct pack_failure *failure, const char *path, int os_errno, const char *format,
               ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    (void)snprintf(failure->text, sizeof(failure->text), "%.400s: %.450s%s%.100s", path, what,
                   os_errno == 0 ? "" : ": ", os_errno == 0 ? "" : strerror(os_errno));
    stk_printable(failure->text);
    return false;
}

bool pack_lock(int fd, const char *path, struct pack_failure *failure)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    return errno == EWOULDBLOCK
               ? pack_fail(failure, path, 0, "another stoker-pack is packing into it")
               : pack_fail(failure, path, errno, "it cannot be locked");
}

int pack_folder_make(const char *path, struct pack_failure *failure)
{
    struct pack_failure ignored;
    const bool made = mkdir(path, 0755) == 0;
    if (!made && errno != EEXIST) {
        (void)pack_fail(failure, path, errno, "it could not be made");
        return -1;
    }
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        (void)pack_fail(failure, path, errno, "opening");
        return -1;
    }
    /* An existing folder may be unsynced, from a packer that was killed. */
    if (pack_sync_parent(path, made ? failure : &ignored) || !made)
        return fd;
    close(fd);
    return -1;
}

/* Open and lock a file, and empty it. A process that held the lock may have renamed the file
 * meanwhile. */
static int open_locked(const char *path, struct pack_failure *failure)
{
    for (;;) {
        struct stat file;
        struct stat named;
        const int fd = stk_output_create(path, O_WRONLY | O_NONBLOCK, 0644);
        if (fd < 0) {
            (void)pack_fail(failure, path, errno, "it could not be made");
            return -1;
        }
        const bool locked = pack_lock(fd, path, failure);
        if (locked && fstat(fd, &file) == 0 && lstat(path, &named) == 0 &&
            file.st_ino == named.st_ino && file.st_dev == named.st_dev && ftruncate(fd, 0) == 0)
            return fd;
        close(fd);
        if (!locked)
            return -1;
    }
}

bool pack_output_begin(struct pack_output *output, const char *directory, const char *name,
                       struct pack_failure *failure)
{
    const int path = snprintf(output->path, sizeof(output->path), "%s/%s", directory, name);
    const int hidden =
        snprintf(output->hidden, sizeof(output->hidden), "%s/.%s.tmp", directory, name);
    output->file = NULL;
    output->buffer = NULL;
    if (path < 0 || hidden < 0 || (size_t)hidden >= sizeof(output->hidden))
        return pack_fail(failure, directory, 0, "the path is too long");
    const int fd = open_locked(output->hidden, failure);
    if (fd < 0)
        return false;
    output->file = fdopen(fd, "wb");
    if (output->file != NULL)
        return true;
    close(fd);
    return pack_fail(failure, output->hidden, ENOMEM, "it could not be made");
}

void pack_output_widen(struct pack_output *output)
{
    output->buffer = malloc(PIECE_BYTES);
    if (output->buffer != NULL)
        (void)setvbuf(output->file, output->buffer, _IOFBF, PIECE_BYTES);
}

/* Close the file. Returns false if something could not be written. */
static bool close_file(struct pack_output *output)
{
    const bool written = fclose(output->file) == 0;
    const int os_errno = errno;
    output->file = NULL;
    free(output->buffer);
    output->buffer = NULL;
    errno = os_errno;
    return written;
}

bool pack_output_write(struct pack_output *output, const void *bytes, size_t size,
                       struct pack_failure *failure)
{
    if (size == 0 || fwrite(bytes, 1, size, output->file) == size)
        return true;
    return pack_fail(failure, output->hidden, errno, "writing");
}

bool pack_output_zeros(struct pack_output *output, uint64_t count, struct pack_failure *failure)
{
    static const uint8_t zeros[4096];
    for (; count > sizeof(zeros); count -= sizeof(zeros)) {
        if (!pack_output_write(output, zeros, sizeof(zeros), failure))
            return false;
    }
    return pack_output_write(output, zeros, (size_t)count, failure);
}

bool pack_output_rewind(struct pack_output *output, struct pack_failure *failure)
{
    return fseeko(output->file, 0, SEEK_SET) == 0 ||
           pack_fail(failure, output->hidden, errno, "going back to its beginning");
}

const char *pack_path_split(const char *path, char directory[PACK_PATH_BYTES])
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t name = end;
    while (name > 0 && path[name - 1] != '/')
        name--;
    const size_t bytes = name > 1 ? name - 1 : name; /* "/" keeps its slash */
    (void)snprintf(directory, PACK_PATH_BYTES, "%.*s", name == 0 ? 1 : (int)bytes,
                   name == 0 ? "." : path);
    return path + name;
}

bool pack_sync_parent(const char *path, struct pack_failure *failure)
{
    char folder[PACK_PATH_BYTES];
    (void)pack_path_split(path, folder);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && fsync(fd) == 0;
    const int os_errno = errno;
    if (fd >= 0)
        close(fd);
    return synced || pack_fail(failure, folder, os_errno, "waiting for the disk");
}

/* Rename before closing: the lock must last until the hidden name is gone. */
bool pack_output_commit(struct pack_output *output, bool sync, struct pack_failure *failure)
{
    if (fflush(output->file) != 0 || (sync && fsync(fileno(output->file)) != 0))
        return pack_fail(failure, output->hidden, errno, "writing");
    if (rename(output->hidden, output->path) != 0)
        return pack_fail(failure, output->path, errno, "giving it its name");
    if (!close_file(output))
        return pack_fail(failure, output->path, errno, "writing");
    return !sync || pack_sync_parent(output->path, failure);
}

void pack_output_drop(struct pack_output *output)
{
    if (output->file == NULL)
        return;
    (void)unlink(output->hidden); /* before the lock ends */
    (void)close_file(output);
}
