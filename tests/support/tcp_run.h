/* tcp_run.h - ranks that are threads and meet over TCP on loopback, at ports that the system gives: programs can run side
 * by side. Each run has variables of its own: this header's secure_getenv() answers the library. */
#ifndef STK_TEST_TCP_RUN_H
#define STK_TEST_TCP_RUN_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/thread_check.h"
#include "trainer/peers/tcp.h"
#include "trainer/peers/tcp_peers.h"

enum { TCP_WORLD_MAX = 17, TCP_VARIABLES_MAX = 8, TCP_SHORT_MS = 2000, TCP_LONG_MS = 600000 };

struct tcp_variable {
    const char *name;
    char value[64];
};

struct tcp_variables {
    struct tcp_variable of[TCP_VARIABLES_MAX];
    uint32_t count;
};

/* NULL: the environment's. */
static _Thread_local const struct tcp_variables *tcp_my_variables;

char *secure_getenv(const char *name);
char *secure_getenv(const char *name)
{
    const struct tcp_variables *const mine = tcp_my_variables;
    if (mine == NULL)
        return getenv(name);
    for (uint32_t i = 0; i < mine->count; i++)
        if (strcmp(mine->of[i].name, name) == 0)
            return (char *)(uintptr_t)mine->of[i].value;
    return NULL;
}

static inline void tcp_set(struct tcp_variables *variables, const char *name, const char *value)
{
    uint32_t at = 0;
    while (at < variables->count && strcmp(variables->of[at].name, name) != 0)
        at++;
    CHECK(at < TCP_VARIABLES_MAX);
    variables->count = at == variables->count ? at + 1 : variables->count;
    variables->of[at].name = name;
    (void)snprintf(variables->of[at].value, sizeof(variables->of[at].value), "%s", value);
}

static inline void tcp_set_number(struct tcp_variables *variables, const char *name, uint32_t value)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%u", value);
    tcp_set(variables, name, text);
}

/* Listens on loopback; *port 0: at one that the system chooses. */
static inline int tcp_listen_here(uint16_t *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(*port) };
    socklen_t bytes = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 64) != 0) {
        CHECK(*port != 0);
        (void)close(fd);
        return -1;
    }
    CHECK(getsockname(fd, (struct sockaddr *)&at, &bytes) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* True if a socket has connected to itself: the system gave it the port that it looked for. */
static inline bool tcp_is_own(int fd)
{
    struct sockaddr_in here = { 0 };
    struct sockaddr_in there = { 0 };
    socklen_t bytes = sizeof(here);
    CHECK(getsockname(fd, (struct sockaddr *)&here, &bytes) == 0);
    bytes = sizeof(there);
    return getpeername(fd, (struct sockaddr *)&there, &bytes) == 0 &&
           here.sin_port == there.sin_port;
}

/* -1 if nothing listens there. */
static inline int tcp_connect_here(uint16_t port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && !tcp_is_own(fd))
        return fd;
    (void)close(fd);
    return -1;
}

/* Files that this program has open. */
static inline uint32_t tcp_open_files(void)
{
    uint32_t count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
}

static inline void tcp_sleep_ms(long ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&time, NULL);
}

struct tcp_run;

struct tcp_rank {
    struct tcp_run *run;
    uint32_t rank; /* its own number */
    stoker_ranks ranks;
    pthread_t thread;
    struct stk_peers *peers; /* while it runs */
    int rc;
    bool joined;
    stoker_error error;
};

/* The ranks of one run. The agent's store keeps MASTER_PORT, as torchrun's does, so that no other run gets it. */
struct tcp_run {
    uint32_t world_size;
    struct tcp_variables variables;
    struct stk_peers_options options;
    uint32_t timeout_ms; /* once all have joined */
    int agent;
    uint16_t port; /* MASTER_PORT */
    int (*talk)(struct tcp_rank *me);
    void (*before)(struct tcp_rank *me); /* NULL: nothing */
    uint32_t odd;                        /* a rank that does something else */
    _Atomic uint32_t left;               /* ranks that have ended */
    struct tcp_rank rank[TCP_WORLD_MAX];
};

static inline void tcp_open_run(struct tcp_run *run, uint32_t world_size, uint32_t timeout_ms,
                                int (*talk)(struct tcp_rank *me))
{
    char id[64];
    memset(run, 0, sizeof(*run));
    run->world_size = world_size;
    run->talk = talk;
    run->options = (struct stk_peers_options){ .timeout_ms = TCP_LONG_MS, .floats_max = 1 };
    run->timeout_ms = timeout_ms;
    run->agent = tcp_listen_here(&run->port);
    (void)snprintf(id, sizeof(id), "test-%d-%p-%llu", (int)getpid(), (void *)run,
                   (unsigned long long)stk_now_ns());
    tcp_set(&run->variables, "MASTER_ADDR", "127.0.0.1");
    tcp_set_number(&run->variables, "MASTER_PORT", run->port);
    tcp_set(&run->variables, "TORCHELASTIC_USE_AGENT_STORE", "True");
    tcp_set(&run->variables, "TORCHELASTIC_RUN_ID", id);
    for (uint32_t r = 0; r < world_size; r++)
        run->rank[r] = (struct tcp_rank){ .run = run,
                                          .rank = r,
                                          .ranks = { .struct_size = sizeof(stoker_ranks),
                                                     .rank = r,
                                                     .world_size = world_size,
                                                     .local_rank = r,
                                                     .local_world_size = world_size,
                                                     .launcher = STOKER_LAUNCHER_TORCHRUN } };
}

static inline void *tcp_be_rank(void *argument)
{
    struct tcp_rank *const me = argument;
    struct tcp_run *const run = me->run;
    tcp_my_variables = &run->variables;
    if (run->before != NULL)
        run->before(me);
    me->rc = stk_tcp_join(&me->peers, &me->ranks, &run->options, &me->error);
    me->joined = me->rc == STOKER_OK;
    if (me->joined && run->world_size > 1)
        stk_tcp_peers_of(me->peers)->options.timeout_ms = run->timeout_ms;
    if (me->joined)
        me->rc = run->talk(me);
    stk_peers_leave(&me->peers);
    tcp_my_variables = NULL;
    (void)atomic_fetch_add_explicit(&run->left, 1, memory_order_acq_rel); /* tcp_await_left() */
    return NULL;
}

/* Waits until this number of ranks have ended. */
static inline void tcp_await_left(struct tcp_run *run, uint32_t ranks)
{
    while (atomic_load_explicit(&run->left, memory_order_acquire) < ranks)
        tcp_sleep_ms(2);
}

static inline void tcp_start(struct tcp_run *run)
{
    for (uint32_t r = 0; r < run->world_size; r++)
        CHECK(pthread_create(&run->rank[r].thread, NULL, tcp_be_rank, &run->rank[r]) == 0);
}

static inline void tcp_end(struct tcp_run *run)
{
    for (uint32_t r = 0; r < run->world_size; r++)
        CHECK(pthread_join(run->rank[r].thread, NULL) == 0);
    (void)close(run->agent);
}

static inline void tcp_run_all(struct tcp_run *run)
{
    tcp_start(run);
    tcp_end(run);
}

/* Ends the program unless the rank has this result, with this text in its message. */
static inline void tcp_check_says(const struct tcp_rank *rank, int rc, const char *word)
{
    if (rank->rc != rc || strstr(rank->error.message, word) == NULL)
        for (uint32_t r = 0; r < rank->run->world_size; r++)
            fprintf(stderr, "%s rank %u: %d: %s (%d with \"%s\"?)\n", r == rank->rank ? "*" : " ",
                    r, rank->run->rank[r].rc, rank->run->rank[r].error.message, rc, word);
    CHECK(rank->rc == rc);
    CHECK(strstr(rank->error.message, word) != NULL);
}

/* A meeting in which each rank says its number. */
static inline int tcp_meet(struct tcp_rank *me)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_MEET_UPDATE, STOKER_OK, NULL);
    word.number[1] = 10 + me->rank;
    const int rc = stk_peers_agree(me->peers, &word, &all, &me->error);
    for (uint32_t r = 0; r < me->run->world_size && rc == STOKER_OK; r++)
        CHECK(all[r].number[1] == 10 + r);
    return rc;
}

#endif
