/* threads.c - see threads.h: sync points of a circle, sums and broadcasts.
 *
 * A rank that has come leaves the sync point only with all others, or with an error. Once all have
 * come, each does its share of the work, whatever fails elsewhere: that takes a bounded time, so
 * the wait for its end needs no time-out, and no rank frees an array that another still reads. */
#include "trainer/peers/threads/threads.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

enum {
    SPINS = 4000,     /* some tens of microseconds: less than to sleep and wake */
    NAMED_MAX = 8,    /* ranks in a message */
    PART_FLOATS = 16, /* a part begins on a cache line if the array does */
    BLOCK_FLOATS = 2048
};

/* One rank's end. Only its thread uses it. */
struct thread_peers {
    struct stk_peers peers; /* first */
    struct stoker_peer_group *group;
    struct stk_circle *circle;
    uint32_t timeout_ms;
    bool spins;       /* every rank has a CPU of its own */
    uint64_t gathers; /* so far: their turns of the rows */
    uint32_t sums;    /* entries of sum that were begun */
    struct stk_thread_array sum[STK_SUMS_MAX];
    bool failed; /* with this cause, the first that this rank has seen */
    stoker_error cause;
};

static struct thread_peers *of(struct stk_peers *peers)
{
    return (struct thread_peers *)peers;
}

static bool is_broken(const struct stk_circle *circle)
{
    return atomic_load_explicit(&circle->broken, memory_order_acquire); /* stk_circle_break() */
}

/* ---- errors ---------------------------------------------------------------------- */

/* "rank 1", "ranks 1, 3 and 5" */
static void list_missing(const struct stk_circle *circle, char *text, size_t bytes)
{
    uint32_t missing = 0;
    uint32_t named = 0;
    for (uint32_t r = 0; r < circle->world_size; r++)
        missing += circle->rank[r].missing ? 1 : 0;
    size_t used = (size_t)snprintf(text, bytes, missing == 1 ? "rank" : "ranks");
    for (uint32_t r = 0; r < circle->world_size && named < NAMED_MAX; r++)
        if (circle->rank[r].missing) {
            const char *const between = named == 0 ? " " : named + 1 == missing ? " and " : ", ";
            used += (size_t)snprintf(text + used, bytes - used, "%s%u", between, r);
            named++;
        }
    if (missing > named)
        (void)snprintf(text + used, bytes - used, " and %u more", missing - named);
}

/* The lock is held. */
static void describe(struct thread_peers *p, const char *what)
{
    const struct stk_circle *const c = p->circle;
    char missing[160];
    stoker_error *const cause = &p->cause;
    if (!c->timed_out) {
        (void)stk_refuse_option(cause, STOKER_EPEER, "rank %u: %s", c->from, c->text);
    } else if (c->rank[p->peers.rank].missing) {
        (void)stk_refuse_option(cause, STOKER_EPEER,
                                "rank %u gave up after %u ms, before this rank %u came (%s)",
                                c->from, c->timeout_ms, p->peers.rank, what);
    } else {
        list_missing(c, missing, sizeof(missing));
        (void)stk_refuse_option(cause, STOKER_EPEER,
                                "%s did not come within %u ms (%s): stopped, slow or gone", missing,
                                c->timeout_ms, c->text);
    }
}

/* The first cause again, if there was one. */
static int check(struct thread_peers *p, const char *what, stoker_error *error)
{
    if (!p->failed && is_broken(p->circle)) {
        (void)pthread_mutex_lock(&p->circle->lock);
        describe(p, what);
        (void)pthread_mutex_unlock(&p->circle->lock);
        p->failed = true;
    }
    if (!p->failed)
        return STOKER_OK;
    if (error != NULL)
        *error = p->cause;
    return p->cause.code;
}

static void tell_failed(struct stk_peers *peers, int code, const char *text)
{
    struct thread_peers *const p = of(peers);
    (void)code; /* to the others it is STOKER_EPEER */
    if (p->failed)
        return;
    p->failed = true;
    (void)stk_refuse_option(&p->cause, STOKER_EPEER, "%s", text);
    (void)pthread_mutex_lock(&p->circle->lock);
    stk_circle_break(p->circle, peers->rank, text);
    (void)pthread_mutex_unlock(&p->circle->lock);
}

/* ---- a sync point ------------------------------------------------------------------- */

/* The lock is held by those below. */

static const char *const calls[] = { [STK_THREAD_GATHER] = "exchange words",
                                     [STK_THREAD_SUM] = "add gradients",
                                     [STK_THREAD_BROADCAST] = "receive what rank 0 sends" };

/* Ranks that come for different things would read beyond each other's memory. */
static bool agree(struct stk_circle *circle)
{
    char text[STK_WORD_TEXT_BYTES];
    const struct stk_thread_rank *const first = &circle->rank[0];
    for (uint32_t r = 1; r < circle->world_size; r++) {
        const struct stk_thread_rank *const other = &circle->rank[r];
        if (other->call == first->call && other->bytes == first->bytes)
            continue;
        (void)snprintf(text, sizeof(text),
                       "it came to %s, rank 0 to %s: every rank must make the same calls",
                       calls[other->call], calls[first->call]);
        stk_circle_break(circle, r, text);
        return false;
    }
    return true;
}

static void end_sync_point(struct stk_circle *circle)
{
    if (!agree(circle))
        return;
    circle->working = circle->rank[0].call == STK_THREAD_GATHER ? 0 : circle->world_size;
    circle->here = 0;
    for (uint32_t r = 0; r < circle->world_size; r++)
        circle->rank[r].here = false;
    /* Pairs with the acquire in spin(). */
    atomic_fetch_add_explicit(&circle->sync_points, 1, memory_order_release);
    (void)pthread_cond_broadcast(&circle->changed);
}

static void give_up(struct thread_peers *p, const char *what)
{
    struct stk_circle *const c = p->circle;
    if (is_broken(c))
        return;
    c->timed_out = true;
    c->timeout_ms = p->timeout_ms;
    for (uint32_t r = 0; r < c->world_size; r++)
        c->rank[r].missing = !c->rank[r].here;
    stk_circle_break(c, p->peers.rank, what);
}

static bool is_over(const struct stk_circle *circle, uint64_t sync_point)
{
    return atomic_load_explicit(&circle->sync_points, memory_order_acquire) != sync_point;
}

static void await(struct thread_peers *p, uint64_t sync_point, const char *what)
{
    struct stk_circle *const c = p->circle;
    const uint64_t end_ns = stk_now_ns() + p->timeout_ms * UINT64_C(1000000);
    const struct timespec end = { .tv_sec = (time_t)(end_ns / 1000000000),
                                  .tv_nsec = (long)(end_ns % 1000000000) };
    int waited = 0;
    while (!is_over(c, sync_point) && !is_broken(c) && waited == 0)
        waited = pthread_cond_timedwait(&c->changed, &c->lock, &end);
    if (!is_over(c, sync_point))
        give_up(p, what);
}

/* ---- without the lock ---- */

/* Others often come within the time that a sleep takes. */
static void spin(const struct thread_peers *p, uint64_t sync_point)
{
    for (int i = 0; p->spins && i < SPINS && !is_over(p->circle, sync_point); i++) {
        if (is_broken(p->circle))
            return;
        stk_spin_pause();
    }
}

/* Waits for all ranks; what: for, in messages. */
static int come(struct thread_peers *p, struct stk_thread_rank with, const char *what,
                stoker_error *error)
{
    struct stk_circle *const c = p->circle;
    struct stk_thread_rank *const self = &c->rank[p->peers.rank];
    const int rc = check(p, what, error);
    if (rc != STOKER_OK)
        return rc;
    (void)pthread_mutex_lock(&c->lock);
    const uint64_t sync_point = atomic_load_explicit(&c->sync_points, memory_order_relaxed);
    bool met = false;
    if (!is_broken(c)) {
        self->call = with.call;
        self->bytes = with.bytes;
        self->memory = with.memory;
        self->here = true;
        if (++c->here == c->world_size)
            end_sync_point(c);
        (void)pthread_mutex_unlock(&c->lock);
        spin(p, sync_point);
        (void)pthread_mutex_lock(&c->lock);
        await(p, sync_point, what);
        met =
            is_over(c, sync_point); /* even if the circle has broken since: the others work, too */
    }
    (void)pthread_mutex_unlock(&c->lock);
    return met ? STOKER_OK : check(p, what, error);
}

/* This rank has done its share: waits for those of all. */
static void end_work(struct stk_circle *circle)
{
    (void)pthread_mutex_lock(&circle->lock);
    if (--circle->working == 0)
        (void)pthread_cond_broadcast(&circle->changed);
    while (circle->working > 0)
        (void)pthread_cond_wait(&circle->changed, &circle->lock);
    (void)pthread_mutex_unlock(&circle->lock);
}

/* ---- gather, broadcast ----------------------------------------------------------- */

/* A row is written again two gathers later: at the one between, every rank has come, and no
 * longer reads it. */
static int gather(struct stk_peers *peers, const void *mine, size_t bytes, const void **all,
                  stoker_error *error)
{
    struct thread_peers *const p = of(peers);
    uint8_t *const rows = p->circle->rows[p->gathers % 2];
    assert(bytes >= 1);
    assert(bytes <= peers->gather_bytes_max);
    int rc = check(p, "a sync point of all ranks", error);
    if (rc != STOKER_OK)
        return rc;
    memcpy(rows + peers->rank * bytes, mine, bytes);
    rc = come(p, (struct stk_thread_rank){ .call = STK_THREAD_GATHER, .bytes = bytes },
              "a sync point of all ranks", error);
    if (rc != STOKER_OK)
        return rc;
    p->gathers++;
    *all = rows;
    return STOKER_OK;
}

static int finish(struct stk_peers *peers, stoker_error *error);

static int broadcast(struct stk_peers *peers, void *memory, size_t bytes, stoker_error *error)
{
    struct thread_peers *const p = of(peers);
    int rc = finish(peers, error);
    if (rc == STOKER_OK)
        rc = come(p,
                  (struct stk_thread_rank){
                      .call = STK_THREAD_BROADCAST, .bytes = bytes, .memory = memory },
                  "what rank 0 sends", error);
    if (rc != STOKER_OK)
        return rc;
    if (peers->rank != 0)
        memcpy(memory, p->circle->rank[0].memory, bytes);
    end_work(p->circle);
    return STOKER_OK;
}

/* ---- sums ------------------------------------------------------------------------ */

static float *array_of(const struct stk_circle *circle, uint32_t rank, uint32_t index)
{
    const struct stk_thread_array *const arrays = circle->rank[rank].memory;
    return arrays[index].floats;
}

/* Floats [begin, begin + count) of an array of all ranks, count <= BLOCK_FLOATS. */
static void add_block(const struct stk_circle *circle, uint32_t index, uint64_t begin,
                      uint64_t count)
{
    float sum[BLOCK_FLOATS];
    memcpy(sum, array_of(circle, 0, index) + begin, count * sizeof(float));
    for (uint32_t r = 1; r < circle->world_size; r++) {
        const float *const more = array_of(circle, r, index) + begin;
        for (uint64_t i = 0; i < count; i++)
            sum[i] += more[i];
    }
    for (uint32_t r = 0; r < circle->world_size; r++)
        memcpy(array_of(circle, r, index) + begin, sum, count * sizeof(float));
}

/* This rank's part of an array. */
static void add_part(const struct thread_peers *p, uint32_t index)
{
    const struct stk_circle *const circle = p->circle;
    const uint64_t count = p->sum[index].count;
    const uint64_t lines = (count + PART_FLOATS - 1) / PART_FLOATS;
    const uint64_t begin = lines * p->peers.rank / circle->world_size * PART_FLOATS;
    const uint64_t after = lines * (p->peers.rank + 1) / circle->world_size * PART_FLOATS;
    const uint64_t end = after < count ? after : count;
    for (uint64_t at = begin; at < end; at += BLOCK_FLOATS)
        add_block(circle, index, at, end - at < BLOCK_FLOATS ? end - at : BLOCK_FLOATS);
}

/* Adds all that was begun, with one sync point. */
static int finish(struct stk_peers *peers, stoker_error *error)
{
    struct thread_peers *const p = of(peers);
    static const char what[] = "the sum of gradients";
    uint64_t bytes = 0;
    if (p->sums == 0)
        return check(p, what, error);
    for (uint32_t i = 0; i < p->sums; i++)
        bytes += p->sum[i].count * sizeof(float);
    const int rc = come(
        p, (struct stk_thread_rank){ .call = STK_THREAD_SUM, .bytes = bytes, .memory = p->sum },
        what, error);
    if (rc == STOKER_OK) {
        for (uint32_t i = 0; i < p->sums; i++)
            add_part(p, i);
        end_work(p->circle);
    }
    p->sums = 0;
    return rc;
}

/* An empty slot is left for it: finish() makes room. */
static int all_reduce(struct stk_peers *peers, float *floats, uint64_t count, stoker_error *error)
{
    struct thread_peers *const p = of(peers);
    const int rc =
        p->sums == STK_SUMS_MAX ? finish(peers, error) : check(p, "the sum of gradients", error);
    if (rc == STOKER_OK)
        p->sum[p->sums++] = (struct stk_thread_array){ floats, count };
    return rc;
}

static bool has_room(const struct stk_peers *peers)
{
    return ((const struct thread_peers *)peers)->sums < STK_SUMS_MAX;
}

static int poll(struct stk_peers *peers, stoker_error *error)
{
    return check(of(peers), "between two calls", error);
}

/* ---- coming and going ------------------------------------------------------------ */

static void leave(struct stk_peers *peers)
{
    struct thread_peers *const p = of(peers);
    const struct stk_word word = stk_peers_word(STK_SYNC_LEAVE, STOKER_OK, NULL);
    if (finish(peers, NULL) == STOKER_OK)
        (void)stk_peers_agree(peers, &word, NULL, NULL);
    stk_group_leave(p->group, p->circle, peers->rank);
    stk_free(p);
}

static const struct stk_peers_ops ops = { .name = "threads",
                                          .leave = leave,
                                          .gather = gather,
                                          .all_reduce = all_reduce,
                                          .has_room = has_room,
                                          .poll = poll,
                                          .finish = finish,
                                          .broadcast = broadcast,
                                          .failed = tell_failed };

int stk_threads_join(struct stk_peers **out, const struct stk_peers_options *options,
                     stoker_error *error)
{
    struct stoker_peer_group *const group = options->group;
    struct thread_peers *const p = stk_calloc(1, sizeof(*p));
    if (p == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "peers");
    const int rc = stk_group_join(group, options->group_rank, &p->circle, error);
    if (rc != STOKER_OK) {
        stk_free(p);
        return rc;
    }
    p->peers = (struct stk_peers){ .ops = &ops,
                                   .rank = options->group_rank,
                                   .world_size = group->world_size,
                                   .gather_bytes_max = p->circle->row_bytes,
                                   .threads = true };
    p->group = group;
    p->timeout_ms = options->timeout_ms;
    p->spins = stk_cpu_count() >= group->world_size;
    *out = &p->peers;
    return STOKER_OK;
}
