/* test_tcp_killed.c - processes with torchrun's variables that meet over TCP: one is killed, or stopped, while the others
 * wait for it. They name it, and end.
 *
 *   parent ── fork ──▶ ranks: join, meet, "I have met" ──▶ parent: kill(one) ──▶ the others' exit status: 0 if they name it */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "support/tcp_run.h"

enum { RANKS = 3, UNKNOWN = 3 };

struct group {
    uint32_t victim;
    int signal;  /* SIGKILL or SIGSTOP */
    int met, go; /* pipes: "I have met"; "the victim has its signal" */
    pid_t pid[RANKS];
};

/* ---- a rank ------------------------------------------------------------------------ */

static void set_number(const char *name, uint32_t value)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%u", value);
    CHECK(setenv(name, text, 1) == 0);
}

/* As torchrun starts a process. */
static void set_variables(uint32_t rank, uint16_t port, const char *run_id)
{
    set_number("RANK", rank);
    set_number("WORLD_SIZE", RANKS);
    set_number("LOCAL_RANK", rank);
    set_number("LOCAL_WORLD_SIZE", RANKS);
    set_number("MASTER_PORT", port);
    set_number("TORCHELASTIC_RESTART_COUNT", 0);
    CHECK(setenv("MASTER_ADDR", "localhost", 1) == 0);
    CHECK(setenv("TORCHELASTIC_RUN_ID", run_id, 1) == 0);
    CHECK(setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1) == 0);
}

static int meet_until_the_end(const struct group *group, uint32_t rank, stoker_error *error)
{
    const struct stk_peers_options options = { .timeout_ms = TCP_LONG_MS };
    stoker_ranks ranks = STOKER_RANKS_INIT;
    struct stk_peers *peers = NULL;
    char byte = 0;
    int rc = stoker_ranks_from_environment(&ranks, error);
    CHECK(rc == STOKER_OK);
    CHECK(ranks.rank == rank);
    rc = stk_tcp_join(&peers, &ranks, &options, error);
    const struct stk_word word = stk_peers_word(STK_MEET_UPDATE, STOKER_OK, NULL);
    if (rc == STOKER_OK)
        rc = stk_peers_agree(peers, &word, NULL, error);
    CHECK(rc == STOKER_OK);
    stk_tcp_peers_of(peers)->options.timeout_ms = TCP_SHORT_MS;
    CHECK(write(group->met, "m", 1) == 1);
    if (rank == group->victim && group->signal == SIGKILL)
        (void)pause();
    CHECK(read(group->go, &byte, 1) == 1); /* a rank that is stopped reads it later */
    while (rc == STOKER_OK)
        rc = stk_peers_agree(peers, &word, NULL, error);
    stk_peers_leave(&peers);
    return rc;
}

static int be_rank(const struct group *group, uint32_t rank)
{
    char name[16];
    stoker_error error = { .message = "" };
    const int rc = meet_until_the_end(group, rank, &error);
    (void)snprintf(name, sizeof(name), "rank %u ", group->victim);
    const bool names = rank == group->victim ? strstr(error.message, "gave up") != NULL
                                             : strstr(error.message, name) != NULL;
    if (rc == STOKER_EPEER && names)
        return 0;
    fprintf(stderr, "rank %u: %d: %s\n", rank, rc, error.message);
    return 1;
}

/* ---- the parent ---------------------------------------------------------------------- */

static void start_group(struct group *group, int *met, int *go)
{
    uint16_t port = 0;
    char run_id[64];
    int met_pipe[2];
    int go_pipe[2];
    const int agent = tcp_listen_here(&port); /* the ranks keep it open */
    CHECK(pipe(met_pipe) == 0);
    CHECK(pipe(go_pipe) == 0);
    group->met = met_pipe[1];
    group->go = go_pipe[0];
    (void)snprintf(run_id, sizeof(run_id), "killed-%d-%u", (int)getpid(), port);
    for (uint32_t r = 0; r < RANKS; r++) {
        group->pid[r] = fork();
        CHECK(group->pid[r] >= 0);
        if (group->pid[r] != 0)
            continue;
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* should the test fail */
        set_variables(r, port, run_id);
        _exit(be_rank(group, r));
    }
    (void)close(agent);
    (void)close(met_pipe[1]);
    (void)close(go_pipe[0]);
    *met = met_pipe[0];
    *go = go_pipe[1];
}

/* Waits until all have met, and sends the signal. */
static void strike(const struct group *group, int met, int go)
{
    char byte = 0;
    for (uint32_t r = 0; r < RANKS; r++)
        CHECK(read(met, &byte, 1) == 1);
    const pid_t victim = group->pid[group->victim];
    CHECK(kill(victim, group->signal) == 0);
    int status = 0;
    CHECK(waitpid(victim, &status, WUNTRACED) == victim);
    CHECK(group->signal == SIGSTOP ? WIFSTOPPED(status) : WIFSIGNALED(status));
    CHECK(write(go, "ggg", RANKS) == RANKS); /* at once: the others may end when they have theirs */
}

static int status_of(pid_t pid)
{
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : UNKNOWN;
}

static void expect(const struct group *group)
{
    for (uint32_t r = 0; r < RANKS; r++)
        if (r != group->victim)
            CHECK(status_of(group->pid[r]) == 0);
    if (group->signal == SIGSTOP) { /* it finds out when it continues */
        CHECK(kill(group->pid[group->victim], SIGCONT) == 0);
        CHECK(status_of(group->pid[group->victim]) == 0);
    }
}

int main(void)
{
    struct group groups[] = { { .victim = 0, .signal = SIGKILL },
                              { .victim = 2, .signal = SIGKILL },
                              { .victim = 0, .signal = SIGSTOP },
                              { .victim = 1, .signal = SIGSTOP } };
    enum { GROUPS = sizeof(groups) / sizeof(groups[0]) };
    int met[GROUPS];
    int go[GROUPS];
    for (uint32_t i = 0; i < GROUPS; i++)
        start_group(&groups[i], &met[i], &go[i]);
    for (uint32_t i = 0; i < GROUPS; i++)
        strike(&groups[i], met[i], go[i]);
    for (uint32_t i = 0; i < GROUPS; i++) {
        expect(&groups[i]);
        (void)close(met[i]);
        (void)close(go[i]);
    }
    return 0;
}
