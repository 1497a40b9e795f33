/* remote_epoch.c - read an epoch and print a hash of its rows, or the error; for check_remote.py.
 *
 * usage: remote_epoch SPEC WORKERS [RETRIES STALL_MS REQUEST_MS PAUSE_MS]
 *
 *   4000 rows, hash 9f120a...   or   STOKER_EIO: https://host/a.npy: ...
 *
 * With RETRIES and so on, it reads through a storage of its own, else through the default one.
 * After the tenth batch it waits for PAUSE_MS.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <time.h>

static uint64_t hash_of(const uint8_t *bytes, size_t count)
{
    uint64_t hash = 0xCBF29CE484222325U;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 0x100000001B3U; /* FNV-1a */
    return hash;
}

static int read_epoch(stoker_loader *loader, long pause_ms)
{
    uint64_t rows = 0, hash = 0;
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END) {
        if (rc == STOKER_EPOCH_END)
            continue;
        size_t row_bytes = stoker_dtype_bytes(batch.images.dtype);
        for (uint32_t axis = 1; axis < batch.images.rank; axis++)
            row_bytes *= (size_t)batch.images.shape[axis];
        for (uint32_t row = 0; row < batch.count; row++) /* in any order of batches */
            hash += hash_of((const uint8_t *)batch.images.data + row * row_bytes, row_bytes) ^
                    batch.ids[row] * 0x9E3779B97F4A7C15U;
        rows += batch.count;
        if (batch.index == 9 && pause_ms > 0)
            nanosleep(&(struct timespec){ .tv_sec = pause_ms / 1000,
                                          .tv_nsec = pause_ms % 1000 * 1000000 },
                      NULL);
        stoker_batch_release(&batch);
    }
    if (rc == STOKER_FINISHED)
        (void)printf("%" PRIu64 " rows, hash %016" PRIx64 "\n", rows, hash);
    return rc;
}

int main(int count, char **words)
{
    stoker_error error = { .message = "" };
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_dataset_options how = STOKER_DATASET_OPTIONS_INIT;
    stoker_remote_options remote = STOKER_REMOTE_OPTIONS_INIT;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    int rc = STOKER_OK;
    if (count != 3 && count != 7)
        return 2;
    if (count == 7) {
        remote.retries = (uint32_t)atoi(words[3]);
        remote.stall_timeout_ms = (uint32_t)atoi(words[4]);
        remote.request_timeout_ms = (uint32_t)atoi(words[5]);
        rc = stoker_storage_remote_create(&how.storage, &remote, &error);
    }
    options.num_workers = atoi(words[2]);
    options.batch_size = 32;
    options.shuffle = true;
    options.seed = 3;
    options.epochs = 1;
    if (rc == STOKER_OK)
        rc = stoker_dataset_open(&dataset, words[1], &how, &error);
    stoker_storage_close(&how.storage);
    if (rc == STOKER_OK)
        rc = stoker_loader_create(&loader, dataset, &options, &error);
    if (rc == STOKER_OK && (rc = read_epoch(loader, count == 7 ? atol(words[6]) : 0)) < 0)
        error = *stoker_loader_error(loader);
    if (rc < 0)
        (void)printf("%s: %s\n", stoker_error_name(rc), error.message);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc < 0 ? 1 : 0;
}
