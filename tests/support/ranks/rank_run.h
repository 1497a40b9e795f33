/* rank_run.h - for ranks that mpirun starts, or that are threads: a small network, batches of an
 * endless set, and arenas to compare.
 *
 * Each rank trains with the others, and alone on everybody's batches. */
#ifndef STK_TEST_RANK_RUN_H
#define STK_TEST_RANK_RUN_H

#define STK_TEST_PLAIN
#include "support/trainer/plan_models.h"

#include "support/thread_check.h"
#include "support/trainer/arena_difference.h"
#include "support/trainer/trainer_golden.h"

enum {
    SIDE = 6,
    CHANNELS = 2,
    CLASSES = 5,
    BATCH = 8,
    FLOATS = SIDE * SIDE * CHANNELS,
    BATCH_MAX = 64
};

/* The group of a rank that is a thread; NULL: MPI. */
static _Thread_local stoker_peer_group *rank_group;
static _Thread_local uint32_t rank_in_group;
/* The back end of every trainer, in place of the one that a case asks for; NULL: that one. */
static const char *every_backend;

static inline stoker_model *network(void)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    stk_test_conv(model, "conv0", 6, 1);
    (void)stoker_model_batch_norm(model, "bn0", NULL);
    (void)stoker_model_relu(model, "relu0");
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    stk_test_conv(model, "conv1", 8, 1);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_dropout(model, "dropout", 0.25F);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc0", 16);
    (void)stoker_model_relu(model, "relu1");
    stk_test_linear(model, "fc1", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0);
    return stk_test_end(model);
}

static inline stoker_trainer_options options_of(const char *backend)
{
    stoker_trainer_options options =
        stk_trainer_options(.backend = every_backend != NULL ? every_backend : backend,
                            .threads = 1, .batch_size = BATCH_MAX,
                            .optimizer = STOKER_OPTIMIZER_ADAM, .learning_rate = 0.01F, .seed = 7,
                            .peers = rank_group == NULL ? STOKER_PEERS_MPI : STOKER_PEERS_THREADS,
                            .peer_group = rank_group, .peer_rank = rank_in_group);
    options.peer_timeout_ms = 20000; /* the machine may be busy; what waits on purpose says so */
    return options;
}

static inline void leave_peers(stoker_trainer_options *options)
{
    options->peers = STOKER_PEERS_NONE;
    options->peer_group = NULL;
    options->peer_rank = 0;
}

struct samples {
    float images[BATCH_MAX * FLOATS];
    int64_t labels[BATCH_MAX];
    stoker_batch batch;
};

/* Samples [first, first + count), count <= BATCH_MAX. */
static inline stoker_batch *batch_of(struct samples *samples, uint64_t first, uint32_t count)
{
    CHECK(count <= BATCH_MAX);
    for (uint64_t i = 0; i < count; i++) {
        golden_fill(samples->images + i * FLOATS, FLOATS, 900 + first + i, 1.0F);
        samples->labels[i] = (int64_t)((first + i) * 3 % CLASSES);
    }
    samples->batch = golden_images(samples->images, samples->labels, count, SIDE, SIDE, CHANNELS);
    return &samples->batch;
}

static inline stoker_trainer *trainer_of(const stoker_model *model,
                                         const stoker_trainer_options *options)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .message = "" };
    if (stoker_trainer_create(&trainer, model, options, &error) != STOKER_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return trainer;
}

/* Ends the program unless rc is 0. */
static inline void done(const stoker_trainer *trainer, int rc)
{
    if (rc == STOKER_OK)
        return;
    fprintf(stderr, "rank %u: %d: %s\n", stoker_trainer_rank(trainer), rc,
            stoker_trainer_error(trainer) == NULL ? "" : stoker_trainer_error(trainer)->message);
    exit(1);
}

#endif
