/* micro.c - times single functions: rows of one block take turns in short windows.
 *
 *   plain conversion │ crop, flip │ colors │ ...     the first row is the base
 *   window 1          window 1     window 1
 *   window 2          window 2     ...               medians; ratio = base / row, window by window
 *
 * usage: micro [--windows N] BLOCK [PATH]
 *
 *   crc32c           checksums of records in the first cache
 *   transform        crop, flip, colors and resize, beside the plain conversion of as many elements
 *   resize           one image from 256 x 256 to 224 x 224, again and again
 *   png folder:DIR   libpng, and the fast path, on the same files in memory
 *   tokens FILE      bare reads, and the rule of llm.c's loader; FILE: tokens as llm.c writes them
 *   fields           samples of one array of 400 KiB and of 100 arrays of 4 KiB, pinned and not
 *
 * Prints for each row: name, ns per item, ns of processor time per item, GB/s, ratio of the latter.
 * Exit status: 0 measured, 1 a row failed, 2 bad usage, 77 this build lacks the codec.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/stoker.h>

#include "bench/loaderbench/material/material.h"
#include "bench/loaderbench/statistics.h"
#include "bench/loaderbench/timing.h"
#include "kernels/transform/transform.h"
#include "loader/base/clock.h"
#include "loader/base/crc32c/crc32c.h"
#include "loader/codec/images/image_decoder.h"
#include "loader/codec/png/png.h"

/* A window ends after WINDOW_NS of processor time. */
enum { WINDOWS = 41, WINDOWS_MAX = 1000, ROWS_MAX = 16, WINDOW_NS = 5000000, SKIPPED = 77 };

/* What a row works on. All zero before open(). */
struct subject {
    struct bench_block in, out, scratch; /* on huge pages, like the loader's slots */
    const struct job *job;
    struct stk_convert_plan convert;
    struct stk_transform_plan transform;
    uint64_t images, ring_rows; /* transforms: images in `in`, rows in `out` */
    struct stk_image_codec image;
    void *codec_scratch;
    struct bench_material material; /* encoded images */
    stoker_dataset *dataset;
    stoker_loader *loader;
    FILE *file;
    uint64_t steps; /* blocks of tokens in the file */
    uint64_t turn;  /* items, batches or blocks done */
    uint64_t bytes; /* an item has */
};

/* One row of the table. */
struct row {
    const char *block, *name;
    int (*open)(struct subject *subject, const struct row *row, const char *path);
    int (*work)(
        struct subject *subject); /* does some items and returns their number; < 0 = an error */
    const struct job *job;        /* transforms */
    uint64_t bytes;               /* an item has; 0 = open() sets subject->bytes */
    bool base;                    /* the following rows are compared with this one */
    unsigned variant;             /* for open() */
};

/* ---- checksums ------------------------------------------------------------------------- */

static int open_bytes(struct subject *subject, const struct row *row, const char *path)
{
    (void)path;
    return bench_block_create(&subject->in, row->bytes);
}

static int sum_bytes(struct subject *subject)
{
    enum { TIMES = 16 };
    for (int time = 0; time < TIMES; time++)
        subject->turn += stk_crc32c(0, subject->in.bytes, subject->bytes);
    return TIMES;
}

/* ---- transforms ------------------------------------------------------------------------ */

enum {
    SET_BYTES = 48 << 20, /* more than any cache */
    RING_BYTES = 2 << 20, /* like the loader's slots, it stays in the cache */
    BATCH = 16,
    AHEAD = 8 /* rows that the plan may prefetch */
};

struct job {
    uint32_t side, channels;
    stoker_dtype dtype;
    stoker_layout layout;
    stoker_transform transform;
};

#define JOB(side, channels, dtype, layout, ...)                                                    \
    &(const struct job)                                                                            \
    {                                                                                              \
        side, channels, STOKER_DTYPE_##dtype, STOKER_LAYOUT_##layout,                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define CIFAR(dtype, layout)                                                                       \
    JOB(32, 3, dtype, layout, .random_crop = { 32, 32 }, .pad = 4, .flip = true)
#define PHOTO(dtype, layout, ...)                                                                  \
    JOB(256, 3, dtype, layout, .random_crop = { 224, 224 }, __VA_ARGS__)

static int open_transform(struct subject *subject, const struct row *row, const char *path)
{
    static const float mean[] = { 0.485F, 0.456F, 0.406F }, std[] = { 0.229F, 0.224F, 0.225F };
    const struct job *job = subject->job = row->job;
    const bool normalized = job->dtype != STOKER_DTYPE_UINT8;
    char why[STK_TRANSFORM_WHY_BYTES];
    struct stk_framing framing;
    (void)path;
    int rc = stk_framing_init(&framing, &job->transform, 1, job->side, job->side, false, why);
    const struct stk_convert_options options = {
        .from = STOKER_DTYPE_UINT8,
        .to = job->dtype,
        .layout = job->layout,
        .elements = (size_t)framing.out_height * framing.out_width * job->channels,
        .channels = job->channels,
        .scale = 1.0F / 255.0F,
        .mean = normalized ? mean : NULL,
        .std = normalized ? std : NULL,
        .mean_count = normalized ? job->channels : 0,
    };
    if (rc == STOKER_OK)
        rc = stk_convert_plan_init(&subject->convert, &options);
    if (rc == STOKER_OK)
        rc = stk_transform_plan_init(&subject->transform, &framing, job->transform.fill,
                                     &subject->convert, job->channels, job->side, job->side);
    if (rc != STOKER_OK)
        return rc;
    const bool one_image = row->variant == 1;
    subject->images = one_image ? 1 : SET_BYTES / ((uint64_t)job->side * job->side * job->channels);
    subject->ring_rows = (RING_BYTES / subject->convert.to_bytes / BATCH + 1) * BATCH;
    subject->bytes = subject->convert.to_bytes;
    rc = bench_block_create(&subject->in, SET_BYTES);
    if (rc == STOKER_OK)
        rc = bench_block_create(&subject->out, subject->ring_rows * subject->convert.to_bytes);
    if (rc == STOKER_OK)
        rc =
            bench_block_create(&subject->scratch, stk_transform_scratch_bytes(&subject->transform));
    for (size_t i = 0; rc == STOKER_OK && i < SET_BYTES; i++)
        ((uint8_t *)subject->in.bytes)[i] = (uint8_t)(i * 2654435761U >> 24);
    return rc;
}

/* Picks the next batch of random images and its rows of the ring. */
static uint8_t *next_batch(struct subject *subject, const void *images[BATCH + AHEAD],
                           uint64_t samples[BATCH])
{
    const struct job *job = subject->job;
    const size_t bytes = (size_t)job->side * job->side * job->channels;
    for (uint32_t i = 0; i < BATCH + AHEAD; i++)
        images[i] = (const uint8_t *)subject->in.bytes +
                    stk_mix64(subject->turn + i) % subject->images * bytes;
    for (uint32_t i = 0; i < BATCH; i++)
        samples[i] = subject->turn + i;
    const uint64_t at = subject->turn % subject->ring_rows;
    subject->turn += BATCH;
    return (uint8_t *)subject->out.bytes + at * subject->convert.to_bytes;
}

static int convert_batch(struct subject *subject)
{
    const void *images[BATCH + AHEAD];
    uint64_t samples[BATCH];
    uint8_t *out = next_batch(subject, images, samples);
    subject->convert.rows(&subject->convert, images, BATCH, AHEAD, out);
    return BATCH;
}

static int transform_batch(struct subject *subject)
{
    const void *images[BATCH + AHEAD];
    uint64_t samples[BATCH];
    uint8_t *out = next_batch(subject, images, samples);
    stk_transform_rows(&subject->transform, subject->scratch.bytes, images, subject->job->side,
                       subject->job->side, BATCH, AHEAD, 0, samples, out);
    return BATCH;
}

/* ---- PNG ------------------------------------------------------------------------------- */

/* row->variant: 1 = libpng alone. */
static int open_png(struct subject *subject, const struct row *row, const char *path)
{
    const struct bench_material_options options = { .shuffle = true,
                                                    .rows_bytes_max = UINT64_C(256) << 20 };
    int rc = stoker_dataset_open(&subject->dataset, path, NULL, NULL);
    if (rc == STOKER_OK)
        rc = bench_material_create(&subject->material, subject->dataset, &options, NULL);
    if (rc == STOKER_OK)
        rc = bench_material_need_samples(&subject->material, NULL);
    if (rc != STOKER_OK)
        return rc;
    const stoker_dataset_info *info = stoker_dataset_get_info(subject->dataset);
    const struct stk_image_options image = { .shape = { .height = (uint32_t)info->shape[0],
                                                        .width = (uint32_t)info->shape[1],
                                                        .channels = (uint32_t)info->shape[2] },
                                             .full_only = row->variant == 1 };
    subject->bytes = subject->material.row_bytes;
    rc = stk_image_codec_init(&subject->image, &stk_image_png, &image);
    const stoker_codec *codec = &subject->image.codec;
    if (rc == STOKER_OK)
        rc = codec->open(codec->self, false, &subject->codec_scratch);
    return rc == STOKER_OK ? bench_block_create(&subject->out, subject->bytes) : rc;
}

static int decode_png(struct subject *subject)
{
    const stoker_encoded *sample =
        &subject->material.samples[subject->turn++ % subject->material.count];
    const stoker_codec *codec = &subject->image.codec;
    stoker_row row = { .data = subject->out.bytes, .bytes_max = subject->bytes };
    const stoker_decoded out = {
        .struct_size = sizeof(out), .rows = &row, .field_count = 1, .sample_count = 1
    };
    const int rc = codec->decode(codec->self, subject->codec_scratch, sample, &out, NULL);
    return rc == STOKER_OK ? 1 : rc;
}

/* ---- tokens ---------------------------------------------------------------------------- */

enum { HEADER_BYTES = 1024, WINDOWS_A_BATCH = 32, WINDOW = 1024, BLOCK = WINDOWS_A_BATCH * WINDOW };

static int open_tokens(struct subject *subject, const struct row *row, const char *path)
{
    (void)row;
    subject->file = fopen(path, "rbe");
    if (subject->file == NULL || fseek(subject->file, 0, SEEK_END) != 0)
        return STOKER_EIO;
    const long bytes = ftell(subject->file);
    if (bytes < (long)(HEADER_BYTES + sizeof(uint16_t) * (BLOCK + 1)))
        return STOKER_ETRUNCATED;
    subject->steps = ((uint64_t)bytes - HEADER_BYTES - sizeof(uint16_t)) / sizeof(uint16_t) / BLOCK;
    const int rc = bench_block_create(&subject->in, (BLOCK + 1) * sizeof(uint16_t));
    return rc == STOKER_OK ? bench_block_create(&subject->out, 2 * BLOCK * sizeof(int32_t)) : rc;
}

static uint64_t next_offset(struct subject *subject)
{
    return HEADER_BYTES + subject->turn++ % subject->steps * BLOCK * sizeof(uint16_t);
}

static int read_tokens(struct subject *subject)
{
    const size_t bytes = (BLOCK + 1) * sizeof(uint16_t);
    const off_t at = (off_t)next_offset(subject);
    return pread(fileno(subject->file), subject->in.bytes, bytes, at) == (ssize_t)bytes
               ? BLOCK
               : STOKER_EIO;
}

/* As llmc/dataloader.h: seek, read B x T + 1 tokens, widen inputs and targets to int. */
static int read_as_llmc(struct subject *subject)
{
    const uint16_t *tokens = subject->in.bytes;
    int32_t *inputs = subject->out.bytes, *targets = inputs + BLOCK;
    if (fseek(subject->file, (long)next_offset(subject), SEEK_SET) != 0 ||
        fread(subject->in.bytes, sizeof(uint16_t), BLOCK + 1, subject->file) != BLOCK + 1)
        return STOKER_EIO;
    for (size_t i = 0; i < BLOCK; i++) {
        inputs[i] = (int)tokens[i];
        targets[i] = (int)tokens[i + 1];
    }
    return BLOCK;
}

/* ---- fields ---------------------------------------------------------------------------- */

enum { FIELDS = 100, SAMPLE_BYTES = FIELDS * 4096, SAMPLES = 256, FIELD_BATCH = 16 };

/* row->variant: bit 0 = 100 arrays, bit 1 = page-locked. */
static int open_fields(struct subject *subject, const struct row *row, const char *path)
{
    static char names[FIELDS][8];
    stoker_array arrays[FIELDS];
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    const uint32_t count = (row->variant & 1) != 0 ? FIELDS : 1;
    const size_t bytes = SAMPLE_BYTES / count;
    (void)path;
    int rc = bench_block_create(&subject->in, (size_t)SAMPLES * SAMPLE_BYTES);
    for (uint32_t i = 0; rc == STOKER_OK && i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "f%u", i);
        arrays[i] = (stoker_array)STOKER_ARRAY_INIT;
        arrays[i].name = names[i];
        arrays[i].data = (const uint8_t *)subject->in.bytes + i * bytes * SAMPLES;
        arrays[i].dtype = STOKER_DTYPE_UINT8;
        arrays[i].rank = 1;
        arrays[i].shape[0] = bytes;
    }
    options.batch_size = FIELD_BATCH;
    options.shuffle = true;
    options.num_workers = 2;
    options.cache = STOKER_CACHE_NONE;
    options.device = STOKER_DEVICE_CPU;
    options.pin_memory = (row->variant & 2) != 0 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
    if (rc == STOKER_OK)
        rc = stoker_dataset_from_arrays(&subject->dataset, arrays, count, SAMPLES, NULL, NULL);
    return rc == STOKER_OK
               ? stoker_loader_create(&subject->loader, subject->dataset, &options, NULL)
               : rc;
}

static int next_fields(struct subject *subject)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = STOKER_EPOCH_END;
    while (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(subject->loader, &batch, -1);
    if (rc != STOKER_OK)
        return rc;
    const int count = (int)batch.count;
    stoker_batch_release(&batch);
    return count;
}

/* ---- the table ------------------------------------------------------------------------- */

#define PLAIN(name, job)                                                                           \
    {                                                                                              \
        "transform", name, open_transform, convert_batch, job, 0, true, 0                          \
    }
#define TRANSFORM(name, job)                                                                       \
    {                                                                                              \
        "transform", name, open_transform, transform_batch, job, 0, false, 0                       \
    }

static const struct row table[] = {
    { "crc32c", "sum-784", open_bytes, sum_bytes, NULL, 784, true, 0 },
    { "crc32c", "sum-110000", open_bytes, sum_bytes, NULL, 110000, true, 0 },
    { "crc32c", "sum-196608", open_bytes, sum_bytes, NULL, 196608, true, 0 },

    PLAIN("cifar-plain-f32-nhwc", CIFAR(FLOAT32, NHWC)),
    TRANSFORM("cifar-pad-flip-f32-nhwc", CIFAR(FLOAT32, NHWC)),
    PLAIN("cifar-plain-f16-nhwc", CIFAR(FLOAT16, NHWC)),
    TRANSFORM("cifar-pad-flip-f16-nhwc", CIFAR(FLOAT16, NHWC)),
    PLAIN("cifar-plain-f32-nchw", CIFAR(FLOAT32, NCHW)),
    TRANSFORM("cifar-pad-flip-f32-nchw", CIFAR(FLOAT32, NCHW)),
    PLAIN("digit-plain-f32", JOB(28, 1, FLOAT32, NHWC, .random_crop = { 28, 28 })),
    TRANSFORM("digit-pad-flip-f32",
              JOB(28, 1, FLOAT32, NHWC, .random_crop = { 28, 28 }, .pad = 2, .flip = true)),
    PLAIN("photo-plain-f16-nhwc", PHOTO(FLOAT16, NHWC, .flip = true)),
    TRANSFORM("photo-crop-flip-f16-nhwc", PHOTO(FLOAT16, NHWC, .flip = true)),
    PLAIN("photo-plain-f32-nchw", PHOTO(FLOAT32, NCHW, .flip = true)),
    TRANSFORM("photo-crop-flip-f32-nchw", PHOTO(FLOAT32, NCHW, .flip = true)),
    PLAIN("photo-plain-f32-nhwc", PHOTO(FLOAT32, NHWC, .flip = true)),
    TRANSFORM("photo-crop-flip-f32-nhwc", PHOTO(FLOAT32, NHWC, .flip = true)),
    TRANSFORM("photo-brightness", PHOTO(FLOAT32, NHWC, .flip = true, .brightness = 0.4F)),
    TRANSFORM("photo-contrast", PHOTO(FLOAT32, NHWC, .flip = true, .contrast = 0.4F)),
    TRANSFORM("photo-saturation", PHOTO(FLOAT32, NHWC, .flip = true, .saturation = 0.4F)),
    TRANSFORM("photo-hue", PHOTO(FLOAT32, NHWC, .flip = true, .hue = 0.1F)),
    TRANSFORM("photo-four-colors", PHOTO(FLOAT32, NHWC, .flip = true, .brightness = 0.4F,
                                         .contrast = 0.4F, .saturation = 0.4F, .hue = 0.1F)),
    TRANSFORM("photo-rotation",
              PHOTO(FLOAT32, NHWC, .flip = true, .rotate_min = -15, .rotate_max = 15)),
    TRANSFORM("photo-blur-9",
              PHOTO(FLOAT32, NHWC, .flip = true, .blur = 9, .sigma_min = 0.1F, .sigma_max = 2)),
    TRANSFORM("photo-blur-23",
              PHOTO(FLOAT32, NHWC, .flip = true, .blur = 23, .sigma_min = 0.1F, .sigma_max = 2)),

    { "resize", "resize-256-224", open_transform, transform_batch,
      JOB(256, 3, UINT8, NHWC, .resize = { 224, 224 }), 0, true, 1 },

    { "png", "libpng", open_png, decode_png, NULL, 0, true, 1 },
    { "png", "fast-path", open_png, decode_png, NULL, 0, false, 0 },

    { "tokens", "reads", open_tokens, read_tokens, NULL, sizeof(uint16_t), true, 0 },
    { "tokens", "llmc", open_tokens, read_as_llmc, NULL, sizeof(uint16_t), false, 0 },

    { "fields", "1-array", open_fields, next_fields, NULL, SAMPLE_BYTES, true, 0 },
    { "fields", "100-arrays", open_fields, next_fields, NULL, SAMPLE_BYTES, false, 1 },
    { "fields", "1-array-pinned", open_fields, next_fields, NULL, SAMPLE_BYTES, false, 2 },
    { "fields", "100-arrays-pinned", open_fields, next_fields, NULL, SAMPLE_BYTES, false, 3 },
};
enum { TABLE_ROWS = sizeof(table) / sizeof(table[0]) };

/* ---- the run --------------------------------------------------------------------------- */

struct figures {
    double wall_ns[WINDOWS_MAX], cpu_ns[WINDOWS_MAX];
};

static void close_subject(struct subject *subject)
{
    stoker_loader_destroy(&subject->loader);
    if (subject->codec_scratch != NULL)
        subject->image.codec.close(&subject->image, subject->codec_scratch);
    bench_material_destroy(&subject->material);
    stoker_dataset_close(&subject->dataset);
    if (subject->file != NULL)
        (void)fclose(subject->file);
    bench_block_destroy(&subject->in);
    bench_block_destroy(&subject->out);
    bench_block_destroy(&subject->scratch);
}

static int measure_window(const struct row *row, struct subject *subject, double *wall, double *cpu)
{
    const uint64_t begin_ns = stk_now_ns(), begin_cpu_ns = bench_cpu_ns();
    uint64_t items = 0, spent_ns = 0;
    for (; spent_ns < WINDOW_NS; spent_ns = bench_cpu_ns() - begin_cpu_ns) {
        const int done = row->work(subject);
        if (done < 0)
            return done;
        items += (uint64_t)done;
    }
    *cpu = (double)spent_ns / (double)items;
    *wall = (double)(stk_now_ns() - begin_ns) / (double)items;
    return STOKER_OK;
}

static void print_row(const struct row *row, uint64_t bytes, struct figures *figures,
                      const struct figures *base, uint32_t windows)
{
    double ratios[WINDOWS_MAX];
    for (uint32_t i = 0; i < windows; i++)
        ratios[i] = base->cpu_ns[i] / figures->cpu_ns[i];
    struct figures sorted = *figures;
    const double wall_ns = bench_statistics_of(sorted.wall_ns, windows).median;
    printf("%-26s %14.3f %14.3f %9.3f %7.3f\n", row->name, wall_ns,
           bench_statistics_of(sorted.cpu_ns, windows).median, (double)bytes / wall_ns,
           bench_statistics_of(ratios, windows).median);
}

/* Measures a base and the rows compared with it, in turn. */
static int run_group(const struct row *rows, uint32_t count, const char *path, uint32_t windows)
{
    static struct subject subjects[ROWS_MAX];
    static struct figures figures[ROWS_MAX];
    int rc = STOKER_OK;
    memset(subjects, 0, sizeof(subjects));
    for (uint32_t i = 0; i < count && rc >= 0; i++) {
        subjects[i].material.file.fd = -1;
        subjects[i].bytes = rows[i].bytes;
        rc = rows[i].open(&subjects[i], &rows[i], path);
        double ignored;
        if (rc == STOKER_OK) /* fills caches and rings */
            rc = measure_window(&rows[i], &subjects[i], &ignored, &ignored);
        if (rc < 0)
            fprintf(stderr, "micro: %s: %s\n", rows[i].name, stoker_strerror(rc));
    }
    for (uint32_t window = 0; window < windows && rc >= 0; window++)
        for (uint32_t i = 0; i < count && rc >= 0; i++)
            rc = measure_window(&rows[i], &subjects[i], &figures[i].wall_ns[window],
                                &figures[i].cpu_ns[window]);
    for (uint32_t i = 0; i < count; i++) {
        if (rc >= 0)
            print_row(&rows[i], subjects[i].bytes, &figures[i], &figures[0], windows);
        close_subject(&subjects[i]);
    }
    return rc >= 0 ? EXIT_SUCCESS : rc == STOKER_ENOTSUP ? SKIPPED : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const bool counted = argc > 3 && strcmp(argv[1], "--windows") == 0;
    const unsigned long windows = counted ? strtoul(argv[2], NULL, 10) : WINDOWS;
    const int first = counted ? 3 : 1;
    const char *block = argc > first ? argv[first] : "";
    const char *path = argc > first + 1 ? argv[first + 1] : "";
    int status = 2;
    for (uint32_t at = 0, end; at < TABLE_ROWS; at = end) {
        for (end = at + 1; end < TABLE_ROWS && !table[end].base; end++)
            ;
        if (strcmp(table[at].block, block) != 0 || windows < 1 || windows > WINDOWS_MAX)
            continue;
        if (status == 2)
            printf("%-26s %14s %14s %9s %7s\n", "", "ns", "CPU ns", "GB/s", "ratio");
        status = run_group(&table[at], end - at, path, (uint32_t)windows);
        if (status != EXIT_SUCCESS)
            return status;
    }
    if (status == 2)
        fputs("usage: micro [--windows N] crc32c|transform|resize|fields|png FOLDER|tokens FILE\n",
              stderr);
    return status;
}
