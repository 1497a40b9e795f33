/* llmc_dataloader.c - see llmc_dataloader.h. */
#include "llmc_dataloader.h"

#include <stdio.h>
#include <stdlib.h>

static void check(int rc, const stoker_error *error)
{
    if (rc < 0) {
        fprintf(stderr, "dataloader: %s\n", error != NULL ? error->message : stoker_strerror(rc));
        exit(EXIT_FAILURE);
    }
}

static void start(DataLoader *loader)
{
    loader->batch = (stoker_batch)STOKER_BATCH_INIT;
    check(stoker_loader_create(&loader->loader, loader->dataset, &loader->options, &loader->error),
          &loader->error);
}

void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B, size_t T,
                     int process_rank, int num_processes, int should_shuffle)
{
    const size_t rows = B * (size_t)num_processes; /* a step takes, on all ranks */
    char spec[8192];
    *loader = (DataLoader){ process_rank, num_processes, B, T, .should_shuffle = should_shuffle };
    loader->options = (stoker_loader_options)STOKER_LOADER_OPTIONS_INIT;
    loader->options.batch_size = (uint32_t)B;
    loader->options.shuffle = should_shuffle != 0;
    loader->options.rank = (uint32_t)process_rank;
    loader->options.world_size = (uint32_t)num_processes;
    loader->options.deal = STOKER_DEAL_BATCHES; /* each rank takes B rows in a row, as llm.c's */
    snprintf(spec, sizeof(spec),
             "tokens:%s?layout=llmc&length=%zu&multiple=%zu&fields=inputs,targets&dtype=int32",
             filename_pattern, T, rows);
    check(stoker_dataset_open(&loader->dataset, spec, NULL, &loader->error), &loader->error);
    loader->num_tokens = stoker_dataset_get_info(loader->dataset)->count * T;
    loader->shard_num_samples = loader->num_tokens / T / rows;
    start(loader);
}

void dataloader_resume(DataLoader *loader, size_t current_shard_idx, size_t current_sample_idx)
{
    const size_t rows = current_sample_idx * loader->B * (size_t)loader->num_processes;
    uint8_t *const state = loader->state;
    check(stoker_loader_state(loader->loader, state, STOKER_STATE_BYTES, NULL, &loader->error),
          &loader->error);
    check(stoker_state_seek(state, STOKER_STATE_BYTES, current_shard_idx, rows, &loader->error),
          &loader->error);
    stoker_batch_release(&loader->batch);
    stoker_loader_destroy(&loader->loader);
    loader->options.resume = state;
    loader->options.resume_size = STOKER_STATE_BYTES;
    start(loader);
    loader->current_shard_idx = current_shard_idx;
    loader->current_sample_idx = current_sample_idx;
}

void dataloader_reset(DataLoader *loader)
{
    dataloader_resume(loader, 0, 0);
}

void dataloader_next_batch(DataLoader *loader)
{
    int rc;
    stoker_batch_release(&loader->batch);
    while ((rc = stoker_loader_next(loader->loader, &loader->batch, -1)) == STOKER_EPOCH_END) {
        loader->current_shard_idx++;
        loader->current_sample_idx = 0;
    }
    check(rc, stoker_loader_error(loader->loader));
    loader->inputs = loader->batch.fields[0].values.data;
    loader->targets = loader->batch.fields[1].values.data;
    loader->current_sample_idx++;
}

void dataloader_free(DataLoader *loader)
{
    stoker_batch_release(&loader->batch);
    stoker_loader_destroy(&loader->loader);
    stoker_dataset_close(&loader->dataset);
}
