/* ranks.c - several processes share the epochs: each prints the ids of its samples.
 *
 * usage: mpirun -n 2 ranks; srun -n 2 ranks; torchrun --no-python --nproc-per-node 2 ranks;
 *        or by hand: RANK=0 WORLD_SIZE=2 ranks & RANK=1 WORLD_SIZE=2 ranks
 */
#include <stdio.h>
#include <stoker/stoker.h>

int main(void)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error = { .message = "" };
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.rank = STOKER_RANK_AUTO; /* rank and world_size from the launcher's variables */
    options.batch_size = 10;         /* of each rank */
    options.shuffle = true;          /* by a seed that all ranks have */
    options.last = STOKER_LAST_EVEN; /* as many samples for each rank: batch.padded repeat */
    options.epochs = 1;
    int rc = stoker_dataset_open(&dataset, "synth:digits?count=1001", NULL, &error);
    if (rc == STOKER_OK)
        rc = stoker_loader_create(&loader, dataset, &options, &error);
    while (rc == STOKER_OK && (rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        /* A step that waits for the other ranks, such as an all-reduce, belongs here: all ranks get
         * the same number of batches. */
        for (uint32_t i = 0; i < batch.count; i++)
            printf("%llu%s\n", (unsigned long long)batch.ids[i],
                   i < batch.count - batch.padded ? "" : " again");
        stoker_batch_release(&batch);
    }
    if (rc < 0)
        fprintf(stderr, "ranks: %s\n", loader == NULL ? error.message : stoker_strerror(rc));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc < 0;
}
