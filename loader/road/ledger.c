/* ledger.c - see ledger.h. */
#include "loader/road/ledger.h"

#include <inttypes.h>
#include <stdio.h>

enum { ENOUGH_BATCHES = 8, ENOUGH_NS = 1000000 };

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
}

static double share(uint64_t part_ns, uint64_t whole_ns)
{
    return whole_ns == 0 ? 0.0 : (double)part_ns / (double)whole_ns;
}

/* The stage on which the workers spend most of the time that they do not wait for slots. */
static stoker_limit busiest_stage(const stoker_stats *stats)
{
    if (stats->read_ns >= stats->decode_ns && stats->read_ns >= stats->convert_ns)
        return STOKER_LIMIT_READ;
    return stats->decode_ns >= stats->convert_ns ? STOKER_LIMIT_DECODE : STOKER_LIMIT_CONVERT;
}

static const char *advice(const stoker_stats *stats)
{
    const uint32_t busy = stats->workers > 0 ? stats->workers : 1; /* the caller's thread */
    if (busy < stats->cpus)
        return "a CPU is left: more workers may help";
    if (stats->limit == STOKER_LIMIT_READ)
        return "more workers help only if the storage has more to give";
    return "every CPU is in use: more workers will not help";
}

void stk_ledger_judge(stoker_stats *stats)
{
    static const char *const stages[] = {
        [STOKER_LIMIT_READ] = "read-bound: workers read, or wait for storage",
        [STOKER_LIMIT_DECODE] = "decode-bound",
        [STOKER_LIMIT_CONVERT] = "convert-bound: workers gather and convert rows",
    };
    const uint64_t busy_ns = stats->read_ns + stats->decode_ns + stats->convert_ns;
    const double stall = share(stats->stall_ns, stats->elapsed_ns);
    /* Workers' idle share; in the caller's thread nobody waits for slots. */
    const double idle = share(stats->slot_wait_ns, busy_ns + stats->slot_wait_ns);

    if (stats->batches < ENOUGH_BATCHES || stats->elapsed_ns < ENOUGH_NS) {
        stats->limit = STOKER_LIMIT_UNKNOWN;
        (void)snprintf(stats->verdict, sizeof(stats->verdict),
                       "too early to tell: %" PRIu64 " batches", stats->batches);
    } else if (stats->workers > 0 && (stall < 0.05 || idle > 0.5)) {
        stats->limit = stall < 0.05 ? STOKER_LIMIT_CONSUMER : STOKER_LIMIT_HANDOVER;
        (void)snprintf(
            stats->verdict, sizeof(stats->verdict),
            stall < 0.05 ? "consumer-bound: %.0f %% of the time was spent waiting for data"
                         : "handover-bound: the consumer waits %.0f %% of the time, and so do the "
                           "workers: larger batches or more prefetch help",
            100 * stall);
    } else {
        stats->limit = busiest_stage(stats);
        (void)snprintf(stats->verdict, sizeof(stats->verdict),
                       "%s (%.0f %% of the workers' busy time); %s", stages[stats->limit],
                       100 * share(stats->limit == STOKER_LIMIT_READ     ? stats->read_ns
                                   : stats->limit == STOKER_LIMIT_DECODE ? stats->decode_ns
                                                                         : stats->convert_ns,
                                   busy_ns),
                       advice(stats));
    }
}

int stoker_stats_between(const stoker_stats *before, const stoker_stats *after, stoker_stats *out)
{
    if (before == NULL || after == NULL || out == NULL || before->struct_size != sizeof(*before) ||
        after->struct_size != sizeof(*after) || before->elapsed_ns > after->elapsed_ns ||
        before->batches > after->batches)
        return STOKER_EINVAL;
    stoker_stats between = *after;
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
    between.copies -= before->copies;
    between.copy_bytes -= before->copy_bytes;
    between.copy_waits -= before->copy_waits;
    stk_ledger_judge(&between);
    *out = between;
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
