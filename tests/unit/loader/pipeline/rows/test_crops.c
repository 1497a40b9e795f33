/* test_crops.c - images of which a crop leaves a part, without a resize, or whose part of the
 * sample fills more fields: only that part is decoded, and the rows have the bits of whole images.
 *
 * Method: a DECODED cache decodes whole images, any other way decodes parts: equal hashes, and a
 * count of parts. Then a data set whose codec notes what it is asked for, against one that can only
 * decode whole images.
 */
#include <stdatomic.h>

#include "support/leaks.h"
#include "support/runs/opened_loader.h"

/* folder_files.h comes after: it knows the scenario's sets. */
#include "support/runs/scenario.h"

#include "support/files/folder_files.h"
#include "support/gpu/transform_ranges.h"

static const stoker_transform crops[] = {
    { .random_crop = { 20, 30 } },
    { .center_crop = { 24, 24 }, .flip = true },
    { .random_crop = { 40, 64 }, .pad = 9, .fill = { 1, 2, 3 } },        /* wider than the image */
    { .random_crop = { 16, 16 }, .pad = 40, .flip = true, .cutout = 6 }, /* some only of fill */
    { .center_crop = { 64, 20 } },
    { .random_crop = { 24, 24 }, .rotate_min = -30, .rotate_max = 30, .blur = 3, STK_USUAL_SIGMA },
};
enum { CROPS = sizeof(crops) / sizeof(crops[0]) };

struct seen {
    uint64_t hash, regions, bad;
    int rc;
    stoker_error error;
};

static struct seen run(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    struct seen seen = { .rc = 0 };
    stoker_stats stats = STOKER_STATS_INIT;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(dataset, options);
    while (seen.rc >= 0 && seen.rc != STOKER_FINISHED) {
        seen.rc = stoker_loader_next(loader, &batch, 20000);
        if (seen.rc != STOKER_OK)
            continue;
        seen.hash = stk_hash_bytes(seen.hash, batch.ids, batch.count * sizeof(batch.ids[0]));
        for (uint32_t i = 0; i < batch.field_count; i++) {
            const stoker_tensor *values = &batch.fields[i].values;
            size_t bytes = stoker_dtype_bytes(values->dtype);
            for (uint32_t axis = 0; axis < values->rank; axis++)
                bytes *= (size_t)values->shape[axis];
            seen.hash = stk_hash_bytes(seen.hash, values->data, bytes);
        }
        stoker_batch_release(&batch);
    }
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    seen.regions = stats.regions;
    seen.bad = stats.bad_samples;
    if (seen.rc < 0)
        seen.error = *stoker_loader_error(loader);
    stoker_loader_destroy(&loader);
    return seen;
}

static stoker_loader_options options_of(const stoker_transform *transform)
{
    stoker_loader_options options = stk_small_options(.batch_size = 6, .epochs = 3);
    options.prefetch_batches = 2; /* a cache fills early */
    options.num_workers = 2;
    options.transform = *transform;
    return options;
}

/* ---- image files ----------------------------------------------------------------- */

#if defined(STOKER_HAVE_JPEG) && defined(STOKER_HAVE_WEBP) && defined(STOKER_HAVE_PNG)
#include "support/files/jpeg_files.h"
#include "support/files/picture.h"
#include "support/files/webp_files.h"

enum { FILES = 16, HEIGHT = 64, WIDTH = 60 };

static const char *name_of(uint64_t id, char name[64])
{
    const char *const kinds[] = { "jpg", "png", "webp", "jpg" };
    (void)snprintf(name, 64, "c0/f%03u.%s", (unsigned)id, kinds[id % 4]);
    return name;
}

static void write_image(const struct stk_directory *directory, uint64_t id)
{
    static struct stk_file_bytes png;
    static struct stk_picture picture;
    char name[64];
    (void)name_of(id, name);
    if (id % 4 == 1) {
        picture = (struct stk_picture){ .width = WIDTH,
                                        .height = HEIGHT,
                                        .depth = 8,
                                        .color = PNG_COLOR_TYPE_RGB,
                                        .interlaced = id % 8 == 5,
                                        .filters = PNG_ALL_FILTERS };
        stk_picture_paint(&picture, id);
        stk_picture_write(&picture, &png);
        stk_file_write(directory, name, png.at, png.size);
    } else if (id % 4 == 2) {
        const struct stk_webp_kind kind = { .height = HEIGHT, .width = WIDTH };
        struct stk_webp_file file = stk_webp_write(&kind);
        stk_file_write(directory, name, file.at, file.size);
        free(file.at);
    } else {
        const struct stk_jpeg_kind kind = { .height = HEIGHT,
                                            .width = WIDTH,
                                            .channels = 3,
                                            .h_factor = 2,
                                            .v_factor = 2,
                                            .progressive = id % 8 == 3 };
        struct stk_jpeg_file file = stk_jpeg_write(&kind);
        stk_file_write(directory, name, file.at, file.size);
        free(file.at);
    }
}

/* Flip bits of the last quarter of a file, below what most crops need. */
static void damage_image(const struct stk_directory *directory, uint64_t id)
{
    char name[64], path[512];
    FILE *file = fopen(stk_path_in(path, directory, name_of(id, name)), "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file), at = size - 20 - (long)(stk_mix64(id) % (uint64_t)(size / 4));
    cr_assert_eq(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file);
    cr_assert_eq(fseek(file, at, SEEK_SET), 0);
    cr_assert_eq(fputc(byte ^ 0x5A, file), byte ^ 0x5A);
    cr_assert_eq(fclose(file), 0);
}

static stoker_dataset *open_folder(struct stk_directory *directory, uint64_t count, bool damaged)
{
    char spec[400];
    *directory = stk_directory_make();
    stk_folder_mkdir(directory, "c0");
    for (uint64_t id = 0; id < count; id++) {
        write_image(directory, id);
        if (damaged && stk_mix64(id) % 3 == 0)
            damage_image(directory, id);
    }
    (void)snprintf(spec, sizeof(spec), "folder:%s?channels=3", directory->path);
    return dataset_of(spec);
}

CleanTest(crops, decode_only_what_they_leave_of_image_files)
{
    struct stk_directory directory;
    stoker_dataset *dataset = open_folder(&directory, FILES, false);
    for (int i = 0; i < CROPS; i++) {
        stoker_loader_options options = options_of(&crops[i]);
        options.cache = STOKER_CACHE_DECODED;
        const struct seen whole = run(dataset, &options);
        cr_assert_eq(whole.rc, STOKER_FINISHED);
        cr_assert_eq(whole.regions, 0);
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_ENCODED; cache++)
            for (options.num_workers = 0; options.num_workers < 3; options.num_workers += 2) {
                options.cache = (stoker_cache)cache;
                const struct seen parts = run(dataset, &options);
                cr_assert_eq(parts.rc, STOKER_FINISHED);
                cr_assert_eq(parts.hash, whole.hash, "crop %d cache %d", i, cache);
                cr_assert_gt(parts.regions, 3 * FILES / 2, "crop %d: %d parts", i,
                             (int)parts.regions);
                cr_assert_leq(parts.regions, 3 * FILES);
            }
    }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* Neither the crop nor the cache decides which files are bad. */
CleanTest(crops, leave_out_no_damage)
{
    enum { MANY = 4 * FILES };
    static const stoker_transform none = { 0 };
    struct stk_directory directory;
    stoker_dataset *dataset = open_folder(&directory, MANY, true);
    stoker_loader_options options = options_of(&none);
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    const uint64_t bad = run(dataset, &options).bad;
    cr_assert_geq(bad, 3 * MANY / 12, "%d bad", (int)bad);
    for (int i = 0; i < CROPS; i++)
        for (int policy = STOKER_ON_BAD_SKIP; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
            options = options_of(&crops[i]);
            options.on_bad_sample = (stoker_on_bad)policy;
            options.cache = STOKER_CACHE_DECODED;
            const struct seen whole = run(dataset, &options);
            cr_assert_eq(whole.rc, STOKER_FINISHED);
            for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_ENCODED; cache++) {
                options.cache = (stoker_cache)cache;
                const struct seen parts = run(dataset, &options);
                cr_assert_eq(parts.rc, STOKER_FINISHED);
                cr_assert_eq(parts.hash, whole.hash, "crop %d cache %d", i, cache);
                cr_assert_gt(parts.regions, 0);
                cr_assert(policy != STOKER_ON_BAD_SKIP || parts.bad == bad, "crop %d: %d bad", i,
                          (int)parts.bad);
            }
        }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* Nothing is left out by a crop of the image's own size, with padding around it. */
CleanTest(crops, of_the_image_s_size_decode_whole_images)
{
    static const stoker_transform padded = { .random_crop = { HEIGHT, WIDTH }, .pad = 4 };
    struct stk_directory directory;
    stoker_dataset *dataset = open_folder(&directory, 8, false);
    const stoker_loader_options options = options_of(&padded);
    cr_assert_eq(run(dataset, &options).regions, 0);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* An image of another size is a bad sample, in the words of whole decoding. */
CleanTest(crops, refuse_an_image_of_another_size)
{
    struct stk_directory directory;
    stoker_dataset *dataset = open_folder(&directory, 8, false);
    stoker_loader_options options = options_of(&crops[0]);
    const struct stk_jpeg_kind kind = { .height = HEIGHT, .width = WIDTH - 1, .channels = 3 };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    const char *const names[] = { "c0/f003.jpg", "c0/f000.jpg" };
    for (int i = 0; i < 2; i++) {
        stoker_dataset_close(&dataset);
        stk_file_write(&directory, names[0], file.at, file.size);
        char spec[400];
        (void)snprintf(spec, sizeof(spec), "folder:%s?channels=3&height=%d&width=%d",
                       directory.path, HEIGHT, WIDTH);
        dataset = dataset_of(spec);
        options.cache = i == 0 ? STOKER_CACHE_NONE : STOKER_CACHE_DECODED;
        const struct seen seen = run(dataset, &options);
        cr_assert_eq(seen.rc, STOKER_EFORMAT);
        cr_assert_not_null(strstr(seen.error.message, "64 x 59 pixels where 64 x 60 are expected"),
                           "%s", seen.error.message);
    }
    free(file.at);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}
#endif

/* ---- a codec that notes what it is asked for --------------------------------------- */

enum { COUNT = 30, SIDE = 24, CHANNELS = 2, BOX_BYTES = 8, TEXT = 5 };

/* One part a sample: height, width, pixels, box, text. As TOGETHER it fills image, box and text; as
 * APART the image is a part of its own. */
struct own_set {
    stoker_dataset *dataset;
    stoker_codec codec;
    bool together;
    bool any_size;
    _Atomic uint64_t pixels; /* decoded so far */
    _Atomic uint64_t wrong_scratch;
    uint8_t bytes[COUNT][2 + SIDE * SIDE * CHANNELS + BOX_BYTES + TEXT];
};

static size_t pixels_of(const uint8_t *bytes)
{
    return (size_t)bytes[0] * bytes[1] * CHANNELS;
}

static uint32_t text_of(uint64_t id)
{
    return (uint32_t)(id % (TEXT + 1));
}

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct own_set *set = self;
    out->count = COUNT;
    out->field_count = 3;
    out->part_count = set->together ? 1 : 2;
    return STOKER_OK;
}

static int field(const void *self, uint32_t number, stoker_field_info *out)
{
    static const stoker_field_info fields[3] = {
        { .name = "image",
          .kind = STOKER_FIELD_KIND_IMAGE,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 3,
          .shape = { SIDE, SIDE, CHANNELS },
          .pixels_max = SIDE * SIDE },
        { .name = "box", .dtype = STOKER_DTYPE_FLOAT32, .rank = 1, .shape = { 2 } },
        { .name = "text",
          .kind = STOKER_FIELD_KIND_BYTES,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 1,
          .shape = { TEXT },
          .varies = true },
    };
    const struct own_set *set = self;
    *out = fields[number];
    out->struct_size = sizeof(*out);
    out->part = number > 0 && !set->together ? 1 : 0;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct own_set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *bytes = set->bytes[ids[i]];
        const uint32_t image = (uint32_t)(2 + pixels_of(bytes));
        const uint32_t rest = BOX_BYTES + text_of(ids[i]);
        stoker_part *part = &parts[set->together ? i : 2 * i];
        part[0] =
            (stoker_part){ .extent = { .memory = bytes, .bytes = image }, .codec = &set->codec };
        if (set->together)
            part[0].extent.bytes += rest;
        else
            part[1] = (stoker_part){ .extent = { .memory = bytes + image, .bytes = rest },
                                     .codec = &set->codec };
    }
    return STOKER_OK;
}

/* The scratch says which of the two it is. */
static int open_scratch(const void *self, bool any_size, void **scratch)
{
    static char plain[] = "plain", any[] = "any";
    (void)self;
    *scratch = any_size ? any : plain;
    return STOKER_OK;
}

static void note(const void *self, const char *scratch, const char *expected, uint64_t pixels)
{
    struct own_set *set = (struct own_set *)self; /* its counts only */
    atomic_fetch_add(&set->pixels, pixels);
    atomic_fetch_add(&set->wrong_scratch, strcmp(scratch, expected) != 0);
}

static void take_rest(const uint8_t *from, const uint8_t *end, stoker_row *rows)
{
    memcpy(rows[0].data, from, BOX_BYTES);
    rows[1].length = (uint64_t)(end - from) - BOX_BYTES;
    if (rows[1].length > 0)
        memcpy(rows[1].data, from + BOX_BYTES, rows[1].length);
}

static int decode_image(const stoker_encoded *in, const stoker_decoded *out, const void *self,
                        void *scratch)
{
    stoker_region got = { 0, 0, in->bytes[0], in->bytes[1], 8 };
    if (out->got == NULL && pixels_of(in->bytes) != out->rows[0].bytes_max)
        return STOKER_EFORMAT;
    if (out->wanted != NULL)
        got = *out->wanted;
    got.eighths = 8;
    const size_t line = (size_t)got.width * CHANNELS;
    note(self, scratch, out->got == NULL ? "plain" : "any", (uint64_t)got.height * got.width);
    if (got.height * line > out->rows[0].bytes_max)
        return STOKER_ELIMIT;
    for (uint32_t y = 0; y < got.height; y++)
        memcpy((uint8_t *)out->rows[0].data + y * line,
               in->bytes + 2 + ((size_t)(got.y + y) * in->bytes[1] + got.x) * CHANNELS, line);
    if (out->got != NULL)
        *out->got = got;
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    const uint8_t *end = in->bytes + in->size;
    (void)error;
    if (out->field_count == 2) {
        note(self, scratch, "plain", 0);
        take_rest(in->bytes, end, out->rows);
        return STOKER_OK;
    }
    if (out->field_count == 3)
        take_rest(in->bytes + 2 + pixels_of(in->bytes), end, &out->rows[1]);
    return decode_image(in, out, self, scratch);
}

static int probe(const void *self, const stoker_encoded *in, bool inspect,
                 stoker_image_header *header, stoker_error *error)
{
    (void)self, (void)error;
    cr_assert_not(inspect);
    header->height = in->bytes[0];
    header->width = in->bytes[1];
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "own",
                                        .describe = describe,
                                        .field = field,
                                        .locate = locate };

static void make(struct own_set *set, bool together, bool any_size)
{
    *set = (struct own_set){ .together = together, .any_size = any_size };
    set->codec = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                 .name = "own",
                                 .self = set,
                                 .flags = STOKER_CODEC_FIELDS | STOKER_CODEC_ANY_SIZE,
                                 .open = open_scratch,
                                 .decode = decode };
    for (uint64_t id = 0; id < COUNT; id++) {
        for (size_t at = 0; at < sizeof(set->bytes[id]); at++)
            set->bytes[id][at] = (uint8_t)stk_mix64(id * 10000 + at);
        set->bytes[id][0] = any_size ? (uint8_t)(8 + id % 15) : SIDE;
        set->bytes[id][1] = any_size ? (uint8_t)(6 + id % 17) : SIDE;
    }
    cr_assert_eq(stoker_dataset_create(&set->dataset, &ops, set, NULL), STOKER_OK);
}

/* From now on the codec decodes parts. */
static void add_parts(struct own_set *set)
{
    set->codec.probe = probe;
    atomic_store(&set->pixels, 0);
}

static struct own_set own, whole_set;

/* The run as with whole images, but less is decoded. Returns the share that is. */
static double expect_parts(struct own_set *set, stoker_loader_options options, uint64_t expected)
{
    double share = 1;
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
        for (options.num_workers = 0; options.num_workers < 3; options.num_workers += 2) {
            options.cache = (stoker_cache)cache;
            atomic_store(&set->pixels, 0);
            const struct seen seen = run(set->dataset, &options);
            cr_assert_eq(seen.rc, STOKER_FINISHED, "%s", seen.error.message);
            cr_assert_eq(seen.hash, expected, "cache %d", cache);
            cr_assert_eq(atomic_load(&set->wrong_scratch), 0);
            if (cache == STOKER_CACHE_NONE)
                share = (double)atomic_load(&set->pixels) / (3.0 * COUNT * SIDE * SIDE);
        }
    return share;
}

CleanTest(crops, of_a_part_that_fills_more_fields)
{
    static const stoker_transform small[] = { { .random_crop = { 8, 10 }, .flip = true },
                                              { .center_crop = { 12, 12 } },
                                              { .random_crop = { 20, 6 }, .pad = 5 } };
    for (int together = 0; together < 2; together++)
        for (int i = 0; i < 3; i++) {
            stoker_loader_options options = options_of(&small[i]);
            make(&own, together != 0, false);
            const struct seen whole = run(own.dataset, &options);
            cr_assert_eq(whole.rc, STOKER_FINISHED);
            cr_assert_eq(atomic_load(&own.pixels), 3 * COUNT * SIDE * SIDE);
            cr_assert_eq(whole.regions, 0);
            add_parts(&own);
            cr_assert_lt(expect_parts(&own, options, whole.hash), 0.3, "crop %d", i);
            stoker_dataset_close(&own.dataset);
        }
}

/* Images of any size could not be in a part with other fields. */
CleanTest(crops, of_any_size_in_a_part_that_fills_more_fields)
{
    static const stoker_transform resized[] = {
        { .random_resized_crop = { 8, 8 },
          STK_USUAL_RATIO,
          .area_min = 0.1F,
          .area_max = 0.2F,
          .flip = true },
        { .resize = { 9, 7 } },
        { .resize_shorter = 12, .random_crop = { 8, 8 } },
    };
    for (int i = 0; i < 3; i++) {
        stoker_loader_options options = options_of(&resized[i]);
        make(&whole_set, false, true);
        make(&own, true, true);
        const struct seen whole = run(whole_set.dataset, &options);
        cr_assert_eq(whole.rc, STOKER_FINISHED);
        add_parts(&own);
        const double share = expect_parts(&own, options, whole.hash);
        cr_assert(i > 0 || share < 0.2, "%g", share);
        stoker_dataset_close(&whole_set.dataset);
        stoker_dataset_close(&own.dataset);
    }
}

/* A cache then holds images that are larger than any that is decoded. */
CleanTest(crops, of_images_that_grow)
{
    static const stoker_transform grown = { .resize = { SIDE + 3, 2 * SIDE },
                                            .random_crop = { SIDE, SIDE },
                                            .flip = true };
    stoker_loader_options options = options_of(&grown);
    make(&own, false, false);
    const struct seen whole = run(own.dataset, &options);
    cr_assert_eq(whole.rc, STOKER_FINISHED);
    (void)expect_parts(&own, options, whole.hash);
    stoker_dataset_close(&own.dataset);
}

CleanTest(crops, leave_a_codec_of_one_size_alone)
{
    stoker_loader_options options = options_of(&crops[1]);
    options.transform.center_crop = (stoker_size){ 12, 12 };
    make(&own, true, false);
    const struct seen whole = run(own.dataset, &options);
    add_parts(&own);
    own.codec.flags = STOKER_CODEC_FIELDS;
    const struct seen seen = run(own.dataset, &options);
    cr_assert_eq(seen.hash, whole.hash);
    cr_assert_eq(seen.regions, 0);
    stoker_dataset_close(&own.dataset);
}
