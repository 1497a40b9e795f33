/* poll.c - see poll.h. */
#include "loader/api/lend/poll.h"

#include <unistd.h>

#include <stoker/stoker.h>

#include "loader/base/error.h"
#include "loader/base/event.h"

/* The memory of the head batch is lent: returns true if next() does not wait for another thread to
 * return it. */
static bool goes_on_while_lent(stoker_loader *loader)
{
    const struct stk_kept *kept = &loader->kept;
    const bool grows = loader->options.on_lent == STOKER_ON_LENT_GROW &&
                       (kept->spares != NULL ||
                        atomic_load_explicit(&kept->limit, memory_order_relaxed) == STK_KEPT_FREE);
    return !kept->any_thread || grows || atomic_load(&loader->leases.returned) != NULL;
}

static bool is_lent(const stoker_loader *loader)
{
    return loader->on_device ? !stk_transfer_has_room(&loader->transfer)
                             : stk_slots_head_lent(&loader->pipeline.slots);
}

/* Only the consumer's thread sees the end of a copy, and the end of a span that it has claimed. */
static bool has_work_of_its_own(const stoker_loader *loader)
{
    if (loader->on_device &&
        (stk_transfer_sent(&loader->transfer) || stk_transfer_copying(&loader->transfer) ||
         stk_device_failure(loader->device) != NULL))
        return true;
    return !loader->threads ||
           (loader->has_caller_worker && stk_worker_holds_span(&loader->caller_worker));
}

static bool is_over(const stoker_loader *loader)
{
    const uint64_t delivered =
        loader->on_device ? loader->transfer.delivered : loader->pipeline.slots.head;
    return atomic_load_explicit(&loader->failed, memory_order_relaxed) || loader->end_pending ||
           delivered >= loader->pipeline.slots.batches;
}

/* Returns true if next() need not wait, or must be called for anything to happen. */
static bool is_due(stoker_loader *loader)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    if (is_over(loader) || has_work_of_its_own(loader) || atomic_load(&slots->interrupted))
        return true;
    return is_lent(loader) ? goes_on_while_lent(loader) : stk_slots_ready(slots);
}

void stk_poll_update(stoker_loader *loader)
{
    struct stk_slots *slots = &loader->pipeline.slots;
    if (!loader->polls)
        return;
    if (!is_due(loader)) {
        stk_slots_await(slots);
        /* Another thread that returns a batch looks at it after; is_due() then looks at what was
         * returned. */
        atomic_store(&loader->leases.waiting, is_lent(loader));
        if (!is_due(loader))
            return;
    }
    stk_slots_await_none(slots);
}

void stk_poll_paused(stoker_loader *loader, int rc)
{
    const bool waits = rc == STOKER_TIMEOUT || rc == STOKER_EPOCH_END || rc == STOKER_INTERRUPTED;
    if (loader->polls && waits && is_due(loader))
        stk_slots_set_event(&loader->pipeline.slots);
}

int stoker_loader_fd(stoker_loader *loader, int *fd, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    if (loader == NULL || fd == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_WAIT, &nowhere,
                             "loader fd: an argument is NULL");
    if (stk_fork_guard_tripped(&loader->guard))
        return stk_error_set(error, STOKER_EFORKED, STOKER_STAGE_WAIT, &nowhere, NULL);
    if (!loader->polls) {
        struct stk_place place = STK_NOWHERE;
        const int rc = stk_event_open(&loader->event);
        place.os_errno = -rc;
        if (rc < 0)
            return stk_error_set(error, stk_error_from_errno(-rc), STOKER_STAGE_WAIT, &place,
                                 "loader fd: eventfd");
        loader->polls = true;
        atomic_store(&loader->pipeline.slots.event, loader->event);
        stk_loader_stop_assisting(loader);
        stk_leases_begin_turn(&loader->leases);
        stk_poll_update(loader);
        stk_leases_end_turn(&loader->leases);
    }
    *fd = loader->event;
    return STOKER_OK;
}

void stk_poll_close(stoker_loader *loader)
{
    if (loader->polls)
        (void)close(loader->event);
    loader->polls = false;
}
