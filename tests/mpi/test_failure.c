/* test_failure.c - the cases of support/ranks/rank_failure_cases.h by MPI, and a process that is
 * stopped. */
#include "support/ranks/rank_failure_cases.h"

#include <signal.h>

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
    loaders_that_differ_are_told();
    a_slow_rank_is_named();
    gather_ranks();
    a_stopped_rank_is_named();
    gather_ranks();
    /* mpirun ends a run in which a failed trainer leaves MPI unfinished, whatever its programs
     * return. */
    printf("passed\n");
    fflush(stdout);
    wait_ms(300);
    return 0;
}
