/* ledger.c - see ledger.h. */
#include "loader/pipeline/report/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/struct_size.h"

enum { ENOUGH_BATCHES = 8, ENOUGH_NS = 1000000 };

static const double NO_STALL = 0.05; /* share of stalls below which the loader is fast enough */
static const double MOSTLY = 0.5;
static const double ALL_CPUS =
    0.8; /* CPU use that counts as all: the consumer needs CPU time, too */

void stk_ledger_sum(const struct stk_ledger_entry *entry, stoker_stats *stats)
{
    stats->read_ns += stk_ledger_read(&entry->read_ns);
    stats->decode_ns += stk_ledger_read(&entry->decode_ns);
    stats->convert_ns += stk_ledger_read(&entry->convert_ns);
    stats->slot_wait_ns += stk_ledger_read(&entry->slot_wait_ns);
    stats->reads += stk_ledger_read(&entry->reads);
    stats->read_bytes += stk_ledger_read(&entry->read_bytes);
    stats->read_retries += stk_ledger_read(&entry->read_retries);
    stats->cache_hits += stk_ledger_read(&entry->cache_hits);
    stats->regions += stk_ledger_read(&entry->regions);
}

static double share(uint64_t part_ns, uint64_t whole_ns)
{
    return whole_ns == 0 ? 0.0 : (double)part_ns / (double)whole_ns;
}

/* The stage that takes most of the time that workers do not wait for slots. */
static stoker_limit busiest_stage(const stoker_stats *stats)
{
    if (stats->read_ns >= stats->decode_ns && stats->read_ns >= stats->convert_ns)
        return STOKER_LIMIT_READ;
    return stats->decode_ns >= stats->convert_ns ? STOKER_LIMIT_DECODE : STOKER_LIMIT_CONVERT;
}

static uint64_t busy_ns_of(const stoker_stats *stats)
{
    return stats->read_ns + stats->decode_ns + stats->convert_ns;
}

/* Say what would help, judging by the CPU time of the work. */
static void append_advice(stoker_stats *stats)
{
    const double used = share(stats->cpu_ns, stats->elapsed_ns);
    const bool waits = share(stats->cpu_ns, busy_ns_of(stats)) < MOSTLY;
    const size_t length = strlen(stats->verdict);
    char *end = stats->verdict + length;
    const size_t room = sizeof(stats->verdict) - length;
    if (used >= ALL_CPUS * stats->cpus)
        (void)snprintf(end, room, "; every CPU is in use: more workers will not help");
    else if (waits && stats->limit == STOKER_LIMIT_READ)
        (void)snprintf(end, room, "; more workers help only if the storage has more to give");
    else
        (void)snprintf(end, room, "; %s%.1f of %u CPUs in use: more workers %s",
                       waits ? "workers mostly wait, " : "", used, stats->cpus,
                       waits ? "will help" : "may help");
}

/* The limiting stage, if there is enough data.
 *
 * Without threads next() makes the batches, and the larger share of next() and the consumer's own
 * time is the limit. With threads both run at the same time, and one of them waits. */
static stoker_limit limit_of(const stoker_stats *stats)
{
    const double stall = share(stats->stall_ns, stats->elapsed_ns);
    const double idle = share(stats->slot_wait_ns, busy_ns_of(stats) + stats->slot_wait_ns);
    if (stats->batches < ENOUGH_BATCHES || stats->elapsed_ns < ENOUGH_NS)
        return STOKER_LIMIT_UNKNOWN;
    if (stall < (stats->workers > 0 ? NO_STALL : MOSTLY))
        return STOKER_LIMIT_CONSUMER;
    /* Above 1 in all, both wait at the same time. Below, they may wait in turn: while the consumer
     * rests, the workers do. */
    if (stats->workers > 0 && idle > MOSTLY && stall + idle > 1)
        return STOKER_LIMIT_HANDOVER;
    return busiest_stage(stats);
}

static void describe_stage(stoker_stats *stats, const char *words, uint64_t stage_ns)
{
    (void)snprintf(stats->verdict, sizeof(stats->verdict), "%s (%.0f %% of the workers' busy time)",
                   words, 100 * share(stage_ns, busy_ns_of(stats)));
    append_advice(stats);
}

/* Say why the workers decode what the caller wanted a GPU to decode. */
static void append_reason(stoker_stats *stats)
{
    const size_t length = strlen(stats->verdict);
    if (stats->decode_reason[0] != '\0')
        (void)snprintf(stats->verdict + length, sizeof(stats->verdict) - length,
                       "; the GPU does not decode: %s", stats->decode_reason);
}

void stk_ledger_judge(stoker_stats *stats)
{
    const double stall = 100 * share(stats->stall_ns, stats->elapsed_ns);
    char *verdict = stats->verdict;
    const size_t size = sizeof(stats->verdict);
    stats->limit = limit_of(stats);
    switch (stats->limit) {
    case STOKER_LIMIT_UNKNOWN:
        (void)snprintf(verdict, size, "too early to judge: %" PRIu64 " batches", stats->batches);
        break;
    case STOKER_LIMIT_CONSUMER:
        (void)snprintf(
            verdict, size,
            stats->workers > 0
                ? "consumer-bound: %.0f %% of the time was spent waiting for data"
                : "consumer-bound: %.0f %% of the time was spent making batches; a worker "
                  "would make them meanwhile",
            stall);
        break;
    case STOKER_LIMIT_HANDOVER:
        (void)snprintf(verdict, size,
                       "handover-bound: the consumer waits %.0f %% of the time, and so do the "
                       "workers: larger batches or more prefetch help",
                       stall);
        break;
    case STOKER_LIMIT_READ:
        describe_stage(stats, "read-bound: workers read, or wait for storage", stats->read_ns);
        break;
    case STOKER_LIMIT_DECODE:
        describe_stage(stats, "decode-bound", stats->decode_ns);
        append_reason(stats);
        break;
    case STOKER_LIMIT_CONVERT:
        describe_stage(stats, "convert-bound: workers gather and convert rows", stats->convert_ns);
        break;
    }
}

int stoker_stats_between(const stoker_stats *before, const stoker_stats *after, stoker_stats *out)
{
    if (before == NULL || after == NULL || out == NULL ||
        before->struct_size != after->struct_size ||
        !stk_struct_size_fits(after->struct_size, STK_SIZE_UP_TO(stoker_stats, share_reason)) ||
        before->elapsed_ns > after->elapsed_ns || before->batches > after->batches)
        return STOKER_EINVAL;
    const size_t size = after->struct_size; /* out may be after */
    stoker_stats between = { 0 };
    stk_struct_read(&between, sizeof(between), after, size);
    between.batches -= before->batches;
    between.samples -= before->samples;
    between.bytes -= before->bytes;
    between.bad_samples -= before->bad_samples;
    between.elapsed_ns -= before->elapsed_ns;
    between.read_ns -= before->read_ns;
    between.decode_ns -= before->decode_ns;
    between.convert_ns -= before->convert_ns;
    between.slot_wait_ns -= before->slot_wait_ns;
    between.stall_ns -= before->stall_ns;
    between.stalls -= before->stalls;
    between.reads -= before->reads;
    between.read_bytes -= before->read_bytes;
    between.read_retries -= before->read_retries;
    between.cache_hits -= before->cache_hits;
    between.blocks -= before->blocks;
    between.blocks_again -= before->blocks_again;
    between.block_bytes -= before->block_bytes;
    between.device_images -= before->device_images;
    between.device_image_bytes -= before->device_image_bytes;
    between.length_values -= before->length_values;
    between.length_room -= before->length_room;
    between.regions -= before->regions;
    between.copies -= before->copies;
    between.copy_bytes -= before->copy_bytes;
    between.copy_waits -= before->copy_waits;
    between.cpu_ns -= before->cpu_ns < after->cpu_ns ? before->cpu_ns : after->cpu_ns;
    stk_ledger_judge(&between);
    stk_struct_write(out, size, &between, sizeof(between));
    return STOKER_OK;
}

const char *stoker_limit_name(stoker_limit limit)
{
    static const char *const names[] = { "unknown", "consumer", "read",
                                         "decode",  "convert",  "handover" };
    return (unsigned)limit < sizeof(names) / sizeof(names[0]) ? names[limit] : "unknown";
}

const char *stoker_cache_name(stoker_cache cache)
{
    static const char *const names[] = { "auto", "none", "encoded", "decoded", "device" };
    return (unsigned)cache < sizeof(names) / sizeof(names[0]) ? names[cache] : "unknown";
}
