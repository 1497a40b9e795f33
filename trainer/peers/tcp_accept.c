/* tcp_accept.c - see tcp_peers.h: rank 0 listens until every other rank has come.
 *
 *   stranger ── HELLO of this run ──▶ rank: GREETING ── HERE ──▶ counts ── all are here ──▶ START
 *      │ anything else, or nothing for some seconds
 *      ▼
 *    closed
 *
 * A rank that is answered late may have given up and be about to try again: only one that confirms counts.
 *
 * Anybody can connect. A stranger holds one of a few places until it has said something; when all are taken the oldest
 * loses its own. A rank that loses one tries again. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/peers/tcp_peers.h"

static const struct stk_place nowhere = STK_NOWHERE;

enum {
    STRANGERS = 128,
    HELLO_MS = 5000, /* for a stranger to speak */
    TWIN_MS = 300,   /* for a rank's earlier connection to be seen closed; less than a try takes */
    LISTEN_AGAIN_MS = 100, /* all ports are taken */
    OTHER_FILES = 16       /* that rank 0 has open beside its connections */
};

struct stranger {
    int fd;          /* -1 = the place is free */
    uint64_t end_ns; /* to speak; then for a rank of the same number to be gone */
    bool has_spoken;
    struct stk_tcp_inbox in;
    struct stk_tcp_hello hello;
};

struct reception {
    struct stk_tcp_peers *p;
    const struct stk_tcp_rendezvous *at;
    struct stranger *strangers; /* STRANGERS */
    int listener;
    uint16_t port;
    uint64_t end_ns;
    char refused[160]; /* ", and ..."; "" = nobody was */
};

uint32_t stk_tcp_accept_extra(uint32_t world_size)
{
    (void)world_size;
    return 1 + STRANGERS;
}

/* ---- listening ----------------------------------------------------------------------- */

/* If all ranks are of this node, and its address is one that no other node reaches, none can connect. */
static bool only_loopback(const struct addrinfo *list)
{
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
        if (!stk_tcp_is_loopback(a->ai_addr))
            return false;
    return list != NULL;
}

static int listen_at_port(const struct stk_tcp_rendezvous *at, uint16_t port)
{
    struct addrinfo *list = NULL;
    int fd = -EADDRNOTAVAIL;
    if (!at->local || stk_tcp_resolve(at->host, port, &list) != 0 || !only_loopback(list))
        fd = stk_tcp_listen_everywhere(port);
    else
        for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
            fd = stk_tcp_listen(a->ai_addr, a->ai_addrlen, a->ai_family);
    if (list != NULL)
        freeaddrinfo(list);
    return fd;
}

/* At the first port that is free. */
static int listen_once(struct reception *r)
{
    int fd = -EADDRINUSE;
    for (uint32_t i = 0; i < r->at->port_count && fd < 0; i++) {
        r->port = r->at->ports[i];
        fd = listen_at_port(r->at, r->port);
    }
    return fd;
}

static int start_listening(struct reception *r, stoker_error *error)
{
    const struct stk_tcp_rendezvous *const at = r->at;
    r->listener = listen_once(r);
    while (r->listener == -EADDRINUSE && stk_now_ns() < r->end_ns) {
        (void)stk_tcp_poll(NULL, 0, stk_now_ns() + LISTEN_AGAIN_MS * STK_TCP_NS_PER_MS);
        r->listener = listen_once(r);
    }
    if (r->listener >= 0)
        return STOKER_OK;
    const struct stk_place place = { .offset = STOKER_NO_OFFSET,
                                     .sample = STOKER_NO_SAMPLE,
                                     .os_errno = -r->listener };
    r->listener = -1;
    return stk_error_set(error, STOKER_EPEER, STOKER_STAGE_OPTIONS, &place,
                         "rank 0 cannot listen at port %u, nor at %u others up to %u: give all "
                         "ranks another MASTER_PORT or STOKER_PORT",
                         at->ports[0], at->port_count - 1, at->ports[at->port_count - 1]);
}

static int check_limit(uint32_t world_size, stoker_error *error)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= world_size + OTHER_FILES)
        return STOKER_OK;
    return stk_error_set(error, STOKER_ENOFILE, STOKER_STAGE_OPTIONS, &nowhere,
                         "rank 0 needs a connection to each of %u ranks, and may open %llu files: "
                         "raise `ulimit -n`",
                         world_size, (unsigned long long)limit.rlim_cur);
}

/* ---- strangers ----------------------------------------------------------------------- */

static void send_away(struct stranger *stranger)
{
    if (stranger->fd >= 0)
        (void)close(stranger->fd);
    *stranger = (struct stranger){ .fd = -1 };
}

/* A free place; if there is none, that of the stranger that came first. */
static struct stranger *find_place(struct reception *r)
{
    struct stranger *first = &r->strangers[0];
    for (uint32_t i = 0; i < STRANGERS; i++) {
        struct stranger *const stranger = &r->strangers[i];
        if (stranger->fd < 0)
            return stranger;
        if (stranger->end_ns < first->end_ns)
            first = stranger;
    }
    return first;
}

/* The stranger that came first; NULL: there is none. */
static struct stranger *first_stranger(struct reception *r)
{
    struct stranger *first = NULL;
    for (uint32_t i = 0; i < STRANGERS; i++) {
        struct stranger *const stranger = &r->strangers[i];
        if (stranger->fd >= 0 && (first == NULL || stranger->end_ns < first->end_ns))
            first = stranger;
    }
    return first;
}

/* One line, which arrives before the end of the connection. */
static void refuse(struct reception *r, struct stranger *stranger, int code, const char *text)
{
    struct {
        struct stk_tcp_header header;
        struct stk_tcp_note note;
    } frame = { .header = { .magic = STK_TCP_MAGIC,
                            .kind = STK_TCP_REFUSED,
                            .bytes = sizeof(struct stk_tcp_note) },
                .note = { .code = code } };
    (void)snprintf(frame.note.text, sizeof(frame.note.text), "%s", text);
    (void)stk_tcp_send(stranger->fd, &frame, sizeof(frame), NULL, 0);
    if (code != 0)
        (void)snprintf(r->refused, sizeof(r->refused), ", and one was refused: %.130s", text);
    send_away(stranger);
}

/* Two live processes with one number cannot both be served, and which of them is right is not known. */
static int refuse_twin(struct reception *r, struct stranger *stranger, stoker_error *error)
{
    struct stk_tcp_peers *const p = r->p;
    char text[160];
    stoker_error cause;
    (void)snprintf(text, sizeof(text),
                   "two processes say that they are rank %u of %u: give each its own RANK",
                   stranger->hello.rank, p->peers.world_size);
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere, "%s", text);
    refuse(r, stranger, STOKER_EPEER, text);
    return stk_tcp_end(p, &cause, text, error);
}

static void admit(struct reception *r, struct stranger *stranger, struct stk_tcp_link *link)
{
    stk_tcp_link_close(link);
    stk_tcp_link_open(link, stranger->fd);
    link->hello = stranger->hello;
    *stranger = (struct stranger){ .fd = -1 };
    stk_tcp_queue(link, STK_TCP_GREETING, 0, &r->at->hello, sizeof(r->at->hello));
}

/* A stranger has said which rank it is. */
static int receive_hello(struct reception *r, struct stranger *stranger, stoker_error *error)
{
    const struct stk_tcp_hello *const hello = &stranger->hello;
    const struct stk_tcp_hello *const mine = &r->at->hello;
    char text[160];
    if (hello->version != mine->version || hello->word_bytes != mine->word_bytes) {
        refuse(r, stranger, STOKER_EPEER, "it has another version of this library than rank 0");
        return STOKER_OK;
    }
    if (hello->run != mine->run) {
        refuse(r, stranger, 0, "this rank 0 belongs to another run");
        return STOKER_OK;
    }
    if (hello->world_size != mine->world_size || hello->rank == 0 ||
        hello->rank >= mine->world_size) {
        (void)snprintf(text, sizeof(text), "it says that it is rank %u of %u, rank 0 waits for %u",
                       hello->rank, hello->world_size, mine->world_size);
        refuse(r, stranger, STOKER_EPEER, text);
        return STOKER_OK;
    }
    struct stk_tcp_link *const link = &r->p->links[hello->rank - 1];
    stk_tcp_link_read(r->p, link); /* it may have given up */
    if (link->fd < 0 || link->closed || link->broken != NULL ||
        link->hello.process == hello->process)
        admit(r, stranger, link);
    else if (stk_now_ns() >= stranger->end_ns)
        return refuse_twin(r, stranger, error);
    return STOKER_OK;
}

/* It waits for an answer, and says nothing more. */
static int wait_with(struct reception *r, struct stranger *stranger, stoker_error *error)
{
    char more;
    if (stk_tcp_receive(stranger->fd, &more, 1) == 0)
        return receive_hello(r, stranger, error);
    send_away(stranger);
    return STOKER_OK;
}

/* Reads a HELLO and nothing else. */
static int listen_to(struct reception *r, struct stranger *stranger, stoker_error *error)
{
    const struct stk_tcp_bounds bounds = { .word_bytes_max = 1 };
    struct stk_tcp_inbox *const in = &stranger->in;
    while (stranger->fd >= 0) {
        size_t most = 0;
        uint8_t *const to = stk_tcp_inbox_next(in, &most);
        const int64_t got = stk_tcp_receive(stranger->fd, to, most);
        if (got == 0)
            return STOKER_OK;
        if (got < 0) {
            send_away(stranger);
            return STOKER_OK;
        }
        const enum stk_tcp_event event = stk_tcp_inbox_add(in, (size_t)got);
        if (event == STK_TCP_MESSAGE) {
            stranger->has_spoken = true;
            stranger->end_ns = stk_now_ns() + TWIN_MS * STK_TCP_NS_PER_MS;
            return receive_hello(r, stranger, error);
        }
        if (event != STK_TCP_ARRIVES)
            continue;
        if (in->header.kind != STK_TCP_HELLO || stk_tcp_check_header(&in->header, &bounds) != NULL)
            send_away(stranger);
        else
            (void)stk_tcp_inbox_place(in, &stranger->hello);
    }
    return STOKER_OK;
}

/* ---- one turn -------------------------------------------------------------------------- */

/* What made accept() fail is over, unless files or memory are missing. */
static int judge_accept(struct reception *r, int os_errno, stoker_error *error)
{
    const struct stk_place place = { .offset = STOKER_NO_OFFSET,
                                     .sample = STOKER_NO_SAMPLE,
                                     .os_errno = os_errno };
    stoker_error cause;
    if (os_errno != EMFILE && os_errno != ENFILE && os_errno != ENOMEM && os_errno != ENOBUFS)
        return STOKER_OK;
    struct stranger *const first = first_stranger(r);
    if (first != NULL) {
        send_away(first);
        return STOKER_OK;
    }
    const bool files = os_errno == EMFILE || os_errno == ENFILE;
    (void)stk_error_set(&cause, files ? STOKER_ENOFILE : STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                        &place, "rank 0 cannot accept a connection from each of %u ranks%s",
                        r->p->peers.world_size, files ? " (raise `ulimit -n`)" : "");
    return stk_tcp_end(r->p, &cause, cause.message, error);
}

static int accept_some(struct reception *r, stoker_error *error)
{
    for (uint32_t i = 0; i < STRANGERS; i++) {
        const int fd = stk_tcp_accept(r->listener);
        if (fd < 0)
            return judge_accept(r, -fd, error);
        struct stranger *const stranger = find_place(r);
        send_away(stranger);
        stranger->fd = fd;
        stranger->end_ns = stk_now_ns() + HELLO_MS * STK_TCP_NS_PER_MS;
        const int rc = listen_to(r, stranger, error); /* a rank has spoken at once */
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}

static uint64_t ask(struct reception *r)
{
    struct pollfd *const polls = r->p->polls + r->p->link_count;
    uint64_t end_ns = r->end_ns;
    polls[0] = (struct pollfd){ .fd = r->listener, .events = POLLIN };
    for (uint32_t i = 0; i < STRANGERS; i++) {
        const struct stranger *const stranger = &r->strangers[i];
        polls[1 + i] = (struct pollfd){ .fd = stranger->fd, .events = POLLIN };
        if (stranger->fd >= 0 && stranger->end_ns < end_ns)
            end_ns = stranger->end_ns;
    }
    return end_ns;
}

static int serve_strangers(struct reception *r, stoker_error *error)
{
    const struct pollfd *const polls = r->p->polls + r->p->link_count;
    const uint64_t now_ns = stk_now_ns();
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < STRANGERS && rc == STOKER_OK; i++) {
        struct stranger *const stranger = &r->strangers[i];
        if (stranger->fd < 0)
            continue;
        if (stranger->has_spoken)
            rc = wait_with(r, stranger, error);
        else if (polls[1 + i].revents != 0)
            rc = listen_to(r, stranger, error);
        else if (now_ns >= stranger->end_ns)
            send_away(stranger);
    }
    if (rc == STOKER_OK && polls[0].revents != 0)
        rc = accept_some(r, error);
    return rc;
}

/* A rank that is gone again may come back until all are here. Returns true if a rank has waited too long. */
static bool count_ranks(struct reception *r, uint32_t *missing)
{
    bool rolls = false;
    *missing = 0;
    for (uint32_t i = 0; i < r->p->link_count; i++) {
        struct stk_tcp_link *const link = &r->p->links[i];
        const bool lost = link->broken != NULL || (link->closed && !link->ended && !link->rolls);
        if (link->fd >= 0 && lost) {
            stk_tcp_link_close(link);
            stk_tcp_link_open(link, -1);
        }
        link->heard = link->fd >= 0 && link->settled;
        *missing += link->heard ? 0 : 1;
        rolls = rolls || link->rolls;
    }
    return rolls;
}

/* Looks once more: the last rank came after what can be read now. */
static bool all_are_here(struct reception *r)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < r->p->link_count; i++)
        stk_tcp_link_read(r->p, &r->p->links[i]);
    (void)count_ranks(r, &missing);
    return missing == 0;
}

static int name_missing(struct reception *r, stoker_error *error)
{
    char missing[160];
    stoker_error cause;
    (void)stk_tcp_list_unheard(r->p, missing, sizeof(missing));
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                        "%s of %u did not come to rank 0 (port %u) within %u ms%s", missing,
                        r->p->peers.world_size, r->port, r->p->options.timeout_ms, r->refused);
    return stk_tcp_end(r->p, &cause, cause.message, error);
}

static bool needs_nothing(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    (void)p;
    (void)link;
    return false;
}

static int receive_all(struct reception *r, stoker_error *error)
{
    static const struct stk_tcp_wait no_one = { .what = "the start", .needs = needs_nothing };
    struct stk_tcp_peers *const p = r->p;
    for (;;) {
        uint32_t missing = 0;
        const uint64_t end_ns = ask(r);
        const int code = stk_tcp_move(p, 1 + STRANGERS, end_ns);
        if (code < 0)
            return stk_tcp_failed(p, -code, "poll", error);
        int rc = serve_strangers(r, error);
        const bool rolls = count_ranks(r, &missing);
        if (rc == STOKER_OK)
            rc = stk_tcp_judge(p, &no_one, error);
        if (rc != STOKER_OK || (missing == 0 && all_are_here(r)))
            return rc;
        if (rolls || stk_now_ns() >= r->end_ns)
            return name_missing(r, error);
    }
}

/* ---- the start ------------------------------------------------------------------------- */

static bool needs_room(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    (void)p;
    return !stk_tcp_is_sent(link);
}

static int start(struct stk_tcp_peers *p, stoker_error *error)
{
    static const struct stk_tcp_wait sent = { .what = "the start", .needs = needs_room };
    for (uint32_t i = 0; i < p->link_count; i++)
        stk_tcp_queue(&p->links[i], STK_TCP_START, 0, NULL, 0);
    return stk_tcp_await(p, &sent, error);
}

static int receive_and_start(struct reception *r, stoker_error *error)
{
    int rc = start_listening(r, error);
    if (rc == STOKER_OK)
        rc = receive_all(r, error);
    if (r->listener >= 0)
        (void)close(r->listener);
    for (uint32_t i = 0; i < STRANGERS; i++)
        send_away(&r->strangers[i]);
    return rc == STOKER_OK ? start(r->p, error) : rc;
}

int stk_tcp_accept_all(struct stk_tcp_peers *p, const struct stk_tcp_rendezvous *at,
                       stoker_error *error)
{
    struct reception r = { .p = p,
                           .at = at,
                           .listener = -1,
                           .end_ns = stk_now_ns() + p->options.timeout_ms * STK_TCP_NS_PER_MS };
    int rc = check_limit(p->peers.world_size, error);
    if (rc != STOKER_OK)
        return rc;
    r.strangers = stk_calloc(STRANGERS, sizeof(*r.strangers));
    if (r.strangers == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere,
                             "memory to meet %u ranks", p->peers.world_size);
    for (uint32_t i = 0; i < STRANGERS; i++)
        r.strangers[i].fd = -1;
    rc = receive_and_start(&r, error);
    stk_free(r.strangers);
    return rc;
}
