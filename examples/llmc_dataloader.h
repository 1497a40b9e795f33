/* llmc_dataloader.h - the DataLoader of llm.c (llmc/dataloader.h of github.com/karpathy/llm.c) on
 * top of Stoker.
 *
 *   DataLoader loader;
 *   dataloader_init(&loader, "fineweb_train_*.bin", B, T, rank, ranks, should_shuffle);
 *   dataloader_next_batch(&loader);                       loader.inputs, loader.targets: [B * T]
 *
 * Calls and members have llm.c's names; README.md says what differs. As there, an error ends the
 * program, with a message. One thread at a time uses a DataLoader.
 */
#ifndef LLMC_DATALOADER_H
#define LLMC_DATALOADER_H

#include <stddef.h>
#include <stoker/stoker.h>

typedef struct {
    int process_rank, num_processes;
    size_t B, T;               /* rows of a batch, tokens of a row */
    size_t num_tokens;         /* that an epoch of all ranks delivers */
    size_t shard_num_samples;  /* batches of each rank in an epoch */
    size_t current_shard_idx;  /* the epoch: all files together are one shard */
    size_t current_sample_idx; /* batches that came in this epoch */
    int *inputs, *targets;     /* [B * T]; valid until the next call */
    int should_shuffle;
    stoker_dataset *dataset;
    stoker_loader *loader;
    stoker_loader_options options;
    stoker_batch batch;
    uint8_t state[STOKER_STATE_BYTES];
    stoker_error error;
} DataLoader;

void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B, size_t T,
                     int process_rank, int num_processes, int should_shuffle);
void dataloader_next_batch(DataLoader *loader);
void dataloader_resume(DataLoader *loader, size_t current_shard_idx, size_t current_sample_idx);
void dataloader_reset(DataLoader *loader); /* to the first batch of epoch 0 */
void dataloader_free(DataLoader *loader);

#endif
