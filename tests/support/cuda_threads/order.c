/* order.c - what happened before what, between the blocks of a launch. Blocks run one after the
 * other here, but on a GPU side by side: only fences and atomic operations order them.
 *
 *   block A:  access ─▶ fence ─▶ atomic on w                      ─▶: program order, or a barrier in between
 *                                    │ A first
 *   block B:                     atomic on w ─▶ fence ─▶ access
 *
 * So A's access happened before B's. Not followed: a chain through a third block on another word.
 */
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { ACQUIRES_MAX = 64 };

/* An atomic operation of this block. */
struct acquire {
    const char *from, *to;
    uint32_t thread, slice, epoch;
    uint32_t fence_epoch; /* the first epoch with a fence behind it; UINT32_MAX = none */
};

/* What an atomic operation published: of each thread of its block, what lies before a slice. */
struct release {
    const char *from, *to;
    uint32_t first_slice, slice; /* the first slice of its block; its own */
    uint32_t *limits;            /* [thread_count] */
};

static struct acquire acquires[ACQUIRES_MAX]; /* this block's */
static uint32_t acquire_count;
static struct release *releases; /* the launch's, sorted by slice */
static size_t release_count, release_room;
static uint32_t fence_epochs[CT_EPOCHS_MAX]; /* epochs of the block with a fence, ascending */
static uint32_t fence_epoch_count;

void ct_order_begin_launch(void)
{
    for (size_t i = 0; i < release_count; i++)
        free(releases[i].limits);
    release_count = 0;
}

void ct_order_begin_block(void)
{
    acquire_count = 0;
    fence_epoch_count = 0;
}

void ct_order_fence(void)
{
    struct ct_thread *self = ct.running;
    if (self->fence_epoch != ct.epoch)
        self->fence_slice_before = self->fence_slice;
    self->fence_slice = ++ct.slice;
    self->fence_epoch = ct.epoch;
    if (fence_epoch_count == 0 || fence_epochs[fence_epoch_count - 1] != ct.epoch)
        fence_epochs[fence_epoch_count++] = ct.epoch;
    for (uint32_t i = 0; i < acquire_count; i++)
        if (acquires[i].fence_epoch == UINT32_MAX &&
            (acquires[i].thread == ct_self() || acquires[i].epoch < ct.epoch))
            acquires[i].fence_epoch = ct.epoch;
}

/* The slice before which everything of the block lies before a fence that lies before the running
 * thread's now. */
static uint32_t limit_of_all(void)
{
    uint32_t latest = ct.running->fence_slice != 0 ? ct.running->fence_epoch : 0;
    for (uint32_t i = fence_epoch_count; i > 0; i--)
        if (fence_epochs[i - 1] < ct.epoch) {
            latest = fence_epochs[i - 1] > latest ? fence_epochs[i - 1] : latest;
            break;
        }
    return ct.epoch_slices[latest];
}

static uint32_t limit_of(uint32_t thread, uint32_t all)
{
    const struct ct_thread *t = &ct.threads[thread];
    const bool before = t == ct.running || t->fence_epoch < ct.epoch;
    const uint32_t own = before ? t->fence_slice : t->fence_slice_before;
    return own > all ? own : all;
}

void ct_order_atomic(const char *at, size_t bytes)
{
    ct.slice++;
    if (release_count == release_room) {
        release_room = release_room * 2 + 64;
        releases = realloc(releases, release_room * sizeof(*releases));
    }
    uint32_t *limits = malloc(ct.thread_count * sizeof(*limits));
    if (releases == NULL || limits == NULL)
        abort();
    const uint32_t all = limit_of_all();
    for (uint32_t i = 0; i < ct.thread_count; i++)
        limits[i] = limit_of(i, all);
    releases[release_count++] =
        (struct release){ at, at + bytes, ct.block_slice, ct.slice, limits };
    if (acquire_count <
        ACQUIRES_MAX) /* with fewer, less is ordered: too many findings, not too few */
        acquires[acquire_count++] =
            (struct acquire){ at, at + bytes, ct_self(), ct.slice, ct.epoch, UINT32_MAX };
    ct.slice++;
}

/* Returns true if the access that the running thread makes now lies behind a fence behind the
 * atomic operation. */
static bool acquired(const struct acquire *a)
{
    const struct ct_thread *self = ct.running;
    if (a->fence_epoch < ct.epoch)
        return true;
    return self->fence_slice > a->slice && (a->thread == ct_self() || self->fence_epoch > a->epoch);
}

/* The first release of the block that the slice belongs to. Blocks without one have none. */
static size_t first_release(uint32_t slice)
{
    size_t low = 0, high = release_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (releases[middle].slice < slice)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool released(struct ct_stamp before, const struct acquire *a)
{
    for (size_t i = first_release(before.slice); i < release_count; i++) {
        const struct release *r = &releases[i];
        if (r->first_slice > before.slice || r->slice > a->slice)
            return false;
        if (r->from == a->from && before.slice < r->limits[before.thread])
            return true;
    }
    return false;
}

bool ct_ordered(struct ct_stamp before, const char *at, bool atomic)
{
    for (uint32_t i = 0; i < acquire_count; i++) {
        const struct acquire *a = &acquires[i];
        /* Atomic operations on a word have an order, and this thread's access comes behind its
         * own. */
        if (atomic && at >= a->from && at < a->to &&
            (a->thread == ct_self() || a->epoch < ct.epoch))
            return true;
        if (acquired(a) && released(before, a))
            return true;
    }
    return false;
}
