/* node_ranks.c - several processes of one job read one data set, and hold it once in memory. One
 * may be killed on the way.
 *
 *   parent ──fork──▶ ranks, with the variables of a launcher ──▶ three epochs ──▶ a report ──▶ wait
 *          ◀────────────────────── what they hold: /proc/PID/smaps ────────────────────────────┘
 *
 * usage: node_ranks SPEC RANKS [kill]     kill: rank 1 is killed after its first batch
 *
 * Rank 0 has then delivered one: its loader made the cache, and those that come after the death
 * find it. Had the dead one made it, they would share another.
 *
 * Prints the bytes of the cache and the memory that it takes in all ranks together (PSS: a page
 * that n processes map counts as 1/n in each). Fails if a sample is missing or has other bytes in
 * any epoch of the ranks that live, or if the ranks hold more than 1.1 times the cache.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stoker/stoker.h>

#include "loader/base/rng.h"

enum { RANKS_MAX = 16, EPOCHS = 3 };

/* What a rank sends to its parent. */
struct report {
    uint64_t samples; /* in all epochs */
    uint64_t sum; /* over all samples, of a hash of id and bytes: does not depend on the order */
    uint64_t held_bytes;
    uint64_t reads;
    uint32_t sharers;
    char reason[128];
};

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

static uint64_t hash_row(uint64_t id, const uint8_t *bytes, size_t size)
{
    uint64_t hash = stk_mix64(id);
    for (size_t at = 0; at < size; at++)
        hash = (hash ^ bytes[at]) * 0x100000001B3U;
    return stk_mix64(hash);
}

static void add_batch(struct report *report, const stoker_batch *batch)
{
    size_t row_bytes = stoker_dtype_bytes(batch->images.dtype);
    for (uint32_t axis = 1; axis < batch->images.rank; axis++)
        row_bytes *= (size_t)batch->images.shape[axis];
    for (uint32_t row = 0; row < batch->count; row++)
        report->sum += hash_row(batch->ids[row],
                                (const uint8_t *)batch->images.data + row * row_bytes, row_bytes);
    report->samples += batch->count;
}

/* Run all epochs; writes a byte to `started` after the first batch. */
static int run(const char *spec, int started, struct report *report, stoker_loader **loader)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_batch batch = STOKER_BATCH_INIT;
    options.device = STOKER_DEVICE_CPU;
    options.shuffle = true;
    options.epochs = EPOCHS;
    options.rank = STOKER_RANK_AUTO;
    options.cache = STOKER_CACHE_DECODED;
    if (stoker_dataset_open(&dataset, spec, NULL, &error) < 0 ||
        stoker_loader_create(loader, dataset, &options, &error) < 0)
        return fail(error.message);
    int rc;
    while ((rc = stoker_loader_next(*loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END) {
        if (rc != STOKER_OK)
            continue;
        add_batch(report, &batch);
        if (report->samples == batch.count && write(started, "x", 1) != 1)
            return fail("the parent is gone");
        stoker_batch_release(&batch);
    }
    stoker_stats stats = STOKER_STATS_INIT;
    if (rc != STOKER_FINISHED || stoker_loader_stats(*loader, &stats) < 0)
        return fail("the run did not end well");
    report->held_bytes = stats.cache_held_bytes;
    report->reads = stats.reads;
    report->sharers = stats.cache_sharers;
    memcpy(report->reason, stats.share_reason, sizeof(report->reason));
    return 0;
}

static void set_number(const char *name, int number)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%d", number);
    setenv(name, text, 1);
}

struct rank {
    pid_t process;
    int from; /* its report */
    int hold; /* closed to let it end */
};

static _Noreturn void be_rank(const char *spec, int rank, int ranks, int to, int started, int hold)
{
    struct report report = { .samples = 0 };
    stoker_loader *loader = NULL; /* stays open until the parent has looked */
    char byte;
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    set_number("WORLD_SIZE", ranks);
    set_number("LOCAL_WORLD_SIZE", ranks);
    if (run(spec, started, &report, &loader) != 0 ||
        write(to, &report, sizeof(report)) != (ssize_t)sizeof(report))
        _exit(1);
    _exit(read(hold, &byte, 1) == 0 ? 0 : 1);
}

static bool start(struct rank *rank, const char *spec, int index, int ranks, int *started)
{
    int report[2];
    int begun[2];
    int hold[2];
    if (pipe(report) != 0 || pipe(begun) != 0 || pipe(hold) != 0)
        return false;
    rank->process = fork();
    if (rank->process == 0) {
        close(hold[1]);
        close(report[0]);
        be_rank(spec, index, ranks, report[1], begun[1], hold[0]);
    }
    close(report[1]);
    close(begun[1]);
    close(hold[0]);
    rank->from = report[0];
    rank->hold = hold[1];
    *started = begun[0];
    return rank->process > 0;
}

/* The proportional share of a process in the memory of shared caches, or in all its memory. */
static uint64_t pss_bytes(pid_t process, bool of_cache)
{
    char path[64];
    char line[512];
    uint64_t sum = 0;
    bool counts = !of_cache;
    unsigned long kilobytes;
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)process);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strchr(line, '-') != NULL && strchr(line, ':') > strchr(line, '-')) /* 7f00-7fff rw-s */
            counts = !of_cache || strstr(line, "memfd:stoker-cache") != NULL;
        else if (counts && sscanf(line, "Pss: %lu kB", &kilobytes) == 1)
            sum += (uint64_t)kilobytes * 1024;
    }
    if (file != NULL)
        (void)fclose(file);
    return sum;
}

int main(int count, char **arguments)
{
    const int ranks = count > 2 ? atoi(arguments[2]) : 0;
    const bool kills = count > 3;
    struct rank each[RANKS_MAX];
    struct report whole = { .samples = 0 };
    stoker_loader *loader = NULL;
    char byte;
    int started;
    int ends[2];
    if (ranks < 2 || ranks > RANKS_MAX)
        return fail("usage: node_ranks SPEC RANKS [kill]");
    for (int i = 0; i < ranks; i++) {
        if (!start(&each[i], arguments[1], i, ranks, &started))
            return fail("a rank does not start");
        if (kills && i <= 1 && read(started, &byte, 1) != 1)
            return fail("a rank delivers nothing");
        if (kills && i == 1 && kill(each[1].process, SIGKILL) != 0)
            return fail("rank 1 cannot be killed");
    }
    uint64_t samples = 0;
    uint64_t sum = 0;
    struct report report = { .samples = 0 };
    for (int i = 0; i < ranks; i++) {
        if (kills && i == 1)
            continue;
        if (read(each[i].from, &report, sizeof(report)) != (ssize_t)sizeof(report))
            return fail("a rank failed");
        printf("rank %d: %llu samples, %llu reads, %u sharers %s\n", i,
               (unsigned long long)report.samples, (unsigned long long)report.reads, report.sharers,
               report.reason);
        samples += report.samples;
        sum += report.sum;
    }
    uint64_t cache_bytes = 0;
    uint64_t all_bytes = 0;
    for (int i = 0; i < ranks; i++)
        if (!kills || i != 1) {
            cache_bytes += pss_bytes(each[i].process, true);
            all_bytes += pss_bytes(each[i].process, false);
        }
    printf("cache holds %llu MB, %llu MB in all ranks together; all their memory %llu MB\n",
           (unsigned long long)(report.held_bytes >> 20), (unsigned long long)(cache_bytes >> 20),
           (unsigned long long)(all_bytes >> 20));
    for (int i = 0; i < ranks;
         i++) /* all first: later ranks have inherited the ends of earlier ones */
        close(each[i].hold);
    for (int i = 0; i < ranks; i++)
        waitpid(each[i].process, NULL, 0);
    if (report.held_bytes == 0 || (double)cache_bytes > 1.1 * (double)report.held_bytes + 4e6)
        return fail("it is held more than once");
    if (kills)
        return 0; /* rank 1's samples are missing */
    if (pipe(ends) != 0 || run(arguments[1], ends[1], &whole, &loader) != 0)
        return 1;
    stoker_loader_destroy(&loader);
    return samples == whole.samples && sum == whole.sum
               ? 0
               : fail("samples differ from those of one rank");
}
