/* test_tcp_faults.c - ranks that meet over TCP: every call of the system fails once, is interrupted, or moves one byte; every
 * allocation fails once. No rank waits for ever, and none misses that another has failed.
 *
 *   library ──▶ socket(), recv(), ... of this program ──▶ the error that is due, or the kernel
 *
 * Only the calls of one rank, which is a thread, are counted and fail. */
#include <dlfcn.h>
#include <netdb.h>
#include <sys/syscall.h>

#include "loader/base/fault.h"
#include "support/tcp_run.h"

enum { RANKS = 3, MEETINGS = 3, AT_ONCE = 24, JOIN_MS = 900, NEVER = UINT32_MAX / 2 };

/* ---- calls that fail ---------------------------------------------------------------- */

enum mode { MODE_FAILS, MODE_INTERRUPTED, MODE_DRIBBLES };

struct victim {
    enum mode mode;
    uint32_t left; /* calls until one fails */
    bool failed;
};

static _Thread_local struct victim *victim;

/* True if this call fails, with errno set. */
static bool fails(int os_errno)
{
    if (victim == NULL || victim->mode == MODE_DRIBBLES || victim->left-- != 0)
        return false;
    victim->failed = true;
    errno = os_errno;
    return true;
}

/* A call that a signal may interrupt. */
static bool stops(int os_errno)
{
    const bool interrupted = victim != NULL && victim->mode == MODE_INTERRUPTED;
    return fails(interrupted ? EINTR : os_errno);
}

static bool dribbles(void)
{
    return victim != NULL && victim->mode == MODE_DRIBBLES;
}

/* Interrupted calls are those that can be. */
static bool fails_for_good(int os_errno)
{
    return (victim == NULL || victim->mode != MODE_INTERRUPTED) && fails(os_errno);
}

int socket(int domain, int type, int protocol)
{
    return fails_for_good(EMFILE) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    return fails_for_good(EADDRINUSE) ? -1
                                      : (int)syscall(SYS_bind, fd, address.__sockaddr__, bytes);
}

int listen(int fd, int backlog)
{
    return fails_for_good(EADDRINUSE) ? -1 : (int)syscall(SYS_listen, fd, backlog);
}

int accept4(int fd, __SOCKADDR_ARG address, socklen_t *bytes, int flags)
{
    return stops(EMFILE) ? -1 : (int)syscall(SYS_accept4, fd, address.__sockaddr__, bytes, flags);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    return fails_for_good(ENETUNREACH) ? -1
                                       : (int)syscall(SYS_connect, fd, address.__sockaddr__, bytes);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    return fails_for_good(ENOBUFS) ? -1
                                   : (int)syscall(SYS_setsockopt, fd, level, name, value, bytes);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
    return fails_for_good(ENOBUFS) ? -1
                                   : (int)syscall(SYS_getsockopt, fd, level, name, value, bytes);
}

int poll(struct pollfd *polls, nfds_t count, int timeout_ms)
{
    /* Not SYS_poll, which ARM's Linux has not. */
    struct timespec limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
    return stops(ENOMEM)
               ? -1
               : (int)syscall(SYS_ppoll, polls, count, timeout_ms < 0 ? NULL : &limit, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (stops(ECONNRESET))
        return -1;
    struct msghdr less = *message;
    struct iovec byte = message->msg_iov[0];
    if (dribbles()) {
        byte = message->msg_iov[0].iov_len > 0 ? message->msg_iov[0] : message->msg_iov[1];
        byte.iov_len = 1;
        less.msg_iov = &byte;
        less.msg_iovlen = 1;
    }
    return syscall(SYS_sendmsg, fd, &less, flags);
}

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    if (stops(ECONNRESET))
        return -1;
    return syscall(SYS_recvfrom, fd, to, dribbles() ? 1 : bytes, flags, NULL, NULL);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    union {
        void *symbol;
        int (*call)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    } next = { .symbol = dlsym(RTLD_NEXT, "getaddrinfo") };
    CHECK(next.symbol != NULL);
    if (fails_for_good(0))
        return EAI_AGAIN;
    return next.call(host, service, hints, out);
}

/* ---- runs ---------------------------------------------------------------------------- */

struct faulty_run {
    struct tcp_run run; /* first; odd: the victim */
    struct victim victim;
    uint32_t meetings[RANKS]; /* that went well */
};

static void be_victim(struct tcp_rank *me)
{
    struct faulty_run *const faulty = (struct faulty_run *)me->run;
    victim = me->rank == me->run->odd ? &faulty->victim : NULL;
}

static int talk(struct tcp_rank *me)
{
    struct faulty_run *const faulty = (struct faulty_run *)me->run;
    uint8_t bytes[100] = { 0 };
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < MEETINGS && rc == STOKER_OK; i++) {
        rc = i == 1 ? me->peers->ops->broadcast(me->peers, bytes, sizeof(bytes), &me->error)
                    : tcp_meet(me);
        faulty->meetings[me->rank] += rc == STOKER_OK ? 1 : 0;
    }
    return rc;
}

static void start(struct faulty_run *faulty, uint32_t odd, enum mode mode, uint32_t call)
{
    tcp_open_run(&faulty->run, RANKS, TCP_LONG_MS, talk);
    faulty->run.before = be_victim;
    faulty->run.odd = odd;
    if (mode == MODE_FAILS) /* a rank that cannot join is waited for */
        faulty->run.options.timeout_ms = JOIN_MS;
    faulty->victim = (struct victim){ .mode = mode, .left = call };
    memset(faulty->meetings, 0, sizeof(faulty->meetings));
    tcp_start(&faulty->run);
}

static void check(const struct faulty_run *faulty, uint32_t call)
{
    const struct tcp_run *const run = &faulty->run;
    const struct tcp_rank *const odd = &run->rank[run->odd];
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct tcp_rank *const rank = &run->rank[r];
        const bool known = rank->rc == STOKER_OK || rank->rc == STOKER_EPEER ||
                           rank->rc == STOKER_ENOFILE || rank->rc == STOKER_ENOMEM;
        /* A rank that has failed is missed at the next meeting. */
        const bool missed = odd->rc == STOKER_OK || rank->rc != STOKER_OK ||
                            faulty->meetings[run->odd] + 1 == MEETINGS;
        if (!known || !missed)
            fprintf(stderr, "call %u of rank %u: rank %u: %d: %s\n", call, run->odd, r, rank->rc,
                    rank->error.message);
        CHECK(known);
        CHECK(missed);
        CHECK(rank->rc == STOKER_OK || rank->error.message[0] != '\0');
        CHECK(rank->rc == STOKER_OK || !odd->joined || run->odd == 0 ||
              strstr(rank->error.message, r == run->odd ? "rank" : "rank 2") != NULL);
    }
}

/* Returns the number of calls that there were. */
static uint32_t every_call(uint32_t odd, enum mode mode)
{
    static struct faulty_run runs[AT_ONCE];
    uint32_t calls = 0;
    for (uint32_t first = 0;; first += AT_ONCE) {
        bool all_failed = true;
        for (uint32_t i = 0; i < AT_ONCE; i++)
            start(&runs[i], odd, mode, first + i);
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            tcp_end(&runs[i].run);
            all_failed = all_failed && runs[i].victim.failed;
            calls += runs[i].victim.failed ? 1 : 0;
            check(&runs[i], first + i);
            for (uint32_t r = 0; r < RANKS && mode != MODE_FAILS; r++)
                tcp_check_says(&runs[i].run.rank[r], STOKER_OK, "");
        }
        if (!all_failed)
            return calls;
    }
}

static void bytes_one_by_one(void)
{
    static struct faulty_run runs[2];
    for (uint32_t i = 0; i < 2; i++)
        start(&runs[i], i == 0 ? 0 : RANKS - 1, MODE_DRIBBLES, NEVER);
    for (uint32_t i = 0; i < 2; i++) {
        tcp_end(&runs[i].run);
        for (uint32_t r = 0; r < RANKS; r++)
            tcp_check_says(&runs[i].run.rank[r], STOKER_OK, "");
    }
}

/* ---- memory ----------------------------------------------------------------------------- */

/* A rank alone: without a fault it waits for the others, in vain. */
static uint32_t every_allocation(uint32_t rank)
{
    static struct tcp_run run;
    uint64_t nth = 0;
    int rc = STOKER_ENOMEM;
    tcp_open_run(&run, RANKS, TCP_LONG_MS, NULL);
    run.options.timeout_ms = 30;
    tcp_my_variables = &run.variables;
    while (rc == STOKER_ENOMEM) {
        struct stk_peers *peers = NULL;
        stoker_error error = { .message = "" };
        stk_fault_arm(STK_FAULT_MEMORY, ++nth);
        rc = stk_tcp_join(&peers, &run.rank[rank].ranks, &run.options, &error);
        CHECK(stk_fault_disarm() == (rc == STOKER_ENOMEM));
        CHECK(rc == STOKER_ENOMEM || rc == STOKER_EPEER);
        CHECK(peers == NULL);
        CHECK(error.message[0] != '\0');
        CHECK(stk_fault_live_bytes() == 0);
    }
    tcp_my_variables = NULL;
    (void)close(run.agent);
    return (uint32_t)nth - 1;
}

int main(void)
{
    const uint32_t files = tcp_open_files();
    CHECK(every_allocation(0) == 7);
    CHECK(every_allocation(1) == 6);
    bytes_one_by_one();
    for (uint32_t odd = 0; odd < RANKS; odd += 2) {
        CHECK(every_call(odd, MODE_FAILS) >= 20); /* they were reached */
        CHECK(every_call(odd, MODE_INTERRUPTED) >= 10);
    }
    CHECK(tcp_open_files() == files);
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
