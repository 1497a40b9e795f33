/* epoch_in_memory.c - runs an epoch of a data set and prints what its cache came to, for
 * check_memory_limit.sh.
 *
 * usage: epoch_in_memory SPEC [CACHE_BYTES] with CACHE_BYTES the cache is DECODED, else the
 * default */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>

int main(int count, char **arguments)
{
    stoker_error error = { .message = "" };
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.shuffle = true;
    options.epochs = 1;
    if (count > 2) {
        options.cache = STOKER_CACHE_DECODED;
        options.memory_bytes = strtoull(arguments[2], NULL, 10);
    }
    if (count < 2 || stoker_dataset_open(&dataset, arguments[1], NULL, &error) < 0 ||
        stoker_loader_create(&loader, dataset, &options, &error) < 0) {
        printf("%s\n", error.message);
        return 1;
    }
    uint64_t rows = 0;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END)
        if (rc == STOKER_OK) {
            rows += batch.count;
            stoker_batch_release(&batch);
        }
    (void)stoker_loader_stats(loader, &stats);
    printf("%llu rows, end %s, cache %s, paused %d, held %llu MB of %llu MB; %s\n",
           (unsigned long long)rows, stoker_error_name(rc), stoker_cache_name(stats.cache),
           stats.cache_paused, (unsigned long long)(stats.cache_held_bytes >> 20),
           (unsigned long long)(stats.cache_bytes >> 20), stats.cache_reason);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc == STOKER_FINISHED ? 0 : 1;
}
