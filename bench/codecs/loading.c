/* loading.c - see loading.h. */
#include "loading.h"

#include "bench/clock.h"
#include "bench/consumer.h"
#include "bench/gpu_step.h"

enum { HELD_EPOCHS = 3 }; /* the first batches of all go round the cache */

static int make_loader(struct bench_loading *loading, uint32_t batch_size, stoker_cache cache,
                       stoker_dtype dtype)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.batch_size = batch_size;
    options.num_workers = 2;
    options.shuffle = true;
    options.cache = cache;
    options.dtype = dtype;
    options.pin_memory = STOKER_OFF;
    return stoker_loader_create(&loading->loader, loading->dataset, &options);
}

int bench_loading_open(struct bench_loading *loading, const struct bench_material *material,
                       bool verifies)
{
    *loading = (struct bench_loading){ 0 };
    int rc = bench_unverified_open(&loading->dataset, &loading->set, material->dataset,
                                   &material->file, verifies);
    if (rc == STOKER_OK)
        rc = make_loader(loading, 64, STOKER_CACHE_NONE, STOKER_DTYPE_NONE);
    if (rc != STOKER_OK)
        bench_loading_close(loading);
    return rc;
}

static int skip_epoch(stoker_loader *loader)
{
    int rc;
    stoker_batch batch;
    while ((rc = stoker_loader_next(loader, &batch)) == STOKER_OK)
        stoker_batch_release(&batch);
    return rc;
}

int bench_loading_open_held(struct bench_loading *loading, const char *spec, uint32_t batch_size)
{
    *loading = (struct bench_loading){ 0 };
    int rc = stoker_dataset_open(&loading->dataset, spec, NULL);
    if (rc == STOKER_OK)
        rc = make_loader(loading, batch_size, STOKER_CACHE_DECODED, STOKER_FLOAT32);
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

/* Batches for so long; *samples is their rows. */
static int take_batches(stoker_loader *loader, double seconds, uint64_t *samples, double *ns)
{
    const uint64_t begin_ns = bench_clock_ns();
    *samples = 0;
    do {
        stoker_batch batch;
        const int rc = stoker_loader_next(loader, &batch);
        if (rc == STOKER_EPOCH_END)
            continue;
        if (rc != STOKER_OK)
            return rc;
        bench_consumer_touch(batch.images.data, bench_image_bytes(&batch), batch.ids);
        *samples += batch.count;
        stoker_batch_release(&batch);
        *ns = (double)(bench_clock_ns() - begin_ns);
    } while (*samples == 0 || *ns < seconds * 1e9);
    return STOKER_OK;
}

int bench_loading_turn(struct bench_loading *loading, double seconds, double *ns)
{
    uint64_t samples = 0;
    double spent_ns = 0;
    int rc = take_batches(loading->loader, seconds, &samples, &spent_ns);
    if (rc == STOKER_OK)
        rc = take_batches(loading->loader, seconds, &samples, &spent_ns);
    if (rc == STOKER_OK)
        *ns = spent_ns / (double)samples;
    return rc;
}
