/* rendezvous.c - see rendezvous.h. */
#include "trainer/peers/nccl/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/environment.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

enum { HELLO_MS = 1000, RETRY_US = 50000, TEXT_BYTES = STK_WORD_TEXT_BYTES };

/* In `sync_point` of rank 0's answer: a socket of this node that finds no listener may connect to
 * itself, and read its hello. */
enum { ANSWER = 0x616b7473 };

struct hello {
    char run[96];
    uint32_t rank, world_size;
    struct stk_word word;
};

struct rendezvous {
    struct hello mine;
    char host[256], port[8]; /* "": rank 0 listens at every address */
    uint32_t timeout_ms;
    uint64_t end_ns;
    struct stk_word *all;
    int *files; /* rank 0: the connection of each rank that has come, or -1 */
};

static uint64_t after_ms(uint64_t ms)
{
    return stk_now_ns() + ms * UINT64_C(1000000);
}

/* Let calls on the socket wait until end_ns. */
static bool set_deadline(int fd, uint64_t end_ns)
{
    const uint64_t now_ns = stk_now_ns();
    const uint64_t us = now_ns < end_ns ? (end_ns - now_ns) / 1000 + 1 : 1;
    const struct timeval limit = { (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0;
}

static bool send_all(int fd, const void *from, size_t bytes)
{
    return TEMP_FAILURE_RETRY(send(fd, from, bytes, MSG_NOSIGNAL)) == (ssize_t)bytes;
}

static bool receive_all(int fd, void *to, size_t bytes)
{
    return TEMP_FAILURE_RETRY(recv(fd, to, bytes, MSG_WAITALL)) == (ssize_t)bytes;
}

static bool listen_at(int fd, const struct addrinfo *at)
{
    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) == 0 &&
           bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
}

/* Listen as rank 0, else connect to it. Returns the socket, or -1 with the reason in *error. */
static int open_socket(const struct rendezvous *r, stoker_error *error)
{
    const bool listens = r->mine.rank == 0;
    const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
    struct stk_place place = STK_NOWHERE;
    struct addrinfo *list = NULL;
    int fd = -1;
    const int code = getaddrinfo(r->host[0] == '\0' ? NULL : r->host, r->port, &hints, &list);
    for (const struct addrinfo *a = list; code == 0 && a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && set_deadline(fd, r->end_ns) &&
            (listens ? listen_at(fd, a) : connect(fd, a->ai_addr, a->ai_addrlen) == 0))
            break;
        place.os_errno = errno;
        if (fd >= 0)
            (void)close(fd);
        fd = -1;
    }
    if (code == 0)
        freeaddrinfo(list);
    if (fd < 0)
        (void)stk_error_set(error, STOKER_EPEER, STOKER_STAGE_OPTIONS, &place,
                            "rank 0 %s at %s port %s (MASTER_ADDR; STOKER_PORT or MASTER_PORT + 1)"
                            "%s%s",
                            listens ? "cannot listen" : "does not answer", r->host, r->port,
                            code == 0 ? "" : ": ", code == 0 ? "" : gai_strerror(code));
    return fd;
}

/* ---- rank 0 ---------------------------------------------------------------------- */

/* Returns true if a rank has come that was awaited. */
static bool receive_rank(struct rendezvous *r, int fd)
{
    struct hello hello;
    struct stk_word refusal = { .sync_point = ANSWER, .code = STOKER_EPEER };
    const char *why = NULL;
    if (!set_deadline(fd, after_ms(HELLO_MS)) || !receive_all(fd, &hello, sizeof(hello)))
        return false;
    if (strncmp(hello.run, r->mine.run, sizeof(hello.run)) != 0)
        why = "it is of another run";
    else if (hello.world_size != r->mine.world_size || hello.rank >= hello.world_size)
        why = "it has another WORLD_SIZE";
    else if (hello.rank == 0 || r->files[hello.rank] >= 0)
        why = "another process has its RANK";
    if (why == NULL) {
        r->all[hello.rank] = hello.word;
        r->files[hello.rank] = fd;
        return true;
    }
    (void)snprintf(refusal.text, TEXT_BYTES, "rank 0 at port %s refuses rank %u of %u: %s", r->port,
                   hello.rank, hello.world_size, why);
    (void)send_all(fd, &refusal, sizeof(refusal));
    return false;
}

/* Send the words to all ranks, or the names of those that are missing. */
static void answer_ranks(const struct rendezvous *r, struct stk_word *verdict)
{
    int length = 0;
    for (uint32_t rank = 1; rank < r->mine.world_size && length < TEXT_BYTES / 2; rank++)
        if (r->files[rank] < 0)
            length += snprintf(verdict->text + length, (size_t)(TEXT_BYTES - length), "%s%u",
                               length == 0 ? "rank " : ", ", rank);
    if (length > 0)
        (void)snprintf(verdict->text + length, (size_t)(TEXT_BYTES - length),
                       " of %u did not come to rank 0 at port %s within %u ms", r->mine.world_size,
                       r->port, r->timeout_ms);
    verdict->sync_point = ANSWER;
    verdict->code = length > 0 ? STOKER_EPEER : STOKER_OK;
    for (uint32_t rank = 1; rank < r->mine.world_size; rank++)
        if (r->files[rank] >= 0 && set_deadline(r->files[rank], after_ms(r->timeout_ms)) &&
            send_all(r->files[rank], verdict, sizeof(*verdict)) && length == 0)
            (void)send_all(r->files[rank], r->all, r->mine.world_size * sizeof(*r->all));
}

static int gather(struct rendezvous *r, struct stk_word *verdict, stoker_error *error)
{
    const int listener = open_socket(r, error);
    if (listener < 0)
        return STOKER_EPEER;
    r->all[0] = r->mine.word;
    for (uint32_t here = 1; here < r->mine.world_size && stk_now_ns() < r->end_ns;) {
        const int fd =
            set_deadline(listener, r->end_ns) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd < 0)
            (void)usleep(RETRY_US); /* no file may be left */
        else if (receive_rank(r, fd))
            here++;
        else
            (void)close(fd);
    }
    answer_ranks(r, verdict);
    for (uint32_t rank = 1; rank < r->mine.world_size; rank++)
        if (r->files[rank] >= 0)
            (void)close(r->files[rank]);
    (void)close(listener);
    return STOKER_OK;
}

/* ---- the others ------------------------------------------------------------------ */

static int visit(const struct rendezvous *r, struct stk_word *verdict, stoker_error *error)
{
    const size_t bytes = r->mine.world_size * sizeof(*r->all);
    for (;;) {
        const int fd = open_socket(r, error);
        const bool answered = fd >= 0 && send_all(fd, &r->mine, sizeof(r->mine)) &&
                              receive_all(fd, verdict, sizeof(*verdict)) &&
                              verdict->sync_point == ANSWER &&
                              (verdict->code != STOKER_OK || receive_all(fd, r->all, bytes));
        if (fd >= 0)
            (void)close(fd);
        if (answered)
            return STOKER_OK;
        if (fd >= 0)
            (void)stk_refuse_option(error, STOKER_EPEER,
                                    "rank 0 at %s port %s did not answer within %u ms", r->host,
                                    r->port, r->timeout_ms);
        if (stk_now_ns() >= r->end_ns)
            return STOKER_EPEER;
        (void)usleep(RETRY_US);
    }
}

/* ---- where ----------------------------------------------------------------------- */

static const char *text_of(const char *name)
{
    const char *const text = stk_environment(name);
    return text == NULL ? "" : text;
}

static int read_variables(struct rendezvous *r, bool one_node, stoker_error *error)
{
    const char *const host = text_of("MASTER_ADDR");
    const char *const ours = text_of("STOKER_PORT");
    const unsigned long port =
        *ours != '\0' ? strtoul(ours, NULL, 10) : strtoul(text_of("MASTER_PORT"), NULL, 10) + 1;
    if ((*host == '\0' && !one_node) || strlen(host) >= sizeof(r->host) || port < 2 ||
        port > UINT16_MAX)
        return stk_refuse_option(
            error, STOKER_EINVAL,
            "rank %u of %u looks for rank 0: expected its host in MASTER_ADDR (\"%s\") and a port "
            "in STOKER_PORT (\"%s\") or MASTER_PORT (\"%s\")",
            r->mine.rank, r->mine.world_size, host, ours, text_of("MASTER_PORT"));
    if (r->mine.rank != 0 || one_node)
        (void)snprintf(r->host, sizeof(r->host), "%s", *host == '\0' ? "127.0.0.1" : host);
    (void)snprintf(r->port, sizeof(r->port), "%lu", port);
    (void)snprintf(r->mine.run, sizeof(r->mine.run), "%s/%s/%s/%s",
                   text_of("TORCHELASTIC_RESTART_COUNT"), text_of("SLURM_STEP_ID"),
                   text_of("SLURM_JOB_ID"), text_of("TORCHELASTIC_RUN_ID"));
    return STOKER_OK;
}

int stk_nccl_rendezvous(const stoker_ranks *ranks, uint32_t timeout_ms, const struct stk_word *mine,
                        struct stk_word *all, stoker_error *error)
{
    const uint32_t world_size = ranks->world_size;
    struct stk_word verdict = { .code = STOKER_OK };
    stoker_error cause = { .message = "" }; /* why the last try failed */
    struct rendezvous r = { .mine = { .rank = ranks->rank, .world_size = world_size },
                            .timeout_ms = timeout_ms,
                            .end_ns = after_ms(timeout_ms),
                            .all = all };
    r.mine.word = *mine;
    int rc = read_variables(&r, ranks->local_world_size == world_size, error);
    if (rc != STOKER_OK)
        return rc;
    r.files = stk_calloc(world_size, sizeof(*r.files));
    if (r.files == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "memory to join %u ranks", world_size);
    memset(r.files, -1, world_size * sizeof(*r.files));
    rc = ranks->rank == 0 ? gather(&r, &verdict, &cause) : visit(&r, &verdict, &cause);
    stk_free(r.files);
    if (rc == STOKER_OK && verdict.code != STOKER_OK)
        rc = stk_refuse_option(&cause, STOKER_EPEER, "%.*s", TEXT_BYTES - 1, verdict.text);
    if (rc != STOKER_OK && error != NULL)
        *error = cause;
    return rc;
}
