/* sums.c - see sums.h. */
#include "bench/codecs/sums.h"

#include "bench/codecs/loading.h"
#include "bench/output/json.h"
#include "bench/timing.h"
#include "loader/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- records that lie in the core's own cache ------------------------------------ */

enum { HOT_RECORDS = 64 }; /* spread over the set */

struct hot {
    uint64_t bytes; /* in all of them */
    double ns;      /* to verify each once, at best: the least that a loader can add */
};

/* Nanoseconds at best; < 0 = the check fails. */
static double verify_hot(const stoker_part *sample, const uint8_t *record)
{
    enum { TRIES = 31, TIMES = 16 };
    const stoker_encoded encoded = { .bytes = record,
                                     .size = sample->extent.bytes,
                                     .tag = sample->tag };
    double best_ns = -1;
    for (int try = 0; try < TRIES; try++) {
        const uint64_t begin_ns = stk_now_ns();
        for (int time = 0; time < TIMES; time++)
            if (sample->codec->verify(sample->codec->self, &encoded, NULL) != STOKER_OK)
                return -1;
        const double ns = (double)(stk_now_ns() - begin_ns) / TIMES;
        if (best_ns < 0 || ns < best_ns)
            best_ns = ns;
    }
    return best_ns;
}

static int add_hot(const struct bench_material *material, uint64_t id, struct hot *hot)
{
    stoker_part sample;
    int rc = stoker_dataset_locate(material->dataset, id, &sample, NULL);
    if (rc != STOKER_OK)
        return rc;
    if (sample.codec == NULL || sample.codec->verify == NULL)
        return STOKER_ENOTSUP;
    const uint32_t bytes = sample.extent.bytes;
    uint8_t *record = malloc(bytes);
    if (record == NULL)
        return STOKER_ENOMEM;
    const bool read =
        pread(material->file.fd, record, bytes, (off_t)sample.extent.offset) == (ssize_t)bytes;
    const double ns = read ? verify_hot(&sample, record) : -1;
    free(record);
    hot->bytes += bytes;
    hot->ns += ns;
    return ns < 0 ? STOKER_ECORRUPT : STOKER_OK;
}

/* Means over some records. */
static int measure_hot(const struct bench_material *material, struct hot *out)
{
    const uint64_t count = stoker_dataset_get_info(material->dataset)->count;
    *out = (struct hot){ 0 };
    for (uint64_t index = 0; index < HOT_RECORDS; index++) {
        const int rc = add_hot(material, count / HOT_RECORDS * index, out);
        if (rc != STOKER_OK)
            return rc;
    }
    out->bytes /= HOT_RECORDS;
    out->ns /= HOT_RECORDS;
    return STOKER_OK;
}

/* ---- loaders in turn ---------------------------------------------------------------- */

enum side { NOTHING, LOADS, SUM };

static void print(const char *spec, const struct bench_material *material,
                  const struct bench_loading_times *times, const struct hot *hot)
{
    const struct bench_statistics ratio = bench_loading_ratio(times, SUM, NOTHING);
    printf("{\"kind\": \"codec\", \"what\": \"sum\", \"dataset\": ");
    bench_json_string(stdout, spec);
    printf(", \"compared\": %" PRIu64 ", \"row_bytes\": %zu, \"ns\": %.3f, \"loads_ns\": %.3f, "
           "\"other_ns\": %.3f, \"ratio\": %.5f, \"ratio_min\": %.5f, \"ratio_max\": %.5f, "
           "\"loads_ratio\": %.5f, \"hot_ns\": %.1f, \"hot_bytes\": %" PRIu64 ", \"turns\": %d}\n",
           stoker_dataset_get_info(material->dataset)->count, material->row_bytes,
           bench_loading_ns(times, NOTHING), bench_loading_ns(times, LOADS),
           bench_loading_ns(times, SUM), ratio.median, ratio.min, ratio.max,
           bench_loading_ratio(times, LOADS, NOTHING).median, hot->ns, hot->bytes,
           BENCH_LOADING_TURNS);
}

int bench_sums_compare(const char *spec, const struct bench_material *material)
{
    static const enum bench_check checks[] = {
        [NOTHING] = BENCH_CHECK_NOTHING, [LOADS] = BENCH_CHECK_LOADS, [SUM] = BENCH_CHECK_SUM
    };
    static struct bench_loading loadings[BENCH_LOADING_SIDES];
    static struct bench_loading_times times;
    struct bench_loading *const sides[] = { &loadings[NOTHING], &loadings[LOADS], &loadings[SUM] };
    struct hot hot;
    int rc = measure_hot(material, &hot);
    for (int side = NOTHING; rc == STOKER_OK && side <= SUM; side++)
        rc = bench_loading_open(&loadings[side], material, checks[side]);
    if (rc == STOKER_OK)
        rc = bench_loading_take_turns(sides, BENCH_LOADING_SIDES, bench_cpu_ns, &times);
    if (rc == STOKER_OK)
        print(spec, material, &times, &hot);
    for (int side = SUM; side >= NOTHING; side--)
        bench_loading_close(&loadings[side]);
    return rc;
}
