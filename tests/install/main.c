/* main.c - a user's program: the installed header and the installed library agree, and the library
 * works: it opens each data set it is given, delivers an epoch of it, counts the samples, which are
 * to be a thousand, and prints a hash of their bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

static uint64_t count_samples(const stoker_dataset *dataset, uint64_t *hash)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.epochs = 1;
    options.num_workers = 1;
    if (stoker_loader_create(&loader, dataset, &options, NULL) != STOKER_OK)
        return 0;

    uint64_t samples = 0;
    while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
        samples += batch.count;
        const uint8_t *pixels = batch.images.data;
        uint64_t bytes = stoker_dtype_bytes(batch.images.dtype);
        for (uint32_t axis = 0; axis < batch.images.rank; axis++)
            bytes *= batch.images.shape[axis];
        for (uint64_t i = 0; i < bytes; i++)
            *hash = (*hash ^ pixels[i]) * 0x100000001B3U; /* FNV-1a */
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return samples;
}

int main(int argc, char **argv)
{
    if (strcmp(stoker_version(), STOKER_VERSION_STRING) != 0 || argc < 2)
        return EXIT_FAILURE;
    for (int i = 1; i < argc; i++) {
        stoker_dataset *dataset = NULL;
        stoker_error error;
        if (stoker_dataset_open(&dataset, argv[i], NULL, &error) != STOKER_OK) {
            printf("%s\n", error.message);
            return EXIT_FAILURE;
        }
        uint64_t hash = 0;
        uint64_t samples = count_samples(dataset, &hash);
        stoker_dataset_close(&dataset);
        printf("stoker %s: %llu samples of %s, %016llx\n", stoker_version(),
               (unsigned long long)samples,
               strrchr(argv[i], '/') == NULL ? argv[i] : strrchr(argv[i], '/') + 1,
               (unsigned long long)hash);
        if (samples != 1000)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
