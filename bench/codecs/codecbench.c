/* codecbench.c - compares ways of decoding on the same samples, which the public headers cannot show.
 *
 *   codecbench png folder:DIR     the fast path against libpng; all rows are compared first
 *   codecbench region folder:DIR  whole images against the parts that random_resized_crop needs, and
 *                                 these decoded smaller (decode_scale FAST), with the loss in dB
 *   codecbench sum shards:DIR     loaders that verify checksums, touch the same bytes, and do
 *                                 neither: two workers each, out of the page cache
 *   codecbench cached DATASET RESIDENT BATCH
 *                                 a loader that has cached the rows of one data set against one
 *                                 over another that lies in memory as it is, both as float32
 *
 * The sides take short turns, so that they run under the same conditions; the figures are medians.
 * One JSON object is printed. Exit status: 0 measured, 1 failed or rows differ, 2 bad usage, 77 this
 * build lacks the codec.
 */
#include "bench/codecs/loading.h"
#include "bench/codecs/regions.h"
#include "bench/codecs/sums.h"
#include "bench/material/material.h"
#include "bench/output/json.h"
#include "bench/statistics.h"
#include "loader/base/clock.h"
#include "loader/codec/png/png.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 31, SKIPPED = 77 };

static const uint64_t samples_bytes_max = UINT64_C(512) << 20;
static const double turn_seconds = 0.1;

/* One way of decoding. */
struct side {
    const stoker_codec *codec;
    void *scratch;
    struct bench_block block; /* on large pages, as the loader's rows are */
    void *row;
    size_t row_bytes;
    uint64_t next; /* sample */
};

static int decode(const struct side *side, const stoker_encoded *sample)
{
    return side->codec->decode(side->codec->self, side->scratch, sample, side->row, side->row_bytes,
                               NULL);
}

static int side_open(struct side *side, const stoker_codec *codec, size_t row_bytes)
{
    *side = (struct side){ .codec = codec, .row_bytes = row_bytes };
    const int rc = bench_block_create(&side->block, row_bytes);
    if (rc != STOKER_OK)
        return rc;
    side->row = side->block.bytes;
    return codec->open == NULL ? STOKER_OK : codec->open(codec->self, &side->scratch);
}

static void side_close(struct side *side)
{
    if (side->codec->close != NULL && side->scratch != NULL)
        side->codec->close(side->codec->self, side->scratch);
    bench_block_destroy(&side->block);
}

/* Nanoseconds per sample, over at least `seconds`; < 0 = failed. */
static double turn(struct side *side, const struct bench_material *material, double seconds)
{
    const uint64_t begin_ns = stk_now_ns();
    uint64_t spent_ns = 0;
    uint64_t done = 0;
    while ((double)spent_ns < seconds * 1e9) {
        for (int few = 0; few < 16; few++, done++) {
            if (decode(side, &material->samples[side->next]) != STOKER_OK)
                return -1;
            side->next = (side->next + 1) % material->count;
        }
        spent_ns = stk_now_ns() - begin_ns;
    }
    return (double)spent_ns / (double)done;
}

/* Checks that both make the same row of each sample. */
static bool same_rows(struct side *one, struct side *other, const struct bench_material *material)
{
    for (uint64_t index = 0; index < material->count; index++) {
        memset(one->row, 0, one->row_bytes);
        memset(other->row, 0xFF, other->row_bytes);
        if (decode(one, &material->samples[index]) != STOKER_OK ||
            decode(other, &material->samples[index]) != STOKER_OK ||
            memcmp(one->row, other->row, one->row_bytes) != 0) {
            fprintf(stderr, "codecbench: sample %" PRIu64 " is refused, or the rows differ\n",
                    material->samples[index].sample);
            return false;
        }
    }
    return true;
}

static void print(const char *what, const char *spec, uint64_t count, size_t row_bytes,
                  double one_ns, double other_ns, struct bench_statistics ratio)
{
    printf("{\"kind\": \"codec\", \"what\": \"%s\", \"dataset\": ", what);
    bench_json_string(stdout, spec);
    printf(", \"compared\": %" PRIu64 ", \"row_bytes\": %zu, \"ns\": %.3f, \"other_ns\": %.3f, "
           "\"ratio\": %.5f, \"ratio_min\": %.5f, \"ratio_max\": %.5f, \"turns\": %d}\n",
           count, row_bytes, one_ns, other_ns, ratio.median, ratio.min, ratio.max,
           (int)ratio.count);
}

/* Lets the sides take turns, and prints times per sample and the median of other / one. */
static int compare(const char *what, const char *spec, struct side *one, struct side *other,
                   struct bench_material *material)
{
    double one_ns[TURNS], other_ns[TURNS], ratios[TURNS];
    if (!same_rows(one, other, material))
        return EXIT_FAILURE;
    for (int index = 0; index < TURNS; index++) {
        one_ns[index] = turn(one, material, turn_seconds);
        other_ns[index] = turn(other, material, turn_seconds);
        if (one_ns[index] < 0 || other_ns[index] < 0)
            return EXIT_FAILURE;
        ratios[index] = other_ns[index] / one_ns[index];
    }
    print(what, spec, material->count, material->row_bytes,
          bench_statistics_of(one_ns, TURNS).median, bench_statistics_of(other_ns, TURNS).median,
          bench_statistics_of(ratios, TURNS));
    return EXIT_SUCCESS;
}

static int failed(const char *what, int rc)
{
    fprintf(stderr, "codecbench: %s: %s\n", what, stoker_strerror(rc));
    return rc == STOKER_ENOTSUP ? SKIPPED : EXIT_FAILURE;
}

static int compare_codecs(const char *what, const char *spec, const stoker_codec *codec,
                          const stoker_codec *other_codec, struct bench_material *material)
{
    struct side one, other;
    int rc = side_open(&one, codec, material->row_bytes);
    const int other_rc = side_open(&other, other_codec, material->row_bytes);
    rc = rc != STOKER_OK ? rc : other_rc;
    const int status =
        rc == STOKER_OK ? compare(what, spec, &one, &other, material) : failed(spec, rc);
    side_close(&one);
    side_close(&other);
    return status;
}

static int compare_png(const char *spec, struct bench_material *material)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(material->dataset);
    struct stk_image_options options = { .shape = { .height = (uint32_t)info->shape[0],
                                                    .width = (uint32_t)info->shape[1],
                                                    .channels = (uint32_t)info->shape[2] } };
    stoker_codec *fast = NULL, *full = NULL;
    int rc = stk_image_codec_create(&fast, &stk_image_png, &options);
    options.full_only = true;
    if (rc == STOKER_OK)
        rc = stk_image_codec_create(&full, &stk_image_png, &options);
    const int status =
        rc == STOKER_OK ? compare_codecs("png", spec, fast, full, material) : failed("PNG", rc);
    stk_image_codec_destroy(&fast);
    stk_image_codec_destroy(&full);
    return status;
}

static int compare_cached(const char *spec, const char *resident_spec, uint32_t batch_size)
{
    static struct bench_loading cached, resident;
    static struct bench_loading_times times;
    struct bench_loading *const sides[] = { &cached, &resident };
    int rc = bench_loading_open_held(&cached, spec, batch_size);
    if (rc == STOKER_OK)
        rc = bench_loading_open_held(&resident, resident_spec, batch_size);
    if (rc == STOKER_OK)
        rc = bench_loading_take_turns(sides, 2, stk_now_ns, &times);
    if (rc == STOKER_OK)
        print("cached", spec, stoker_dataset_get_info(cached.dataset)->count,
              stoker_dataset_row_bytes(cached.dataset), bench_loading_ns(&times, 0),
              bench_loading_ns(&times, 1), bench_loading_ratio(&times, 1, 0));
    bench_loading_close(&resident);
    bench_loading_close(&cached);
    return rc == STOKER_OK ? EXIT_SUCCESS : failed(spec, rc);
}

enum what { PNG, REGIONS, SUMS };

static int run(enum what what, const char *spec)
{
    stoker_dataset *dataset = NULL;
    struct bench_material material = { .file.fd = -1 };
    const struct bench_material_options options = { .shuffle = true,
                                                    .rows_bytes_max = samples_bytes_max };
    int rc = stoker_dataset_open(&dataset, spec, NULL, NULL);
    if (rc == STOKER_OK)
        rc = bench_material_create(&material, dataset, &options, NULL);
    if (rc == STOKER_OK && what != SUMS)
        rc = bench_material_need_samples(&material, NULL);
    int status = EXIT_SUCCESS;
    if (rc == STOKER_OK && what == PNG)
        status = compare_png(spec, &material);
    else if (rc == STOKER_OK && what == REGIONS)
        status = bench_regions_compare(spec, &material);
    else if (rc == STOKER_OK)
        rc = bench_sums_compare(spec, &material);
    if (rc != STOKER_OK)
        status = failed(spec, rc);
    bench_material_destroy(&material);
    stoker_dataset_close(&dataset);
    return status;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const unsigned long batch = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    if (strcmp(what, "cached") == 0 && batch >= 1 && batch <= STOKER_BATCH_MAX)
        return compare_cached(argv[2], argv[3], (uint32_t)batch);
    static const char *const names[] = { [PNG] = "png", [REGIONS] = "region", [SUMS] = "sum" };
    for (enum what known = PNG; known <= SUMS && argc == 3; known++)
        if (strcmp(what, names[known]) == 0)
            return run(known, argv[2]);
    fputs("usage: codecbench png folder:DIR | codecbench region folder:DIR | codecbench sum "
          "shards:DIR | "
          "codecbench cached DATASET RESIDENT BATCH\n",
          stderr);
    return 2;
}
