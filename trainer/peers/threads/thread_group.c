/* thread_group.c - see threads.h: which threads belong together, and how long their circle
 * lives. */
#include "trainer/peers/threads/threads.h"

#include <assert.h>
#include <stdio.h>
#include <stoker/trainer.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

enum {
    GATHERED_BYTES = 1 << 20
}; /* most in one gather, all ranks together; more if a word needs it */

/* ---- circles --------------------------------------------------------------------- */

void stk_circle_break(struct stk_circle *circle, uint32_t from, const char *text)
{
    if (atomic_load_explicit(&circle->broken, memory_order_relaxed))
        return;
    circle->from = from;
    (void)snprintf(circle->text, sizeof(circle->text), "%.*s", STK_WORD_TEXT_BYTES - 1, text);
    /* Pairs with the acquire of a thread that spins; the text is read with the lock held. */
    atomic_store_explicit(&circle->broken, true, memory_order_release);
    (void)pthread_cond_broadcast(&circle->changed);
}

/* Waits are timed by the clock of stk_now_ns(). */
static int init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return STOKER_ENOMEM;
    const bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(condition, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return made ? STOKER_OK : STOKER_ENOMEM;
}

static struct stk_circle *circle_create(uint64_t number, uint32_t world_size)
{
    struct stk_circle *const circle =
        stk_calloc(1, sizeof(*circle) + world_size * sizeof(circle->rank[0]));
    if (circle == NULL)
        return NULL;
    const size_t share = (GATHERED_BYTES / world_size) & ~(size_t)63;
    circle->number = number;
    circle->world_size = world_size;
    circle->row_bytes = share < sizeof(struct stk_word) ? sizeof(struct stk_word) : share;
    circle->rows[0] = stk_calloc(2 * (size_t)world_size, circle->row_bytes);
    if (circle->rows[0] == NULL || init_condition(&circle->changed) != STOKER_OK) {
        stk_free(circle->rows[0]);
        stk_free(circle);
        return NULL;
    }
    circle->rows[1] = circle->rows[0] + (size_t)world_size * circle->row_bytes;
    (void)pthread_mutex_init(&circle->lock, NULL); /* cannot fail on Linux */
    return circle;
}

static void circle_free(struct stk_circle *circle)
{
    (void)pthread_mutex_destroy(&circle->lock);
    (void)pthread_cond_destroy(&circle->changed);
    stk_free(circle->rows[0]);
    stk_free(circle);
}

/* ---- the group ------------------------------------------------------------------- */

int stoker_peer_group_create(stoker_peer_group **out, uint32_t world_size, stoker_error *error)
{
    if (out == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "peer group: out is NULL");
    if (world_size < 1 || world_size > STK_GROUP_RANKS_MAX)
        return stk_refuse_option(error, STOKER_EINVAL, "world_size = %u: expected 1 to %d",
                                 world_size, STK_GROUP_RANKS_MAX);
    stoker_peer_group *const group =
        stk_calloc(1, sizeof(*group) + world_size * sizeof(group->joins[0]));
    if (group == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "a group of %u ranks", world_size);
    group->world_size = world_size;
    (void)pthread_mutex_init(&group->lock, NULL);
    *out = group;
    return STOKER_OK;
}

void stoker_peer_group_destroy(stoker_peer_group **group)
{
    if (group == NULL || *group == NULL)
        return;
    while ((*group)->circles != NULL) { /* some ranks never joined them */
        struct stk_circle *const next = (*group)->circles->next;
        circle_free((*group)->circles);
        (*group)->circles = next;
    }
    (void)pthread_mutex_destroy(&(*group)->lock);
    stk_free(*group);
    *group = NULL;
}

/* A rank creates its next trainer after its last one has met the others: if not, this is another
 * thread. One rank meets nobody. The group's lock is held. */
static struct stk_circle *find_twin(const struct stoker_peer_group *group, uint32_t rank)
{
    struct stk_circle *twin = NULL;
    if (group->world_size == 1)
        return NULL;
    for (struct stk_circle *c = group->circles; c != NULL && twin == NULL; c = c->next) {
        (void)pthread_mutex_lock(&c->lock);
        const bool unmet = atomic_load_explicit(&c->sync_points, memory_order_relaxed) == 0 &&
                           !atomic_load_explicit(&c->broken, memory_order_relaxed);
        if (unmet && c->rank[rank].joined && !c->rank[rank].left)
            twin = c;
        (void)pthread_mutex_unlock(&c->lock);
    }
    return twin;
}

/* The rank's next circle, which it has joined then; NULL: out of memory. The group's lock is
 * held. */
static struct stk_circle *join_circle(struct stoker_peer_group *group, uint32_t rank)
{
    struct stk_circle *circle = group->circles;
    while (circle != NULL && circle->number != group->joins[rank])
        circle = circle->next;
    if (circle == NULL) {
        circle = circle_create(group->joins[rank], group->world_size);
        if (circle == NULL)
            return NULL;
        circle->next = group->circles;
        group->circles = circle;
    }
    group->joins[rank]++;
    (void)pthread_mutex_lock(&circle->lock);
    circle->rank[rank].joined = true;
    (void)pthread_mutex_unlock(&circle->lock);
    return circle;
}

static int refuse_twin(struct stk_circle *circle, uint32_t rank, stoker_error *error)
{
    char text[STK_WORD_TEXT_BYTES];
    (void)snprintf(text, sizeof(text),
                   "peer_rank = %u: two threads have it; give each thread a rank of its own", rank);
    (void)pthread_mutex_lock(&circle->lock);
    stk_circle_break(circle, rank, text);
    (void)pthread_mutex_unlock(&circle->lock);
    return stk_refuse_option(error, STOKER_EINVAL, "%s", text);
}

int stk_group_join(struct stoker_peer_group *group, uint32_t rank, struct stk_circle **out,
                   stoker_error *error)
{
    assert(rank < group->world_size);
    (void)pthread_mutex_lock(&group->lock);
    struct stk_circle *const twin = find_twin(group, rank);
    struct stk_circle *const circle = twin != NULL ? NULL : join_circle(group, rank);
    int rc = twin != NULL ? refuse_twin(twin, rank, error) : STOKER_OK;
    (void)pthread_mutex_unlock(&group->lock);
    if (twin == NULL && circle == NULL)
        rc = stk_refuse_option(error, STOKER_ENOMEM, "memory to join %u ranks", group->world_size);
    if (rc == STOKER_OK)
        *out = circle;
    return rc;
}

/* The group's lock is held. */
static void remove_circle(struct stoker_peer_group *group, struct stk_circle *circle)
{
    struct stk_circle **at = &group->circles;
    while (*at != circle)
        at = &(*at)->next;
    *at = circle->next;
}

/* The group's lock is held. */
static void leave(struct stoker_peer_group *group, struct stk_circle *circle, uint32_t rank)
{
    uint32_t gone = 0;
    (void)pthread_mutex_lock(&circle->lock);
    circle->rank[rank].left = true;
    for (uint32_t r = 0; r < circle->world_size; r++)
        gone += circle->rank[r].left ? 1 : 0;
    (void)pthread_mutex_unlock(&circle->lock);
    if (gone < circle->world_size)
        return;
    remove_circle(group, circle);
    circle_free(circle);
}

void stk_group_leave(struct stoker_peer_group *group, struct stk_circle *circle, uint32_t rank)
{
    (void)pthread_mutex_lock(&group->lock);
    leave(group, circle, rank);
    (void)pthread_mutex_unlock(&group->lock);
}

void stk_group_decline(struct stoker_peer_group *group, uint32_t rank, const char *text)
{
    (void)pthread_mutex_lock(&group->lock);
    struct stk_circle *const circle =
        find_twin(group, rank) == NULL ? join_circle(group, rank) : NULL;
    if (circle != NULL) { /* else the others wait until their time is up */
        (void)pthread_mutex_lock(&circle->lock);
        stk_circle_break(circle, rank, text);
        (void)pthread_mutex_unlock(&circle->lock);
        leave(group, circle, rank);
    }
    (void)pthread_mutex_unlock(&group->lock);
}
