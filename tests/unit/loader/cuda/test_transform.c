/* test_transform.c - images that kernels transform behind their copy have the bits that the CPU
 * gives them; and which side of the bus does what.
 */
#include "support/cuda_bits.h"
#include "support/image_folder.h"
#include "support/opened_loader.h"
#include "support/transform_cases.h"
#include "support/transform_ranges.h"

static stoker_error error;
static void begin(void)
{
    stk_cuda_bits_begin(1);
}

TestSuite(cuda_transform, .init = begin, .fini = stk_cuda_bits_finish);

static stoker_loader_options options_for(const stoker_transform *transform, stoker_dtype dtype,
                                         stoker_layout layout, uint32_t channels)
{
    stoker_loader_options options = stk_cuda_bits_options(dtype, layout, channels);
    options.batch_size = 5;
    options.transform = *transform;
    return options;
}

static struct stk_cuda_bits expect_bits(const stoker_dataset *dataset,
                                        stoker_loader_options options, const char *name)
{
    return stk_cuda_bits_expect(dataset, options, 0, name);
}

static stoker_dataset *open_images(uint32_t height, uint32_t width, uint32_t channels)
{
    char spec[96];
    (void)snprintf(spec, sizeof(spec), "synth:bytes?count=13&shape=%ux%ux%u", height, width,
                   channels);
    return dataset_of(spec);
}

/* Kernels behind the copy of a batch. */
static uint32_t kernels_of(const stoker_transform *transform)
{
    const bool rotates = transform->rotate_min != 0.0F || transform->rotate_max != 0.0F;
    const bool colors = transform->brightness != 0.0F || transform->contrast != 0.0F ||
                        transform->saturation != 0.0F || transform->hue != 0.0F;
    const uint32_t retouching = (uint32_t)rotates + (uint32_t)(transform->contrast != 0.0F) +
                                (uint32_t)colors + (transform->blur != 0 ? 2U : 0U);
    return (transform->random_resized_crop.height != 0 ? 1U : 0U) +
           (stk_transform_resizes(transform) ? 3U : 1U) + (retouching > 0 ? 2U + retouching : 0U);
}

/* Every case with 1 to 4 channels, each with two of the eight types and layouts in turn. */
Test(cuda_transform, bits_are_those_of_the_cpu)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16, STOKER_DTYPE_UINT8 };
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    standin_cuda_delay(5);
    for (int i = 0; i < TRANSFORM_CASES; i++) {
        const struct transform_case *it = &transform_cases[i];
        for (uint32_t channels = 1; channels <= 4; channels++) {
            stoker_dataset *dataset = open_images(it->height, it->width, channels);
            for (int turn = 0; turn < 2; turn++) {
                const int k = (i + 2 * (int)channels + 5 * turn) % 8;
                stoker_loader_options options =
                    options_for(&it->transform, types[k / 2], (stoker_layout)(k % 2), channels);
                options.convert_on_device = STOKER_SWITCH_ON;
                options.num_workers = turn;
                options.epochs = 1;
                const struct stk_cuda_bits run = expect_bits(dataset, options, it->name);
                cr_assert_eq(run.launches, run.batches * kernels_of(&it->transform), "%s",
                             it->name);
            }
            stoker_dataset_close(&dataset);
        }
    }
}

/* ---- the work of the host and of the GPU ----------------------------------------- */

static stoker_stats stats_with(const stoker_dataset *dataset, stoker_loader_options options)
{
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    options.prefetch_batches = 2;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    stoker_loader_destroy(&loader);
    return stats;
}

/* Both slots together: at least image_bytes per image, and less than 1.5 times that. */
static void expect_sent(const stoker_dataset *dataset, stoker_loader_options options,
                        size_t image_bytes)
{
    options.batch_size = 13;
    const stoker_stats stats = stats_with(dataset, options);
    cr_assert(stats.converts_on_device, "%s", stats.convert_reason);
    cr_assert_geq(stats.slot_bytes, 2 * 13 * image_bytes);
    cr_assert_lt(stats.slot_bytes, 3 * 13 * image_bytes);
}

Test(cuda_transform, nothing_larger_crosses_than_the_row)
{
    const stoker_transform to_half = { .resize = { 32, 32 }, .flip = true };
    const stoker_transform to_fifth = { .resize = { 12, 12 }, .random_crop = { 11, 11 } };
    const stoker_transform rectangle = { .random_resized_crop = { 12, 12 },
                                         STK_USUAL_AREA,
                                         STK_USUAL_RATIO };
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_dataset *dataset = open_images(64, 64, 3);
    stoker_loader_options options =
        options_for(&to_half, STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NCHW, 3);
    expect_sent(dataset, options,
                (size_t)64 * 64 * 3); /* as stored: four bytes for each of a float */
    options.dtype = STOKER_DTYPE_FLOAT16;
    expect_sent(dataset, options, (size_t)32 * 32 * 3); /* resized */
    (void)expect_bits(dataset, options, "resized by the host");
    options.transform = to_fifth;
    expect_sent(dataset, options, (size_t)12 * 12 * 3);
    (void)expect_bits(dataset, options, "resized by the host, cropped by the GPU");
    options.transform = rectangle;
    expect_sent(dataset, options, (size_t)12 * 12 * 3); /* made */
    (void)expect_bits(dataset, options, "transformed by the host");
    options.convert_on_device = STOKER_SWITCH_ON;
    expect_sent(dataset, options, (size_t)64 * 64 * 3); /* as was asked for */
    options.convert_on_device = STOKER_SWITCH_OFF;
    cr_assert_not(stats_with(dataset, options).converts_on_device);
    (void)expect_bits(dataset, options, "all by the host");
    stoker_dataset_close(&dataset);
}

Test(cuda_transform, images_of_any_size_are_resized_by_the_host)
{
    static const stoker_transform transforms[] = {
        { .resize = { 16, 20 }, .flip = true, .cutout = 4 },
        { .resize = { 20, 20 }, .random_crop = { 18, 18 }, .pad = 2, .fill = { 9, 8, 7 } },
        { .resize_shorter = 18, .center_crop = { 16, 16 } },
        { .random_resized_crop = { 12, 15 }, STK_USUAL_AREA, STK_USUAL_RATIO, .flip = true },
    };
    struct stk_image_folder images;
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stk_image_folder_make(&images, true, "");
    for (int i = 0; i < 4; i++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            stoker_loader_options options =
                options_for(&transforms[i], STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NCHW, 3);
            options.cache = (stoker_cache)cache;
            options.convert_on_device =
                cache == STOKER_CACHE_NONE ? STOKER_SWITCH_ON : STOKER_SWITCH_AUTO;
            const struct stk_cuda_bits run = expect_bits(images.dataset, options, "any size");
            cr_assert_eq(run.launches, run.batches);
        }
    stk_image_folder_remove(&images);
}

/* Where kernels are missing, the host does it. */
Test(cuda_transform, without_kernels_the_host_transforms)
{
    const stoker_transform resize = { .resize = { 12, 12 }, .flip = true };
    stoker_dataset *dataset = open_images(20, 20, 3);
    const stoker_loader_options options =
        options_for(&resize, STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NCHW, 3);
    standin_cuda_kernels(NULL);
    const stoker_stats stats = stats_with(dataset, options);
    cr_assert_not(stats.converts_on_device);
    cr_assert_str_neq(stats.convert_reason, "");
    cr_assert_eq(expect_bits(dataset, options, "no kernels").launches, 0U);
    stoker_dataset_close(&dataset);
}
