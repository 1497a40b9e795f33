/* dlpack_refs.c - see dlpack_refs.h. */
#include "loader/api/dlpack_refs.h"

#include <string.h>

#include <stoker/error.h>

#include "loader/base/memory.h"

int stk_dlpack_refs_init(struct stk_dlpack_refs *refs, uint32_t count,
                         const struct stk_dlpack_owner *owner)
{
    refs->count = count;
    refs->owner = *owner;
    pthread_mutex_init(&refs->lock, NULL);
    refs->refs = stk_calloc(count, sizeof(refs->refs[0]));
    return refs->refs == NULL ? STOKER_ENOMEM : 0;
}

void stk_dlpack_refs_destroy(struct stk_dlpack_refs *refs)
{
    if (refs->count > 0)
        pthread_mutex_destroy(&refs->lock);
    stk_free(refs->refs);
    memset(refs, 0, sizeof(*refs));
}

bool stk_dlpack_refs_end(struct stk_dlpack_refs *refs)
{
    return atomic_fetch_or(&refs->out, STK_DLPACK_RELEASED) == 0;
}

int stk_dlpack_refs_end_work(struct stk_dlpack_refs *refs, uint64_t turn, void *stream)
{
    pthread_mutex_lock(&refs->lock);
    const int rc = refs->owner.end_work(refs->owner.self, turn, stream);
    pthread_mutex_unlock(&refs->lock);
    return rc;
}

void stk_dlpack_refs_add(struct stk_dlpack_refs *refs, uint64_t turn)
{
    struct stk_dlpack_ref *ref = stk_dlpack_ref_of(refs, turn);
    ref->turn = turn;
    atomic_fetch_add(&ref->state, 1U);
    atomic_fetch_add(&refs->out, 1U);
}

void stk_dlpack_refs_drop(struct stk_dlpack_refs *refs, uint64_t turn)
{
    if (atomic_fetch_sub(&stk_dlpack_ref_of(refs, turn)->state, 1U) == (STK_DLPACK_RELEASED | 1U))
        atomic_store(&refs->returned, true);
    if (atomic_fetch_sub(&refs->out, 1U) == (STK_DLPACK_RELEASED | 1U))
        refs->owner.last_out(refs->owner.self);
}

bool stk_dlpack_refs_release(struct stk_dlpack_refs *refs, uint64_t turn, void *stream, int *rc)
{
    struct stk_dlpack_ref *ref = stk_dlpack_ref_of(refs, turn);
    const uint32_t state = atomic_load_explicit(&ref->state, memory_order_acquire);
    *rc = 0;
    if (state == 0)
        return true;
    if (ref->turn != turn || (state & STK_DLPACK_RELEASED) != 0)
        return false; /* released before, through a copy of the batch */
    *rc = stk_dlpack_refs_end_work(refs, turn, stream);
    if (atomic_fetch_or(&ref->state, STK_DLPACK_RELEASED) != 0)
        return false;
    atomic_store(&ref->state, 0U); /* the last deleter has run meanwhile */
    return true;
}

void stk_dlpack_refs_give_back(struct stk_dlpack_refs *refs)
{
    atomic_store(&refs->returned, false); /* before looking: a later deleter sets it again */
    for (uint32_t i = 0; i < refs->count; i++) {
        struct stk_dlpack_ref *ref = &refs->refs[i];
        if (atomic_load_explicit(&ref->state, memory_order_acquire) != STK_DLPACK_RELEASED)
            continue;
        atomic_store(&ref->state, 0U);
        refs->owner.give_back(refs->owner.self, ref->turn);
    }
}
