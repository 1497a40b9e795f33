/* transform_cases.h - the transforms that tests of host and device run with 1 to 4 channels, every type and both
 * layouts.
 */
#ifndef TESTS_TRANSFORM_CASES_H
#define TESTS_TRANSFORM_CASES_H

#include "planned_transform.h"

struct transform_case {
    const char *name;
    uint32_t height, width; /* of the image */
    stoker_transform transform;
};

static const struct transform_case transform_cases[] = {
    { "flip of a pixel", 1, 1, { .flip = true } },
    { "flip", 5, 7, { .flip = true } },
    { "flip of wide lines", 3, 33, { .flip = true } },
    { "flip of very wide lines", 2, 2500, { .flip = true } },
    { "cutout", 9, 11, { .cutout = 4, .fill = { 7, 200, 0, 255 } } },
    { "cutout of all", 4, 4, { .cutout = 64, .fill = { 1, 2, 3, 4 } } },
    { "cutout of a pixel", 17, 16, { .cutout = 1, .fill = { 9, 8, 7, 6 } } },
    { "crop of a digit", 28, 28, { .random_crop = { 28, 28 }, .pad = 2, .flip = true } },
    { "crop as CIFAR's",
      32,
      32,
      { .random_crop = { 32, 32 },
        .pad = 4,
        .flip = true,
        .cutout = 8,
        .fill = { 125, 123, 114 } } },
    { "crop with a wide pad",
      6,
      5,
      { .random_crop = { 20, 20 }, .pad = 9, .fill = { 5, 6, 7, 8 } } },
    { "crop that may miss the image",
      3,
      3,
      { .random_crop = { 4, 4 }, .pad = 6, .flip = true, .fill = { 50, 60, 70, 80 } } },
    { "crop of a few blocks that may miss the image",
      9,
      10,
      { .random_crop = { 12, 13 }, .pad = 14, .flip = true, .fill = { 60, 61, 62, 63 } } },
    { "crop of a few blocks with a wide cut",
      40,
      64,
      { .random_crop = { 40, 61 },
        .pad = 5,
        .flip = true,
        .cutout = 20,
        .fill = { 31, 32, 33, 34 } } },
    { "crop of a few blocks that overlap, far beside the image",
      26,
      27,
      { .random_crop = { 26, 27 }, .pad = 8, .fill = { 71, 72, 73, 74 } } },
    { "crop of two blocks", 20, 18, { .random_crop = { 18, 16 }, .pad = 8, .flip = true } },
    { "crop of wide lines",
      20,
      75,
      { .random_crop = { 22, 80 },
        .pad = 11,
        .flip = true,
        .cutout = 12,
        .fill = { 41, 42, 43, 44 } } },
    { "crop of wide lines that may miss the image",
      9,
      70,
      { .random_crop = { 12, 81 }, .pad = 74, .flip = true, .fill = { 51, 52, 53, 54 } } },
    { "small crop of a large image", 50, 41, { .random_crop = { 17, 19 }, .flip = true } },
    { "one pixel of an image", 13, 12, { .random_crop = { 1, 1 } } },
    { "middle", 15, 22, { .centre_crop = { 8, 9 } } },
    { "middle of what is as large", 8, 9, { .centre_crop = { 8, 9 } } },
    { "down", 37, 53, { .resize = { 16, 23 } } },
    { "down a little", 64, 64, { .resize = { 56, 56 }, .flip = true } },
    { "down much", 200, 150, { .resize = { 5, 3 } } },
    { "to a pixel", 20, 30, { .resize = { 1, 1 } } },
    { "up", 7, 5, { .resize = { 31, 40 } } },
    { "up from a pixel", 1, 1, { .resize = { 6, 7 } } },
    { "up from a line", 1, 9, { .resize = { 5, 17 } } },
    { "up from a column", 9, 1, { .resize = { 17, 4 } } },
    { "down and up", 40, 6, { .resize = { 10, 33 } } },
    { "narrow", 30, 2, { .resize = { 11, 2 } } },
    { "the same height", 24, 31, { .resize = { 24, 15 } } },
    { "the same size", 12, 13, { .resize = { 12, 13 }, .flip = true } },
    { "resized, then cropped",
      48,
      64,
      { .resize = { 24, 30 }, .random_crop = { 20, 21 }, .flip = true, .cutout = 5 } },
    { "resized, padded, cropped",
      48,
      40,
      { .resize = { 16, 16 },
        .random_crop = { 16, 16 },
        .pad = 3,
        .fill = { 100, 110, 120, 130 } } },
    { "shorter side of a tall one", 90, 50, { .resize_shorter = 32, .centre_crop = { 28, 28 } } },
    { "shorter side of a wide one", 33, 97, { .resize_shorter = 20, .random_crop = { 20, 24 } } },
    { "shorter side up",
      11,
      19,
      { .resize_shorter = 24, .centre_crop = { 24, 24 }, .flip = true } },
    { "a rectangle", 57, 71, { .random_resized_crop = { 24, 24 }, .flip = true } },
    { "a small rectangle",
      64,
      48,
      { .random_resized_crop = { 20, 28 }, .area_min = 0.01F, .area_max = 0.05F } },
    { "a rectangle that never fits",
      4,
      90,
      { .random_resized_crop = { 12, 12 }, .area_min = 1.0F, .area_max = 1.0F } },
    { "a tall rectangle of a wide image",
      16,
      64,
      { .random_resized_crop = { 9, 17 }, .ratio_min = 0.02F, .ratio_max = 0.1F, .cutout = 3 } },
    { "a rectangle of a pixel", 1, 1, { .random_resized_crop = { 8, 8 } } },
};

enum { TRANSFORM_CASES = sizeof(transform_cases) / sizeof(transform_cases[0]) };

/* Plans a case with a mean and a deviation for each channel, one for all (1), or none (0). */
static inline int transform_case_plan(struct stk_planned *planned, const struct transform_case *it,
                                      uint64_t seed, uint32_t channels, stoker_dtype to,
                                      stoker_layout layout, uint32_t mean_count)
{
    static const float means[] = { 0.485F, 0.456F, 0.406F, 0.25F };
    static const float stds[] = { 0.229F, 0.224F, 0.225F, 0.5F };
    const struct stk_convert_options convert = { .to = to,
                                                 .layout = layout,
                                                 .channels = channels,
                                                 .mean = mean_count == 0 ? NULL : means,
                                                 .std = mean_count == 0 ? NULL : stds,
                                                 .mean_count = mean_count };
    return stk_planned_make(planned, &it->transform, seed, it->height, it->width, false, convert);
}

#endif
