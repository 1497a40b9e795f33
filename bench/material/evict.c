/* evict.c - see evict.h. */
#include "bench/material/evict.h"

#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <stoker/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ASK_EVERY = 64 };

/* The share of the file's pages that is in the page cache. */
static double resident_share_of(int fd, uint64_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (size_t)((size + page - 1) / page);
    if (pages == 0)
        return NAN;
    unsigned char *held = malloc(pages);
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    double share = NAN;
    if (held != NULL && map != MAP_FAILED && mincore(map, (size_t)size, held) == 0) {
        size_t count = 0;
        for (size_t index = 0; index < pages; index++)
            count += held[index] & 1;
        share = (double)count / (double)pages;
    }
    if (map != MAP_FAILED)
        munmap(map, (size_t)size);
    free(held);
    return share;
}

int bench_evict_file(int fd, uint64_t size, double *resident_share)
{
    (void)fdatasync(fd); /* a read-only disk may refuse */
    if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        return STOKER_EIO;
    *resident_share = resident_share_of(fd, size);
    return STOKER_OK;
}

static int evict_path(int directory, const char *path, double *resident_share)
{
    int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return STOKER_EIO;
    struct stat status;
    int rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 ? STOKER_OK : STOKER_EIO;
    if (resident_share != NULL)
        *resident_share =
            fstat(fd, &status) == 0 ? resident_share_of(fd, (uint64_t)status.st_size) : NAN;
    close(fd);
    return rc;
}

int bench_evict_tree(int directory, const char *const *paths, uint64_t count,
                     double *resident_share)
{
    double sum = 0;
    uint64_t asked = 0;
    (void)syncfs(directory); /* all of its files at once */
    for (uint64_t index = 0; index < count; index++) {
        double share = NAN;
        int rc = evict_path(directory, paths[index], index % ASK_EVERY == 0 ? &share : NULL);
        if (rc != STOKER_OK)
            return rc;
        if (isfinite(share)) {
            sum += share;
            asked++;
        }
    }
    *resident_share = asked > 0 ? sum / (double)asked : NAN;
    return STOKER_OK;
}
