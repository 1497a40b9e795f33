/* test_masks.c - masks beside images that differ in size: each follows its own image, is filled as
 * its options say, and is a bad sample if it has another size.
 *
 * Method: a set in memory whose images and masks have a size for each sample, "height width
 * pixels..."; masks of the batch against stk_mask_row_reference() of the sample's own mask.
 */
#include "kernels/transform/mask/mask.h"
#include "support/files/image_folder.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"
#include "support/sets/photo_codec.h"
#include "support/sweep.h"

enum { COUNT = 60, SIDE_MAX = 40, PIXELS = SIDE_MAX * SIDE_MAX, BYTES = 2 + PIXELS, NONE = COUNT };

struct mask_set {
    stoker_dataset *dataset;
    stoker_codec codec;
    uint8_t image[COUNT][BYTES], mask[COUNT][BYTES];
    uint32_t wrong; /* sample whose mask is a line shorter than its image */
    bool one_part;  /* says that one part fills both fields */
};

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct mask_set *set = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = COUNT,
                                  .field_count = 2,
                                  .part_count = set->one_part ? 1 : 2 };
    return STOKER_OK;
}

static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    static const stoker_field_info fields[] = { { .name = "image",
                                                  .kind = STOKER_FIELD_KIND_IMAGE,
                                                  .dtype = STOKER_DTYPE_UINT8,
                                                  .rank = 3,
                                                  .shape = { 9, 8, 1 },
                                                  .pixels_max = PIXELS },
                                                { .name = "mask",
                                                  .kind = STOKER_FIELD_KIND_MASK,
                                                  .dtype = STOKER_DTYPE_UINT8,
                                                  .rank = 3,
                                                  .shape = { 7, 6, 1 },
                                                  .part = 1,
                                                  .pixels_max = PIXELS } };
    *out = fields[field];
    out->struct_size = sizeof(*out);
    if (((const struct mask_set *)self)->one_part)
        out->part = 0;
    return STOKER_OK;
}

static stoker_extent extent_of(const uint8_t *bytes)
{
    return (stoker_extent){ .memory = bytes, .bytes = 2U + (uint32_t)bytes[0] * bytes[1] };
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct mask_set *set = self;
    const uint32_t part_count = set->one_part ? 1 : 2;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        stoker_part *part = &parts[(size_t)i * part_count];
        part[0] = (stoker_part){ .extent = extent_of(set->image[ids[i]]), .codec = &set->codec };
        if (!set->one_part)
            part[1] = (stoker_part){ .extent = extent_of(set->mask[ids[i]]), .codec = &set->codec };
    }
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self, (void)scratch, (void)error;
    return out->got == NULL ? STOKER_EFORMAT
                            : stk_photo_decode(in, out); /* none has the set's size */
}

static void make(struct mask_set *set, uint32_t wrong)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "masks",
                                            .describe = describe,
                                            .field = field_of,
                                            .locate = locate };
    set->wrong = wrong;
    set->codec = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                 .name = "photo",
                                 .flags = STOKER_CODEC_ANY_SIZE,
                                 .decode = decode,
                                 .probe = stk_photo_probe };
    for (uint32_t id = 0; id < COUNT; id++) {
        uint8_t *image = set->image[id], *mask = set->mask[id];
        for (uint32_t at = 0; at < BYTES; at++) {
            image[at] = stk_set_byte(id, at);
            mask[at] = stk_set_byte(id + COUNT, at) % 21;
        }
        image[0] = mask[0] = (uint8_t)(10 + image[0] % (SIDE_MAX - 9));
        image[1] = mask[1] = (uint8_t)(10 + image[1] % (SIDE_MAX - 9));
        mask[0] = (uint8_t)(mask[0] - (id == wrong));
    }
    cr_assert_eq(stoker_dataset_create(&set->dataset, &ops, set, NULL), STOKER_OK);
}

/* ---- whole runs ---- */

static struct stk_mask_plan plan_of(const stoker_loader_options *options, uint8_t fill)
{
    struct stk_framing framing;
    struct stk_mask_plan plan;
    char why[STK_TRANSFORM_WHY_BYTES];
    cr_assert_eq(stk_framing_init(&framing, &options->transform, options->seed, 9, 8, true, why), 0,
                 "%s", why);
    cr_assert_eq(stk_mask_plan_init(&plan, &framing, 1, &fill), 0);
    return plan;
}

/* Masks are delivered as int64. */
static void check_batch(const struct mask_set *set, const struct stk_mask_plan *plan,
                        const stoker_batch *batch)
{
    const size_t pixels = stk_mask_bytes(plan);
    const int64_t *found = batch->fields[1].values.data;
    static uint8_t expected[PIXELS];
    cr_assert_eq(batch->fields[1].values.shape[1], batch->images.shape[1]);
    cr_assert_eq(batch->fields[1].values.shape[2], batch->images.shape[2]);
    for (uint32_t row = 0; row < batch->count; row++) {
        const uint64_t id = batch->ids[row];
        const struct stk_image mask = { .pixels = set->mask[id] + 2,
                                        .height = set->mask[id][0],
                                        .width = set->mask[id][1] };
        cr_assert_neq(id, set->wrong);
        stk_mask_row_reference(plan, &mask, batch->epoch, id, expected);
        for (size_t i = 0; i < pixels; i++)
            cr_assert_eq(found[row * pixels + i], expected[i], "sample %d, pixel %zu", (int)id, i);
    }
}

static uint64_t check_run(const struct mask_set *set, stoker_loader_options options, uint8_t fill)
{
    stoker_field_options mask = STOKER_FIELD_OPTIONS_INIT;
    mask.name = "mask";
    mask.dtype = STOKER_DTYPE_INT64;
    mask.fill_value = fill;
    options.fields = &mask;
    options.field_count = 1;
    const struct stk_mask_plan plan = plan_of(&options, fill);
    stoker_loader *loader = loader_of(set->dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t samples = 0;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        cr_assert_geq(rc, 0, "%s", rc < 0 ? stoker_loader_error(loader)->message : "");
        if (rc != STOKER_OK)
            continue;
        check_batch(set, &plan, &batch);
        samples += batch.count;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return samples;
}

enum { TRANSFORMS = 3 };

static stoker_transform transform_of(int number)
{
    stoker_transform transform = STOKER_TRANSFORM_INIT;
    if (number == 0) {
        transform.random_resized_crop = (stoker_size){ 13, 17 };
        transform.flip = true;
    } else if (number == 1) {
        transform.resize = (stoker_size){ 12, 9 };
        transform.random_crop = (stoker_size){ 11, 11 };
        transform.pad = 2;
        transform.cutout = 3;
    } else {
        transform.resize_shorter = 14;
        transform.center_crop = (stoker_size){ 14, 14 };
        transform.rotate_min = -40;
        transform.rotate_max = 40;
    }
    return transform;
}

/* By every route, and filled with 255. */
CleanTest(masks, each_follows_its_own_image)
{
    static struct mask_set set;
    make(&set, NONE);
    stoker_loader_options options = stk_small_options();
    for (int t = 0; t < TRANSFORMS; t++)
        for (int cache = STOKER_CACHE_AUTO; cache <= STOKER_CACHE_ENCODED; cache++)
            for (int32_t workers = 0; workers <= 3; workers += 3) {
                options.transform = transform_of(t);
                options.cache = (stoker_cache)cache;
                options.num_workers = workers;
                cr_assert_eq(check_run(&set, options, workers == 0 ? 255 : 7), 2 * COUNT);
            }
    stoker_dataset_close(&set.dataset);
}

CleanTest(masks, one_of_another_size_is_a_bad_sample)
{
    static struct mask_set set;
    make(&set, 23);
    stoker_loader_options options = stk_small_options(.transform = transform_of(0));
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        options.num_workers = workers;
        options.on_bad_sample = STOKER_ON_BAD_SKIP;
        cr_assert_eq(check_run(&set, options, 255), 2 * (COUNT - 1));
        options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
        cr_assert_eq(check_run(&set, options, 255), 2 * COUNT);
    }
    options.on_bad_sample = STOKER_ON_BAD_FAIL;
    static struct stk_run run;
    stoker_loader *loader = loader_of(set.dataset, &options);
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(run.rc, STOKER_EFORMAT);
    char words[80];
    (void)snprintf(words, sizeof(words), "a mask of %u x %u pixels, its image has %u x %u",
                   set.mask[23][0], set.mask[23][1], set.image[23][0], set.image[23][1]);
    cr_assert_neq(strstr(stoker_loader_error(loader)->message, words), NULL, "%s",
                  stoker_loader_error(loader)->message);
    cr_assert_neq(strstr(stoker_loader_error(loader)->message, "\"mask\""), NULL);
    cr_assert_eq(stoker_loader_error(loader)->sample, 23);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&set.dataset);
}

/* ---- files ---- */

static void write_pictures(const struct stk_image_folder *images, const char *folder, int color,
                           uint64_t shorter)
{
    static struct stk_picture picture;
    static struct stk_file_bytes file;
    char name[64];
    stk_folder_mkdir(&images->directory, folder);
    for (uint64_t id = 0; id < STK_IMAGE_COUNT; id++) {
        stk_image_size(images, id, &picture);
        picture.color = (uint8_t)color;
        picture.height += id == shorter;
        stk_picture_paint(&picture, id);
        stk_picture_write(&picture, &file);
        (void)snprintf(name, sizeof(name), "%s/f%03u.png", folder, (unsigned)id);
        stk_file_write(&images->directory, name, file.at, file.size);
    }
}

/* Photographs of many sizes, and a mask for each, as PNG files. */
CleanTest(masks, files_of_many_sizes_make_batches)
{
    struct stk_image_folder images = { .directory = stk_directory_make(), .mixed = true };
    static struct stk_run run;
    char spec[600];
    write_pictures(&images, "image", PNG_COLOR_TYPE_RGB, NONE);
    write_pictures(&images, "mask", PNG_COLOR_TYPE_GRAY, 31);
    (void)snprintf(spec, sizeof(spec), "folder:image=%s/image,mask=%s/mask", images.directory.path,
                   images.directory.path);
    images.dataset = dataset_of(spec);
    stoker_loader_options options =
        stk_small_options(.transform = transform_of(0), .on_bad_sample = STOKER_ON_BAD_SKIP);
    cr_assert_eq(stk_run(images.dataset, &options, &run), STOKER_FINISHED, "%s", run.error.message);
    cr_assert_eq(run.samples, 2 * (STK_IMAGE_COUNT - 1));
    stk_image_folder_remove(&images);
}

CleanTest(masks, create_survives_each_failed_allocation)
{
    static struct mask_set set;
    make(&set, NONE);
    stoker_loader_options options =
        stk_small_options(.transform = transform_of(0), .num_workers = 1);
    stoker_loader *loader = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_loader_create(&loader, set.dataset, &options, &sweep.error);
    stoker_loader_destroy(&loader);
    cr_assert_eq(stk_fault_live_bytes(), sweep.live);
    stoker_dataset_close(&set.dataset);
}

/* ---- what is refused ---- */

static void refuse(const struct mask_set *set, const stoker_loader_options *options, int code,
                   const char *words)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, set->dataset, options, &error), code, "%s", words);
    cr_assert_neq(strstr(error.message, words), NULL, "%s", error.message);
}

CleanTest(masks, what_cannot_be_is_refused_by_name)
{
    static struct mask_set set, together = { .one_part = true };
    stoker_field_options field = STOKER_FIELD_OPTIONS_INIT;
    make(&set, NONE);
    make(&together, NONE);
    stoker_loader_options options =
        stk_small_options(.transform = transform_of(1), .cache = STOKER_CACHE_DECODED);
    refuse(&set, &options, STOKER_ENOTSUP, "the mask \"mask\" is decoded in its own size");
    options.cache = STOKER_CACHE_NONE;
    refuse(&together, &options, STOKER_ENOTSUP, "the mask \"mask\" shares a part");
    options.fields = &field;
    options.field_count = 1;
    field.name = "mask";
    field.fill_value = 256;
    refuse(&set, &options, STOKER_EINVAL, "uint8 cannot hold fill_value 256");
    field.fill_value = -1;
    refuse(&set, &options, STOKER_EINVAL, "uint8 cannot hold fill_value -1");
    field.name = "image";
    field.fill_value = 5;
    refuse(&set, &options, STOKER_EINVAL, "fill_value fills only masks");
    field.name = "mask";
    options.transform = (stoker_transform)STOKER_TRANSFORM_INIT;
    refuse(&set, &options, STOKER_EINVAL, "fill_value fills only masks");
    stoker_dataset_close(&set.dataset);
    stoker_dataset_close(&together.dataset);
}
