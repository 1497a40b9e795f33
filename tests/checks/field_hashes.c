/* field_hashes.c - print a hash of every field of every batch of an epoch, to compare data sets and
 * settings.
 *
 * usage: field_hashes SPEC packed|padded WORKERS cpu|gpu [RETRIES STALL_MS REQUEST_MS PAUSE_MS]
 *
 * Bytes of a GPU are read through STOKER_CUDART. The last four are limits of remote storage, and a
 * pause after the tenth batch.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/remote.h>
#include <stoker/stoker.h>
#include <string.h>
#include <time.h>

enum { TO_HOST = 2 };

static uint8_t room[1 << 20]; /* values of a field, from a GPU */

static void stop(const char *what, const char *why)
{
    (void)fprintf(stderr, "field_hashes: %s: %s\n", what, why);
    exit(1);
}

static void pause_for(long pause_ms)
{
    const struct timespec pause = { pause_ms / 1000, pause_ms % 1000 * 1000000 };
    (void)nanosleep(&pause, NULL);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001B3U; /* FNV-1a */
    return hash;
}

/* The bytes on the host. */
static const void *on_host(const stoker_batch *batch, const void *data, size_t bytes)
{
    if (batch->device == STOKER_DEVICE_CPU)
        return data;
    void *library = dlopen(getenv("STOKER_CUDART"), RTLD_NOW);
    void *address = library == NULL ? NULL : dlsym(library, "cudaMemcpy");
    int (*copy)(void *to, const void *from, size_t size, int kind) = NULL;
    memcpy(&copy, &address, sizeof(copy));
    if (copy == NULL || bytes > sizeof(room) || copy(room, data, bytes, TO_HOST) != 0)
        stop("cudaMemcpy", "it failed");
    return room;
}

static void print_field(const stoker_batch *batch, const stoker_field *field)
{
    uint64_t hash = 0xCBF29CE484222325U;
    size_t bytes = stoker_dtype_bytes(field->values.dtype);
    for (uint32_t axis = 0; axis < field->values.rank; axis++)
        bytes *= (size_t)field->values.shape[axis];
    hash = mix(hash, field->values.shape, field->values.rank * sizeof(field->values.shape[0]));
    if (bytes > 0)
        hash = mix(hash, on_host(batch, field->values.data, bytes), bytes);
    if (field->offsets != NULL)
        hash = mix(hash, field->offsets, (batch->count + 1) * sizeof(field->offsets[0]));
    (void)printf(" %s=%016" PRIx64, field->name, hash);
}

int main(int count, char **words)
{
    if (count != 5 && count != 9)
        stop("usage", "field_hashes SPEC packed|padded WORKERS cpu|gpu [RETRIES STALL_MS "
                      "REQUEST_MS PAUSE_MS]");
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    stoker_field_options forms[STOKER_FIELDS_MAX];
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_dataset_options wanted = STOKER_DATASET_OPTIONS_INIT;
    int rc = STOKER_OK;
    if (count == 9) {
        stoker_remote_options remote = STOKER_REMOTE_OPTIONS_INIT;
        remote.retries = (uint32_t)atoi(words[5]);
        remote.stall_timeout_ms = (uint32_t)atoi(words[6]);
        remote.request_timeout_ms = (uint32_t)atoi(words[7]);
        rc = stoker_storage_remote_create(&wanted.storage, &remote, &error);
    }
    if (rc == STOKER_OK)
        rc = stoker_dataset_open(&dataset, words[1], &wanted, &error);
    stoker_storage_close(&wanted.storage);
    if (rc != STOKER_OK)
        stop(stoker_error_name(rc), error.message);
    uint32_t form_count = 0;
    for (uint32_t i = 0; i < stoker_dataset_get_info(dataset)->field_count; i++) {
        const stoker_field_options blank = STOKER_FIELD_OPTIONS_INIT;
        const stoker_field_info *field = stoker_dataset_field(dataset, i);
        if (!field->varies || strcmp(words[2], "padded") != 0)
            continue;
        forms[form_count] = blank;
        forms[form_count].name = field->name;
        forms[form_count].pad_value = 7;
        forms[form_count++].form = STOKER_FIELD_FORM_PADDED;
    }
    options.fields = form_count == 0 ? NULL : forms;
    options.field_count = form_count;
    options.batch_size = 32;
    options.shuffle = true;
    options.seed = 3;
    options.epochs = 2;
    options.num_workers = atoi(words[3]);
    options.non_blocking = false; /* next() waits for the copy */
    options.device = strcmp(words[4], "gpu") == 0 ? STOKER_DEVICE_CUDA : STOKER_DEVICE_CPU;
    rc = stoker_loader_create(&loader, dataset, &options, &error);
    if (rc != STOKER_OK)
        stop(stoker_error_name(rc), error.message);
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END) {
        if (rc == STOKER_EPOCH_END)
            continue;
        (void)printf("%" PRIu64 "/%" PRIu64 ":", batch.epoch, batch.index);
        for (uint32_t i = 0; i < batch.field_count; i++)
            print_field(&batch, &batch.fields[i]);
        (void)printf("\n");
        if (count == 9 && batch.epoch == 0 && batch.index == 9)
            pause_for(atol(words[8]));
        stoker_batch_release(&batch);
    }
    if (rc != STOKER_FINISHED)
        stop(stoker_error_name(rc), stoker_loader_error(loader)->message);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return 0;
}
