/* test_tcp_start.c - how ranks find each other over TCP: ports that others use, ranks that are missing or come twice,
 * strangers that connect, variables that are missing. */
#include <netdb.h>

#include "loader/base/fault.h"
#include "support/tcp_run.h"

enum { RANKS = 3, SILENT = 140 }; /* SILENT: more than rank 0 has places for */

static void all_meet(const struct tcp_run *run)
{
    for (uint32_t r = 0; r < run->world_size; r++)
        tcp_check_says(&run->rank[r], STOKER_OK, "");
}

/* ---- where ---------------------------------------------------------------------------- */

/* Frees MASTER_PORT: nothing but the run listens there. */
static void close_agent(struct tcp_run *run)
{
    (void)close(run->agent);
    run->agent = -1;
    tcp_set(&run->variables, "TORCHELASTIC_USE_AGENT_STORE", "False");
}

static void without_an_agent(struct tcp_run *run)
{
    close_agent(run);
}

static void by_name(struct tcp_run *run)
{
    tcp_set(&run->variables, "MASTER_ADDR", "localhost");
}

static bool has_ipv6(void)
{
    const struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
    if (fd >= 0)
        (void)close(fd);
    return has;
}

static void by_ipv6(struct tcp_run *run)
{
    tcp_set(&run->variables, "MASTER_ADDR", has_ipv6() ? "[::1]" : "127.0.0.1");
}

/* Ranks of other nodes: rank 0 listens at every address. */
static void on_several_nodes(struct tcp_run *run)
{
    for (uint32_t r = 0; r < RANKS; r++)
        run->rank[r].ranks.local_world_size = r == 0 ? 0 : 1;
}

/* Another port than MASTER_PORT, which may even be missing. */
static void at_our_own_port(struct tcp_run *run)
{
    uint16_t port = 0;
    (void)close(tcp_listen_here(&port));
    tcp_set_number(&run->variables, "STOKER_PORT", port);
}

/* Rank 0 comes last: nothing listens until then. */
static void come_last(struct tcp_rank *me)
{
    tcp_sleep_ms(me->rank == 0 ? 120 : 0);
}

static void rank_0_is_last(struct tcp_run *run)
{
    run->before = come_last;
}

/* ---- a rank that is missing -------------------------------------------------------------------- */

/* The odd rank does not come at all: it waits until the others have given up, and leaves. */
static void stay_away(struct tcp_rank *me)
{
    if (me->rank == me->run->odd) {
        tcp_await_left(me->run, RANKS - 1);
        me->run->options.timeout_ms = 50; /* nothing is there any more */
    }
}

static void one_stays_away(struct tcp_run *run)
{
    run->before = stay_away;
    run->options.timeout_ms = TCP_SHORT_MS;
}

static void it_is_missed(const struct tcp_run *run)
{
    for (uint32_t r = 0; r < RANKS; r++)
        if (r != run->odd)
            tcp_check_says(&run->rank[r], STOKER_EPEER, "rank 2 of 3 did not come");
    CHECK(run->rank[run->odd].rc == STOKER_EPEER);
}

static void rank_0_is_missed(const struct tcp_run *run)
{
    for (uint32_t r = 1; r < RANKS; r++) {
        tcp_check_says(&run->rank[r], STOKER_EPEER, "found no rank 0 at 127.0.0.1");
        tcp_check_says(&run->rank[r], STOKER_EPEER, "refused");
    }
}

/* Two processes with one number: the third rank learns of it, too. */
static void one_comes_twice(struct tcp_run *run)
{
    run->rank[2].ranks.rank = 1;
}

static void both_are_named(const struct tcp_run *run)
{
    for (uint32_t r = 0; r < RANKS; r++)
        tcp_check_says(&run->rank[r], STOKER_EPEER, "two processes say that they are rank 1 of 3");
}

/* It was started with other numbers. */
static void one_counts_more(struct tcp_run *run)
{
    run->rank[2].ranks.world_size = 4;
    run->options.timeout_ms = TCP_SHORT_MS;
}

static void its_number_is_refused(const struct tcp_run *run)
{
    tcp_check_says(&run->rank[2], STOKER_EPEER,
                   "it says that it is rank 2 of 4, rank 0 waits for 3");
    for (uint32_t r = 0; r < 2; r++)
        tcp_check_says(&run->rank[r], STOKER_EPEER, "rank 2 of 4");
}

/* ---- strangers ------------------------------------------------------------------------- */

/* The first port behind MASTER_PORT is another program's, which says something else, or nothing. */
struct stranger {
    pthread_t thread;
    int fd;
    bool talks;
    struct tcp_run *run;
};

static void *answer(void *argument)
{
    struct stranger *const stranger = argument;
    static const char text[] = "220 mail.example.org ESMTP, and more than a header is long\r\n";
    int taken[RANKS * 4];
    uint32_t count = 0;
    while (atomic_load_explicit(&stranger->run->left, memory_order_acquire) < RANKS) {
        struct pollfd polls = { .fd = stranger->fd, .events = POLLIN };
        if (poll(&polls, 1, 5) != 1 || count == RANKS * 4)
            continue;
        taken[count] = accept(stranger->fd, NULL, NULL);
        CHECK(taken[count] >= 0);
        if (stranger->talks)
            (void)send(taken[count], text, sizeof(text), MSG_NOSIGNAL);
        count++;
    }
    while (count > 0)
        (void)close(taken[--count]);
    (void)close(stranger->fd);
    return NULL;
}

static void a_port_that_another_program_has(bool talks)
{
    static struct tcp_run run;
    struct stranger stranger = { .run = &run, .fd = -1, .talks = talks };
    tcp_open_run(&run, RANKS, TCP_LONG_MS, tcp_meet);
    while (stranger.fd < 0) { /* someone else may have it */
        uint16_t port = (uint16_t)(run.port + 1);
        stranger.fd = tcp_listen_here(&port);
        if (stranger.fd < 0) {
            (void)close(run.agent);
            tcp_open_run(&run, RANKS, TCP_LONG_MS, tcp_meet);
        }
    }
    CHECK(pthread_create(&stranger.thread, NULL, answer, &stranger) == 0);
    tcp_run_all(&run);
    CHECK(pthread_join(stranger.thread, NULL) == 0);
    all_meet(&run);
}

/* Sends these bytes to rank 0 as soon as it listens. The socket, -1: the run is over. */
static int intrude(struct tcp_run *run, const void *bytes, size_t count)
{
    for (;;) {
        for (uint32_t i = 1; i < STK_TCP_PORTS; i++) {
            const int fd = tcp_connect_here((uint16_t)(run->port + i));
            if (fd < 0)
                continue;
            (void)send(fd, bytes, count, MSG_NOSIGNAL);
            return fd;
        }
        if (atomic_load_explicit(&run->left, memory_order_acquire) == run->world_size)
            return -1;
        tcp_sleep_ms(1);
    }
}

/* Comes when the strangers have come. */
static _Atomic bool strangers_are_there;

static void wait_for_strangers(struct tcp_rank *me)
{
    while ((me->rank + 1 == RANKS || me->rank == me->run->odd) &&
           !atomic_load_explicit(&strangers_are_there, memory_order_acquire))
        tcp_sleep_ms(1);
}

static struct stk_tcp_hello hello_of(uint32_t rank)
{
    return (struct stk_tcp_hello){ .version = STK_TCP_VERSION,
                                   .rank = rank,
                                   .world_size = RANKS,
                                   .word_bytes = sizeof(struct stk_word),
                                   .run = 1, /* not that of the test's runs */
                                   .process = 5 };
}

static struct stk_tcp_header header_of(uint32_t kind, uint64_t bytes)
{
    return (struct stk_tcp_header){ .magic = STK_TCP_MAGIC, .kind = kind, .bytes = bytes };
}

static void strangers_are_sent_away(void)
{
    static struct tcp_run run;
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct {
        struct stk_tcp_header header;
        struct stk_tcp_hello hello;
    } other_run = { header_of(STK_TCP_HELLO, sizeof(struct stk_tcp_hello)), hello_of(1) };
    const struct stk_tcp_header large = header_of(STK_TCP_HELLO, UINT64_MAX);
    const struct stk_tcp_header word = header_of(STK_TCP_WORD, 8);
    const struct stk_tcp_header start = header_of(STK_TCP_START, 0);
    int open[SILENT + 16];
    uint32_t count = 0;
    atomic_store_explicit(&strangers_are_there, false, memory_order_release);
    tcp_open_run(&run, RANKS, TCP_LONG_MS, tcp_meet);
    run.before = wait_for_strangers;
    run.odd = RANKS;
    tcp_start(&run);
    open[count++] = intrude(&run, http, sizeof(http));
    (void)close(intrude(&run, http, 0)); /* a scan of ports */
    open[count++] = intrude(&run, &other_run, sizeof(other_run));
    open[count++] = intrude(&run, &large, sizeof(large));
    open[count++] = intrude(&run, &word, sizeof(word));
    open[count++] = intrude(&run, &start, sizeof(start));
    for (uint32_t i = 0; i < SILENT; i++) /* each a part of a header */
        open[count++] = intrude(&run, &large, i % sizeof(large));
    atomic_store_explicit(&strangers_are_there, true, memory_order_release);
    tcp_end(&run);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(open[i] >= 0);
        (void)close(open[i]);
    }
    all_meet(&run);
}

/* Each bit of a hello, and each of its beginnings: rank 0 stays, and accepts none of them as a rank. */
static void every_bit_of_a_hello(void)
{
    static struct tcp_run run;
    struct frame {
        struct stk_tcp_header header;
        struct stk_tcp_hello hello;
    } good = { header_of(STK_TCP_HELLO, sizeof(struct stk_tcp_hello)), hello_of(2) };
    atomic_store_explicit(&strangers_are_there, false, memory_order_release);
    tcp_open_run(&run, RANKS, TCP_LONG_MS, tcp_meet);
    run.before = wait_for_strangers;
    run.odd = RANKS;
    tcp_start(&run);
    for (uint32_t bit = 0; bit < sizeof(good) * 8; bit++) {
        struct frame frame = good;
        ((uint8_t *)&frame)[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const int fd = intrude(&run, &frame, sizeof(frame));
        CHECK(fd >= 0);
        (void)close(fd);
    }
    for (uint32_t bytes = 0; bytes <= sizeof(good); bytes++) {
        const int fd = intrude(&run, &good, bytes);
        CHECK(fd >= 0);
        (void)close(fd);
    }
    atomic_store_explicit(&strangers_are_there, true, memory_order_release);
    tcp_end(&run);
    all_meet(&run);
}

/* A rank that gives up before it has confirmed the greeting does not count, although all others are there: it comes again. */
static void one_comes_again(void)
{
    static struct tcp_run run;
    struct stk_tcp_rendezvous found;
    struct {
        struct stk_tcp_header header;
        struct stk_tcp_hello hello;
    } first = { .header = header_of(STK_TCP_HELLO, sizeof(struct stk_tcp_hello)) };
    _Alignas(struct stk_tcp_header) char greeting[sizeof(first)];
    atomic_store_explicit(&strangers_are_there, false, memory_order_release);
    tcp_open_run(&run, RANKS, TCP_LONG_MS, tcp_meet);
    run.before = wait_for_strangers;
    run.odd = RANKS;
    tcp_my_variables = &run.variables;
    CHECK(stk_tcp_find_rendezvous(&found, &run.rank[RANKS - 1].ranks, NULL) == STOKER_OK);
    tcp_my_variables = NULL;
    first.hello = found.hello;
    tcp_start(&run);
    for (int i = 0; i < 3; i++) {
        first.hello.process++;
        const int fd = intrude(&run, &first, sizeof(first));
        CHECK(recv(fd, greeting, sizeof(greeting), MSG_WAITALL) == (ssize_t)sizeof(greeting));
        CHECK(((const struct stk_tcp_header *)(const void *)greeting)->kind == STK_TCP_GREETING);
        tcp_sleep_ms(20); /* rank 1 comes meanwhile */
        (void)close(fd);
    }
    atomic_store_explicit(&strangers_are_there, true, memory_order_release);
    tcp_end(&run);
    all_meet(&run);
}

/* ---- variables ---------------------------------------------------------------------------- */

static void expect_refusal(const struct tcp_variables *variables, const char *word)
{
    const stoker_ranks ranks = { .struct_size = sizeof(ranks), .rank = 1, .world_size = 3 };
    const struct stk_peers_options options = { .timeout_ms = TCP_LONG_MS };
    struct stk_peers *peers = NULL;
    stoker_error error = { .message = "" };
    tcp_my_variables = variables;
    const int rc = stk_tcp_join(&peers, &ranks, &options, &error);
    tcp_my_variables = NULL;
    CHECK(rc == STOKER_EINVAL);
    CHECK(peers == NULL);
    if (strstr(error.message, word) == NULL)
        fprintf(stderr, "%s\n", error.message);
    CHECK(strstr(error.message, word) != NULL);
}

static void variables_are_checked(void)
{
    static const char *const bad[] = { "0", "65536", "-1", "29500 ", " 29500", "http", "999999" };
    char text[64];
    struct tcp_variables variables = { .count = 0 };
    expect_refusal(&variables, "MASTER_ADDR is not set: rank 1 of 3");
    tcp_set(&variables, "MASTER_ADDR", "127.0.0.1");
    expect_refusal(&variables, "MASTER_PORT is not set");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tcp_set(&variables, "MASTER_PORT", bad[i]);
        (void)snprintf(text, sizeof(text), "MASTER_PORT=\"%s\" is not a port in 1..65535", bad[i]);
        expect_refusal(&variables, text);
    }
    tcp_set(&variables, "STOKER_PORT", "x");
    expect_refusal(&variables, "STOKER_PORT=\"x\"");
}

static struct stk_tcp_rendezvous find(const struct tcp_variables *variables)
{
    const stoker_ranks ranks = { .struct_size = sizeof(ranks), .rank = 1, .world_size = 3 };
    struct stk_tcp_rendezvous found;
    tcp_my_variables = variables;
    CHECK(stk_tcp_find_rendezvous(&found, &ranks, NULL) == STOKER_OK);
    tcp_my_variables = NULL;
    return found;
}

static void ports_follow_from_variables(void)
{
    struct tcp_variables variables = { .count = 0 };
    tcp_set(&variables, "MASTER_ADDR", "[fe80::1]");
    tcp_set(&variables, "MASTER_PORT", "65530");
    struct stk_tcp_rendezvous found = find(&variables);
    const uint64_t run = found.hello.run;
    CHECK(strcmp(found.host, "fe80::1") == 0);
    CHECK(found.port_count == STK_TCP_PORTS);
    CHECK(found.ports[0] == 65530 && found.ports[5] == 65535 && found.ports[6] == 65524);
    CHECK(found.hello.run == find(&variables).hello.run);
    tcp_set(&variables, "TORCHELASTIC_USE_AGENT_STORE", "True");
    found = find(&variables);
    CHECK(found.port_count == STK_TCP_PORTS - 1);
    CHECK(found.ports[0] == 65531);
    CHECK(found.hello.run == run);
    tcp_set(&variables, "TORCHELASTIC_RESTART_COUNT", "1");
    CHECK(find(&variables).hello.run != run);
    tcp_set(&variables, "STOKER_PORT", "4000");
    found = find(&variables);
    CHECK(found.port_count == 1 && found.ports[0] == 4000);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static const struct scenario {
    void (*prepare)(struct tcp_run *run);
    void (*check)(const struct tcp_run *run);
    uint32_t odd;
} scenarios[] = {
    { without_an_agent, all_meet, RANKS },
    { by_name, all_meet, RANKS },
    { by_ipv6, all_meet, RANKS },
    { on_several_nodes, all_meet, RANKS },
    { at_our_own_port, all_meet, RANKS },
    { rank_0_is_last, all_meet, RANKS },
    { one_stays_away, it_is_missed, 2 },
    { one_stays_away, rank_0_is_missed, 0 },
    { one_comes_twice, both_are_named, RANKS },
    { one_counts_more, its_number_is_refused, RANKS },
};

enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static void every_scenario(void)
{
    static struct tcp_run runs[SCENARIOS];
    for (uint32_t i = 0; i < SCENARIOS; i++) {
        tcp_open_run(&runs[i], RANKS, TCP_LONG_MS, tcp_meet);
        runs[i].odd = scenarios[i].odd;
        scenarios[i].prepare(&runs[i]);
        tcp_start(&runs[i]);
    }
    for (uint32_t i = 0; i < SCENARIOS; i++) {
        tcp_end(&runs[i]);
        scenarios[i].check(&runs[i]);
    }
}

int main(void)
{
    const uint32_t files = tcp_open_files();
    variables_are_checked();
    ports_follow_from_variables();
    every_scenario();
    a_port_that_another_program_has(true);
    a_port_that_another_program_has(false);
    strangers_are_sent_away();
    every_bit_of_a_hello();
    one_comes_again();
    CHECK(tcp_open_files() == files);
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
