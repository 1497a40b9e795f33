/* main.c - a user's program: the installed header and the installed library agree, and
 * the library works: it opens a data set, delivers an epoch of it and counts the samples. */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

static uint64_t count_samples(const stoker_dataset *dataset)
{
    stoker_loader *loader = NULL;
    stoker_batch batch;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.epochs = 1;
    options.num_workers = 1;
    if (stoker_loader_create(&loader, dataset, &options) != STOKER_OK)
        return 0;

    uint64_t samples = 0;
    while (stoker_loader_next(loader, &batch) == STOKER_OK) {
        samples += batch.count;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return samples;
}

int main(void)
{
    stoker_dataset *dataset = NULL;
    if (strcmp(stoker_version(), STOKER_VERSION_STRING) != 0)
        return EXIT_FAILURE;
    if (stoker_dataset_open(&dataset, "synth:digits?count=1000", NULL) != STOKER_OK)
        return EXIT_FAILURE;
    uint64_t samples = count_samples(dataset);
    stoker_dataset_close(&dataset);
    printf("stoker %s: %llu samples\n", stoker_version(), (unsigned long long)samples);
    return samples == 1000 ? EXIT_SUCCESS : EXIT_FAILURE;
}
