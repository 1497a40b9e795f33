/* epochs.c - a training loop over epochs, with a step where training would be.
 *
 * usage: epochs [SPEC]     e.g. epochs mnist:data/mnist
 */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>

static void check(int rc, const stoker_error *error)
{
    if (rc >= 0)
        return; /* 0 = done, > 0 = a normal stop */
    fprintf(stderr, "epochs: %s\n", error->message);
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error;

    const char *spec = argc > 1 ? argv[1] : "synth:digits?count=1000";
    check(stoker_dataset_open(&dataset, spec, NULL, &error), &error);

    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.batch_size = 64;
    options.shuffle = true; /* another order in each epoch, the same in each run */
    options.epochs = 3;
    options.dtype = STOKER_DTYPE_FLOAT32; /* pixels become 0..1 */
    check(stoker_loader_create(&loader, dataset, &options, &error), &error);
    stoker_dataset_close(&dataset); /* the loader has a share of its own */

    int rc;
    uint64_t epoch = 0, samples = 0;
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        if (rc == STOKER_EPOCH_END) { /* comes after the last batch of every epoch */
            printf("epoch %llu: %llu samples\n", (unsigned long long)epoch++,
                   (unsigned long long)samples);
            samples = 0;
            continue;
        }
        check(rc, stoker_loader_error(loader));
        samples += batch.count;       /* train on batch.images.data, batch.labels.data */
        stoker_batch_release(&batch); /* the workers refill its memory */
    }
    stoker_loader_destroy(&loader);
    return EXIT_SUCCESS;
}
