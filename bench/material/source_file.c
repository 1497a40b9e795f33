/* source_file.c - the file in which a data set's samples lie.
 *
 * A data set does not show its files, but a reader gets them. So a custom reader, which notes the first
 * file and otherwise is the pread reader, is put into a loader that reads one sample in this thread
 * (num_workers = 0).
 */
#include "bench/material/source_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A reader has no user pointer; this variable is used during one call on one thread. */
static _Thread_local struct bench_source_file *noted;

static int note_open(void **ring, const stoker_reader_setup *setup, stoker_error *error)
{
    if (noted != NULL && noted->fd < 0 && setup->file_count > 0) {
        const stoker_file *file = &setup->files[0];
        noted->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
        noted->size = file->size;
        snprintf(noted->path, sizeof(noted->path), "%s", file->path == NULL ? "" : file->path);
    }
    return stoker_reader_pread()->open(ring, setup, error);
}

static void read_one(const stoker_dataset *dataset)
{
    stoker_reader reader = *stoker_reader_pread();
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    reader.struct_size = sizeof(reader);
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
    noted = out;
    read_one(dataset);
    noted = NULL;
}

void bench_source_file_close(struct bench_source_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct bench_source_file){ .fd = -1 };
}
