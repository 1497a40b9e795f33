/* leases.c - see leases.h. */
#include "loader/api/lend/leases.h"

#include <stoker/error.h>
#include <string.h>

void stk_leases_init(struct stk_leases *leases, const struct stk_leases_owner *owner)
{
    leases->owner = *owner;
    pthread_mutex_init(&leases->lock, NULL);
    pthread_mutex_init(&leases->turn, NULL);
    leases->made = true;
}

void stk_leases_destroy(struct stk_leases *leases)
{
    if (leases->made) {
        pthread_mutex_destroy(&leases->lock);
        pthread_mutex_destroy(&leases->turn);
    }
    memset(leases, 0, sizeof(*leases));
}

void stk_leases_share(struct stk_leases *leases)
{
    leases->shares = true;
}

/* Give back what is in the list, unless another thread has the turn: that one looks again when its
 * turn ends. */
static void give_back_now(struct stk_leases *leases)
{
    while (atomic_load(&leases->returned) != NULL && pthread_mutex_trylock(&leases->turn) == 0) {
        const bool shares = leases->shares;
        if (shares)
            stk_leases_give_back(leases);
        pthread_mutex_unlock(&leases->turn);
        if (!shares)
            return;
    }
}

void stk_leases_begin_turn(struct stk_leases *leases)
{
    if (leases->shares)
        pthread_mutex_lock(&leases->turn);
}

void stk_leases_end_turn(struct stk_leases *leases)
{
    if (!leases->shares)
        return;
    pthread_mutex_unlock(&leases->turn);
    give_back_now(leases);
}

/* Of a loader that is being destroyed only its last owner gives anything back. */
static void stop_sharing(struct stk_leases *leases)
{
    if (!leases->shares)
        return;
    pthread_mutex_lock(&leases->turn);
    leases->shares = false;
    pthread_mutex_unlock(&leases->turn);
}

static int end_work(struct stk_leases *leases, struct stk_lease *lease, void *stream, bool again)
{
    pthread_mutex_lock(&leases->lock);
    const int rc = leases->owner.end_work(leases->owner.self, lease, stream, again);
    pthread_mutex_unlock(&leases->lock);
    return rc;
}

int stk_leases_end_work(struct stk_leases *leases, struct stk_lease *lease, void *stream)
{
    return end_work(leases, lease, stream, false);
}

void stk_leases_add(struct stk_leases *leases, struct stk_lease *lease)
{
    lease->shared_turn = stk_lease_turn(lease);
    atomic_fetch_add(&lease->users, 1U);
    atomic_fetch_add(&leases->out, 1U);
}

/* The last user is gone: hand the lease to the consumer's thread. Only that one takes leases from
 * the list, and all at once, so a plain exchange of its head is safe. */
static void put_returned(struct stk_leases *leases, struct stk_lease *lease)
{
    struct stk_lease *head = atomic_load_explicit(&leases->returned, memory_order_relaxed);
    do
        lease->next = head;
    while (!atomic_compare_exchange_weak(&leases->returned, &head, lease));
    if (atomic_load(&leases->waiting)) /* the consumer stores it, then looks at the list */
        leases->owner.wake(leases->owner.self);
}

/* `count` less are out. Returns true if they were the last, and the leases have ended. */
static bool leave(struct stk_leases *leases, uint32_t count)
{
    return atomic_fetch_sub(&leases->out, count) == (STK_LEASE_RELEASED | count);
}

void stk_leases_drop(struct stk_leases *leases, struct stk_lease *lease)
{
    const uint32_t users = atomic_fetch_sub(&lease->users, 1U);
    if ((users & ~STK_LEASE_OUTLIVES) == (STK_LEASE_RELEASED | 1U)) {
        put_returned(leases, lease);
        give_back_now(leases);
    }
    if (leave(leases, 1))
        leases->owner.last_out(leases->owner.self);
}

/* The batch's own use of its lease ends. Returns how many less are out for that: 1 if it outlived
 * the loader. */
static uint32_t end_batch(struct stk_leases *leases, struct stk_lease *lease)
{
    const uint32_t users = atomic_fetch_or(&lease->users, STK_LEASE_RELEASED);
    if ((users & ~STK_LEASE_OUTLIVES) == 0) /* no tensor is out */
        put_returned(leases, lease);
    return (users & STK_LEASE_RELEASED) == 0 && (users & STK_LEASE_OUTLIVES) != 0;
}

/* ---- users whose end could not be marked ---- */

static void put_unended(struct stk_leases *leases, struct stk_unended *unended)
{
    unended->next = atomic_load_explicit(&leases->unended, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&leases->unended, &unended->next, unended)) {
    }
}

/* last: this is the last attempt, and they end in any case. The leases outlive this call: the
 * caller counts as one that is out, or nothing has ended yet. */
static void retry(struct stk_leases *leases, bool last)
{
    struct stk_unended *unended = atomic_exchange(&leases->unended, NULL);
    while (unended != NULL) {
        struct stk_unended *const next = unended->next;
        struct stk_lease *const lease = unended->lease;
        const int rc = end_work(leases, lease, unended->stream, true);
        if (rc == STOKER_EINVAL && !last) {
            put_unended(leases, unended);
        } else {
            if (unended->out != NULL)
                atomic_store_explicit(unended->out, false, memory_order_release);
            stk_leases_drop(leases, lease);
        }
        unended = next;
    }
}

void stk_leases_retry(struct stk_leases *leases)
{
    retry(leases, false);
}

/* This puts the user into the list and then looks if the leases have ended; stk_leases_end() does
 * the reverse: one of them finds it. Both count as out meanwhile, so that nobody frees the leases
 * under them. */
void stk_leases_end_later(struct stk_leases *leases, struct stk_unended *unended,
                          struct stk_lease *lease, void *stream, _Atomic bool *out)
{
    *unended = (struct stk_unended){ .lease = lease, .stream = stream, .out = out };
    atomic_fetch_add(&leases->out, 1U);
    put_unended(leases, unended);
    if ((atomic_load(&leases->out) & STK_LEASE_RELEASED) != 0)
        retry(leases, true);
    if (leave(leases, 1))
        leases->owner.last_out(leases->owner.self);
}

void stk_leases_release_later(struct stk_leases *leases, struct stk_lease *lease, void *stream)
{
    atomic_fetch_add(&lease->users, 1U);
    atomic_fetch_add(&leases->out, 2U); /* it, and this call */
    stk_leases_end_later(leases, &lease->unended, lease, stream, NULL);
    if (leave(leases, 1 + end_batch(leases, lease)))
        leases->owner.last_out(leases->owner.self);
}

void stk_leases_outlive(struct stk_leases *leases, struct stk_lease *lease)
{
    atomic_fetch_add(&leases->out, 1U);
    if ((atomic_fetch_or(&lease->users, STK_LEASE_OUTLIVES) & STK_LEASE_RELEASED) != 0)
        atomic_fetch_sub(&leases->out, 1U); /* released meanwhile; nothing has ended yet */
}

bool stk_leases_end(struct stk_leases *leases)
{
    stop_sharing(leases);
    atomic_fetch_add(&leases->out, 1U);
    atomic_fetch_or(&leases->out, STK_LEASE_RELEASED);
    retry(leases, true);
    return leave(leases, 1);
}

/* Returns true if the batch is not lent there any more: it was released before, through a copy of
 * the batch. */
static bool is_over(const struct stk_lease *lease, uint64_t turn, uint32_t users)
{
    return stk_lease_turn(lease) != turn || (users & STK_LEASE_RELEASED) != 0;
}

bool stk_leases_release(struct stk_leases *leases, struct stk_lease *lease, uint64_t turn,
                        void *stream, int *rc)
{
    const uint32_t users = atomic_load_explicit(&lease->users, memory_order_acquire);
    *rc = 0;
    if (users == 0)
        return true;
    if (is_over(lease, turn, users))
        return false;
    *rc = stk_leases_end_work(leases, lease, stream);
    if (*rc == STOKER_EINVAL)
        return false;
    if ((users & STK_LEASE_OUTLIVES) != 0) {
        if (leave(leases, end_batch(leases, lease)))
            leases->owner.last_out(leases->owner.self);
        return false;
    }
    if (atomic_fetch_or(&lease->users, STK_LEASE_RELEASED) != 0)
        return false;
    atomic_store(&lease->users, 0U); /* the last deleter has run meanwhile */
    return true;
}

int stk_leases_return(struct stk_leases *leases, struct stk_lease *lease, uint64_t turn,
                      void *stream)
{
    if (is_over(lease, turn, atomic_load_explicit(&lease->users, memory_order_acquire)))
        return 0;
    atomic_fetch_add(&leases->out, 1U); /* destroy may find the batch released before we return */
    const int rc = stk_leases_end_work(leases, lease, stream);
    uint32_t less = 1;
    if (rc != STOKER_EINVAL) {
        less += end_batch(leases, lease);
        give_back_now(leases);
    }
    if (leave(leases, less))
        leases->owner.last_out(leases->owner.self);
    return rc;
}

void stk_leases_give_back(struct stk_leases *leases)
{
    struct stk_lease *lease = atomic_exchange(&leases->returned, NULL);
    while (lease != NULL) {
        struct stk_lease *next = lease->next; /* giving it back may link it elsewhere */
        atomic_store(&lease->users, 0U);
        leases->owner.give_back(leases->owner.self, lease);
        lease = next;
    }
}
