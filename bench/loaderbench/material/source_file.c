/* source_file.c - the file in which a data set's samples lie, and files dropped from the page
 * cache.
 *
 * A data set does not show its files, but a reader gets them. So a custom reader, which notes the
 * first file and otherwise is the pread reader, is put into a loader that reads one sample in this
 * thread (num_workers = 0).
 */
#include "bench/loaderbench/material/source_file.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int note_open(void *self, void **ring, const stoker_reader_setup *setup, stoker_error *error)
{
    struct bench_source_file *noted = self;
    if (noted->fd < 0 && setup->file_count > 0) {
        const stoker_file *file = &setup->files[0];
        noted->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
        noted->size = file->size;
        snprintf(noted->path, sizeof(noted->path), "%s", file->path == NULL ? "" : file->path);
    }
    return stoker_reader_pread()->open(NULL, ring, setup, error);
}

static void read_one(struct bench_source_file *noted, const stoker_dataset *dataset)
{
    stoker_reader reader = *stoker_reader_pread();
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    reader.struct_size = sizeof(reader);
    reader.self = noted;
    reader.open = note_open;
    options.batch_size = 1;
    options.num_workers = 0;
    options.prefetch_batches = 2;
    options.pin_memory = STOKER_SWITCH_OFF;
    options.cache = STOKER_CACHE_NONE;
    options.reader = &reader;
    if (stoker_loader_create(&loader, dataset, &options, NULL) != STOKER_OK)
        return;
    if (stoker_loader_next(loader, &batch, -1) == STOKER_OK)
        stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

void bench_source_file_open(struct bench_source_file *out, const stoker_dataset *dataset)
{
    *out = (struct bench_source_file){ .fd = -1 };
    stoker_part sample;
    if (stoker_dataset_locate(dataset, 0, &sample, NULL) != STOKER_OK)
        return;
    bool in_file =
        sample.extent.memory == NULL && sample.extent.bytes > 0 && sample.extent.path == NULL;
    if (!in_file || sample.extent.file != 0)
        return;
    read_one(out, dataset);
}

void bench_source_file_close(struct bench_source_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct bench_source_file){ .fd = -1 };
}

/* ---- the page cache -------------------------------------------------------------------- */

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
