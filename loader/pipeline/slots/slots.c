/* slots.c - see slots.h. */
#include "loader/pipeline/slots/slots.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/event.h"

static size_t align_line(size_t bytes)
{
    return (bytes + STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
}

/* ---- create and destroy ---- */

static int plan_layout(struct stk_slots *slots, const struct stk_slots_options *options)
{
    int rc = stk_slot_fields_init(&slots->fields, options->sizes, options->field_count,
                                  options->batch_size);
    if (rc < 0)
        return rc;
    slots->label = options->label;
    slots->ids_at = slots->fields.bytes;
    slots->slot_bytes = slots->ids_at + align_line(sizeof(uint64_t) * options->batch_size);
    slots->fresh_at = options->mark_fresh ? slots->slot_bytes : 0;
    if (options->mark_fresh)
        slots->slot_bytes += align_line(options->batch_size);
    return 0;
}

/* Let a slot that no worker uses fill this memory. */
static void use_memory(const struct stk_slots *slots, struct stk_slot *slot,
                       struct stk_slot_memory *memory)
{
    slot->memory = memory;
    slot->images = memory->base;
    slot->labels = slots->label == STK_NO_FIELD
                       ? NULL
                       : stk_slot_field_row(&slots->fields.each[slots->label], memory->base, 0);
    slot->ids = (uint64_t *)(void *)(memory->base + slots->ids_at);
    slot->fresh = slots->fresh_at > 0 ? memory->base + slots->fresh_at : NULL;
}

static int map_memory(struct stk_slots *slots, const struct stk_slots_options *options)
{
    int rc = plan_layout(slots, options);
    if (rc < 0)
        return rc;
    slots->memories = stk_calloc(options->slot_count, sizeof(slots->memories[0]));
    if (slots->memories == NULL)
        return STOKER_ENOMEM;
    rc = stk_region_map(&slots->memory, slots->slot_bytes * options->slot_count);
    if (rc < 0)
        return rc;
    if (slots->node >= 0)
        stk_region_prefer_node(&slots->memory, slots->node);
    const size_t rows = (size_t)options->batch_size * options->slot_count;
    rc = stk_region_map(&slots->flags, rows);
    if (rc == 0 && options->keep_failures)
        rc = stk_region_map(&slots->failures, rows * sizeof(struct stk_failure));
    const size_t lengths = slots->fields.lengths;
    if (rc == 0 && lengths > 0)
        rc = stk_region_map(&slots->lengths, lengths * options->slot_count * sizeof(uint64_t));
    if (rc < 0)
        return rc;

    for (uint32_t i = 0; i < options->slot_count; i++) {
        struct stk_slot *slot = &slots->slots[i];
        struct stk_slot_memory *memory = &slots->memories[i];
        stk_lease_init(&memory->lease);
        memory->base = (uint8_t *)slots->memory.base + i * slots->slot_bytes;
        use_memory(slots, slot, memory);
        if (lengths > 0)
            slot->lengths = (uint64_t *)slots->lengths.base + i * lengths;
        slot->row_bad = (uint8_t *)slots->flags.base + (size_t)i * options->batch_size;
        if (options->keep_failures)
            slot->failures =
                (struct stk_failure *)slots->failures.base + (size_t)i * options->batch_size;
    }
    return 0;
}

static bool pins_for_device(const struct stk_slots *slots)
{
    return slots->device != NULL && slots->device->ops->pin != NULL;
}

/* For a GPU a failure is always reported: only page-locked slots make its copies fast. */
static int pin(struct stk_slots *slots, struct stk_region *memory, char why[STK_DEVICE_WHY_BYTES])
{
    if (slots->pin_memory == STOKER_SWITCH_OFF)
        return 0;
    if (pins_for_device(slots))
        return slots->device->ops->pin(slots->device, memory, why);
    int rc = stk_region_lock(memory);
    if (rc == 0)
        return 0;
    char text[64];
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "mlock of %zu bytes: %s", memory->bytes,
                   strerror_r(-rc, text, sizeof(text)));
    return slots->pin_memory == STOKER_SWITCH_ON ? STOKER_EPIN : 0;
}

static void unmap(struct stk_slots *slots, struct stk_region *memory)
{
    if (memory->locked && pins_for_device(slots))
        slots->device->ops->unpin(slots->device, memory);
    stk_region_unmap(memory);
}

int stk_slots_init(struct stk_slots *slots, const struct stk_slots_options *options)
{
    assert(options->slot_count >= 2); /* one fills while the other is lent */
    assert(options->batch_spans >= 1);
    memset(slots, 0, sizeof(*slots));
    slots->slots = stk_calloc(options->slot_count, sizeof(slots->slots[0]));
    if (slots->slots == NULL)
        return STOKER_ENOMEM;
    for (; slots->slot_count < options->slot_count; slots->slot_count++) {
        struct stk_slot *slot = &slots->slots[slots->slot_count];
        atomic_init(&slot->free_turn, slots->slot_count);
        atomic_init(&slot->shares_left, options->batch_spans * options->span_shares);
        pthread_mutex_init(&slot->failure_lock, NULL);
        slot->failure_row = UINT32_MAX;
    }
    slots->batch_size = options->batch_size;
    slots->batch_spans = options->batch_spans;
    slots->batch_shares = options->batch_spans * options->span_shares;
    slots->batches = options->batches;
    slots->device = options->device;
    slots->pin_memory = options->pin_memory;
    slots->node = options->node == NULL ? -1 : *options->node;
    atomic_init(&slots->wake_at, UINT64_MAX);
    atomic_init(&slots->consumer_cpu, UINT32_MAX);
    atomic_init(&slots->awaited, UINT64_MAX);
    atomic_init(&slots->event, -1);

    int rc = stk_claim_affinity_init(&slots->affinity, options->slot_count * options->batch_spans,
                                     options->span_shares, options->workers);
    if (rc == 0)
        rc = map_memory(slots, options);
    if (rc == 0)
        rc = pin(slots, &slots->memory, slots->pin_reason);
    if (rc < 0) {
        char reason[sizeof(slots->pin_reason)];
        memcpy(reason, slots->pin_reason, sizeof(reason));
        stk_slots_destroy(slots);
        memcpy(slots->pin_reason, reason, sizeof(reason));
        return rc;
    }
    return 0;
}

void stk_slots_destroy(struct stk_slots *slots)
{
    for (uint32_t i = 0; i < slots->slot_count; i++)
        pthread_mutex_destroy(&slots->slots[i].failure_lock);
    while (slots->extra != NULL) {
        struct stk_slot_memory *memory = slots->extra;
        slots->extra = memory->earlier;
        unmap(slots, &memory->region);
        stk_free(memory);
    }
    unmap(slots, &slots->memory);
    stk_region_unmap(&slots->flags);
    stk_region_unmap(&slots->failures);
    stk_region_unmap(&slots->lengths);
    stk_slot_fields_destroy(&slots->fields);
    stk_claim_affinity_destroy(&slots->affinity);
    stk_free(slots->memories);
    stk_free(slots->slots);
    memset(slots, 0, sizeof(*slots));
}

/* ---- workers ---- */

static bool has_credit(const struct stk_slots *slots, uint64_t batch)
{
    return atomic_load_explicit(&stk_slots_of(slots, batch)->free_turn, memory_order_acquire) ==
           batch;
}

/* End of the tickets that may be claimed now. A partly claimed slot is FILLING and still shows
 * free_turn == batch: its other spans may be claimed, too. */
static uint64_t end_of_reach(const struct stk_slots *slots, uint64_t first, uint64_t last_batch)
{
    uint64_t batch = first / slots->batch_spans;
    uint64_t end = batch * slots->batch_spans;
    const uint64_t reach = first + slots->affinity.reach;
    while (end < reach && batch < slots->batches && batch <= last_batch &&
           has_credit(slots, batch)) {
        end += slots->batch_spans;
        batch++;
    }
    return end < reach ? end : reach;
}

enum stk_claim stk_slots_claim(struct stk_slots *slots, uint32_t worker, uint64_t last_batch,
                               uint32_t shares, struct stk_piece *piece)
{
    for (;;) {
        const uint64_t first = stk_claim_affinity_first(&slots->affinity);
        const uint64_t end = end_of_reach(slots, first, last_batch);
        if (end <= first)
            return first / slots->batch_spans >= slots->batches ? STK_CLAIM_OVER
                                                                : STK_CLAIM_NO_CREDIT;
        if (stk_claim_affinity_take(&slots->affinity, worker, first, end, shares, piece)) {
            /* A later claim reads it, and the consumer wrote it last. */
            const uint64_t batch = piece->ticket / slots->batch_spans;
            __builtin_prefetch(&stk_slots_of(slots, batch + 1)->free_turn);
            return STK_CLAIM_OK;
        }
    }
}

void stk_slots_wait_credit(struct stk_slots *slots, int64_t wait_ns)
{
    uint32_t word = atomic_load(&slots->worker_word);
    atomic_fetch_add(&slots->sleepers,
                     1U); /* seq_cst: then check again; release() does the reverse */
    uint64_t batch = stk_claim_affinity_first(&slots->affinity) / slots->batch_spans;
    bool idle =
        batch >= slots->batches || atomic_load(&stk_slots_of(slots, batch)->free_turn) != batch;
    if (idle && !atomic_load(&slots->stopping))
        stk_futex_wait(&slots->worker_word, word, wait_ns);
    atomic_fetch_sub(&slots->sleepers, 1U);
}

void stk_slots_wake_workers(struct stk_slots *slots)
{
    atomic_fetch_add(&slots->worker_word, 1U);
    stk_futex_wake(&slots->worker_word, UINT32_MAX);
}

void stk_slots_wake_consumer(struct stk_slots *slots)
{
    atomic_fetch_add(&slots->consumer_word, 1U);
    stk_futex_wake(&slots->consumer_word, 1);
}

bool stk_slots_count_down(struct stk_slots *slots, uint64_t batch, uint32_t shares)
{
    struct stk_slot *slot = stk_slots_of(slots, batch);
    return shares == slots->batch_shares || /* no other thread counts */
           atomic_fetch_sub_explicit(&slot->shares_left, shares, memory_order_acq_rel) == shares;
}

void stk_slots_publish(struct stk_slots *slots, uint64_t batch)
{
    struct stk_slot *slot = stk_slots_of(slots, batch);
    atomic_store_explicit(&slot->ready_turn, batch + 1, memory_order_release);

    uint64_t published = atomic_fetch_add(&slots->published, 1U) + 1;
    uint64_t wake_at = atomic_load(&slots->wake_at);
    /* The thread that clears wake_at does the one wake-up. */
    if (published >= wake_at &&
        atomic_compare_exchange_strong(&slots->wake_at, &wake_at, UINT64_MAX))
        stk_slots_wake_consumer(slots);
    if (atomic_load(&slots->awaited) == batch) /* stk_slots_await() does the reverse */
        stk_slots_set_event(slots);
}

bool stk_slots_shares_done(struct stk_slots *slots, uint64_t batch, uint32_t shares)
{
    if (!stk_slots_count_down(slots, batch, shares))
        return false;
    stk_slots_publish(slots, batch);
    return true;
}

void stk_slot_fail(struct stk_slot *slot, uint32_t row, const stoker_error *error)
{
    pthread_mutex_lock(&slot->failure_lock);
    if (row < slot->failure_row) {
        slot->failure_row = row;
        slot->failure = *error;
    }
    pthread_mutex_unlock(&slot->failure_lock);
}

/* ---- the consumer ---- */

bool stk_slots_ready(const struct stk_slots *slots)
{
    const struct stk_slot *slot = stk_slots_of(slots, slots->head);
    return atomic_load_explicit(&slot->ready_turn, memory_order_acquire) == slots->head + 1;
}

/* Wake the workers that sleep for a credit once half of the slots that the consumer does not hold
 * are free. Slots that it holds cannot return, so they do not count: half of the whole ring might
 * never be free while it holds the other half. */
static void wake_for_credits(struct stk_slots *slots)
{
    if (++slots->credits < (slots->slot_count - slots->lent) / 2)
        return;
    atomic_thread_fence(memory_order_seq_cst); /* free_turn before sleepers; wait_credit: reverse */
    if (atomic_load_explicit(&slots->sleepers, memory_order_relaxed) == 0)
        return;
    slots->credits = 0;
    stk_slots_wake_workers(slots);
}

bool stk_slots_release(struct stk_slots *slots, uint64_t batch)
{
    struct stk_slot *slot = stk_slots_of(slots, batch);
    if (atomic_load_explicit(&slot->free_turn, memory_order_relaxed) != batch)
        return false; /* released already, through a copy of the batch */
    if (slots->batch_shares > 1)
        atomic_store_explicit(&slot->shares_left, slots->batch_shares, memory_order_relaxed);
    if (atomic_load_explicit(&slot->bad_rows, memory_order_relaxed) > 0) {
        memset(slot->row_bad, STK_ROW_GOOD, slots->batch_size);
        atomic_store_explicit(&slot->bad_rows, 0U, memory_order_relaxed);
    }
    slot->failure_row = UINT32_MAX;
    slot->finished = false;
    slots->lent--;
    atomic_store_explicit(&slot->free_turn, batch + slots->slot_count, memory_order_release);
    wake_for_credits(slots);
    return true;
}

/* ---- memory for batches that the consumer keeps ---- */

struct stk_slot_memory *stk_slots_more_memory(struct stk_slots *slots,
                                              char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_slot_memory *memory = stk_calloc(1, sizeof(*memory));
    int rc = memory == NULL ? STOKER_ENOMEM : stk_region_map(&memory->region, slots->slot_bytes);
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%zu bytes: %s", slots->slot_bytes,
                   stoker_strerror(STOKER_ENOMEM));
    if (rc == 0 && slots->node >= 0)
        stk_region_prefer_node(&memory->region, slots->node);
    /* AUTO may have found that nothing can be locked: then spares are not, either. */
    if (rc == 0 && slots->memory.locked)
        rc = pin(slots, &memory->region, why);
    if (rc == 0 && memory->region.locked == slots->memory.locked) {
        stk_lease_init(&memory->lease);
        memory->base = memory->region.base;
        memory->earlier = slots->extra;
        slots->extra = memory;
        return memory;
    }
    if (memory != NULL)
        stk_region_unmap(&memory->region);
    stk_free(memory);
    return NULL;
}

void stk_slots_exchange(struct stk_slots *slots, uint64_t batch, struct stk_slot_memory *memory)
{
    struct stk_slot *slot = stk_slots_of(slots, batch);
    assert(stk_slots_holds(slots, batch));
    slot->memory->lease.kept = true;
    memory->lease.kept = false;
    use_memory(slots, slot, memory);
    (void)stk_slots_release(slots, batch);
}

void stk_slots_sleep(struct stk_slots *slots, uint32_t word, int64_t wait_ns)
{
    if (!atomic_load(&slots->stopping))
        stk_futex_wait(&slots->consumer_word, word, wait_ns);
}

void stk_slots_set_event(struct stk_slots *slots)
{
    const int event = atomic_load(&slots->event);
    if (event >= 0)
        stk_event_set(event);
}

void stk_slots_await(struct stk_slots *slots)
{
    stk_event_clear(atomic_load_explicit(&slots->event, memory_order_relaxed));
    atomic_store(&slots->awaited, slots->head);
    /* Either the publisher sees `awaited`, or the caller what it has published. */
    (void)atomic_load(&slots->published);
    atomic_thread_fence(memory_order_seq_cst); /* free_turn before sleepers; wait_credit: reverse */
    if (atomic_load(&slots->sleepers) > 0)
        stk_slots_wake_workers(slots); /* as before any sleep of the consumer */
}

void stk_slots_await_none(struct stk_slots *slots)
{
    if (atomic_load_explicit(&slots->awaited, memory_order_relaxed) == UINT64_MAX)
        return;
    atomic_store(&slots->awaited, UINT64_MAX);
    stk_slots_set_event(slots);
}

void stk_slots_interrupt(struct stk_slots *slots)
{
    atomic_store(&slots->interrupted, true);
    stk_slots_wake_consumer(slots);
    stk_slots_set_event(slots);
}

void stk_slots_stop(struct stk_slots *slots)
{
    atomic_store(&slots->stopping, true);
    stk_slots_wake_workers(slots);
    stk_slots_wake_consumer(slots);
}

uint32_t stk_slots_ready_count(const struct stk_slots *slots, uint64_t delivered)
{
    uint64_t published = atomic_load_explicit(&slots->published, memory_order_relaxed);
    if (published <= delivered)
        return 0;
    uint64_t ready =
        published - delivered; /* `delivered` may be stale: then `ready` is too large */
    return ready < slots->slot_count ? (uint32_t)ready : slots->slot_count;
}
