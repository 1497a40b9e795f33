/* existing.c - see existing.h. */
#include "datasets/pack/existing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

/* O_NONBLOCK: a pipe of that name is not waited for. */
int pack_existing_open(struct pack_existing *existing, const char *path)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int os_errno = 0;
    FILE *file = NULL;
    if (fstat(fd, &status) != 0)
        os_errno = errno;
    else if (!S_ISREG(status.st_mode))
        os_errno = EINVAL;
    else if ((file = fdopen(fd, "rb")) == NULL)
        os_errno = errno;
    if (os_errno != 0) {
        close(fd);
        return os_errno;
    }
    *existing = (struct pack_existing){ .file = file };
    return 0;
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
    if (pack_existing_open(&existing, path) != 0)
        return false;
    const bool same = pack_existing_next(&existing, bytes, size) && pack_existing_ends(&existing);
    pack_existing_close(&existing);
    return same;
}
