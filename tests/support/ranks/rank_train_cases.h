/* rank_train_cases.h - ranks that train one model: the numbers of one rank that sees every rank's
 * batches. The ranks are processes of MPI (tests/mpi/test_train.c) or threads
 * (tests/thread/trainer/test_thread_ranks.c).
 *
 *   together   rank r: batch r of each pass                        deterministic: the same bits
 *   alone      batch 0, 1, ... of each pass, accumulate = ranks; with sync_batch_norm: all of them
 *              in one batch
 */
#ifndef STK_TEST_RANK_TRAIN_CASES_H
#define STK_TEST_RANK_TRAIN_CASES_H

#include "rank_run.h"

#include <unistd.h>

enum { UPDATES = 6 };

/* Ranks may be threads. */
static _Thread_local uint32_t ranks; /* number of ranks that run */
static _Thread_local uint32_t rank;

/* A GPU adds the losses of several passes sample by sample, in double. */
static double loss_rounding;

/* Samples of a rank in an update: the last two are uneven, and the last leaves a rank without
 * any. */
static inline uint32_t count_of(uint32_t update, uint32_t of)
{
    if (update + 1 == UPDATES)
        return of == 0 ? BATCH / 2 : 0;
    return update + 2 == UPDATES ? BATCH - of : BATCH;
}

static inline uint64_t first_of(uint32_t update, uint32_t of)
{
    return (uint64_t)(update * ranks + of) * BATCH;
}

struct updates {
    stoker_step steps[UPDATES];
};

static inline void train_together(stoker_trainer *trainer, uint32_t begin, uint32_t end,
                                  struct updates *updates)
{
    struct samples samples;
    for (uint32_t update = begin; update < end; update++)
        done(trainer,
             stoker_trainer_step(trainer,
                                 batch_of(&samples, first_of(update, rank), count_of(update, rank)),
                                 &updates->steps[update]));
}

/* A rank without samples is a pass that one rank does not make. */
static inline void train_alone(stoker_trainer *trainer, uint32_t begin, uint32_t end,
                               struct updates *updates)
{
    struct samples samples;
    for (uint32_t update = begin; update < end; update++) {
        for (uint32_t r = 0; r < ranks; r++)
            done(trainer, stoker_trainer_step(
                              trainer, batch_of(&samples, first_of(update, r), count_of(update, r)),
                              &updates->steps[update]));
        if (update + 1 == UPDATES && ranks > 1) /* the group lacks passes */
            done(trainer, stoker_trainer_flush(trainer, &updates->steps[update]));
    }
}

static inline stoker_trainer_options alone(stoker_trainer_options options)
{
    leave_peers(&options);
    options.accumulate = ranks;
    options.metrics_interval = ranks;
    return options;
}

static inline void compare_steps(const struct updates *ours, const struct updates *theirs,
                                 double tolerance)
{
    for (uint32_t i = 0; i < UPDATES; i++) {
        const stoker_step *const a = &ours->steps[i];
        const stoker_step *const b = &theirs->steps[i];
        CHECK(fabs(a->loss - b->loss) <= tolerance + loss_rounding);
        CHECK(a->count == b->count);
        CHECK(tolerance > 0 || a->correct == b->correct);
        CHECK(a->updated == b->updated);
        CHECK(a->skipped == b->skipped);
        CHECK(fabs((double)a->gradient_norm - (double)b->gradient_norm) <= tolerance);
    }
}

/* Returns the largest difference of weights, statistics and state. */
static inline double compare(stoker_trainer_options options)
{
    struct updates ours = { 0 };
    struct updates theirs = { 0 };
    stoker_model *model = network();
    const stoker_trainer_options single = alone(options);
    stoker_trainer *together = trainer_of(model, &options);
    stoker_trainer *one = trainer_of(model, &single);
    CHECK(stoker_trainer_world_size(together) == ranks);
    CHECK(stoker_trainer_world_size(one) == 1);
    train_together(together, 0, UPDATES, &ours);
    train_alone(one, 0, UPDATES, &theirs);
    double largest = difference(together, one, STK_ARENA_PARAMETERS);
    largest = fmax(largest, difference(together, one, STK_ARENA_STATISTICS));
    if (options.optimizer == STOKER_OPTIMIZER_ADAM)
        largest = fmax(largest, difference(together, one, STK_ARENA_STATE));
    compare_steps(&ours, &theirs, options.deterministic ? 0 : 1e-5);
    CHECK(stoker_trainer_updates(together) == UPDATES);
    CHECK(together->progress.passes == one->progress.passes);
    stoker_trainer_destroy(&together);
    stoker_trainer_destroy(&one);
    stoker_model_destroy(&model);
    return largest;
}

static inline void the_bits_of_one_rank(void)
{
    static const char *const backends[] = { "ref", "cpu", "cpu" };
    for (uint32_t i = 0; i < 3; i++) {
        stoker_trainer_options options = options_of(backends[i]);
        options.deterministic = true;
        options.threads = i == 2 ? 2 : 1;
        if (i == 1)
            options.clip_norm = 0.05F;
        options.ema_decay = 0.9F;
        CHECK(compare(options) <= 0);
    }
}

static inline void rounding_alone_without_deterministic(void)
{
    stoker_trainer_options options = options_of("cpu");
    options.optimizer = STOKER_OPTIMIZER_SGD; /* Adam's first steps follow signs */
    options.momentum = 0.9F;
    const double largest = compare(options);
    CHECK(largest < 1e-5);
}

/* All samples of an update in one batch. */
static inline void train_in_one_batch(stoker_trainer *trainer, struct updates *updates)
{
    struct samples all;
    struct samples part;
    for (uint32_t update = 0; update < UPDATES; update++) {
        uint32_t count = 0;
        for (uint32_t r = 0; r < ranks; r++) {
            const uint32_t samples = count_of(update, r);
            (void)batch_of(&part, first_of(update, r), samples);
            memcpy(all.images + (size_t)count * FLOATS, part.images,
                   samples * FLOATS * sizeof(float));
            memcpy(all.labels + count, part.labels, samples * sizeof(int64_t));
            count += samples;
        }
        all.batch = part.batch;
        all.batch.images.data = all.images;
        all.batch.labels.data = all.labels;
        all.batch.count = count;
        all.batch.images.shape[0] = all.batch.labels.shape[0] = count;
        done(trainer, stoker_trainer_step(trainer, &all.batch, &updates->steps[update]));
    }
}

/* Statistics of all ranks, forward and backward: also from a rank without samples. Plans that
 * compute BatchNorm again meet again. */
static inline void statistics_of_all_ranks_are_those_of_one_batch(void)
{
    for (uint32_t variant = 0; variant < 4; variant++) {
        struct updates ours = { 0 };
        struct updates theirs = { 0 };
        stoker_model *model = network();
        stoker_trainer_options options = options_of(variant < 2 ? "ref" : "cpu");
        options.sync_batch_norm = true;
        options.optimizer = STOKER_OPTIMIZER_SGD;
        options.deterministic = variant == 1;
        options.threads = variant == 3 ? 2 : 1;
        options.checkpoint_segments = variant == 3 ? 3 : 0;
        options.recompute_batch_norm = variant == 2;
        stoker_trainer_options single = options;
        leave_peers(&single);
        stoker_trainer *together = trainer_of(model, &options);
        stoker_trainer *one = trainer_of(model, &single);
        train_together(together, 0, UPDATES, &ours);
        train_in_one_batch(one, &theirs);
        CHECK(difference(together, one, STK_ARENA_PARAMETERS) <= 1e-6);
        CHECK(difference(together, one, STK_ARENA_STATISTICS) <= 1e-6);
        compare_steps(&ours, &theirs, 1e-5);
        CHECK(together->progress.updates == one->progress.updates);
        stoker_trainer_destroy(&together);
        stoker_trainer_destroy(&one);
        stoker_model_destroy(&model);
    }
}

/* Each rank's own statistics are something else: the test above sees the difference. */
static inline void statistics_of_each_rank_differ(void)
{
    struct updates updates = { 0 };
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref");
    options.optimizer = STOKER_OPTIMIZER_SGD;
    stoker_trainer *own = trainer_of(model, &options);
    options.sync_batch_norm = true;
    stoker_trainer *together = trainer_of(model, &options);
    train_together(own, 0, UPDATES, &updates);
    train_together(together, 0, UPDATES, &updates);
    CHECK(difference(own, together, STK_ARENA_PARAMETERS) > 1e-4);
    stoker_trainer_destroy(&own);
    stoker_trainer_destroy(&together);
    stoker_model_destroy(&model);
}

/* Ranks with other seeds: rank 0's weights are everybody's, and its dropout. */
static inline void rank_0_decides_on_the_start(void)
{
    struct updates ours = { 0 };
    struct updates theirs = { 0 };
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref");
    options.deterministic = true;
    options.seed = 7 + rank;
    stoker_trainer_options single = alone(options);
    single.seed = 7;
    stoker_trainer *together = trainer_of(model, &options);
    stoker_trainer *one = trainer_of(model, &single);
    train_together(together, 0, 3, &ours);
    train_alone(one, 0, 3, &theirs);
    CHECK(difference(together, one, STK_ARENA_PARAMETERS) <= 0);
    stoker_trainer_destroy(&together);
    stoker_trainer_destroy(&one);
    stoker_model_destroy(&model);
}

/* ---- a checkpoint ------------------------------------------------------------------ */

/* N ranks, then one: the run is that of one. Rank 0 alone reads and writes. */
static inline void another_number_of_ranks_continues(void)
{
    struct updates ours = { 0 };
    struct updates theirs = { 0 };
    char path[64];
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref");
    options.deterministic = true;
    const stoker_trainer_options single = alone(options);
    stoker_trainer *together = trainer_of(model, &options);
    stoker_trainer *again = trainer_of(model, &options);
    stoker_trainer *one = trainer_of(model, &single);
    stoker_error error = { .message = "" };
    uint8_t state[STOKER_STATE_BYTES] = { 0 };
    uint8_t found[STOKER_STATE_BYTES] = { 0 };
    size_t size = 0;
    state[5] = 77;
    /* Other ranks name a file that does not exist. */
    (void)snprintf(path, sizeof(path),
                   rank == 0 ? "/tmp/stoker-ranks-%d.safetensors" : "/nowhere/%d", (int)getpid());
    train_together(together, 0, 3, &ours);
    CHECK(stoker_trainer_save(together, path, state, sizeof(state), &error) == STOKER_OK);
    CHECK(stoker_trainer_load(again, path, found, sizeof(found), &size, &error) == STOKER_OK);
    CHECK(size == sizeof(state));
    CHECK(found[5] == 77);
    if (rank == 0) {
        CHECK(stoker_trainer_load(one, path, NULL, 0, NULL, &error) == STOKER_OK);
        train_alone(one, 3, UPDATES, &theirs);
    }
    train_together(again, 3, UPDATES, &ours);
    train_together(together, 3, UPDATES, &ours);
    CHECK(difference(together, again, STK_ARENA_PARAMETERS) <= 0);
    if (rank == 0)
        CHECK(difference(together, one, STK_ARENA_PARAMETERS) <= 0);
    bool any = false;
    done(together, stoker_trainer_any(together, &any)); /* rank 0 has read the files */
    if (rank == 0) {
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "rm -f /tmp/stoker-ranks-%d.*", (int)getpid());
        CHECK(system(path) == 0);
    }
    stoker_trainer_destroy(&together);
    stoker_trainer_destroy(&again);
    stoker_trainer_destroy(&one);
    stoker_model_destroy(&model);
}

/* A file that rank 0 cannot write is an error on all; nobody waits. */
static inline void a_failed_save_fails_everywhere(void)
{
    stoker_model *model = network();
    const stoker_trainer_options options = options_of("ref");
    stoker_trainer *together = trainer_of(model, &options);
    stoker_error error = { .message = "" };
    const int rc = stoker_trainer_save(together, "/nowhere/at/all", NULL, 0, &error);
    CHECK(rc < 0);
    CHECK(rank == 0 || rc == STOKER_EPEER);
    CHECK(rank == 0 || strstr(error.message, "rank 0") != NULL);
    CHECK(strstr(error.message, "/nowhere") != NULL);
    stoker_trainer_destroy(&together);
    stoker_model_destroy(&model);
}

/* ---- several passes a rank ------------------------------------------------------------ */

enum { PASSES = 3 }; /* passes of each rank in an update */

/* Samples of a rank in a pass of the last update, which is short: the last rank has none in its
 * last pass. */
static inline uint32_t count_in(uint32_t update, uint32_t pass, uint32_t of)
{
    if (update + 1 < UPDATES || pass == 0)
        return BATCH;
    return pass == 1 ? BATCH - of : 0;
}

static inline uint64_t first_in(uint32_t update, uint32_t pass, uint32_t of)
{
    return (uint64_t)((update * PASSES + pass) * ranks + of) * BATCH;
}

/* Trains as the ranks first..end - 1: with all of them alone, or with one of them together. */
static inline void train_groups(stoker_trainer *trainer, uint32_t begin, uint32_t first,
                                uint32_t end)
{
    struct samples samples;
    for (uint32_t update = begin; update < UPDATES; update++) {
        for (uint32_t pass = 0; pass < PASSES; pass++)
            for (uint32_t r = first; r < end; r++)
                done(trainer, stoker_trainer_step(trainer,
                                                  batch_of(&samples, first_in(update, pass, r),
                                                           count_in(update, pass, r)),
                                                  NULL));
        if (update + 1 == UPDATES)
            done(trainer, stoker_trainer_flush(trainer, NULL));
    }
}

/* In host memory what a rank computes of a group is a matter of the launcher: the sums are those of
 * one rank that makes all passes. */
static inline void groups_of_passes_have_the_bits_of_one_rank(void)
{
    for (uint32_t variant = 0; variant < 3; variant++) {
        stoker_model *model = network();
        stoker_trainer_options options = options_of(variant == 0 ? "ref" : "cpu");
        options.deterministic = true;
        options.accumulate = PASSES;
        options.clip_norm = variant == 1 ? 0.05F : options.clip_norm;
        options.sync_batch_norm = false;
        stoker_trainer_options single = options;
        leave_peers(&single);
        single.accumulate = PASSES * ranks;
        stoker_trainer *together = trainer_of(model, &options);
        stoker_trainer *one = trainer_of(model, &single);
        train_groups(together, 0, rank, rank + 1);
        train_groups(one, 0, 0, ranks);
        CHECK(difference(together, one, STK_ARENA_PARAMETERS) <= 0);
        CHECK(difference(together, one, STK_ARENA_STATISTICS) <= 0);
        CHECK(difference(together, one, STK_ARENA_STATE) <= 0);
        CHECK(stoker_trainer_updates(together) == UPDATES);
        CHECK(together->progress.passes == one->progress.passes);
        stoker_trainer_destroy(&together);
        stoker_trainer_destroy(&one);
        stoker_model_destroy(&model);
    }
}

/* Passes begin..last of the first update, of each of the ranks first..end - 1. */
static inline void train_passes(stoker_trainer *trainer, uint32_t begin, uint32_t last,
                                uint32_t first, uint32_t end)
{
    struct samples samples;
    for (uint32_t pass = begin; pass <= last; pass++)
        for (uint32_t r = first; r < end; r++)
            done(trainer, stoker_trainer_step(
                              trainer, batch_of(&samples, first_in(0, pass, r), BATCH), NULL));
}

/* Saved by `from` after the first pass of a group, of which `to` makes the rest. One of them may be
 * a rank alone. */
static inline void continue_group(stoker_trainer *from, stoker_trainer *to, bool one_saves,
                                  bool one_continues)
{
    stoker_error error = { .message = "" };
    char path[64];
    (void)snprintf(path, sizeof(path), "/tmp/stoker-group-%d.safetensors", (int)getpid());
    train_passes(from, 0, 0, one_saves ? 0 : rank, one_saves ? ranks : rank + 1);
    if (!one_saves || rank == 0)
        CHECK(stoker_trainer_save(from, path, NULL, 0, &error) == STOKER_OK);
    if (!one_continues || rank == 0)
        CHECK(stoker_trainer_load(to, path, NULL, 0, NULL, &error) == STOKER_OK);
    if (!one_continues)
        train_passes(to, 1, PASSES - 1, rank, rank + 1);
    else if (rank == 0)
        train_passes(to, 1, PASSES - 1, 0, ranks);
    if (rank == 0) { /* no other rank reads it */
        (void)snprintf(path, sizeof(path), "rm -f /tmp/stoker-group-%d.*", (int)getpid());
        CHECK(system(path) == 0);
    }
}

/* Ranks save and continue; one rank saves; one rank continues. GPUs sum a group once, so where it
 * was saved is a matter of rounding. */
static inline void a_group_under_way_is_continued(void)
{
    const double rounding = every_backend == NULL ? 0 : 1e-6;
    for (uint32_t variant = 0; variant < 3; variant++) {
        const bool one_saves = variant == 1;
        const bool one_continues = variant == 2;
        stoker_model *model = network();
        stoker_trainer_options options = options_of("ref");
        options.deterministic = true;
        options.accumulate = PASSES;
        if (every_backend != NULL)
            options.optimizer = STOKER_OPTIMIZER_SGD; /* Adam's first steps follow signs */
        stoker_trainer_options single = options;
        leave_peers(&single);
        single.accumulate = PASSES * ranks;
        stoker_trainer *whole = trainer_of(model, &options);
        stoker_trainer *from = trainer_of(model, one_saves ? &single : &options);
        stoker_trainer *to = trainer_of(model, one_continues ? &single : &options);
        train_passes(whole, 0, PASSES - 1, rank, rank + 1);
        continue_group(from, to, one_saves, one_continues);
        CHECK(stoker_trainer_updates(whole) == 1);
        if (!one_continues || rank == 0) {
            CHECK(stoker_trainer_updates(to) == 1);
            CHECK(difference(whole, to, STK_ARENA_PARAMETERS) <= rounding);
        }
        stoker_trainer_destroy(&whole);
        stoker_trainer_destroy(&from);
        stoker_trainer_destroy(&to);
        stoker_model_destroy(&model);
    }
}

/* ---- overflow, tests, errors of one rank --------------------------------------------- */

static inline void an_overflow_on_one_rank_skips_the_update_of_all(void)
{
    struct samples samples;
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref");
    options.precision = STOKER_DTYPE_FLOAT16;
    options.loss_scale = 1024;
    options.dynamic_loss_scale = true;
    stoker_trainer *together = trainer_of(model, &options);
    for (uint32_t update = 0; update < 3; update++) {
        stoker_step step;
        stoker_batch *const batch = batch_of(&samples, first_of(update, rank), BATCH);
        if (update == 1 && rank + 1 == ranks)
            for (uint32_t i = 0; i < BATCH * FLOATS; i++)
                samples.images[i] = (float)INFINITY;
        done(together, stoker_trainer_step(together, batch, &step));
        CHECK(step.updated == (update != 1));
        CHECK(step.skipped == (update == 1));
    }
    CHECK(stoker_trainer_updates(together) == 2);
    CHECK(together->progress.loss_scale.scale < 1024);
    stoker_trainer_destroy(&together);
    stoker_model_destroy(&model);
}

static inline void tests_are_of_all_ranks(void)
{
    struct samples samples;
    stoker_model *model = network();
    const stoker_trainer_options options = options_of("ref");
    const stoker_trainer_options single = alone(options);
    stoker_trainer *together = trainer_of(model, &options);
    stoker_trainer *one = trainer_of(model, &single);
    stoker_evaluation ours = { 0 };
    stoker_evaluation theirs = { 0 };
    done(together, stoker_trainer_evaluate(
                       together, batch_of(&samples, first_of(0, rank), BATCH - rank), NULL));
    done(together, stoker_trainer_evaluated(together, &ours));
    for (uint32_t r = 0; r < ranks; r++)
        done(one,
             stoker_trainer_evaluate(one, batch_of(&samples, first_of(0, r), BATCH - r), NULL));
    done(one, stoker_trainer_evaluated(one, &theirs));
    CHECK(ours.count == theirs.count);
    CHECK(ours.correct == theirs.correct);
    CHECK(fabs(ours.loss_sum - theirs.loss_sum) <= loss_rounding * (double)ours.count);
    stoker_trainer_destroy(&together);
    stoker_trainer_destroy(&one);
    stoker_model_destroy(&model);
}

/* Nothing has changed, and training continues. */
static inline void a_bad_batch_of_one_rank_is_refused_by_all(void)
{
    struct samples samples;
    struct updates updates = { 0 };
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref");
    options.deterministic = true;
    stoker_trainer *together = trainer_of(model, &options);
    stoker_trainer *other = trainer_of(model, &options);
    stoker_batch *const batch = batch_of(&samples, 0, BATCH);
    samples.labels[3] = rank + 1 == ranks ? CLASSES : 0;
    const int rc = stoker_trainer_step(together, batch, NULL);
    const char *const message = stoker_trainer_error(together)->message;
    CHECK(rc == (rank + 1 == ranks ? STOKER_EINVAL : STOKER_EPEER));
    CHECK(strstr(message, "label") != NULL);
    CHECK(rank + 1 == ranks || strstr(message, "rank ") != NULL);
    train_together(together, 0, 2, &updates);
    train_together(other, 0, 2, &updates);
    CHECK(difference(together, other, STK_ARENA_PARAMETERS) <= 0);
    stoker_trainer_destroy(&together);
    stoker_trainer_destroy(&other);
    stoker_model_destroy(&model);
}

static inline void refuse(const stoker_trainer_options *options, int code, const char *word)
{
    stoker_model *model = network();
    stoker_trainer *trainer = NULL;
    stoker_error error = { .message = "" };
    const int rc = stoker_trainer_create(&trainer, model, options, &error);
    if (rc != code || strstr(error.message, word) == NULL)
        fprintf(stderr, "rank %u: %d: %s\n", rank, rc, error.message);
    CHECK(rc == code);
    CHECK(trainer == NULL);
    CHECK(strstr(error.message, word) != NULL);
    stoker_model_destroy(&model);
}

static inline void ranks_that_differ_are_named(void)
{
    const bool last = rank + 1 == ranks;
    char name[32];
    (void)snprintf(name, sizeof(name), "rank %u", ranks - 1);
    stoker_trainer_options options = options_of("ref");
    options.batch_size = last ? BATCH : BATCH + 1;
    refuse(&options, STOKER_EMISMATCH, "another batch_size");
    refuse(&options, STOKER_EMISMATCH, name);
    options = options_of("ref");
    options.accumulate = last ? 2 : 1;
    refuse(&options, STOKER_EMISMATCH, "another accumulate");
    options = options_of("ref");
    options.clip_norm = last ? 2 : 1;
    refuse(&options, STOKER_EMISMATCH, "other options");
    options = options_of("ref");
    options.momentum = last ? -1 : 0; /* refused by this rank alone */
    refuse(&options, last ? STOKER_EINVAL : STOKER_EPEER, "momentum");
}

static inline void what_ranks_cannot_do_is_refused(void)
{
    stoker_trainer_options options = options_of("ref,ref");
    options.split = 3;
    refuse(&options, STOKER_EINVAL, "split");
    options = options_of("ref");
    options.batch_size = STOKER_BATCH_SIZE_AUTO;
    refuse(&options, STOKER_EINVAL, "batch_size");
    options = options_of("ref");
    options.backend = "ref";
    options.peers = STOKER_PEERS_NCCL;
    options.peer_group = NULL;
    options.peer_rank = 0;
    refuse(&options, STOKER_EINVAL, "STOKER_PEERS_NCCL");
}

static inline void a_flag_of_one_rank_is_a_flag_of_all(void)
{
    stoker_model *model = network();
    const stoker_trainer_options options = options_of("ref");
    stoker_trainer *together = trainer_of(model, &options);
    bool flag = rank + 1 == ranks;
    done(together, stoker_trainer_any(together, &flag));
    CHECK(flag);
    flag = false;
    done(together, stoker_trainer_any(together, &flag));
    CHECK(!flag);
    stoker_trainer_destroy(&together);
    stoker_model_destroy(&model);
}

/* Learns its rank. */
static inline void meet(void)
{
    stoker_model *model = network();
    const stoker_trainer_options options = options_of("ref");
    stoker_trainer *trainer = trainer_of(model, &options);
    ranks = stoker_trainer_world_size(trainer);
    rank = stoker_trainer_rank(trainer);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* One rank is a run of its own. */
static inline void cases_of_any_number(void)
{
    the_bits_of_one_rank();
    rounding_alone_without_deterministic();
    rank_0_decides_on_the_start();
    another_number_of_ranks_continues();
    if (every_backend == NULL)
        groups_of_passes_have_the_bits_of_one_rank();
    a_group_under_way_is_continued();
    tests_are_of_all_ranks();
    a_flag_of_one_rank_is_a_flag_of_all();
}

static inline void cases_of_several(void)
{
    CHECK(ranks > 1);
    statistics_of_all_ranks_are_those_of_one_batch();
    statistics_of_each_rank_differ();
    a_failed_save_fails_everywhere();
    an_overflow_on_one_rank_skips_the_update_of_all();
    a_bad_batch_of_one_rank_is_refused_by_all();
    ranks_that_differ_are_named();
    what_ranks_cannot_do_is_refused();
}

#endif
