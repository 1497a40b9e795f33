/* output.c - see output.h. */
#include "datasets/pack/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/output_file.h"
#include "loader/base/printable.h"

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

bool pack_output_name(struct pack_output *output, const char *directory, const char *name,
                      struct pack_failure *failure)
{
    const int path = snprintf(output->path, sizeof(output->path), "%s/%s", directory, name);
    const int hidden =
        snprintf(output->hidden, sizeof(output->hidden), "%s/.%s.tmp", directory, name);
    output->file = NULL;
    output->buffer = NULL;
    return (path >= 0 && hidden >= 0 && (size_t)hidden < sizeof(output->hidden)) ||
           pack_fail(failure, directory, 0, "the path is too long");
}

bool pack_output_begin(struct pack_output *output, const char *directory, const char *name,
                       struct pack_failure *failure)
{
    if (!pack_output_name(output, directory, name, failure))
        return false;
    const int fd = stk_output_create(output->hidden, O_WRONLY | O_TRUNC, 0644);
    output->file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (output->file != NULL)
        return true;
    const int os_errno = errno;
    if (fd >= 0)
        close(fd);
    return pack_fail(failure, output->hidden, os_errno, "it could not be made");
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

bool pack_output_commit(struct pack_output *output, bool sync, struct pack_failure *failure)
{
    if (fflush(output->file) != 0 || (sync && fsync(fileno(output->file)) != 0))
        return pack_fail(failure, output->hidden, errno, "writing");
    if (!close_file(output) || rename(output->hidden, output->path) != 0) {
        const int os_errno = errno;
        (void)unlink(output->hidden);
        return pack_fail(failure, output->path, os_errno, "giving it its name");
    }
    return !sync || pack_sync_parent(output->path, failure);
}

void pack_output_drop(struct pack_output *output)
{
    if (output->file == NULL)
        return;
    (void)close_file(output);
    (void)unlink(output->hidden);
}
