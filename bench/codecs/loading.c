/* loading.c - see loading.h. */
#include "bench/codecs/loading.h"

#include "bench/cell/consumer.h"
#include "bench/device/step.h"
#include "loader/base/clock.h"

#include <string.h>

enum { HELD_EPOCHS = 3 }; /* the first batches bypass the cache */

static int make_loader(struct bench_loading *loading, uint32_t batch_size, stoker_cache cache,
                       stoker_dtype dtype)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.batch_size = batch_size;
    options.num_workers = 2;
    options.shuffle = true;
    options.cache = cache;
    options.dtype = dtype;
    options.pin_memory = STOKER_SWITCH_OFF;
    return stoker_loader_create(&loading->loader, loading->dataset, &options, NULL);
}

int bench_loading_open(struct bench_loading *loading, const struct bench_material *material,
                       enum bench_check check)
{
    *loading = (struct bench_loading){ 0 };
    int rc = bench_checking_open(&loading->dataset, &loading->set, material->dataset,
                                 &material->file, check);
    if (rc == STOKER_OK)
        rc = make_loader(loading, 64, STOKER_CACHE_NONE, STOKER_DTYPE_NONE);
    if (rc != STOKER_OK)
        bench_loading_close(loading);
    return rc;
}

static int skip_epoch(stoker_loader *loader)
{
    int rc;
    stoker_batch batch = STOKER_BATCH_INIT;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK)
        stoker_batch_release(&batch);
    return rc;
}

int bench_loading_open_held(struct bench_loading *loading, const char *spec, uint32_t batch_size)
{
    *loading = (struct bench_loading){ 0 };
    int rc = stoker_dataset_open(&loading->dataset, spec, NULL, NULL);
    if (rc == STOKER_OK)
        rc = make_loader(loading, batch_size, STOKER_CACHE_DECODED, STOKER_DTYPE_FLOAT32);
    for (int epoch = 0; rc >= 0 && epoch < HELD_EPOCHS; epoch++)
        rc = skip_epoch(loading->loader);
    if (rc < 0)
        bench_loading_close(loading);
    return rc < 0 ? rc : STOKER_OK;
}

void bench_loading_close(struct bench_loading *loading)
{
    stoker_loader_destroy(&loading->loader);
    stoker_dataset_close(&loading->dataset);
}

/* Consumes batches for a window; *ns is the time per row by that clock. */
static int take_batches(stoker_loader *loader, double seconds, bench_loading_clock *clock,
                        double *ns)
{
    const uint64_t begin_ns = stk_now_ns();
    const uint64_t clock_ns = clock();
    uint64_t samples = 0;
    double wall_ns = 0;
    do {
        stoker_batch batch = STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_EPOCH_END)
            continue;
        if (rc != STOKER_OK)
            return rc;
        bench_consumer_touch(batch.images.data, bench_image_bytes(&batch), batch.ids);
        samples += batch.count;
        stoker_batch_release(&batch);
        wall_ns = (double)(stk_now_ns() - begin_ns);
    } while (samples == 0 || wall_ns < seconds * 1e9);
    *ns = (double)(clock() - clock_ns) / (double)samples;
    return STOKER_OK;
}

static int take_turn(struct bench_loading *loading, bench_loading_clock *clock, double *ns)
{
    const double seconds = 0.02;
    const int rc = take_batches(loading->loader, seconds, clock, ns);
    return rc == STOKER_OK ? take_batches(loading->loader, seconds, clock, ns) : rc;
}

int bench_loading_take_turns(struct bench_loading *const *sides, uint32_t count,
                             bench_loading_clock *clock, struct bench_loading_times *out)
{
    for (uint32_t turn = 0; turn < BENCH_LOADING_TURNS; turn++)
        for (uint32_t place = 0; place < count; place++) {
            const uint32_t side = (turn + place) % count;
            const int rc = take_turn(sides[side], clock, &out->ns[side][turn]);
            if (rc != STOKER_OK)
                return rc;
        }
    return STOKER_OK;
}

double bench_loading_ns(const struct bench_loading_times *times, uint32_t side)
{
    double ns[BENCH_LOADING_TURNS];
    memcpy(ns, times->ns[side], sizeof(ns));
    return bench_statistics_of(ns, BENCH_LOADING_TURNS).median;
}

struct bench_statistics bench_loading_ratio(const struct bench_loading_times *times, uint32_t side,
                                            uint32_t than)
{
    double ratios[BENCH_LOADING_TURNS];
    for (uint32_t turn = 0; turn < BENCH_LOADING_TURNS; turn++)
        ratios[turn] = times->ns[side][turn] / times->ns[than][turn];
    return bench_statistics_of(ratios, BENCH_LOADING_TURNS);
}
