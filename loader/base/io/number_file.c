/* number_file.c - see number_file.h. */
#include "loader/base/io/number_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t stk_text_file_read(const char *path, char *text, size_t text_bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    if (fd >= 0) {
        ssize_t got;
        do {
            got = read(fd, text + size, text_bytes - 1 - size);
            size += got > 0 ? (size_t)got : 0;
        } while ((got > 0 && size < text_bytes - 1) || (got < 0 && errno == EINTR));
        close(fd);
    }
    text[size] = '\0';
    return size;
}

uint64_t stk_number_in(const char *text, const char *key)
{
    const size_t skip = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, skip) == 0) {
            char *end;
            const unsigned long long number = strtoull(line + skip, &end, 10);
            return end != line + skip ? number : UINT64_MAX;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return UINT64_MAX;
}
