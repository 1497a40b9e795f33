/* grown_slots.c - see grown_slots.h. */
#include "loader/api/lend/grown_slots.h"

#include <stoker/stoker.h>

#include "loader/api/loader.h"
#include "loader/base/clock.h"
#include "loader/base/launcher.h"
#include "loader/base/memory/budget.h"

enum {
    RETRY_NS = 1000000, /* between attempts to mark the end of a user's work */
    BUDGET_SHARE = 8,   /* by default, of the memory available to a rank */
    IDLE_EPOCHS = 2,    /* ends of epochs after which a spare's pages are given back */
    AHEAD_SHARE =
        4 /* exchange when 1/4 of the ring is left: the workers must not run out of slots */
};

/* ---- the leases of the ring ---- */

static uint32_t ring_count(const stoker_loader *loader)
{
    return loader->on_device ? loader->transfer.buffer_count : loader->pipeline.slots.slot_count;
}

static struct stk_lease *ring_lease(const stoker_loader *loader, uint32_t index)
{
    return loader->on_device ? &loader->transfer.buffers[index]->lease
                             : &loader->pipeline.slots.memories[index].lease;
}

/* Describe the fields of batches that will lie in a lease's memory. */
static void place_fields(const stoker_loader *loader, struct stk_lease *lease)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    const struct stk_buffer *buffer = loader->on_device ? stk_transfer_buffer_of(lease) : NULL;
    uint8_t *memory = buffer != NULL ? buffer->memory : stk_slots_memory_of(lease)->base;
    stk_outputs_place(&loader->outputs, slots, memory, buffer != NULL ? buffer->images : memory,
                      buffer != NULL ? buffer->offsets : NULL, lease->fields);
}

int stk_kept_init(stoker_loader *loader)
{
    const uint32_t count = ring_count(loader);
    const uint32_t fields = loader->outputs.count;
    loader->kept.any_thread = loader->options.on_lent == STOKER_ON_LENT_WAIT ||
                              loader->options.on_lent == STOKER_ON_LENT_GROW;
    loader->tensors = stk_tensors_make(count, fields);
    loader->fields = stk_calloc((size_t)count * fields, sizeof(loader->fields[0]));
    if (loader->tensors == NULL || loader->fields == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct stk_lease *lease = ring_lease(loader, i);
        lease->tensors = stk_tensors_of(loader->tensors, i, fields);
        lease->fields = &loader->fields[(size_t)i * fields];
        place_fields(loader, lease);
    }
    return 0;
}

static void free_views(struct stk_lease *lease)
{
    stk_free(lease->tensors);
    stk_free(lease->fields);
}

static void outlive(stoker_loader *loader, struct stk_lease *lease)
{
    if (stk_batch_is_lent(loader, lease, stk_lease_turn(lease)))
        stk_leases_outlive(&loader->leases, lease);
}

void stk_kept_outlive(stoker_loader *loader)
{
    struct stk_slots *slots = &loader->pipeline.slots;
    if (!loader->leases.made) /* create failed */
        return;
    stk_leases_begin_turn(&loader->leases);
    for (struct stk_buffer *buffer = loader->transfer.made; buffer != NULL;
         buffer = buffer->earlier)
        outlive(loader, &buffer->lease);
    for (uint32_t i = 0; !loader->on_device && i < slots->slot_count; i++)
        outlive(loader, &slots->memories[i].lease);
    for (struct stk_slot_memory *memory = slots->extra; memory != NULL; memory = memory->earlier)
        outlive(loader, &memory->lease);
    stk_leases_end_turn(&loader->leases);
}

void stk_kept_destroy(stoker_loader *loader)
{
    for (struct stk_slot_memory *memory = loader->pipeline.slots.extra; memory != NULL;
         memory = memory->earlier)
        free_views(&memory->lease);
    for (struct stk_buffer *buffer = loader->transfer.made; buffer != NULL;
         buffer = buffer->earlier)
        if (buffer->owns_memory)
            free_views(&buffer->lease);
}

/* ---- spares ---- */

static void choose_budget(stoker_loader *loader)
{
    struct stk_device *device = loader->device;
    char why[STK_DEVICE_WHY_BYTES];
    const struct stk_transfer *transfer = &loader->transfer;
    const struct stk_device_cache *cache = &loader->pipeline.device_cache;
    uint64_t bytes = loader->on_device ? loader->options.memory_bytes : loader->batches_bytes_max;
    if (bytes != STOKER_BYTES_AUTO) {
        const uint64_t taken = loader->on_device ? transfer->buffer_bytes * transfer->buffer_count +
                                                       cache->count * cache->row_bytes
                                                 : loader->pipeline.slots.memory.bytes;
        bytes = bytes > taken ? bytes - taken : 0;
    } else if (!loader->on_device) {
        bytes = stk_memory_available() / stk_local_ranks() / BUDGET_SHARE;
    } else {
        bytes = device->ops->available(device, &bytes, why) == 0 ? bytes / BUDGET_SHARE : 0;
    }
    atomic_store_explicit(&loader->kept.bytes_max, bytes, memory_order_relaxed);
    loader->kept.has_budget = true;
}

static struct stk_lease *allocate(stoker_loader *loader)
{
    char why[STK_DEVICE_WHY_BYTES];
    if (!loader->on_device) {
        struct stk_slot_memory *memory = stk_slots_more_memory(&loader->pipeline.slots, why);
        return memory == NULL ? NULL : &memory->lease;
    }
    struct stk_buffer *buffer = stk_transfer_more_memory(&loader->transfer, why);
    return buffer == NULL ? NULL : &buffer->lease;
}

/* Make the memory of one more batch and its views. The views come first, since the memory could not
 * be freed alone. */
static struct stk_lease *more_memory(stoker_loader *loader)
{
    const uint32_t fields = loader->outputs.count;
    struct stk_tensor *tensors = stk_tensors_make(1, fields);
    stoker_field *views = stk_calloc(fields, sizeof(views[0]));
    struct stk_lease *lease = tensors != NULL && views != NULL ? allocate(loader) : NULL;
    if (lease == NULL) {
        stk_free(tensors);
        stk_free(views);
        return NULL;
    }
    lease->tensors = tensors;
    lease->fields = views;
    place_fields(loader, lease);
    return lease;
}

/* Returns true if the pages of a spare in host memory were returned to the system. */
static bool is_given_back(struct stk_lease *lease)
{
    return lease->idle_epochs == IDLE_EPOCHS && !stk_slots_memory_of(lease)->region.locked;
}

static uint64_t spare_bytes(const stoker_loader *loader)
{
    return loader->on_device ? loader->transfer.buffer_bytes
                             : stk_region_bytes(loader->pipeline.slots.slot_bytes);
}

static void count_bytes(struct stk_kept *kept, uint64_t more)
{
    atomic_fetch_add_explicit(&kept->bytes, more, memory_order_relaxed);
}

/* A spare in memory, or one whose pages were given back, or a new one, as the budget allows. */
static struct stk_lease *take_spare(stoker_loader *loader)
{
    struct stk_kept *kept = &loader->kept;
    struct stk_lease *lease = kept->spares;
    const uint64_t more = spare_bytes(loader);
    if (lease != NULL && (loader->on_device || !is_given_back(lease))) {
        kept->spares = lease->next;
        return lease;
    }
    if (!kept->has_budget)
        choose_budget(loader);
    const uint64_t bytes = atomic_load_explicit(&kept->bytes, memory_order_relaxed);
    const uint64_t most = atomic_load_explicit(&kept->bytes_max, memory_order_relaxed);
    const bool allowed = most >= bytes && most - bytes >= more;
    if (allowed && lease != NULL) {
        kept->spares = lease->next;
    } else if (allowed) {
        lease = more_memory(loader);
        atomic_fetch_add_explicit(&kept->count, lease != NULL ? 1U : 0U, memory_order_relaxed);
    } else {
        lease = NULL;
    }
    const enum stk_kept_limit limit = !allowed        ? STK_KEPT_BUDGET
                                      : lease == NULL ? STK_KEPT_MEMORY
                                                      : STK_KEPT_FREE;
    atomic_store_explicit(&kept->limit, limit, memory_order_relaxed);
    if (lease != NULL)
        count_bytes(kept, more);
    return lease;
}

void stk_kept_end_epoch(stoker_loader *loader)
{
    if (loader->on_device)
        return;
    /* Those used last come first: the ones given back are at the end. */
    for (struct stk_lease *lease = loader->kept.spares; lease != NULL && !is_given_back(lease);
         lease = lease->next) {
        if (lease->idle_epochs < IDLE_EPOCHS)
            lease->idle_epochs++;
        if (!is_given_back(lease))
            continue;
        stk_region_discard(&stk_slots_memory_of(lease)->region);
        count_bytes(&loader->kept, -spare_bytes(loader));
    }
}

/* ---- room for the next batch ---- */

/* The lease of the batch that is lent where `batch` would be made; NULL = nothing is lent there. */
static struct stk_lease *lent_at(stoker_loader *loader, uint64_t batch)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    if (loader->on_device) {
        struct stk_buffer *buffer = stk_transfer_buffer(&loader->transfer, batch);
        return buffer->lent ? &buffer->lease : NULL;
    }
    if (batch < slots->slot_count || !stk_slots_holds(slots, batch - slots->slot_count))
        return NULL;
    return &stk_slots_of(slots, batch)->memory->lease;
}

/* Exchange the memory of the lent batch. Returns false if the policy or the budget forbids it. */
static bool exchange(stoker_loader *loader, uint64_t batch, const struct stk_lease *lent)
{
    const stoker_on_lent policy = loader->options.on_lent;
    if (policy != STOKER_ON_LENT_GROW &&
        !(policy == STOKER_ON_LENT_AUTO && stk_lease_is_shared(lent)))
        return false;
    struct stk_lease *spare = take_spare(loader);
    if (spare == NULL)
        return false;
    if (loader->on_device)
        stk_transfer_exchange(&loader->transfer, stk_transfer_buffer_of(spare));
    else
        stk_slots_exchange(&loader->pipeline.slots, batch - loader->pipeline.slots.slot_count,
                           stk_slots_memory_of(spare));
    return true;
}

/* Before the ring is used up, so that batches are still made ahead. A budget that is used up is no
 * error yet. */
void stk_kept_look_ahead(stoker_loader *loader)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    const struct stk_transfer *transfer = &loader->transfer;
    const uint32_t ahead = ring_count(loader) / AHEAD_SHARE;
    /* Buffers of a device are filled in order: only the head's can be in the way. */
    const uint64_t batch = loader->on_device ? slots->head : slots->head + ahead;
    if (ahead == 0 || (loader->on_device && slots->head - transfer->delivered > ahead))
        return;
    const struct stk_lease *lent = lent_at(loader, batch);
    if (lent != NULL)
        (void)exchange(loader, batch, lent);
}

static int64_t time_left(uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return -1;
    const uint64_t now_ns = stk_now_ns();
    return deadline_ns > now_ns ? (int64_t)(deadline_ns - now_ns) : 0;
}

/* Nobody wakes the consumer when a stream ends its recording. */
static int64_t sleep_ns(struct stk_leases *leases, int64_t left_ns)
{
    if (!stk_leases_any_unended(leases))
        return left_ns;
    stk_leases_retry(leases);
    return left_ns >= 0 && left_ns < RETRY_NS ? left_ns : RETRY_NS;
}

/* Sleep until another thread returns a batch. Returns false at the deadline, or if interrupted. */
static bool wait_for_return(stoker_loader *loader, uint64_t deadline_ns)
{
    struct stk_slots *slots = &loader->pipeline.slots;
    struct stk_leases *leases = &loader->leases;
    for (;;) {
        const uint32_t word = atomic_load(&slots->consumer_word);
        const int64_t left_ns = time_left(deadline_ns);
        atomic_store(&leases->waiting, true); /* then look; put_returned() does the reverse */
        const bool interrupted = atomic_load(&slots->interrupted);
        if (left_ns != 0 && !interrupted && atomic_load(&leases->returned) == NULL)
            stk_slots_sleep(slots, word, sleep_ns(leases, left_ns));
        atomic_store(&leases->waiting, false);
        if (stk_leases_any_returned(leases)) {
            stk_leases_give_back(leases);
            return true;
        }
        if (left_ns == 0 || interrupted)
            return false;
    }
}

int stk_kept_make_room(stoker_loader *loader, int32_t timeout_ms, uint64_t *start_ns)
{
    const uint64_t head = loader->pipeline.slots.head;
    struct stk_lease *lent;
    while ((lent = lent_at(loader, head)) != NULL && !exchange(loader, head, lent)) {
        if (!loader->kept.any_thread)
            return STOKER_BUSY;
        const uint64_t before_ns = stk_now_ns();
        *start_ns = *start_ns > 0 ? *start_ns : before_ns;
        const bool returned = wait_for_return(loader, stk_loader_deadline(timeout_ms, *start_ns));
        stk_loader_count_stall(loader, before_ns, stk_now_ns());
        if (!returned)
            return STOKER_BUSY;
    }
    stk_kept_look_ahead(loader); /* after the head, which may need the last spare */
    return 0;
}
