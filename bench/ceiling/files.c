/* files.c - whole files by plain system calls: open, read, close, one by one. */
#include "bench/ceiling/share.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int read_one(const struct bench_material *material, uint64_t sample, void *out)
{
    const size_t wanted = material->bytes[sample];
    const int fd = openat(material->directory, material->paths[sample], O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    if (fd < 0)
        return STOKER_EIO;
    do
        got = read(fd, out, wanted);
    while (got < 0 && errno == EINTR);
    close(fd);
    return got >= 0 && (size_t)got == wanted ? STOKER_OK : STOKER_EIO;
}

static int64_t step(void *state)
{
    struct bench_share *share = state;
    uint64_t start = 0;
    uint32_t count = bench_share_take(share, share->piece, &start);
    for (uint32_t index = 0; index < count; index++) {
        int rc = read_one(share->work->material, start + index, bench_share_room(share, 1));
        if (rc != STOKER_OK)
            return rc;
    }
    return count;
}

const struct bench_steps bench_steps_files = { bench_share_setup, step, bench_share_teardown };
