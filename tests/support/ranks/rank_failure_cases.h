/* rank_failure_cases.h - a rank that ends early, is slow or does something else: the others name
 * it, and nobody waits for ever. The ranks are processes of MPI (tests/mpi/test_failure.c) or
 * threads (tests/thread/trainer/test_thread_ranks.c). */
#ifndef STK_TEST_RANK_FAILURE_CASES_H
#define STK_TEST_RANK_FAILURE_CASES_H

#include "rank_run.h"

#include <time.h>

enum { TIMEOUT_MS = 400, LATE_MS = 1500 };

static _Thread_local uint32_t ranks;
static _Thread_local uint32_t rank;

static inline bool is_last(void)
{
    return rank + 1 == ranks;
}

static inline void wait_ms(long ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&time, NULL);
}

static inline stoker_trainer *impatient(const stoker_model *model)
{
    stoker_trainer_options options = options_of("ref");
    options.peer_timeout_ms = TIMEOUT_MS;
    return trainer_of(model, &options);
}

static inline int step(stoker_trainer *trainer)
{
    struct samples samples;
    return stoker_trainer_step(trainer, batch_of(&samples, 0, BATCH), NULL);
}

/* The message names the last rank, and the next call returns the same. */
static inline void is_named(stoker_trainer *trainer, int rc)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "rank %u", ranks - 1);
    const char *const message = stoker_trainer_error(trainer)->message;
    if (rc != STOKER_EPEER || strstr(message, name) == NULL)
        fprintf(stderr, "rank %u: %d: %s\n", rank, rc, message);
    CHECK(rc == STOKER_EPEER);
    CHECK(strstr(message, name) != NULL);
    CHECK(step(trainer) == STOKER_EPEER);
    CHECK(strstr(stoker_trainer_error(trainer)->message, name) != NULL);
}

/* All meet again, however they have fared. */
static inline void gather_ranks(void)
{
    stoker_model *model = network();
    const stoker_trainer_options options = options_of("ref");
    stoker_trainer *trainer = trainer_of(model, &options);
    ranks = stoker_trainer_world_size(trainer);
    rank = stoker_trainer_rank(trainer);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

static inline void a_rank_that_ends_is_named(void)
{
    stoker_model *model = network();
    stoker_trainer *trainer = impatient(model);
    done(trainer, step(trainer));
    if (!is_last())
        is_named(trainer, step(trainer));
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

static inline void ranks_out_of_step_are_told(void)
{
    stoker_model *model = network();
    stoker_trainer *trainer = impatient(model);
    stoker_evaluation sum = { 0 };
    const int rc = is_last() ? stoker_trainer_evaluated(trainer, &sum) : step(trainer);
    CHECK(rc == STOKER_EPEER);
    CHECK(strstr(stoker_trainer_error(trainer)->message, "report a test") != NULL);
    CHECK(strstr(stoker_trainer_error(trainer)->message, "train on a batch") != NULL);
    CHECK(step(trainer) == STOKER_EPEER);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* The last rank's loader differs in one thing; the others name it before a batch is lost or comes
 * twice. */
static inline void loaders_that_differ_are_told(void)
{
    static const struct {
        const char *spec;
        uint64_t seed, position;
        bool shuffle;
        const char *what; /* NULL: nothing */
    } cases[] = { { "synth:digits?count=100", 0, 0, true, NULL },
                  { "synth:digits?count=100", 1, 0, true, "another seed" },
                  { "synth:digits?count=100", 0, 0, false, "another order" },
                  { "synth:digits?count=100", 0, 8, true, "another epoch or position" },
                  { "synth:digits?count=100&seed=1", 0, 0, true, "another data set" },
                  { "synth:digits?count=90", 0, 0, true, "another data set" } };
    stoker_model *model = network();
    const stoker_trainer_options patient = options_of("ref");
    stoker_trainer *trainer = trainer_of(model, &patient);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t mine = is_last() ? i : 0;
        stoker_dataset *digits = NULL;
        stoker_loader *loader = NULL;
        stoker_error error = { .message = "" };
        uint8_t state[STOKER_STATE_BYTES];
        stoker_loader_options options =
            stk_default_options(.batch_size = BATCH, .num_workers = 0, .seed = cases[mine].seed,
                                .shuffle = cases[mine].shuffle, .world_size = ranks, .rank = rank);
        CHECK(stoker_dataset_open(&digits, cases[mine].spec, NULL, NULL) == STOKER_OK);
        CHECK(stoker_loader_create(&loader, digits, &options, NULL) == STOKER_OK);
        CHECK(stoker_loader_state(loader, state, sizeof(state), NULL, NULL) == STOKER_OK);
        CHECK(stoker_state_seek(state, sizeof(state), 0, cases[mine].position, NULL) == STOKER_OK);
        options.resume = state;
        options.resume_size = sizeof(state);
        CHECK(stoker_loader_restart(&loader, &options, NULL) == STOKER_OK);
        const int rc = stoker_trainer_compare_loader(trainer, loader, &error);
        CHECK(rc == (cases[i].what == NULL ? STOKER_OK : STOKER_EMISMATCH));
        if (cases[i].what != NULL) {
            char expected[80];
            (void)snprintf(expected, sizeof(expected), "rank %u has %s", ranks - 1, cases[i].what);
            CHECK(strstr(error.message, expected) != NULL);
        }
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&digits);
    }
    done(trainer, step(trainer)); /* the ranks are still together */
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* It computes, or sleeps, far beyond the time-out; when it comes, it learns that the others have
 * gone. */
static inline void a_slow_rank_is_named(void)
{
    stoker_model *model = network();
    stoker_trainer *trainer = impatient(model);
    done(trainer, step(trainer));
    if (is_last()) {
        wait_ms(LATE_MS);
        CHECK(step(trainer) == STOKER_EPEER);
        CHECK(strstr(stoker_trainer_error(trainer)->message, "gave up") != NULL);
    } else {
        is_named(trainer, step(trainer));
    }
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

#endif
