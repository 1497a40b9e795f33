/* positions.h - which sample came at which position of which epoch, over all ranks, whatever the
 * workers, the world and the stops: one hash per position, of the sample's id and all of its
 * fields.
 *
 *   stk_positions_begin      nothing has come
 *   stk_positions_continue   some batches on each rank of one world, from where the last call
 *                            stopped; then another world with another batch size may continue
 */
#ifndef STK_TEST_POSITIONS_H
#define STK_TEST_POSITIONS_H

#include "support/runs/shown_batch.h"

enum { STK_POSITIONS_MAX = 4096 };

struct stk_positions {
    const stoker_dataset *dataset;
    stk_show *show;    /* NULL = batches lie in host memory */
    uint64_t length;   /* positions of an epoch */
    uint64_t filled;   /* how many have come */
    uint64_t batches;  /* that have come, on all ranks */
    uint64_t all;      /* hash of these batches, byte by byte, in the order in which they came */
    const char *wrong; /* what must not happen; NULL = it did not */
    uint64_t epoch;    /* epoch of the position that comes next */
    uint64_t at;       /* that position in its epoch; length = behind the last */
    uint8_t state[STOKER_STATE_BYTES];
    bool resumes; /* state is set */
    stoker_error error;
    uint64_t hashes[STK_POSITIONS_MAX];
    uint64_t ids[STK_POSITIONS_MAX];
    uint8_t seen[STK_POSITIONS_MAX];
};

static inline void stk_positions_begin(struct stk_positions *all, const stoker_dataset *dataset,
                                       uint64_t length, stk_show *show)
{
    memset(all, 0, sizeof(*all));
    all->dataset = dataset;
    all->length = length;
    all->show = show;
}

static inline void stk_positions_note(struct stk_positions *all, uint64_t epoch, uint64_t position,
                                      const struct stk_shown_batch *shown, uint32_t row)
{
    const uint64_t at = epoch * all->length + position;
    if (position >= all->length || at >= STK_POSITIONS_MAX || all->seen[at]++ > 0) {
        all->wrong = "a position came twice, or lies behind the end";
        return;
    }
    all->hashes[at] = stk_shown_row(shown, row);
    all->ids[at] = shown->batch.ids[row];
    all->filled++;
}

/* The position of a row of this rank's batch in the global batch at `first`. */
static inline uint64_t stk_positions_of(const stoker_loader_options *options, uint64_t first,
                                        uint32_t row)
{
    return options->deal == STOKER_DEAL_BATCHES
               ? first + (uint64_t)options->rank * options->batch_size + row
               : first + (uint64_t)row * options->world_size + options->rank;
}

/* One rank takes up to `most` batches from all->epoch, all->at on, and leaves in *epoch and *at
 * where it stopped. */
static inline int stk_positions_take(struct stk_positions *all, stoker_loader *loader,
                                     const stoker_loader_options *options, uint32_t most,
                                     uint64_t *epoch, uint64_t *at)
{
    static _Thread_local struct stk_shown_batch shown;
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = STOKER_OK;
    for (uint32_t done = 0; rc >= 0 && rc != STOKER_FINISHED && done < most;) {
        rc = stoker_loader_next(loader, &batch, 20000);
        if (rc != STOKER_OK)
            continue;
        if (batch.epoch != *epoch)
            *at = 0;
        *epoch = batch.epoch;
        stk_shown_begin(&shown, all->dataset, &batch, all->show);
        all->all = stk_mix64(all->all ^ stk_shown_hash(&shown));
        for (uint32_t row = 0; row < batch.count - batch.padded; row++)
            stk_positions_note(all, *epoch, stk_positions_of(options, *at, row), &shown, row);
        *at += (uint64_t)options->batch_size * options->world_size;
        *at = *at < all->length ? *at : all->length;
        stoker_batch_release(&batch);
        all->batches++;
        done++;
    }
    return rc;
}

static inline int stk_positions_rank(struct stk_positions *all,
                                     const stoker_loader_options *options, uint32_t most,
                                     uint64_t *epoch, uint64_t *at,
                                     uint8_t state[STOKER_STATE_BYTES])
{
    stoker_loader *loader = NULL;
    int rc = stoker_loader_create(&loader, all->dataset, options, &all->error);
    if (rc < 0)
        return rc;
    rc = stk_positions_take(all, loader, options, most, epoch, at);
    if (rc < 0 && stoker_loader_error(loader) != NULL)
        all->error = *stoker_loader_error(loader);
    if (rc >= 0 && stoker_loader_state(loader, state, STOKER_STATE_BYTES, NULL, NULL) != STOKER_OK)
        all->wrong = "there is no state";
    stoker_loader_destroy(&loader);
    return rc;
}

/* Up to `most` batches on every rank of options->world_size, from where the last call stopped.
 * Returns STOKER_OK, STOKER_FINISHED or an error, which is in all->error. */
static inline int stk_positions_continue(struct stk_positions *all, stoker_loader_options options,
                                         uint32_t most)
{
    const uint64_t epoch = all->epoch;
    const uint64_t at = all->at;
    uint8_t from[STOKER_STATE_BYTES];
    int rc = STOKER_OK;
    memcpy(from, all->state, sizeof(from));
    options.resume = all->resumes ? from : NULL;
    options.resume_size = all->resumes ? sizeof(from) : 0;
    for (uint32_t rank = 0; rc >= 0 && rank < options.world_size; rank++) {
        uint8_t state[STOKER_STATE_BYTES];
        uint64_t stop_epoch = epoch;
        uint64_t stop_at = at;
        options.rank = rank;
        rc = stk_positions_rank(all, &options, most, &stop_epoch, &stop_at, state);
        if (rank > 0 && rc >= 0 && memcmp(state, all->state, sizeof(state)) != 0)
            all->wrong = "ranks stopped at the same batch with different states";
        memcpy(all->state, state, sizeof(state));
        all->epoch = stop_epoch;
        all->at = stop_at;
    }
    all->resumes = true;
    return rc;
}

/* All epochs by one rank without workers. */
static inline int stk_positions_plain(struct stk_positions *all, const stoker_dataset *dataset,
                                      stoker_loader_options options, uint64_t length)
{
    stk_positions_begin(all, dataset, length, NULL);
    options.num_workers = 0;
    options.rank = 0;
    options.world_size = 1;
    return stk_positions_continue(all, options, UINT32_MAX);
}

/* `stop` batches on every rank of `options`, then the rest on every rank of `later`. */
static inline int stk_positions_divided(struct stk_positions *all, const stoker_dataset *dataset,
                                        stoker_loader_options options, stoker_loader_options later,
                                        uint64_t length, uint32_t stop)
{
    stk_positions_begin(all, dataset, length, NULL);
    const int rc = stk_positions_continue(all, options, stop);
    return rc < 0 ? rc : stk_positions_continue(all, later, UINT32_MAX);
}

/* Every position of `epochs` epochs came once, and as in the oracle. */
static inline bool stk_positions_equal(const struct stk_positions *oracle,
                                       const struct stk_positions *found, uint64_t epochs)
{
    return oracle->wrong == NULL && found->wrong == NULL && oracle->length == found->length &&
           oracle->filled == epochs * oracle->length && found->filled == oracle->filled &&
           memcmp(oracle->hashes, found->hashes, sizeof(found->hashes)) == 0;
}

#endif
