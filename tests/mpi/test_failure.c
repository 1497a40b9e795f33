/* test_failure.c - a rank that fails, ends early, is slow or is stopped: the others name it, and nobody waits for ever. */
#include "support/rank_run.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 400, LATE_MS = 1500 };

static uint32_t ranks;
static uint32_t rank;

static bool is_last(void)
{
    return rank + 1 == ranks;
}

static void wait_ms(long ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&time, NULL);
}

static stoker_trainer *impatient(const stoker_model *model)
{
    stoker_trainer_options options = options_of("ref");
    options.peer_timeout_ms = TIMEOUT_MS;
    return trainer_of(model, &options);
}

static int step(stoker_trainer *trainer)
{
    static struct samples samples;
    return stoker_trainer_step(trainer, batch_of(&samples, 0, BATCH), NULL);
}

/* The message names the last rank, and the next call returns the same. */
static void is_named(stoker_trainer *trainer, int rc)
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
static void gather_ranks(void)
{
    stoker_model *model = network();
    const stoker_trainer_options options = options_of("ref");
    stoker_trainer *trainer = trainer_of(model, &options);
    ranks = stoker_trainer_world_size(trainer);
    rank = stoker_trainer_rank(trainer);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

static void a_rank_that_ends_is_named(void)
{
    stoker_model *model = network();
    stoker_trainer *trainer = impatient(model);
    done(trainer, step(trainer));
    if (!is_last())
        is_named(trainer, step(trainer));
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

static void ranks_out_of_step_are_told(void)
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

/* It computes, or sleeps, far beyond the time-out; when it comes, it learns that the others have gone. */
static void a_slow_rank_is_named(void)
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

/* A child wakes this process again. */
static void stop_for(long ms)
{
    const pid_t self = getpid();
    const pid_t child = fork();
    if (child == 0) {
        wait_ms(ms);
        (void)kill(self, SIGCONT);
        _exit(0);
    }
    (void)kill(self, SIGSTOP);
}

static void a_stopped_rank_is_named(void)
{
    stoker_model *model = network();
    stoker_trainer *trainer = impatient(model);
    done(trainer, step(trainer));
    if (is_last())
        stop_for(LATE_MS);
    if (is_last())
        CHECK(step(trainer) == STOKER_EPEER);
    else
        is_named(trainer, step(trainer));
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

int main(void)
{
    gather_ranks();
    CHECK(ranks > 1);
    a_rank_that_ends_is_named();
    ranks_out_of_step_are_told();
    a_slow_rank_is_named();
    gather_ranks();
    a_stopped_rank_is_named();
    gather_ranks();
    /* mpirun ends a run in which a failed trainer leaves MPI unfinished, whatever its programs return. */
    printf("passed\n");
    fflush(stdout);
    wait_ms(300);
    return 0;
}
