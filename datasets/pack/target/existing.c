/* existing.c - see existing.h. */
#include "datasets/pack/target/existing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

/* Returns a stream that owns fd, for regular files only; NULL and errno on failure. */
static FILE *stream_of(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return NULL;
    if (S_ISREG(status.st_mode))
        return fdopen(fd, "rb");
    errno = EINVAL;
    return NULL;
}

/* O_NONBLOCK: do not wait for a pipe of that name. */
bool pack_existing_open(struct pack_existing *existing, const char *path)
{
    const int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    *existing = (struct pack_existing){ .file = fd < 0 ? NULL : stream_of(fd) };
    if (fd >= 0 && existing->file == NULL) {
        const int os_errno = errno;
        close(fd);
        errno = os_errno;
    }
    return existing->file != NULL;
}

bool pack_existing_next(struct pack_existing *existing, const void *bytes, size_t size)
{
    uint8_t found[READ_BYTES];
    const uint8_t *due = bytes;
    while (size > 0) {
        const size_t part = size < sizeof(found) ? size : sizeof(found);
        if (fread(found, 1, part, existing->file) != part || memcmp(found, due, part) != 0)
            return false;
        existing->at += part;
        due += part;
        size -= part;
    }
    return true;
}

bool pack_existing_ends(struct pack_existing *existing)
{
    return fgetc(existing->file) == EOF && ferror(existing->file) == 0;
}

void pack_existing_close(struct pack_existing *existing)
{
    if (existing->file != NULL)
        (void)fclose(existing->file);
    existing->file = NULL;
}

bool pack_existing_is(const char *path, const void *bytes, size_t size)
{
    struct pack_existing existing;
    if (!pack_existing_open(&existing, path))
        return false;
    const bool same = pack_existing_next(&existing, bytes, size) && pack_existing_ends(&existing);
    pack_existing_close(&existing);
    return same;
}
