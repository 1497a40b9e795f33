/* tcp_connect.c - see tcp_peers.h: a rank finds rank 0, which may not listen yet.
 *
 *   each address × each port ── connect ── HELLO ── GREETING of this run ──▶ found: HERE, wait for START
 *        ▲                         │         │
 *        └──── refused, silent, another program, another run
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "trainer/peers/tcp_peers.h"

static const struct stk_place nowhere = STK_NOWHERE;

enum {
    TRY_MS_MIN = 500, /* for one address and port; doubled in each round */
    TRY_MS_MAX = 8000,
    PAUSE_MS_MIN = 10, /* between two rounds; doubled, too */
    PAUSE_MS_MAX = 200,
    ROUNDS_OF_NAME = 32 /* then the name is looked up again */
};

struct search {
    struct stk_tcp_peers *p;
    const struct stk_tcp_rendezvous *at;
    uint64_t end_ns;
    uint32_t try_ms;
    bool found;
    char why[200]; /* the last try failed */
};

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t doubled(uint32_t value, uint32_t most)
{
    return value * 2 < most ? value * 2 : most;
}

static void note_errno(struct search *s, uint16_t port, int os_errno)
{
    char text[96];
    (void)snprintf(s->why, sizeof(s->why), "port %u: %s", port,
                   strerror_r(os_errno, text, sizeof(text)));
}

/* Waits until the connection is made. 0, or -errno. */
static int finish_connecting(int fd, uint64_t end_ns)
{
    struct pollfd wanted = { .fd = fd, .events = POLLOUT };
    while (stk_now_ns() < end_ns) {
        const int ready = stk_tcp_poll(&wanted, 1, end_ns);
        if (ready != 0)
            return ready < 0 ? ready : stk_tcp_connected(fd);
    }
    return -ETIMEDOUT;
}

static bool is_of_this_run(const struct stk_tcp_hello *rank_0, const struct stk_tcp_hello *mine)
{
    return rank_0->version == mine->version && rank_0->word_bytes == mine->word_bytes &&
           rank_0->run == mine->run && rank_0->world_size == mine->world_size && rank_0->rank == 0;
}

/* An answer, or none. STOKER_EPEER: rank 0 refuses this rank for good. */
static int judge_answer(struct search *s, uint16_t port, stoker_error *error)
{
    const struct stk_tcp_link *const link = &s->p->links[0];
    if (link->greeted && link->ended && link->note.code != 0)
        return stk_error_set(error, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                             "rank 0 refuses rank %u: %s", s->p->peers.rank, link->note.text);
    s->found = link->greeted && !link->ended && is_of_this_run(&link->hello, &s->at->hello);
    if (!s->found)
        (void)snprintf(s->why, sizeof(s->why), "port %u: %s", port,
                       link->greeted ? "rank 0 of another run"
                       : link->closed || link->broken != NULL
                           ? "another program than rank 0 listens there"
                           : "no answer");
    return STOKER_OK;
}

static int greet(struct search *s, uint16_t port, int fd, uint64_t end_ns, stoker_error *error)
{
    struct stk_tcp_link *const link = &s->p->links[0];
    stk_tcp_link_open(link, fd);
    stk_tcp_queue(link, STK_TCP_HELLO, 0, &s->at->hello, sizeof(s->at->hello));
    while (!link->greeted && !link->closed && !link->ended && link->broken == NULL &&
           stk_now_ns() < end_ns) {
        const int code = stk_tcp_move(s->p, 0, end_ns);
        if (code < 0) {
            note_errno(s, port, -code);
            break;
        }
    }
    const int rc = judge_answer(s, port, error);
    if (s->found) {
        stk_tcp_queue(link, STK_TCP_HERE, 0, NULL, 0);
    } else {
        stk_tcp_link_close(link);
        stk_tcp_link_open(link, -1);
    }
    return rc;
}

static int try_address(struct search *s, const struct addrinfo *address, uint16_t port,
                       stoker_error *error)
{
    const uint64_t try_end_ns = stk_now_ns() + s->try_ms * STK_TCP_NS_PER_MS;
    const uint64_t end_ns = sooner(s->end_ns, try_end_ns);
    const int fd = stk_tcp_begin_connect(address, port);
    if (fd < 0) {
        note_errno(s, port, -fd);
        return STOKER_OK;
    }
    const int code = finish_connecting(fd, end_ns);
    if (code == 0)
        return greet(s, port, fd, end_ns, error);
    note_errno(s, port, -code);
    (void)close(fd);
    return STOKER_OK;
}

static int try_all(struct search *s, const struct addrinfo *list, stoker_error *error)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < s->at->port_count; i++)
        for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
            if (rc != STOKER_OK || s->found || stk_now_ns() >= s->end_ns)
                return rc;
            rc = try_address(s, a, s->at->ports[i], error);
        }
    return rc;
}

static int not_found(const struct search *s, stoker_error *error)
{
    const struct stk_tcp_rendezvous *const at = s->at;
    char ports[48];
    (void)snprintf(ports, sizeof(ports), at->port_count == 1 ? "port %u" : "ports %u to %u",
                   at->ports[0], at->ports[at->port_count - 1]);
    return stk_error_set(error, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                         "rank %u found no rank 0 at %.100s, %s, within %u ms (%s)",
                         s->p->peers.rank, at->host, ports, s->p->options.timeout_ms, s->why);
}

/* A name may become known only after the start, in a cluster that starts its nodes together. */
static int find_rank_0(struct search *s, stoker_error *error)
{
    struct addrinfo *list = NULL;
    uint32_t pause_ms = PAUSE_MS_MIN;
    int rc = STOKER_OK;
    for (uint32_t round = 0; rc == STOKER_OK && !s->found && stk_now_ns() < s->end_ns; round++) {
        if (round > 0) {
            const uint64_t pause_ns = stk_now_ns() + pause_ms * STK_TCP_NS_PER_MS;
            (void)stk_tcp_poll(NULL, 0, sooner(s->end_ns, pause_ns));
            pause_ms = doubled(pause_ms, PAUSE_MS_MAX);
            s->try_ms = doubled(s->try_ms, TRY_MS_MAX);
        }
        if (list != NULL && round % ROUNDS_OF_NAME == 0) {
            freeaddrinfo(list);
            list = NULL;
        }
        const int code = list == NULL ? stk_tcp_resolve(s->at->host, s->at->ports[0], &list) : 0;
        if (code == 0)
            rc = try_all(s, list, error);
        else
            (void)snprintf(s->why, sizeof(s->why), "its address: %s", gai_strerror(code));
    }
    if (list != NULL)
        freeaddrinfo(list);
    return rc != STOKER_OK || s->found ? rc : not_found(s, error);
}

static bool needs_start(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    (void)p;
    return !link->started;
}

int stk_tcp_connect(struct stk_tcp_peers *p, const struct stk_tcp_rendezvous *at,
                    stoker_error *error)
{
    static const struct stk_tcp_wait wait = { .what = "the start, for which every rank is needed",
                                              .needs = needs_start };
    struct search s = { .p = p,
                        .at = at,
                        .try_ms = TRY_MS_MIN,
                        .end_ns = stk_now_ns() + p->options.timeout_ms * STK_TCP_NS_PER_MS,
                        .why = "nothing was tried" };
    const int rc = find_rank_0(&s, error);
    return rc == STOKER_OK ? stk_tcp_await(p, &wait, error) : rc;
}
