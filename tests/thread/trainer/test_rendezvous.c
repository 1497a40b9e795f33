/* test_rendezvous.c - ranks that are threads meet by rendezvous.h: at every place that
 * variables can name, among strangers, and while calls of the system fail. Nobody waits beyond
 * the time-out, and an error says which rank is missing or refused.
 *
 *   library ──▶ secure_getenv(), socket(), ... of this program ──▶ what a case wants, or libc */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "support/thread_check.h"
#include "trainer/peers/nccl/rendezvous.h"

enum { RANKS_MAX = 9, SHORT_MS = 400, LONG_MS = 60000, HEAD_BYTES = 104, HELLO_MAX = 1024 };

/* ---- variables ------------------------------------------------------------------- */

/* "NAME=value NAME=value": those of this thread, in place of the environment's. */
static _Thread_local const char *my_variables;
static _Thread_local char my_values[8][128]; /* the last ones */

char *secure_getenv(const char *name);
char *secure_getenv(const char *name)
{
    static _Thread_local uint32_t asked;
    char *const value = my_values[asked++ % 8];
    const size_t length = strlen(name);
    for (const char *at = my_variables; at != NULL; at = strchr(at, ' ')) {
        at += at == my_variables ? 0 : 1;
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        (void)snprintf(value, sizeof(my_values[0]), "%.*s", (int)strcspn(at + length + 1, " "),
                       at + length + 1);
        return value;
    }
    return NULL;
}

/* ---- calls that fail ------------------------------------------------------------- */

/* Calls of this thread until one fails, with this error; -1: none does. */
static _Thread_local int calls_left = -1;
static _Thread_local bool interrupts;

static bool fails(int os_errno, bool can_be_interrupted)
{
    if (calls_left < 0 || (interrupts && !can_be_interrupted) || calls_left-- != 0)
        return false;
    errno = interrupts ? EINTR : os_errno;
    return true;
}

int socket(int domain, int type, int protocol)
{
    return fails(EMFILE, false) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int fd, __CONST_SOCKADDR_ARG at, socklen_t bytes)
{
    return fails(EADDRINUSE, false) ? -1 : (int)syscall(SYS_bind, fd, at.__sockaddr__, bytes);
}

int listen(int fd, int backlog)
{
    return fails(EADDRINUSE, false) ? -1 : (int)syscall(SYS_listen, fd, backlog);
}

int accept4(int fd, __SOCKADDR_ARG from, socklen_t *bytes, int flags)
{
    return fails(EMFILE, true) ? -1
                               : (int)syscall(SYS_accept4, fd, from.__sockaddr__, bytes, flags);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t bytes)
{
    return fails(ENETUNREACH, true) ? -1 : (int)syscall(SYS_connect, fd, to.__sockaddr__, bytes);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    return fails(ENOBUFS, false) ? -1 : (int)syscall(SYS_setsockopt, fd, level, name, value, bytes);
}

ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
    return fails(ECONNRESET, true) ? -1 : syscall(SYS_sendto, fd, from, bytes, flags, NULL, 0);
}

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    return fails(ECONNRESET, true) ? -1 : syscall(SYS_recvfrom, fd, to, bytes, flags, NULL, NULL);
}

/* One at a time: ThreadSanitizer does not see libc's own locks, and hides what they guard only in
 * the function that this one replaces. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    union {
        void *symbol;
        int (*call)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    } next = { .symbol = dlsym(RTLD_NEXT, "getaddrinfo") };
    CHECK(next.symbol != NULL);
    if (fails(0, false))
        return EAI_AGAIN;
    (void)pthread_mutex_lock(&lock);
    const int code = next.call(host, service, hints, out);
    (void)pthread_mutex_unlock(&lock);
    return code;
}

/* ---- ranks ----------------------------------------------------------------------- */

struct rank {
    char variables[256];
    stoker_ranks ranks;
    uint32_t timeout_ms, late_ms;
    int failing_call; /* -1: none */
    bool interrupts;
    int rc, calls_left;
    stoker_error error;
    struct stk_word all[RANKS_MAX];
    pthread_t thread;
};

static struct rank rank[RANKS_MAX + 1];
static uint16_t port;

/* One at which nobody listens, below those that the system gives. */
static void choose_port(void)
{
    static uint32_t last;
    last = last == 0 ? (uint32_t)getpid() * 7919U : last;
    port = (uint16_t)(15000 + last++ % 15000);
}

/* `variables` has %u for the port. */
static void begin(uint32_t count, uint32_t world_size, const char *variables)
{
    choose_port();
    memset(rank, 0, sizeof(rank));
    for (uint32_t r = 0; r < count; r++) {
        rank[r].ranks = (stoker_ranks)STOKER_RANKS_INIT;
        rank[r].ranks.rank = r;
        rank[r].ranks.world_size = world_size;
        rank[r].ranks.local_world_size = world_size;
        rank[r].timeout_ms = LONG_MS;
        rank[r].failing_call = -1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(rank[r].variables, sizeof(rank[r].variables), variables, port);
#pragma GCC diagnostic pop
    }
}

static void *meet(void *argument)
{
    struct rank *const me = argument;
    struct stk_word word = { .sync_point = STK_SYNC_CREATE, .number = { 100 + me->ranks.rank } };
    my_variables = me->variables;
    (void)usleep(me->late_ms * 1000);
    calls_left = me->failing_call;
    interrupts = me->interrupts;
    me->rc = stk_nccl_rendezvous(&me->ranks, me->timeout_ms, &word, me->all, &me->error);
    me->calls_left = calls_left;
    calls_left = -1;
    my_variables = NULL;
    return NULL;
}

static void start(uint32_t r)
{
    CHECK(pthread_create(&rank[r].thread, NULL, meet, &rank[r]) == 0);
}

static void end(uint32_t r)
{
    CHECK(pthread_join(rank[r].thread, NULL) == 0);
}

static void run(uint32_t first, uint32_t count)
{
    for (uint32_t r = first; r < count; r++)
        start(r);
    for (uint32_t r = first; r < count; r++)
        end(r);
}

static void says(uint32_t r, int rc, const char *words)
{
    if (rank[r].rc != rc || (rc != STOKER_OK && strstr(rank[r].error.message, words) == NULL))
        fprintf(stderr, "rank %u: %d: %s\n", r, rank[r].rc, rank[r].error.message);
    CHECK(rank[r].rc == rc);
    CHECK(rc == STOKER_OK || strstr(rank[r].error.message, words) != NULL);
}

static void all_have_met(uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        says(r, STOKER_OK, "");
        for (uint32_t other = 0; other < count; other++)
            CHECK(rank[r].all[other].number[0] == 100 + other);
    }
}

/* ---- where ----------------------------------------------------------------------- */

static void every_place(void)
{
    static const struct {
        const char *variables;
        uint32_t count;
        bool several_nodes;
    } rows[] = {
        { "MASTER_ADDR=127.0.0.1 STOKER_PORT=%u", 2, false },
        { "STOKER_PORT=%u", 3, false },
        { "MASTER_PORT=%u", 2, false }, /* and one more */
        { "MASTER_ADDR=localhost MASTER_PORT=%u", 3, false },
        { "MASTER_ADDR=localhost MASTER_PORT=1 STOKER_PORT=%u TORCHELASTIC_RUN_ID=none", 9, false },
        { "MASTER_ADDR=127.0.0.1 STOKER_PORT=%u SLURM_JOB_ID=7 SLURM_STEP_ID=0", 3, true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(rows[i].count, rows[i].count, rows[i].variables);
        for (uint32_t r = 0; r < rows[i].count && rows[i].several_nodes; r++)
            rank[r].ranks.local_world_size = 1;
        rank[i % 2].late_ms = 120;
        run(0, rows[i].count);
        all_have_met(rows[i].count);
    }
}

static void variables_are_checked(void)
{
    static const struct {
        const char *variables;
        bool several_nodes;
        const char *words;
    } rows[] = {
        { "MASTER_ADDR=127.0.0.1", false, "MASTER_PORT (\"\")" },
        { "MASTER_PORT=%u", true, "MASTER_ADDR (\"\")" },
        { "STOKER_PORT=x", false, "STOKER_PORT (\"x\")" },
        { "STOKER_PORT=70000", false, "STOKER_PORT (\"70000\")" },
        { "MASTER_PORT=65535", false, "MASTER_PORT (\"65535\")" },
        { "MASTER_PORT=-1", false, "MASTER_PORT (\"-1\")" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(1, 2, rows[i].variables);
        rank[0].ranks.local_world_size = rows[i].several_nodes ? 0 : 2;
        run(0, 1);
        says(0, STOKER_EINVAL, rows[i].words);
    }
}

/* ---- which ranks come ------------------------------------------------------------------- */

static const char usual[] = "MASTER_ADDR=127.0.0.1 STOKER_PORT=%u";

static void missing_ranks_are_named(void)
{
    begin(5, 5, usual);
    for (uint32_t r = 0; r < 5; r++)
        rank[r].timeout_ms = r == 0 ? SHORT_MS : LONG_MS;
    start(0);
    start(2);
    end(0);
    end(2);
    says(0, STOKER_EPEER, "rank 1, 3, 4 of 5 did not come");
    says(2, STOKER_EPEER, "rank 1, 3, 4 of 5 did not come");
    begin(2, 2, usual);
    rank[1].timeout_ms = SHORT_MS;
    run(1, 2);
    says(1, STOKER_EPEER, "rank 0 does not answer at 127.0.0.1 port");
    begin(2, 2, "MASTER_ADDR=300.300.300.300 STOKER_PORT=%u");
    rank[1].timeout_ms = SHORT_MS;
    run(1, 2);
    says(1, STOKER_EPEER, "rank 0 does not answer at 300.300.300.300");
}

/* One that does not belong is refused, and those that do meet. */
static void what_does_not_belong_is_refused(void)
{
    static const struct {
        uint32_t number, world_size;
        const char *variables, *words;
    } rows[] = {
        { 1, 2, " TORCHELASTIC_RUN_ID=b", "refuses rank 1 of 2: it is of another run" },
        { 1, 2, " TORCHELASTIC_RESTART_COUNT=1", "another run" },
        { 1, 2, " SLURM_JOB_ID=8", "another run" },
        { 1, 3, "", "refuses rank 1 of 3: it has another WORLD_SIZE" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(3, 2, usual);
        rank[2].ranks.rank = rows[i].number;
        rank[2].ranks.world_size = rows[i].world_size;
        (void)strcat(rank[2].variables, rows[i].variables);
        start(0);
        start(2);
        end(2);
        run(1, 2);
        end(0);
        says(2, STOKER_EPEER, rows[i].words);
        all_have_met(2);
    }
    begin(4, 3, usual);
    rank[3].ranks.rank = 1;
    start(0);
    start(1);
    (void)usleep(300000);
    start(3);
    end(3);
    says(3, STOKER_EPEER, "another process has its RANK");
    start(2);
    for (uint32_t r = 0; r < 3; r++)
        end(r);
    all_have_met(3);
}

static void a_port_that_is_taken(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    begin(1, 2, usual);
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0);
    run(0, 1);
    says(0, STOKER_EPEER, "rank 0 cannot listen at");
    (void)close(fd);
}

/* ---- strangers ------------------------------------------------------------------- */

static int connect_here(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int turn = 0; turn < 2000; turn++) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
            return fd;
        (void)close(fd);
        (void)usleep(1000);
    }
    const bool rank_0_listens = false;
    CHECK(rank_0_listens);
    return -1;
}

static int listen_here(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) == 0);
    CHECK(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0);
    return fd;
}

/* What rank 1 of 2 sends; and rank 1 when the answer has `bytes` bytes. */
static size_t take_hello(uint8_t hello[HELLO_MAX], size_t answer_bytes)
{
    static uint8_t answer[HELLO_MAX * 2];
    begin(2, 2, usual);
    rank[1].timeout_ms = SHORT_MS / 4;
    const int listener = listen_here();
    start(1);
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)usleep(20000);
    const ssize_t got = recv(fd, hello, HELLO_MAX, 0);
    CHECK(got > HEAD_BYTES);
    memcpy(answer, hello, (size_t)got); /* as from a socket that is connected to itself */
    (void)send(fd, answer, answer_bytes, MSG_NOSIGNAL);
    (void)close(fd);
    (void)close(listener);
    end(1);
    says(1, STOKER_EPEER, "rank 0");
    return (size_t)got;
}

static void strangers_are_sent_away(void)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static uint8_t hello[HELLO_MAX];
    const size_t bytes = take_hello(hello, 0);
    for (size_t answer = 1; answer < 2 * HELLO_MAX; answer += 97)
        (void)take_hello(hello, answer);
    begin(2, 2, usual);
    start(0);
    const int silent = connect_here();
    (void)close(connect_here()); /* a scan of ports */
    const int other = connect_here();
    (void)send(other, http, sizeof(http), MSG_NOSIGNAL);
    for (size_t prefix = 0; prefix < bytes; prefix += 7) {
        const int fd = connect_here();
        (void)send(fd, hello, prefix, MSG_NOSIGNAL);
        (void)close(fd);
    }
    for (size_t bit = 0; bit < (size_t)HEAD_BYTES * 8; bit++) { /* the run, rank and world size */
        uint8_t damaged[HELLO_MAX];
        memcpy(damaged, hello, bytes);
        damaged[bit / 8] ^= (uint8_t)(1U << bit % 8);
        if (strncmp((const char *)damaged, (const char *)hello, 96) == 0 && bit < 96 * 8)
            continue; /* behind the end of the text */
        const int fd = connect_here();
        (void)send(fd, damaged, bytes, MSG_NOSIGNAL);
        (void)close(fd);
    }
    run(1, 2);
    end(0);
    all_have_met(2);
    (void)close(silent);
    (void)close(other);
}

/* ---- faults ---------------------------------------------------------------------- */

static uint32_t open_files(void)
{
    uint32_t count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
}

/* Each call of one rank fails once: both end in time, and agree unless the failure was the last
 * thing to happen. */
static void each_call_fails(uint32_t victim, bool interrupted)
{
    const uint32_t files = open_files();
    int reached = 0;
    for (bool failed = true; failed; reached++) {
        begin(2, 2, usual);
        rank[victim].failing_call = reached;
        rank[victim].interrupts = interrupted;
        rank[0].timeout_ms = rank[1].timeout_ms = interrupted ? LONG_MS : SHORT_MS;
        run(0, 2);
        failed = rank[victim].calls_left < 0;
        CHECK(open_files() == files);
        for (uint32_t r = 0; r < 2; r++) {
            CHECK(rank[r].rc == STOKER_OK || rank[r].rc == STOKER_EPEER);
            CHECK(rank[r].rc == STOKER_OK || strstr(rank[r].error.message, "rank ") != NULL);
        }
        if (interrupted)
            all_have_met(2);
        CHECK(reached < 60);
    }
    CHECK(reached > (interrupted ? 3 : 7)); /* they were reached */
    all_have_met(2);
}

static void memory_is_missing(void)
{
    stoker_error error;
    struct stk_word all[2];
    const stoker_ranks ranks = { .struct_size = sizeof(ranks), .world_size = 2 };
    my_variables = "MASTER_ADDR=127.0.0.1 STOKER_PORT=4000";
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    CHECK(stk_nccl_rendezvous(&ranks, SHORT_MS, &all[0], all, &error) == STOKER_ENOMEM);
    CHECK(stk_fault_disarm());
    CHECK(stk_fault_live_bytes() == 0);
    my_variables = NULL;
}

int main(void)
{
    every_place();
    variables_are_checked();
    missing_ranks_are_named();
    what_does_not_belong_is_refused();
    a_port_that_is_taken();
    strangers_are_sent_away();
    for (uint32_t victim = 0; victim < 2; victim++) {
        each_call_fails(victim, false);
        each_call_fails(victim, true);
    }
    memory_is_missing();
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
