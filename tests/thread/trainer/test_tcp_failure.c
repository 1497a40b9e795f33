/* test_tcp_failure.c - ranks that meet over TCP: one of them fails, ends, is slow or makes other calls. The others name it,
 * later calls repeat the first cause, and no rank waits for ever. */
#include "loader/base/fault.h"
#include "support/tcp_run.h"

enum { RANKS = 4, LARGE = 8 << 20 };

/* All but the odd rank report this. */
static void others_say(const struct tcp_run *run, const char *word)
{
    for (uint32_t r = 0; r < RANKS; r++)
        if (r != run->odd)
            tcp_check_says(&run->rank[r], STOKER_EPEER, word);
}

static const char *name_of(uint32_t rank)
{
    static const char *const names[] = { "rank 0", "rank 1", "rank 2", "rank 3" };
    return names[rank];
}

/* Every call repeats the first cause, in the same words. */
static void repeats(struct tcp_rank *me)
{
    uint32_t number = 0;
    const void *all = NULL;
    stoker_error error = { .message = "" };
    const struct stk_peers_ops *const ops = me->peers->ops;
    for (int i = 0; i < 4; i++) {
        error.message[0] = '\0';
        const int rc = i == 0   ? ops->gather(me->peers, &number, sizeof(number), &all, &error)
                       : i == 1 ? ops->broadcast(me->peers, &number, sizeof(number), &error)
                       : i == 2 ? ops->poll(me->peers, &error)
                                : ops->finish(me->peers, &error);
        CHECK(rc == STOKER_EPEER);
        CHECK(strcmp(error.message, me->error.message) == 0);
    }
}

/* ---- a rank that cannot continue ------------------------------------------------------- */

static int one_fails(struct tcp_rank *me)
{
    int rc = tcp_meet(me);
    if (me->rank == me->run->odd) {
        CHECK(rc == STOKER_OK);
        me->peers->ops->failed(me->peers, STOKER_EIO, "the disk is full");
        me->peers->ops->failed(me->peers, STOKER_EIO, "and later the other one");
    }
    if (rc == STOKER_OK) /* the failure may come before the end of the first meeting */
        rc = tcp_meet(me);
    repeats(me);
    return rc;
}

static void a_failure_is_named(const struct tcp_run *run)
{
    others_say(run, "the disk is full");
    others_say(run, name_of(run->odd));
    tcp_check_says(&run->rank[run->odd], STOKER_EPEER, "the disk is full");
}

/* The same between two calls: a rank that computes looks now and then. */
static int looks(struct tcp_rank *me)
{
    int rc = tcp_meet(me);
    if (me->rank == me->run->odd) {
        me->peers->ops->failed(me->peers, STOKER_EIO, "the disk is full");
        return STOKER_EPEER;
    }
    while (rc == STOKER_OK) { /* every rank passes by rank 0 */
        rc = me->peers->ops->poll(me->peers, &me->error);
        tcp_sleep_ms(1);
    }
    return rc;
}

static void a_failure_is_seen(const struct tcp_run *run)
{
    others_say(run, "the disk is full");
}

/* A failure reaches ranks in the middle of a broadcast. */
static int fails_while_others_broadcast(struct tcp_rank *me)
{
    uint8_t *const memory = calloc(1, LARGE);
    CHECK(memory != NULL);
    int rc = STOKER_OK;
    if (me->rank == me->run->odd)
        me->peers->ops->failed(me->peers, STOKER_EIO, "the disk is full");
    for (int i = 0; i < 8 && rc == STOKER_OK; i++)
        rc = me->peers->ops->broadcast(me->peers, memory, LARGE, &me->error);
    free(memory);
    return rc == STOKER_OK ? tcp_meet(me) : rc;
}

static void a_failure_ends_a_broadcast(const struct tcp_run *run)
{
    others_say(run, "rank 2: the disk is full");
}

/* ---- a rank that is gone --------------------------------------------------------------- */

static void cut(struct tcp_rank *me)
{
    struct stk_tcp_peers *const p = stk_tcp_peers_of(me->peers);
    for (uint32_t i = 0; i < p->link_count; i++)
        CHECK(shutdown(p->links[i].fd, SHUT_RDWR) == 0);
}

static int one_is_gone(struct tcp_rank *me)
{
    int rc = tcp_meet(me);
    if (me->rank == me->run->odd) {
        cut(me);
        return STOKER_EPEER;
    }
    if (rc == STOKER_OK)
        rc = tcp_meet(me);
    repeats(me);
    return rc;
}

static void it_is_gone(const struct tcp_run *run)
{
    others_say(run, name_of(run->odd));
    others_say(run, "its connection is closed");
}

/* A program that ends early, in order: the meetings differ. */
static int one_leaves(struct tcp_rank *me)
{
    const int rc = tcp_meet(me);
    return me->rank == me->run->odd || rc != STOKER_OK ? rc : tcp_meet(me);
}

static void it_has_left(const struct tcp_run *run)
{
    others_say(run, name_of(run->odd));
    others_say(run, "has ended");
}

/* ---- a rank that is late --------------------------------------------------------------- */

static int one_is_late(struct tcp_rank *me)
{
    int rc = tcp_meet(me);
    if (me->rank == me->run->odd)
        tcp_await_left(me->run, RANKS - 1);
    if (rc == STOKER_OK)
        rc = tcp_meet(me);
    repeats(me);
    return rc;
}

static void it_is_late(const struct tcp_run *run)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "rank %u did not come within", run->odd);
    others_say(run, text);
    tcp_check_says(&run->rank[run->odd], STOKER_EPEER, "gave up");
}

/* The same for ranks that wait for rank 0's weights. */
static int is_late_to_a_broadcast(struct tcp_rank *me)
{
    uint32_t number = 1;
    if (me->rank == me->run->odd)
        tcp_await_left(me->run, RANKS - 1);
    return me->peers->ops->broadcast(me->peers, &number, sizeof(number), &me->error);
}

/* A rank that comes within the time-out, again and again, is not named. */
static int all_are_slow(struct tcp_rank *me)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < 8 && rc == STOKER_OK; i++) {
        if (i % RANKS == me->rank)
            tcp_sleep_ms(100);
        rc = tcp_meet(me);
    }
    return rc;
}

static void all_is_well(const struct tcp_run *run)
{
    for (uint32_t r = 0; r < RANKS; r++)
        tcp_check_says(&run->rank[r], STOKER_OK, "");
}

/* ---- ranks that make other calls ---------------------------------------------------------- */

static int gathers_more(struct tcp_rank *me)
{
    const uint64_t numbers[2] = { 0 };
    const void *all = NULL;
    return me->peers->ops->gather(me->peers, numbers, me->rank == me->run->odd ? 16 : 8, &all,
                                  &me->error);
}

static int broadcasts_instead(struct tcp_rank *me)
{
    uint64_t number = 0;
    const void *all = NULL;
    int rc = me->rank == me->run->odd
                 ? me->peers->ops->broadcast(me->peers, &number, sizeof(number), &me->error)
                 : me->peers->ops->gather(me->peers, &number, sizeof(number), &all, &me->error);
    return rc == STOKER_OK ? tcp_meet(me) : rc;
}

static void its_bytes_are_named(const struct tcp_run *run)
{
    for (uint32_t r = 0; r < RANKS; r++)
        tcp_check_says(&run->rank[r], STOKER_EPEER, "rank 2 came with 16 bytes, rank 0 with 8");
}

static void other_calls_are_named(const struct tcp_run *run)
{
    for (uint32_t r = 0; r < RANKS; r++)
        tcp_check_says(&run->rank[r], STOKER_EPEER, "the same calls");
}

/* It waits for rank 0, which waits for it. */
static void they_wait_for_different_things(const struct tcp_run *run)
{
    for (uint32_t r = 0; r < RANKS; r++)
        tcp_check_says(&run->rank[r], STOKER_EPEER, "wait for different things");
}

static int sums(struct tcp_rank *me)
{
    float number = 1;
    const int rc = me->peers->ops->all_reduce(me->peers, &number, 1, &me->error);
    CHECK(rc == STOKER_ENOTSUP);
    CHECK(strstr(me->error.message, "mpirun") != NULL);
    return tcp_meet(me); /* nothing has happened */
}

/* ---- all of it at once: most ranks wait most of the time -------------------------------- */

static const struct scenario {
    int (*talk)(struct tcp_rank *me);
    void (*check)(const struct tcp_run *run);
    uint32_t odd; /* RANKS: none */
    uint32_t timeout_ms;
} scenarios[] = {
    { one_fails, a_failure_is_named, 0, TCP_LONG_MS },
    { one_fails, a_failure_is_named, 2, TCP_LONG_MS },
    { one_fails, a_failure_is_named, 3, TCP_LONG_MS },
    { looks, a_failure_is_seen, 0, TCP_LONG_MS },
    { looks, a_failure_is_seen, 1, TCP_LONG_MS },
    { fails_while_others_broadcast, a_failure_ends_a_broadcast, 2, TCP_LONG_MS },
    { one_is_gone, it_is_gone, 0, TCP_LONG_MS },
    { one_is_gone, it_is_gone, 3, TCP_LONG_MS },
    { one_leaves, it_has_left, 0, TCP_LONG_MS },
    { one_leaves, it_has_left, 1, TCP_LONG_MS },
    { one_is_late, it_is_late, 0, TCP_SHORT_MS },
    { one_is_late, it_is_late, 1, TCP_SHORT_MS },
    { one_is_late, it_is_late, 3, TCP_SHORT_MS },
    { is_late_to_a_broadcast, it_is_late, 0, TCP_SHORT_MS },
    { all_are_slow, all_is_well, RANKS, TCP_LONG_MS },
    { gathers_more, its_bytes_are_named, 2, TCP_LONG_MS },
    { broadcasts_instead, other_calls_are_named, 0, TCP_LONG_MS },
    { broadcasts_instead, they_wait_for_different_things, 3, TCP_SHORT_MS },
    { sums, all_is_well, RANKS, TCP_LONG_MS },
};

enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

int main(void)
{
    static struct tcp_run runs[SCENARIOS];
    const uint32_t files = tcp_open_files();
    for (uint32_t i = 0; i < SCENARIOS; i++) {
        tcp_open_run(&runs[i], RANKS, scenarios[i].timeout_ms, scenarios[i].talk);
        runs[i].odd = scenarios[i].odd;
        tcp_start(&runs[i]);
    }
    for (uint32_t i = 0; i < SCENARIOS; i++) {
        tcp_end(&runs[i]);
        scenarios[i].check(&runs[i]);
    }
    CHECK(tcp_open_files() == files);
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
