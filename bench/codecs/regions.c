/* regions.c - see regions.h. */
#include "bench/codecs/regions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/output/json.h"
#include "bench/statistics.h"
#include "bench/timing.h"
#include "bench/transform.h"

enum { SIDE = 224, CHANNELS = 3, ROW_BYTES = SIDE * SIDE * CHANNELS, TURNS = 5, EPOCHS = 4 };

static const double turn_seconds = 1.0;

enum way { WHOLE, REGION, SCALED, WAYS };

static const char *const way_names[WAYS] = { "whole", "region", "scaled" };

/* One way of decoding, and the transform that follows it. */
struct side {
    enum way way;
    struct stk_convert_plan convert;
    struct stk_transform_plan plan;
    void *scratch; /* the transform's */
    uint64_t next; /* sample */
};

struct regions {
    const struct bench_material *material;
    const stoker_codec *codec;
    void *scratch;
    uint8_t *pixels;
    size_t pixels_bytes;
    struct side sides[WAYS];
};

/* ---- one image ------------------------------------------------------------------- */

static int decode_whole(const struct regions *regions, const stoker_encoded *in,
                        struct stk_image *image)
{
    stoker_size size;
    const int rc = regions->codec->decode_any(regions->codec->self, regions->scratch, in,
                                              regions->pixels, regions->pixels_bytes, &size, NULL);
    *image = (struct stk_image){
        .pixels = regions->pixels, .height = size.height, .width = size.width, .slack = true
    };
    return rc;
}

static int decode(const struct regions *regions, const struct side *side, uint64_t epoch,
                  const stoker_encoded *in, struct stk_image *image)
{
    return side->way == WHOLE
               ? decode_whole(regions, in, image)
               : bench_transform_decode(&side->plan, regions->codec, regions->scratch, in, epoch,
                                        regions->pixels, regions->pixels_bytes, image);
}

/* Decodes a sample and makes its row. */
static int make_row(const struct regions *regions, enum way way, uint64_t epoch, uint64_t index,
                    uint8_t *row)
{
    const struct side *side = &regions->sides[way];
    const stoker_encoded *in = &regions->material->samples[index];
    struct stk_image image;
    const int rc = decode(regions, side, epoch, in, &image);
    if (rc == STOKER_OK)
        stk_transform_row(&side->plan, side->scratch, &image, epoch, in->sample, NULL, row);
    return rc;
}

/* ---- quality --------------------------------------------------------------------- */

struct quality {
    double psnr_least, psnr_mean; /* dB, over the rows from smaller images */
    uint64_t scaled;              /* number of those */
    uint64_t rows;
    bool exact; /* every row from a region is that from the whole image */
};

static double psnr_of(const uint8_t *one, const uint8_t *other)
{
    uint64_t squares = 0;
    for (size_t i = 0; i < ROW_BYTES; i++)
        squares += (uint64_t)((one[i] - other[i]) * (one[i] - other[i]));
    return 10.0 * log10(255.0 * 255.0 * ROW_BYTES / (double)squares);
}

static int judge_row(const struct regions *regions, uint64_t epoch, uint64_t index,
                     struct quality *quality)
{
    static uint8_t rows[WAYS][ROW_BYTES];
    int rc = STOKER_OK;
    for (enum way way = WHOLE; way < WAYS && rc == STOKER_OK; way++)
        rc = make_row(regions, way, epoch, index, rows[way]);
    if (rc != STOKER_OK)
        return rc;
    quality->rows++;
    quality->exact = quality->exact && memcmp(rows[WHOLE], rows[REGION], ROW_BYTES) == 0;
    if (memcmp(rows[WHOLE], rows[SCALED], ROW_BYTES) == 0)
        return rc;
    const double psnr = psnr_of(rows[WHOLE], rows[SCALED]);
    quality->psnr_least = fmin(quality->psnr_least, psnr);
    quality->psnr_mean += psnr;
    quality->scaled++;
    return rc;
}

static int judge(const struct regions *regions, struct quality *quality)
{
    *quality = (struct quality){ .psnr_least = INFINITY, .exact = true };
    int rc = STOKER_OK;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint64_t index = 0; index < regions->material->count && rc == STOKER_OK; index++)
            rc = judge_row(regions, epoch, index, quality);
    quality->psnr_mean /= (double)quality->scaled;
    return rc;
}

/* ---- time ------------------------------------------------------------------------ */

/* Nanoseconds per image, without or with the row; < 0 = failed. */
static double turn(const struct regions *regions, struct side *side, bool rows)
{
    static uint8_t row[ROW_BYTES];
    const struct bench_material *material = regions->material;
    const uint64_t begin_ns = bench_cpu_ns();
    uint64_t spent_ns = 0;
    uint64_t done = 0;
    side->next = 0;
    while ((double)spent_ns < turn_seconds * 1e9) {
        const uint64_t index = side->next % material->count, epoch = side->next / material->count;
        struct stk_image image;
        const int rc = rows ? make_row(regions, side->way, epoch, index, row)
                            : decode(regions, side, epoch, &material->samples[index], &image);
        if (rc != STOKER_OK)
            return -1;
        side->next++;
        done++;
        spent_ns = bench_cpu_ns() - begin_ns;
    }
    return (double)spent_ns / (double)done;
}

static bool take_turns(struct regions *regions, double ns[2][WAYS])
{
    double times[2][WAYS][TURNS];
    for (int index = 0; index < TURNS; index++)
        for (int rows = 0; rows < 2; rows++)
            for (enum way way = WHOLE; way < WAYS; way++) {
                times[rows][way][index] = turn(regions, &regions->sides[way], rows == 1);
                if (times[rows][way][index] < 0)
                    return false;
            }
    for (int rows = 0; rows < 2; rows++)
        for (enum way way = WHOLE; way < WAYS; way++)
            ns[rows][way] = bench_statistics_of(times[rows][way], TURNS).median;
    return true;
}

static void print(const char *spec, const struct quality *quality, double ns[2][WAYS])
{
    printf("{\"kind\": \"codec\", \"what\": \"region\", \"dataset\": ");
    bench_json_string(stdout, spec);
    for (enum way way = WHOLE; way < WAYS; way++)
        printf(", \"%s_ns\": %.0f, \"%s_row_ns\": %.0f", way_names[way], ns[0][way], way_names[way],
               ns[1][way]);
    printf(", \"rows\": %" PRIu64 ", \"scaled_rows\": %" PRIu64, quality->rows, quality->scaled);
    if (quality->scaled > 0)
        printf(", \"psnr_mean\": %.2f, \"psnr_min\": %.2f", quality->psnr_mean,
               quality->psnr_least);
    printf(", \"turns\": %d}\n", TURNS);
}

/* ---- set up ---------------------------------------------------------------------- */

static int side_open(struct side *side, enum way way)
{
    stoker_transform transform = STOKER_TRANSFORM_INIT;
    transform.random_resized_crop = (stoker_size){ SIDE, SIDE };
    transform.decode_scale = way == SCALED ? STOKER_DECODE_SCALE_FAST : STOKER_DECODE_SCALE_EXACT;
    const struct stk_convert_options convert = { .from = STOKER_DTYPE_UINT8,
                                                 .to = STOKER_DTYPE_UINT8,
                                                 .elements = ROW_BYTES,
                                                 .channels = CHANNELS,
                                                 .scale = 1.0F };
    struct stk_framing framing;
    char why[STK_TRANSFORM_WHY_BYTES];
    side->way = way;
    int rc = stk_framing_init(&framing, &transform, 0, SIDE, SIDE, true, why);
    if (rc == STOKER_OK)
        rc = stk_convert_plan_init(&side->convert, &convert);
    if (rc == STOKER_OK)
        rc = stk_transform_plan_init(&side->plan, &framing, transform.fill, &side->convert,
                                     CHANNELS, STOKER_SOURCE_SIDE_MAX, STOKER_SOURCE_SIDE_MAX);
    if (rc != STOKER_OK)
        return rc;
    const size_t bytes = (stk_transform_scratch_bytes(&side->plan) + 63) / 64 * 64;
    side->scratch = aligned_alloc(64, bytes);
    if (side->scratch == NULL)
        return STOKER_ENOMEM;
    memset(side->scratch, 0, bytes);
    return STOKER_OK;
}

static void regions_close(struct regions *regions)
{
    for (enum way way = WHOLE; way < WAYS; way++)
        free(regions->sides[way].scratch);
    free(regions->pixels);
    if (regions->scratch != NULL)
        regions->codec->close(regions->codec->self, regions->scratch);
}

static int regions_open(struct regions *regions, const struct bench_material *material)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(material->dataset);
    *regions = (struct regions){ .material = material, .codec = material->codec };
    if (regions->codec == NULL || regions->codec->decode_region == NULL ||
        info->shape[2] != CHANNELS)
        return STOKER_ENOTSUP;
    regions->pixels_bytes = info->pixels_max * CHANNELS;
    regions->pixels = malloc(regions->pixels_bytes + STK_IMAGE_SLACK_BYTES);
    int rc = regions->pixels == NULL ? STOKER_ENOMEM : STOKER_OK;
    if (rc == STOKER_OK)
        rc = regions->codec->open_any(regions->codec->self, &regions->scratch);
    for (enum way way = WHOLE; way < WAYS && rc == STOKER_OK; way++)
        rc = side_open(&regions->sides[way], way);
    return rc;
}

int bench_regions_compare(const char *spec, const struct bench_material *material)
{
    static struct regions regions;
    struct quality quality = { .exact = false };
    double ns[2][WAYS];
    int rc = regions_open(&regions, material);
    if (rc == STOKER_OK)
        rc = judge(&regions, &quality);
    const bool exact = rc == STOKER_OK && quality.exact;
    const bool done = exact && take_turns(&regions, ns);
    if (rc != STOKER_OK)
        fprintf(stderr, "codecbench: %s: %s\n", spec, stoker_strerror(rc));
    else if (!exact)
        fprintf(stderr, "codecbench: %s: a region differs from the whole image\n", spec);
    if (done)
        print(spec, &quality, ns);
    regions_close(&regions);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
