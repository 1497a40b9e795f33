/* trace.c - see trace.h. */
#include "loader/pipeline/report/trace.h"

#include <assert.h>
#include <string.h>

#include "loader/base/clock.h"

_Static_assert(sizeof(stoker_trace_event) == 40, "callers of older versions pass arrays of it");

const char *stoker_trace_name(stoker_trace_kind kind)
{
#define NAME(name, text, what) text,
    static const char *const names[] = { STOKER_TRACE_KINDS(NAME) };
#undef NAME
    return (unsigned)kind < STOKER_TRACE_KIND_COUNT ? names[kind] : "unknown";
}

/* ---- create and destroy ---- */

static uint64_t power_of_two(uint64_t least)
{
    uint64_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

static int map_rings(struct stk_trace *trace, uint32_t rings, uint64_t capacity)
{
    trace->rings = stk_calloc(rings, sizeof(trace->rings[0]));
    if (trace->rings == NULL)
        return STOKER_ENOMEM;
    int rc = capacity == 0
                 ? 0
                 : stk_region_map(&trace->memory, rings * capacity * sizeof(stoker_trace_event));
    if (rc < 0) {
        stk_free(trace->rings);
        trace->rings = NULL;
    }
    return rc;
}

int stk_trace_init(struct stk_trace *trace, uint32_t workers, uint32_t events)
{
    const uint32_t rings = workers + 1;
    const uint64_t capacity = events == 0 ? 0 : power_of_two(events);
    memset(trace, 0, sizeof(*trace));
    const bool heard = stk_nvtx_init(&trace->nvtx, stoker_trace_name);
    if (!heard && events == 0)
        return 0;
    int rc = map_rings(trace, rings, capacity);
    if (rc < 0) {
        stk_nvtx_destroy(&trace->nvtx);
        return rc;
    }
    if (capacity > 0)
        stk_region_populate(&trace->memory);
    for (; trace->ring_count < rings; trace->ring_count++) {
        struct stk_trace_ring *ring = &trace->rings[trace->ring_count];
        ring->events =
            capacity == 0 ? NULL
                          : (stoker_trace_event *)trace->memory.base + trace->ring_count * capacity;
        ring->capacity = capacity;
        ring->nvtx = heard ? &trace->nvtx : NULL;
        ring->thread = (uint16_t)trace->ring_count;
    }
    pthread_mutex_init(&trace->lock, NULL);
    return 0;
}

void stk_trace_destroy(struct stk_trace *trace)
{
    if (trace->rings == NULL)
        return;
    pthread_mutex_destroy(&trace->lock);
    stk_nvtx_destroy(&trace->nvtx);
    stk_region_unmap(&trace->memory);
    stk_free(trace->rings);
    memset(trace, 0, sizeof(*trace));
}

/* ---- recording ---- */

uint64_t stk_trace_open(const struct stk_trace_ring *ring, stoker_trace_kind kind, uint64_t batch)
{
    stk_nvtx_push(ring->nvtx, kind, batch);
    return ring->capacity == 0 ? 0 : stk_now_ns();
}

void stk_trace_close(struct stk_trace_ring *ring, const stoker_trace_event *event)
{
    stk_nvtx_pop(ring->nvtx);
    if (ring->capacity == 0)
        return;
    const uint64_t at = atomic_load_explicit(&ring->recorded, memory_order_relaxed);
    if (at - atomic_load_explicit(&ring->taken, memory_order_acquire) >= ring->capacity) {
        const uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
        atomic_store_explicit(&ring->dropped, dropped + 1, memory_order_relaxed);
        return;
    }
    stoker_trace_event *slot = &ring->events[at & (ring->capacity - 1)];
    *slot = *event;
    slot->end_ns = stk_now_ns();
    slot->thread = ring->thread;
    atomic_store_explicit(&ring->recorded, at + 1, memory_order_release);
}

/* ---- taking ---- */

static size_t take_ring(struct stk_trace_ring *ring, stoker_trace_event *out, size_t room)
{
    const uint64_t recorded = atomic_load_explicit(&ring->recorded, memory_order_acquire);
    const uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    const size_t count = recorded - taken < room ? (size_t)(recorded - taken) : room;
    for (size_t i = 0; i < count; i++)
        out[i] = ring->events[(taken + i) & (ring->capacity - 1)];
    atomic_store_explicit(&ring->taken, taken + count, memory_order_release);
    return count;
}

void stk_trace_take(struct stk_trace *trace, stoker_trace *out)
{
    out->count = 0;
    out->recorded = 0;
    out->dropped = 0;
    pthread_mutex_lock(&trace->lock);
    for (uint32_t i = 0; i < trace->ring_count; i++) {
        struct stk_trace_ring *ring = &trace->rings[i];
        if (out->count < out->capacity)
            out->count += take_ring(ring, out->events + out->count, out->capacity - out->count);
        out->recorded += atomic_load_explicit(&ring->recorded, memory_order_relaxed);
        out->dropped += atomic_load_explicit(&ring->dropped, memory_order_relaxed);
    }
    pthread_mutex_unlock(&trace->lock);
}
