/* main.c - transformbench: one thread's rate of each transform, compared with the plain conversion of
 * equally many elements.
 *
 *   random images of a set ─┬─ convert ────────────────▶ ring of rows     in turn, many short
 *                           └─ crop, flip, convert ────▶ ring of rows     windows of each
 *
 * usage: transformbench [crop|resize]      the tables, with each ratio and its target
 *        transformbench time WINDOWS       ns of one resize 256 -> 224, a line per window
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/material/block.h"
#include "bench/statistics.h"
#include "kernels/transform/transform.h"
#include "loader/base/clock.h"

enum {
    WINDOWS = 41,
    WINDOW_NS = 5000000,
    SET_BYTES = 48 << 20, /* more than any cache here */
    RING_BYTES = 2 << 20, /* like the loader's slots, it stays in the cache */
    BATCH_MAX = 64,       /* rows at a time, or the whole ring */
    AHEAD = 8             /* rows that the plan may prefetch */
};

static const float mean[] = { 0.485F, 0.456F, 0.406F };
static const float std[] = { 0.229F, 0.224F, 0.225F };

/* One kind of work on one kind of image. */
struct job {
    const char *name;
    uint32_t height, width, channels;
    stoker_dtype dtype;
    stoker_layout layout;
    stoker_transform transform;
    double target; /* ratio to the plain conversion; 0 = none */
};

static const struct job jobs[] = {

    { "CIFAR, pad 4, flip",
      32,
      32,
      3,
      STOKER_DTYPE_FLOAT32,
      STOKER_LAYOUT_NHWC,
      { .random_crop = { 32, 32 }, .pad = 4, .flip = true },
      0.85 },
    { "CIFAR, pad 4, flip",
      32,
      32,
      3,
      STOKER_DTYPE_FLOAT16,
      STOKER_LAYOUT_NHWC,
      { .random_crop = { 32, 32 }, .pad = 4, .flip = true },
      0 },
    { "CIFAR, pad 4, flip",
      32,
      32,
      3,
      STOKER_DTYPE_FLOAT32,
      STOKER_LAYOUT_NCHW,
      { .random_crop = { 32, 32 }, .pad = 4, .flip = true },
      0.85 },
    { "digit, pad 2, flip",
      28,
      28,
      1,
      STOKER_DTYPE_FLOAT32,
      STOKER_LAYOUT_NHWC,
      { .random_crop = { 28, 28 }, .pad = 2, .flip = true },
      0.85 },
    { "photo, crop 224, flip",
      256,
      256,
      3,
      STOKER_DTYPE_FLOAT32,
      STOKER_LAYOUT_NHWC,
      { .random_crop = { 224, 224 }, .flip = true },
      0.85 },
    { "photo, crop 224, flip",
      256,
      256,
      3,
      STOKER_DTYPE_FLOAT32,
      STOKER_LAYOUT_NCHW,
      { .random_crop = { 224, 224 }, .flip = true },
      0.85 },
    { "photo, crop 224, flip",
      256,
      256,
      3,
      STOKER_DTYPE_FLOAT16,
      STOKER_LAYOUT_NHWC,
      { .random_crop = { 224, 224 }, .flip = true },
      0 },
};

/* The steps that need bytes of their own; no target: they cost what they cost. */
#define PHOTO(name, ...)                                                                           \
    {                                                                                              \
        name, 256, 256, 3, STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC,                               \
            { .random_crop = { 224, 224 }, .flip = true, __VA_ARGS__ }, 0                          \
    }
static const struct job retouch_jobs[] = {
    PHOTO("photo, brightness", .brightness = 0.4F),
    PHOTO("photo, contrast", .contrast = 0.4F),
    PHOTO("photo, saturation", .saturation = 0.4F),
    PHOTO("photo, hue", .hue = 0.1F),
    PHOTO("photo, four colours", .brightness = 0.4F, .contrast = 0.4F, .saturation = 0.4F,
          .hue = 0.1F),
    PHOTO("photo, rotation", .rotate_min = -15, .rotate_max = 15),
    PHOTO("photo, blur 9", .blur = 9, .sigma_min = 0.1F, .sigma_max = 2),
    PHOTO("photo, blur 23", .blur = 23, .sigma_min = 0.1F, .sigma_max = 2),
};

struct bench {
    const struct job *job;
    struct stk_convert_plan convert;
    struct stk_transform_plan plan;
    struct bench_block set_block, ring_block, scratch_block; /* on huge pages, like the loader's */
    uint8_t *set, *ring, *scratch;
    size_t set_rows, row_bytes, ring_rows;
    uint32_t batch_rows;
    uint64_t turn;
};

static uint8_t *need(struct bench_block *block, size_t bytes)
{
    if (bench_block_create(block, bytes) != STOKER_OK) {
        fprintf(stderr, "transformbench: no memory\n");
        exit(1);
    }
    return block->bytes;
}

static void open_bench(struct bench *bench, const struct job *job)
{
    char why[STK_TRANSFORM_WHY_BYTES];
    struct stk_framing framing;
    *bench = (struct bench){ .job = job };
    int rc = stk_framing_init(&framing, &job->transform, 1, job->height, job->width, false, why);
    const struct stk_convert_options options = {
        .from = STOKER_DTYPE_UINT8,
        .to = job->dtype,
        .layout = job->layout,
        .elements = (size_t)framing.out_height * framing.out_width * job->channels,
        .channels = job->channels,
        .scale = 1.0F / 255.0F,
        .mean = job->dtype == STOKER_DTYPE_UINT8 ? NULL : mean,
        .std = job->dtype == STOKER_DTYPE_UINT8 ? NULL : std,
        .mean_count = job->dtype == STOKER_DTYPE_UINT8 ? 0 : job->channels,
    };
    if (rc == STOKER_OK)
        rc = stk_convert_plan_init(&bench->convert, &options);
    if (rc == STOKER_OK)
        rc = stk_transform_plan_init(&bench->plan, &framing, job->transform.fill, &bench->convert,
                                     job->channels, job->height, job->width);
    if (rc != STOKER_OK) {
        fprintf(stderr, "transformbench: %s: %d\n", job->name, rc);
        exit(1);
    }
    bench->row_bytes = (size_t)job->height * job->width * job->channels;
    bench->set_rows = SET_BYTES / bench->row_bytes;
    const size_t fit = RING_BYTES / bench->convert.to_bytes;
    bench->batch_rows = fit + 1 < BATCH_MAX ? (uint32_t)fit + 1 : BATCH_MAX;
    bench->ring_rows = (fit / bench->batch_rows + 1) * bench->batch_rows;
    bench->set = need(&bench->set_block, SET_BYTES);
    bench->ring = need(&bench->ring_block, bench->ring_rows * bench->convert.to_bytes);
    bench->scratch = need(&bench->scratch_block, stk_transform_scratch_bytes(&bench->plan));
    for (size_t i = 0; i < SET_BYTES; i++)
        bench->set[i] = (uint8_t)(i * 2654435761U >> 24);
}

static void close_bench(struct bench *bench)
{
    bench_block_destroy(&bench->set_block);
    bench_block_destroy(&bench->ring_block);
    bench_block_destroy(&bench->scratch_block);
}

static const uint8_t *source_of(const struct bench *bench, uint64_t turn)
{
    return bench->set + stk_mix64(turn) % bench->set_rows * bench->row_bytes;
}

/* One batch: its sources and those of the next few rows, and where its rows go. */
struct batch {
    const void *pictures[BATCH_MAX + AHEAD];
    uint64_t samples[BATCH_MAX];
    uint8_t *out;
};

static struct batch next_batch(struct bench *bench)
{
    struct batch batch;
    for (uint32_t i = 0; i < bench->batch_rows + AHEAD; i++)
        batch.pictures[i] = source_of(bench, bench->turn + i);
    for (uint32_t i = 0; i < bench->batch_rows; i++)
        batch.samples[i] = bench->turn + i;
    batch.out = bench->ring + bench->turn % bench->ring_rows * bench->convert.to_bytes;
    bench->turn += bench->batch_rows;
    return batch;
}

static void convert_batch(struct bench *bench)
{
    const struct batch batch = next_batch(bench);
    bench->convert.rows(&bench->convert, batch.pictures, bench->batch_rows, AHEAD, batch.out);
}

static void transform_batch(struct bench *bench)
{
    const struct batch batch = next_batch(bench);
    stk_transform_rows(&bench->plan, bench->scratch, batch.pictures, bench->job->height,
                       bench->job->width, bench->batch_rows, AHEAD, 0, batch.samples, batch.out);
}

/* ns per row over one window. */
static double window_of(struct bench *bench, void (*batch)(struct bench *bench))
{
    const uint64_t begin_ns = stk_now_ns();
    uint64_t now_ns = begin_ns, rows = 0;
    for (; now_ns - begin_ns < WINDOW_NS; now_ns = stk_now_ns()) {
        batch(bench);
        rows += bench->batch_rows;
    }
    return (double)(now_ns - begin_ns) / (double)rows;
}

static bool run_job(const struct job *job)
{
    struct bench bench;
    double plain[WINDOWS], transformed[WINDOWS], ratios[WINDOWS];
    open_bench(&bench, job);
    (void)window_of(&bench, convert_batch);
    (void)window_of(&bench, transform_batch);
    for (int i = 0; i < WINDOWS; i++) {
        plain[i] = window_of(&bench, convert_batch);
        transformed[i] = window_of(&bench, transform_batch);
        ratios[i] = plain[i] / transformed[i];
    }
    close_bench(&bench);
    const double ratio = bench_statistics_of(ratios, WINDOWS).median;
    printf("%-24s %4u x %-4u %u %-8s %s %11.3f %11.3f %6.2f", job->name, job->height, job->width,
           job->channels,
           job->dtype == STOKER_DTYPE_FLOAT32   ? "float32"
           : job->dtype == STOKER_DTYPE_FLOAT16 ? "float16"
                                                : "uint8",
           job->layout == STOKER_LAYOUT_NCHW ? "NCHW" : "NHWC",
           bench_statistics_of(plain, WINDOWS).median / 1e3,
           bench_statistics_of(transformed, WINDOWS).median / 1e3, ratio);
    if (job->target > 0)
        printf("   >= %.2f %s", job->target, ratio >= job->target ? "holds" : "DOES NOT HOLD");
    printf("\n");
    return job->target == 0 || ratio >= job->target;
}

static int run_crops(void)
{
    bool all = true;
    printf("%-24s %-11s   %-8s %-4s %11s %11s %6s\n", "crop, flip, normalise", "image", "type", "",
           "plain us", "with it us", "ratio");
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        all = run_job(&jobs[i]) && all;
    for (size_t i = 0; i < sizeof(retouch_jobs) / sizeof(retouch_jobs[0]); i++)
        all = run_job(&retouch_jobs[i]) && all;
    return all ? 0 : 1;
}

static const struct job resize_job = {
    "resize 256 -> 224",        256, 256, 3, STOKER_DTYPE_UINT8, STOKER_LAYOUT_NHWC,
    { .resize = { 224, 224 } }, 0
};

/* Resizes one image repeatedly, as Pillow is measured. */
static int time_resizes(int windows)
{
    struct bench bench;
    open_bench(&bench, &resize_job);
    bench.set_rows = 1;
    (void)window_of(&bench, transform_batch);
    for (int i = 0; i < windows; i++)
        printf("%.0f\n", window_of(&bench, transform_batch));
    close_bench(&bench);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "time") == 0)
        return time_resizes(atoi(arguments[2]));
    return run_crops();
}
