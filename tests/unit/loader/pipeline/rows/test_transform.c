/* test_transform.c - transforms in a loader: each row is what the reference makes of its image;
 * images of differing size make batches where they are resized, and only there. That no setting or
 * stop changes a row is test_determinism.c's.
 */
#include <math.h>
#include <sys/stat.h>

#include "loader/base/fault.h"
#include "loader/dataset/dataset.h"
#include "support/leaks.h"

#include "support/files/image_folder.h"
#include "support/gpu/planned_transform.h"
#include "support/gpu/transform_ranges.h"

enum { COUNT = STK_IMAGE_COUNT, SIDE_MAX = STK_IMAGE_SIDE_MAX };

/* ---- folders of color images --------------------------------------------------- */

/* The image of a sample, as bytes. */
static struct stk_image image_of(const struct stk_image_folder *images, uint64_t id,
                                 uint8_t *pixels)
{
    static struct stk_picture picture;
    stk_image_size(images, id, &picture);
    stk_picture_paint(&picture, id);
    for (uint32_t y = 0; y < picture.height; y++)
        for (uint32_t x = 0; x < picture.width; x++)
            for (uint32_t c = 0; c < 3; c++)
                pixels[((size_t)y * picture.width + x) * 3 + c] = (uint8_t)picture.samples[y][x][c];
    return (struct stk_image){ .pixels = pixels, .height = picture.height, .width = picture.width };
}

/* ---- what is asked for ---------------------------------------------------------- */

static const stoker_transform resizing[] = {
    { .resize = { 16, 20 }, .flip = true, .cutout = 4 },
    { .resize = { 20, 20 }, .random_crop = { 18, 18 }, .pad = 2, .fill = { 9, 8, 7 } },
    { .resize_shorter = 18, .center_crop = { 16, 16 } },
    { .random_resized_crop = { 12, 15 }, STK_USUAL_AREA, STK_USUAL_RATIO, .flip = true },
    { .resize = { 20, 22 },
      .contrast = 0.8F,
      .hue = 0.5F,
      .blur = 3,
      STK_USUAL_SIGMA,
      .rotate_max = 360 },
};

static const stoker_transform cropping[] = {
    { .random_crop = { 24, 32 },
      .rotate_min = -20,
      .rotate_max = 20,
      .brightness = 0.4F,
      .contrast = 0.4F,
      .saturation = 0.4F,
      .hue = 0.1F,
      .blur = 5,
      STK_USUAL_SIGMA,
      .cutout = 6,
      .fill = { 1, 2, 3 } },
    { .random_crop = { 24, 32 }, .pad = 3, .flip = true, .cutout = 6, .fill = { 1, 2, 3 } },
    { .center_crop = { 11, 13 } },
    { .flip = true },
};

static stoker_loader_options options_of(const stoker_transform *transform)
{
    static const float mean[] = { 0.4F, 0.5F, 0.6F };
    static const float std[] = { 0.2F, 0.3F, 0.25F };
    return stk_small_options(.batch_size = 8, .epochs = 3, .dtype = STOKER_DTYPE_FLOAT32,
                             .mean = mean, .std = std, .mean_count = 3,
                             .layout = STOKER_LAYOUT_NCHW, .transform = *transform);
}

/* ---- the reference -------------------------------------------------------------- */

static void make_oracle(struct stk_planned *oracle, const struct stk_image_folder *images,
                        const stoker_loader_options *options)
{
    const stoker_dataset_info *set = stoker_dataset_get_info(images->dataset);
    const struct stk_convert_options convert = { .to = options->dtype,
                                                 .layout = options->layout,
                                                 .channels = 3,
                                                 .mean = options->mean,
                                                 .std = options->std,
                                                 .mean_count = 3 };
    const uint32_t height = images->mixed ? SIDE_MAX : (uint32_t)set->shape[0];
    const uint32_t width = images->mixed ? SIDE_MAX : (uint32_t)set->shape[1];
    cr_assert_eq(stk_planned_make(oracle, &options->transform, options->seed, height, width,
                                  images->mixed, convert),
                 STOKER_OK, "%s", oracle->why);
}

static void check_rows(const struct stk_image_folder *images, const stoker_transform *transform)
{
    const stoker_loader_options options = options_of(transform);
    static uint8_t pixels[SIDE_MAX * SIDE_MAX * 3], expected[SIDE_MAX * SIDE_MAX * 3 * 4];
    struct stk_planned oracle;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t rows = 0;
    make_oracle(&oracle, images, &options);
    cr_assert_eq(stoker_loader_create(&loader, images->dataset, &options, NULL), STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        cr_assert_eq(batch.images.shape[1], 3);
        cr_assert_eq(batch.images.shape[2], oracle.plan.framing.out_height);
        cr_assert_eq(batch.images.shape[3], oracle.plan.framing.out_width);
        const uint8_t *at = batch.images.data;
        for (uint32_t row = 0; row < batch.count; row++, at += oracle.convert.to_bytes) {
            const struct stk_image image = image_of(images, batch.ids[row], pixels);
            cr_assert(stk_transform_row_reference(&oracle.plan, &image, batch.epoch, batch.ids[row],
                                                  expected));
            cr_assert_eq(memcmp(at, expected, oracle.convert.to_bytes), 0, "epoch %d, sample %d",
                         (int)batch.epoch, (int)batch.ids[row]);
        }
        rows += batch.count;
        stoker_batch_release(&batch);
    }
    cr_assert_eq(rows, options.epochs * COUNT);
    stoker_loader_destroy(&loader);
}

CleanTest(loader_transform, images_of_differing_size_are_resized)
{
    struct stk_image_folder images;
    stk_image_folder_make(&images, true, "");
    for (size_t i = 0; i < sizeof(resizing) / sizeof(resizing[0]); i++)
        check_rows(&images, &resizing[i]);
    stk_image_folder_remove(&images);
}

CleanTest(loader_transform, images_of_one_size_are_cropped)
{
    struct stk_image_folder images;
    stk_image_folder_make(&images, false, "");
    for (size_t i = 0; i < sizeof(cropping) / sizeof(cropping[0]); i++)
        check_rows(&images, &cropping[i]);
    for (size_t i = 0; i < sizeof(resizing) / sizeof(resizing[0]); i++)
        check_rows(&images, &resizing[i]);
    stk_image_folder_remove(&images);
}

/* ---- limits and errors ---------------------------------------------------------- */

CleanTest(loader_transform, without_resizing_another_size_is_a_bad_sample)
{
    static struct stk_run run;
    struct stk_image_folder images;
    stk_image_folder_make(&images, true, "?height=24&width=32");
    stoker_loader_options options = stk_small_options();
    cr_assert_eq(stk_run(images.dataset, &options, &run), STOKER_EFORMAT);
    stk_image_folder_remove(&images);
}

CleanTest(loader_transform, an_image_over_the_limit_is_a_bad_sample)
{
    struct stk_image_folder images;
    stk_image_folder_make(&images, true, "?max_pixels=300");
    stoker_loader_options options = options_of(&resizing[0]);
    options.epochs = 1;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    uint64_t over = 0;
    struct stk_picture picture;
    for (uint64_t id = 0; id < COUNT; id++) {
        stk_image_size(&images, id, &picture);
        over += picture.height * picture.width > 300;
    }
    static struct stk_run run;
    stoker_loader *loader = NULL;
    run = (struct stk_run){ 0 };
    cr_assert_eq(stoker_loader_create(&loader, images.dataset, &options, NULL), STOKER_OK);
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(run.samples, COUNT - over);
    stoker_error report;
    cr_assert_eq(stoker_loader_bad_sample(loader, over - 1, &report), STOKER_OK);
    cr_assert_eq(report.code, STOKER_ELIMIT);
    cr_assert_neq(strstr(report.message, "pixels, at most 300"), NULL, "%s", report.message);
    cr_assert_eq(stoker_loader_bad_sample(loader, over, &report), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    stk_image_folder_remove(&images);
}

static void refused(const stoker_dataset *dataset, const stoker_transform *transform,
                    stoker_dtype dtype, int code, const char *words)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    stoker_loader_options options = stk_small_options(.transform = *transform, .dtype = dtype);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s", words);
    cr_assert_null(loader);
    cr_assert_neq(strstr(error.message, words), NULL, "\"%s\" lacks \"%s\"", error.message, words);
}

#define REFUSED(words, ...)                                                                        \
    refused(images.dataset, &(stoker_transform){ __VA_ARGS__ }, STOKER_DTYPE_NONE, STOKER_EINVAL,  \
            words)

CleanTest(loader_transform, what_cannot_be_is_refused_by_name)
{
    struct stk_image_folder images;
    stk_image_folder_make(&images, false, "");
    REFUSED("transform.resize 0 x 5", .resize = { 0, 5 });
    REFUSED("transform.resize 16385 x 5", .resize = { 16385, 5 });
    REFUSED("transform.random_resized_crop 4 x 0", .random_resized_crop = { 4, 0 });
    REFUSED("transform.center_crop 1 x 0", .center_crop = { 1, 0 });
    REFUSED("transform.random_crop 0 x 1", .random_crop = { 0, 1 });
    REFUSED("transform.resize_shorter 16385", .resize_shorter = 16385, .center_crop = { 1, 1 });
    REFUSED("transform.pad 16385", .pad = 16385, .random_crop = { 1, 1 });
    REFUSED("transform.cutout 16385", .cutout = 16385);
    REFUSED("at most one of them", .resize = { 5, 5 }, .resize_shorter = 5,
            .center_crop = { 1, 1 });
    REFUSED("at most one of them", .center_crop = { 5, 5 }, .random_crop = { 1, 1 });
    REFUSED("resize_shorter leaves images of differing size", .resize_shorter = 5);
    REFUSED("pad is for random_crop", .pad = 5);
    REFUSED("brightness -1", .brightness = -1);
    REFUSED("contrast 101", .contrast = 101);
    REFUSED("saturation nan", .saturation = NAN);
    REFUSED("hue 0.51", .hue = 0.51F);
    REFUSED("rotate_min 3", .rotate_min = 3, .rotate_max = 2);
    REFUSED("rotate_min -361", .rotate_min = -361);
    REFUSED("rotate_min 0, rotate_max inf", .rotate_max = INFINITY);
    REFUSED("blur 4", .blur = 4);
    REFUSED("blur 1 ", .blur = 1);
    REFUSED("blur 65", .blur = 65);
    REFUSED("blur 5 of images of 2 x 20", .blur = 5, STK_USUAL_SIGMA, .random_crop = { 2, 20 });
    REFUSED("sigma_min 0, sigma_max 0: not 0.01 <= min <= max <= 64", .blur = 3);
    REFUSED("sigma is for blur", .sigma_max = 1);
    REFUSED("sigma_min 0.001", .blur = 3, .sigma_min = 0.001F, .sigma_max = 1);
    REFUSED("sigma_min 2", .blur = 3, .sigma_min = 2, .sigma_max = 1);
    REFUSED("sigma_min 2, sigma_max 65", .blur = 3, .sigma_min = 2, .sigma_max = 65);
    REFUSED("pad is for random_crop", .pad = 5, .center_crop = { 1, 1 });
    REFUSED("area and ratio", .area_max = 0.5F, .flip = true);
    REFUSED("area_min", .random_resized_crop = { 5, 5 }, .area_min = 0.5F, .area_max = 0.4F);
    REFUSED("area_min", .random_resized_crop = { 5, 5 }, .area_min = 0.5F, .area_max = 1.1F);
    REFUSED("area_min", .random_resized_crop = { 5, 5 }, .area_max = 0.5F);
    REFUSED("area_min 0, area_max 0: not 0 < min", .random_resized_crop = { 5, 5 });
    REFUSED("ratio_min 0, ratio_max 0", .random_resized_crop = { 5, 5 }, STK_USUAL_AREA);
    REFUSED("ratio_min 2", .random_resized_crop = { 5, 5 }, STK_USUAL_AREA, .ratio_min = 2.0F,
            .ratio_max = 1.0F);
    REFUSED("ratio_min 0.001", .random_resized_crop = { 5, 5 }, STK_USUAL_AREA, .ratio_min = 0.001F,
            .ratio_max = 1.0F);
    REFUSED("random_crop 30 x 40 of images of 24 x 32", .random_crop = { 30, 40 }, .pad = 2);
    REFUSED("center_crop 25 x 32 of images of 24 x 32", .center_crop = { 25, 32 });
    REFUSED("center_crop 9 x 8 of images of 8 x 8", .resize = { 8, 8 }, .center_crop = { 9, 8 });
    refused(images.dataset, &(stoker_transform){ .flip = true }, STOKER_DTYPE_INT32, STOKER_ETYPE,
            "transform: uint8 cannot be converted to int32");
    stk_image_folder_remove(&images);

    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=100&shape=12", NULL, NULL),
                 STOKER_OK);
    refused(dataset, &(stoker_transform){ .flip = true }, STOKER_DTYPE_NONE, STOKER_ETYPE,
            "uint8 images");
    stoker_dataset_close(&dataset);
}

/* ---- memory --------------------------------------------------------------------- */

CleanTest(loader_transform, each_allocation_may_fail_and_none_comes_after_the_first_batches)
{
    static struct stk_run run;
    struct stk_image_folder images;
    stk_image_folder_make(&images, true, "");
    stoker_loader_options options = options_of(&resizing[1]);
    options.num_workers = 2;
    options.cache = STOKER_CACHE_DECODED;
    stoker_loader *loader = NULL;
    const int64_t before = stk_fault_live_bytes();
    for (uint64_t nth = 1; loader == NULL; nth++) {
        cr_assert_lt(nth, 200);
        stk_fault_arm(STK_FAULT_ANY, nth);
        const int rc = stoker_loader_create(&loader, images.dataset, &options, NULL);
        stk_fault_disarm();
        if (rc < 0)
            cr_assert_eq(stk_fault_live_bytes(), before, "%d bytes left behind after failure %d",
                         (int)(stk_fault_live_bytes() - before), (int)nth);
    }
    run = (struct stk_run){ 0 };
    stk_run_on(loader, &run, 5); /* each worker has opened its codec */
    const uint64_t allocations = stk_fault_allocations();
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_leq(stk_fault_allocations() - allocations, 8); /* a worker that was late */
    stoker_loader_destroy(&loader);
    stk_image_folder_remove(&images);
}
