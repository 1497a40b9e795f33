/* sizing.c - see sizing.h. */
#include "loader/api/choose/sizing.h"

#include <sys/resource.h>
#include <unistd.h>

#include <stoker/ranks.h>

#include "loader/api/choose/gpu_node.h"
#include "loader/base/cpu/cpu_share.h"
#include "loader/base/launcher.h"
#include "loader/base/memory/budget.h"

enum {
    SPAN_BYTES_RAW = 401408,      /* a ticket: about 50 us of gathering, */
    SPAN_BYTES_DECODED = 65536,   /* or of decoding */
    RING_BYTES = 6 << 20,         /* slots that fit in the last-level cache, */
    RING_BYTES_CROWDED = 3 << 20, /* fewer if the consumer works, too, and no thread sleeps */
    RING_SLOTS_MIN = 4,
    RING_SLOTS_ASLEEP = 6, /* if the consumer sleeps: a late timer must not run it dry */
    RING_SLOTS_MAX = 64,
    BATCHES_SHARE = 8, /* at most 1/8 of the memory available to a rank: it is touched at once */
    BUFFERS_MIN = 4,   /* on a device: one lent, one next, and copies before and after, */
    BUFFERS_MAX = 8,   /* this many for small batches, which are copied several at a time */
    BUFFERS_BYTES = 32 << 20,
    WAITING_WORKERS_PER_CPU = 4,
    WAITING_WORKERS_MAX = 32
};

static uint32_t clamp(uint64_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

uint32_t stk_sizing_span_rows(const stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    /* Rows that are decoded once and gathered from then on count as gathered, and so do those that
     * are decoded in runs. */
    const bool decodes = pipeline->plan.decodes && !pipeline->plan.runs_decode &&
                         !stk_pipeline_may_become_resident(pipeline);
    const struct stk_field_plan *plan = &pipeline->field_plan;
    const size_t row_bytes = plan->stored_bytes > 0 ? plan->stored_bytes : plan->row_bytes;
    const uint64_t rows = (decodes ? SPAN_BYTES_DECODED : SPAN_BYTES_RAW) / row_bytes;
    const uint32_t most = loader->options.batch_size < STK_SPAN_ROWS_MAX
                              ? loader->options.batch_size
                              : STK_SPAN_ROWS_MAX;
    return clamp(rows, 1, most);
}

uint32_t stk_sizing_share_rows(const stoker_loader *loader)
{
    const uint32_t span_rows = stk_sizing_span_rows(loader);
    const bool alone = loader->options.num_workers == 0 || loader->options.num_workers == 1;
    const bool gathers = loader->pipeline.plan.route == STK_ROUTE_GATHER;
    return alone || gathers ? span_rows
                            : (span_rows + STK_TICKET_SHARES_MAX - 1) / STK_TICKET_SHARES_MAX;
}

/* Sets the CPUs of the workers, near the rank's GPU if possible. If the launcher's variables make
 * no sense, or name one process, all CPUs are this process's. */
static void choose_cpus(stoker_loader *loader)
{
    const stoker_loader_options *const options = &loader->options;
    struct stk_cpu_share *const share = &loader->pipeline.cpu_share;
    stoker_ranks ranks = STOKER_RANKS_INIT;
    uint32_t rank = options->local_rank;
    uint32_t here = options->local_world_size;
    if (here > 0) {
        *share = stk_cpu_share_here(rank, here);
    } else {
        if (stoker_ranks_from_environment(&ranks, NULL) < 0)
            ranks = (stoker_ranks)STOKER_RANKS_INIT;
        here = ranks.local_world_size > 0 ? ranks.local_world_size : stk_local_ranks();
        rank = ranks.local_rank < here ? ranks.local_rank : 0;
        *share = stk_cpu_share_of(rank, here);
    }
    loader->gpu_node = stk_gpu_node_move(share, loader->device, rank, here, "");
}

void stk_sizing_choose_workers(stoker_loader *loader)
{
    const int32_t asked = loader->options.num_workers;
    const bool waits = loader->pipeline.plan.route != STK_ROUTE_GATHER;
    choose_cpus(loader);
    loader->cpus = loader->pipeline.cpus = loader->pipeline.cpu_share.count;
    loader->threads = asked != 0;
    loader->tuned = asked == STOKER_WORKERS_AUTO;
    loader->worker_count = asked == 0 ? 1 : (uint32_t)asked;
    if (loader->tuned) /* waiting for storage costs no CPU: more workers may help */
        loader->worker_count =
            clamp(waits ? (uint64_t)loader->cpus * WAITING_WORKERS_PER_CPU : loader->cpus, 1,
                  loader->cpus > WAITING_WORKERS_MAX ? loader->cpus : WAITING_WORKERS_MAX);
    uint32_t first = loader->tuned ? loader->cpus : loader->worker_count;
    atomic_init(&loader->pipeline.active_workers, first);
    stk_tuner_init(&loader->tuner, first, loader->worker_count, loader->cpus);
}

/* Bytes for the slots. Page-locked memory must stay within the limit for unprivileged users. */
static uint64_t ring_bytes(const stoker_loader *loader)
{
    const uint64_t wanted = loader->cpus > loader->tuner.workers ? RING_BYTES : RING_BYTES_CROWDED;
    struct rlimit limit;
    if (loader->options.pin_memory != STOKER_SWITCH_ON || geteuid() == 0 ||
        loader->device->ops->pin != NULL || /* CUDA pins without counting */
        getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur / 2 >= wanted)
        return wanted;
    return limit.rlim_cur / 2; /* half: regions are rounded up, and io_uring locks memory, too */
}

/* Slots that hold `tickets` tickets. */
static uint64_t slots_of(const struct stk_pipeline *pipeline, uint64_t tickets)
{
    const uint64_t spans = pipeline->schedule.batch_spans;
    return (tickets + spans - 1) / spans;
}

uint64_t stk_sizing_slots_bytes(const stoker_loader *loader, uint32_t count)
{
    const uint64_t row_bytes =
        loader->pipeline.field_plan.row_bytes + sizeof(uint64_t); /* its id */
    return stk_region_bytes(row_bytes * loader->options.batch_size * count);
}

uint64_t stk_sizing_batches_share(const stoker_loader *loader, uint64_t bytes)
{
    const uint32_t asked = loader->options.prefetch_batches;
    const uint64_t least = stk_sizing_slots_bytes(loader, asked > 0 ? asked : 2);
    return least > bytes / BATCHES_SHARE ? least : bytes / BATCHES_SHARE;
}

uint64_t stk_sizing_memory_share(const stoker_loader *loader)
{
    const uint32_t asked = loader->options.local_world_size;
    return loader->available_bytes / (asked > 0 ? asked : stk_local_ranks());
}

/* The most slots of a ring whose size the options leave open; at least 2. */
static uint32_t most_slots(const stoker_loader *loader)
{
    const uint64_t share = stk_sizing_memory_share(loader) / BATCHES_SHARE;
    const uint64_t most = loader->batches_bytes_max;
    return clamp((share < most ? share : most) / stk_sizing_slots_bytes(loader, 1), 2,
                 STOKER_PREFETCH_MAX);
}

uint32_t stk_sizing_slot_count(stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    if (loader->options.prefetch_batches > 0)
        return loader->options.prefetch_batches;
    const bool rereads = stk_pipeline_plan_rereads(&pipeline->plan);
    /* One lent, one in the making, the others for reads in flight: none if samples are read in
     * runs, ahead of which the kernel reads, and which cost so little that more slots than the
     * core's cache holds would slow them down by a tenth. */
    const bool in_flight_too = rereads && !pipeline->plan.runs_decode;
    if (!loader->threads)
        return clamp(
            2 + (in_flight_too ? pipeline->read_depth / loader->options.batch_size + 1 : 0), 2,
            most_slots(loader));
    const size_t batch_bytes = pipeline->field_plan.row_bytes * loader->options.batch_size;
    const uint32_t least =
        loader->cpus > loader->tuner.workers ? RING_SLOTS_ASLEEP : RING_SLOTS_MIN;
    uint64_t slots = clamp(ring_bytes(loader) / batch_bytes, least, RING_SLOTS_MAX);
    /* Each worker fills a ticket while another of its tickets waits for the consumer. */
    const uint64_t filled = slots_of(pipeline, 2 * (uint64_t)loader->tuner.workers + 2);
    if (slots < filled)
        slots = filled;
    /* Each worker's reads need slots, and no worker should wait for another's reads. */
    uint64_t in_flight = rereads ? (uint64_t)loader->tuner.workers * pipeline->read_depth /
                                       loader->options.batch_size
                                 : 0;
    in_flight += slots_of(pipeline, (uint64_t)loader->tuner.workers + 2);
    if (slots < in_flight)
        slots = in_flight;
    loader->slots_wanted = clamp(slots, 2, STOKER_PREFETCH_MAX);
    return clamp(slots, 2, most_slots(loader));
}

uint32_t stk_sizing_buffer_count(const stoker_loader *loader)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    if (loader->options.prefetch_batches > 0)
        return loader->options.prefetch_batches;
    const uint32_t wanted = clamp(BUFFERS_BYTES / slots->slot_bytes, BUFFERS_MIN, BUFFERS_MAX);
    return wanted < slots->slot_count ? wanted : slots->slot_count;
}
