/* positions.h - which sample came at which position of which epoch, over all ranks, whatever the workers, the world and
 * the stops: one hash per position, of its id, row and label.
 *
 *   plain     one rank, no workers, no stop: the oracle
 *   divided   `stop` batches of one world; the token; the rest in another world, with another batch size
 */
#ifndef STK_TEST_POSITIONS_H
#define STK_TEST_POSITIONS_H

#include "scenario.h"

enum { STK_POSITIONS_MAX = 4096 };

struct stk_positions {
    uint64_t length; /* positions of an epoch */
    uint64_t filled; /* how many have come */
    bool twice;      /* one came twice, or past the end */
    uint64_t hashes[STK_POSITIONS_MAX];
    uint64_t ids[STK_POSITIONS_MAX];
    uint8_t seen[STK_POSITIONS_MAX];
};

static inline void stk_positions_note(struct stk_positions *all, uint64_t epoch, uint64_t position,
                                      const stoker_batch *batch, uint32_t row)
{
    const uint64_t at = epoch * all->length + position;
    size_t row_bytes = stoker_dtype_bytes(batch->images.dtype);
    for (uint32_t axis = 1; axis < batch->images.rank; axis++)
        row_bytes *= (size_t)batch->images.shape[axis];
    const size_t label_bytes = stoker_dtype_bytes(batch->labels.dtype);
    if (position >= all->length || at >= STK_POSITIONS_MAX || all->seen[at]++ > 0) {
        all->twice = true;
        return;
    }
    uint64_t hash = stk_hash_bytes(
        batch->ids[row], (const uint8_t *)batch->images.data + row * row_bytes, row_bytes);
    if (label_bytes > 0)
        hash = stk_hash_bytes(hash, (const uint8_t *)batch->labels.data + row * label_bytes,
                              label_bytes);
    all->hashes[at] = hash;
    all->ids[at] = batch->ids[row];
    all->filled++;
}

/* Run one rank from position `start` of epoch 0 on, up to `most` batches; the token afterwards goes to *state. Returns STOKER_OK, STOKER_FINISHED or an error. */
static inline int stk_positions_run(struct stk_positions *all, const stoker_dataset *dataset,
                                    const stoker_loader_options *options, uint64_t start,
                                    uint32_t most, stoker_state *state, stoker_error *error)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t epoch = 0;
    uint64_t next = start;
    const uint32_t world = options->world_size > 0 ? options->world_size : 1;
    int rc = stoker_loader_create(&loader, dataset, options, error);
    for (uint32_t done = 0; rc >= 0 && rc != STOKER_FINISHED && done < most;) {
        rc = stoker_loader_next(loader, &batch, 20000);
        if (rc != STOKER_OK)
            continue;
        if (batch.epoch != epoch)
            next = 0;
        epoch = batch.epoch;
        for (uint32_t row = 0; row < batch.count; row++)
            stk_positions_note(all, epoch, next + (uint64_t)row * world + options->rank, &batch,
                               row);
        next += (uint64_t)options->batch_size * world;
        stoker_batch_release(&batch);
        done++;
    }
    if (rc < 0 && loader != NULL && stoker_loader_error(loader) != NULL && error != NULL)
        *error = *stoker_loader_error(loader);
    if (rc >= 0 && state != NULL)
        rc = stoker_loader_state(loader, state);
    stoker_loader_destroy(&loader);
    return rc;
}

/* All epochs by one rank without workers. */
static inline int stk_positions_plain(struct stk_positions *all, const stoker_dataset *dataset,
                                      stoker_loader_options options, uint64_t length,
                                      stoker_error *error)
{
    *all = (struct stk_positions){ .length = length };
    options.num_workers = 0;
    options.rank = 0;
    options.world_size = 1;
    return stk_positions_run(all, dataset, &options, 0, UINT32_MAX, NULL, error);
}

/* `stop` batches on every rank of `options`, then the rest on every rank of `later`. */
static inline int stk_positions_divided(struct stk_positions *all, const stoker_dataset *dataset,
                                        stoker_loader_options options, stoker_loader_options later,
                                        uint64_t length, uint32_t stop, stoker_error *error)
{
    stoker_state state;
    int rc = STOKER_OK;
    *all = (struct stk_positions){ .length = length };
    for (uint32_t rank = 0; rc >= 0 && rank < options.world_size; rank++) {
        options.rank = rank;
        rc = stk_positions_run(all, dataset, &options, 0, stop, &state, error);
    }
    uint64_t start = (uint64_t)stop * options.batch_size * options.world_size;
    start = start < length ? start : length;
    later.resume = &state;
    for (uint32_t rank = 0; rc >= 0 && rank < later.world_size; rank++) {
        later.rank = rank;
        rc = stk_positions_run(all, dataset, &later, start, UINT32_MAX, NULL, error);
    }
    return rc;
}

/* Every position of `epochs` epochs came once, and as in the oracle. */
static inline bool stk_positions_equal(const struct stk_positions *oracle,
                                       const struct stk_positions *found, uint64_t epochs)
{
    return !oracle->twice && !found->twice && oracle->length == found->length &&
           oracle->filled == epochs * oracle->length && found->filled == oracle->filled &&
           memcmp(oracle->hashes, found->hashes, sizeof(found->hashes)) == 0;
}

#endif
