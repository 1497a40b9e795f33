/* together.c - see together.h. */
#include "bench/loaderbench/cell/together.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Counts and times of a window that are summed over the ranks, as figure.c sums them over
 * windows. */
static const size_t sums[] = {
    offsetof(stoker_stats, batches),      offsetof(stoker_stats, samples),
    offsetof(stoker_stats, bytes),        offsetof(stoker_stats, bad_samples),
    offsetof(stoker_stats, elapsed_ns),   offsetof(stoker_stats, read_ns),
    offsetof(stoker_stats, decode_ns),    offsetof(stoker_stats, convert_ns),
    offsetof(stoker_stats, slot_wait_ns), offsetof(stoker_stats, stall_ns),
    offsetof(stoker_stats, stalls),       offsetof(stoker_stats, reads),
    offsetof(stoker_stats, read_bytes),   offsetof(stoker_stats, read_retries),
    offsetof(stoker_stats, cache_hits),   offsetof(stoker_stats, cpu_ns)
};
enum { SUMS = sizeof(sums) / sizeof(sums[0]), SAMPLES = SUMS, BYTES, WALL, CPU, GAP, GAPS, WHOLE };

static_assert((int)WHOLE < (int)BENCH_WORD_NUMBERS, "a word holds a window");

/* Numbers of BENCH_SYNC_START, and of BENCH_SYNC_VERIFIED. */
enum { EPOCHS, CUT };
enum { CHECKED, HASH, ALL };

static uint64_t *sum_at(stoker_stats *stats, int index)
{
    return (uint64_t *)(void *)((char *)stats + sums[index]);
}

/* ---- windows --------------------------------------------------------------------- */

uint64_t bench_together_share(const struct bench_bench *bench)
{
    const stoker_ranks *place = &bench->ranks->place;
    const uint64_t count = stoker_dataset_get_info(bench->dataset)->count;
    return count / place->world_size + (place->rank < count % place->world_size ? 1 : 0);
}

int bench_together_start(struct bench_run *run, double rate, struct bench_window_limits *limits)
{
    enum { EPOCHS_MAX = 1000000 };
    struct bench_ranks *ranks = run->bench->ranks;
    struct bench_word word = { .sync_point = BENCH_SYNC_START };
    const struct bench_word *all = NULL;
    if (!bench_ranks_several(ranks))
        return STOKER_OK;
    const double epoch_s = (double)bench_together_share(run->bench) / rate;
    const double epochs = ceil(limits->seconds / epoch_s);
    const uint64_t least = limits->epochs > 0 ? limits->epochs : 1;
    word.number[EPOCHS] = !(epochs > (double)least)     ? least
                          : epochs < (double)EPOCHS_MAX ? (uint64_t)epochs
                                                        : EPOCHS_MAX;
    word.number[CUT] = limits->epochs == 0 && (run->cut || epoch_s > limits->seconds_max);
    const int rc = bench_ranks_reach(ranks, &word, &all);
    if (rc != STOKER_OK)
        return rc;
    bool cut = false;
    uint64_t most = 1;
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++) {
        cut = cut || all[rank].number[CUT] != 0;
        most = all[rank].number[EPOCHS] > most ? all[rank].number[EPOCHS] : most;
    }
    limits->epochs = cut ? 0 : (uint32_t)most;
    limits->seconds = cut ? limits->seconds_max : 0;
    return STOKER_OK;
}

int bench_together_first(struct bench_run *run)
{
    struct bench_word word = { .sync_point = BENCH_SYNC_START };
    const struct bench_word *all = NULL;
    return bench_ranks_several(run->bench->ranks)
               ? bench_ranks_reach(run->bench->ranks, &word, &all)
               : STOKER_OK;
}

static struct bench_word word_of(struct bench_window *window)
{
    struct bench_word word = { .sync_point = BENCH_SYNC_WINDOW };
    for (int index = 0; index < SUMS; index++)
        word.number[index] = *sum_at(&window->stats, index);
    word.number[SAMPLES] = window->samples;
    word.number[BYTES] = window->bytes;
    word.number[WALL] = window->wall_ns;
    word.number[CPU] = window->cpu_ns;
    word.number[GAP] = window->gap_ns;
    word.number[GAPS] = window->gaps;
    word.number[WHOLE] = window->whole_epochs;
    return word;
}

static void add_word(struct bench_window *window, const struct bench_word *word)
{
    for (int index = 0; index < SUMS; index++)
        *sum_at(&window->stats, index) += word->number[index];
    window->samples += word->number[SAMPLES];
    window->bytes += word->number[BYTES];
    window->wall_ns = word->number[WALL] > window->wall_ns ? word->number[WALL] : window->wall_ns;
    window->cpu_ns += word->number[CPU];
    window->gap_ns += word->number[GAP];
    window->gaps += (uint32_t)word->number[GAPS];
    window->whole_epochs = window->whole_epochs && word->number[WHOLE] != 0;
}

int bench_together_add(struct bench_run *run, struct bench_window *window)
{
    struct bench_ranks *ranks = run->bench->ranks;
    const struct bench_word *all = NULL;
    if (!bench_ranks_several(ranks))
        return STOKER_OK;
    struct bench_word word = word_of(window);
    const int rc = bench_ranks_reach(ranks, &word, &all);
    if (rc != STOKER_OK)
        return rc;
    struct bench_window sum = { .stats = window->stats, .whole_epochs = true };
    for (int index = 0; index < SUMS; index++)
        *sum_at(&sum.stats, index) = 0;
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++) {
        add_word(&sum, &all[rank]);
        if (run->figure == &run->later)
            run->rank_rates[rank] +=
                (double)all[rank].number[SAMPLES] / ((double)all[rank].number[WALL] / 1e9);
    }
    *window = sum;
    return STOKER_OK;
}

/* ---- ceilings -------------------------------------------------------------------- */

int bench_together_ceiling(struct bench_ranks *ranks, enum bench_ceiling_kind kind,
                           const struct bench_work *work, double *rate, stoker_error *error)
{
    struct bench_word start = { .sync_point = BENCH_SYNC_CEILING, .number = { (uint64_t)kind } };
    struct bench_word end = { .sync_point = BENCH_SYNC_RATE, .number = { (uint64_t)kind } };
    const struct bench_word *all = NULL;
    if (!bench_ranks_several(ranks))
        return bench_ceiling_measure(kind, work, rate, error);
    int rc = bench_ranks_reach(ranks, &start, &all);
    if (rc != STOKER_OK)
        return rc;
    end.code = bench_ceiling_measure(kind, work, rate, error);
    end.rate = *rate;
    snprintf(end.text, sizeof(end.text), "%.*s", BENCH_WORD_TEXT_BYTES - 1,
             error != NULL && error->message[0] != '\0' ? error->message
                                                        : stoker_strerror(end.code));
    rc = bench_ranks_reach(ranks, &end, &all);
    if (rc == STOKER_OK)
        rc = bench_ranks_agree(ranks, &end, all);
    if (rc != STOKER_OK)
        return rc;
    *rate = 0;
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++)
        *rate += all[rank].rate; /* NaN if it cannot be measured here */
    return end.code;
}

/* ---- cells ----------------------------------------------------------------------- */

int bench_together_begun(struct bench_run *run, int rc, uint64_t *bytes)
{
    struct bench_ranks *ranks = run->bench->ranks;
    struct bench_word word = { .sync_point = BENCH_SYNC_BEGUN, .code = rc, .number = { *bytes } };
    const struct bench_word *all = NULL;
    if (!bench_ranks_several(ranks) || rc == BENCH_INTERRUPTED)
        return rc;
    snprintf(word.text, sizeof(word.text), "%.*s", BENCH_WORD_TEXT_BYTES - 1, run->out->error);
    const int met = bench_ranks_reach(ranks, &word, &all);
    if (met != STOKER_OK)
        return rc == STOKER_OK ? met : rc;
    if (bench_ranks_agree(ranks, &word, all) != STOKER_OK)
        return rc == STOKER_OK ? STOKER_EPEER : rc;
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++)
        *bytes = all[rank].number[0] > *bytes ? all[rank].number[0] : *bytes;
    return rc;
}

/* Any function whose sum over a set of ids is hardly ever that of another: of splitmix64. */
static uint64_t hash_of(uint64_t id)
{
    uint64_t hash = id + UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94D049BB133111EB);
    return hash ^ (hash >> 31);
}

static int differs(struct bench_run *run, const char *what, uint64_t checked, uint64_t count)
{
    snprintf(run->error.message, sizeof(run->error.message),
             "wrong data: all ranks together delivered %" PRIu64 " samples of %" PRIu64 "%s",
             checked, count, what);
    return STOKER_ECORRUPT;
}

int bench_together_verify(struct bench_run *run, const struct bench_verify *verify,
                          uint64_t *verified)
{
    struct bench_ranks *ranks = run->bench->ranks;
    struct bench_word word = { .sync_point = BENCH_SYNC_VERIFIED };
    const struct bench_word *all = NULL;
    const uint64_t count = stoker_dataset_get_info(run->bench->dataset)->count;
    *verified = verify->checked;
    if (!bench_ranks_several(ranks))
        return STOKER_OK;
    word.number[CHECKED] = verify->checked;
    word.number[ALL] = verify->checked == bench_together_share(run->bench);
    for (uint64_t index = 0; index < verify->checked; index++)
        word.number[HASH] += hash_of(verify->ids[index]);
    const int rc = bench_ranks_reach(ranks, &word, &all);
    if (rc != STOKER_OK)
        return rc;
    bool whole = true;
    uint64_t hash = 0;
    *verified = 0;
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++) {
        *verified += all[rank].number[CHECKED];
        hash += all[rank].number[HASH];
        whole = whole && all[rank].number[ALL] != 0;
    }
    if (!whole)
        return STOKER_OK; /* a part of a large set: each rank has found its own samples distinct */
    for (uint64_t id = 0; id < count; id++)
        hash -= hash_of(id);
    return *verified != count ? differs(run, "", *verified, count)
           : hash != 0        ? differs(run, ", and some of them twice", *verified, count)
                              : STOKER_OK;
}
