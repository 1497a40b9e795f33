/* transform_cases.h - the transforms that tests of host and device run with 1 to 4 channels, every
 * type and both layouts.
 */
#ifndef TESTS_TRANSFORM_CASES_H
#define TESTS_TRANSFORM_CASES_H

#include "kernels/transform/gpu/launch.h"
#include "planned_transform.h"
#include "support/gpu/transform_ranges.h"

struct transform_case {
    const char *name;
    uint32_t height, width; /* the image's */
    stoker_transform transform;
};

/* What only the kernels do: conversion alone. */
static const struct transform_case untouched_cases[] = {
    { "as it is", 28, 28, { .flip = false } },
    { "as it is, of odd sizes", 5, 13, { .flip = false } },
};

#define CASE(name, height, width, ...)                                                             \
    {                                                                                              \
        name, height, width,                                                                       \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
static const struct transform_case transform_cases[] = {
    CASE("flip of a pixel", 1, 1, .flip = true),
    CASE("flip", 5, 7, .flip = true),
    CASE("flip of wide lines", 3, 33, .flip = true),
    CASE("flip of very wide lines", 2, 2500, .flip = true),
    CASE("cutout", 9, 11, .cutout = 4, .fill = { 7, 200, 0, 255 }),
    CASE("cutout of all", 4, 4, .cutout = 64, .fill = { 1, 2, 3, 4 }),
    CASE("cutout of a pixel", 17, 16, .cutout = 1, .fill = { 9, 8, 7, 6 }),
    CASE("crop of a digit", 28, 28, .random_crop = { 28, 28 }, .pad = 2, .flip = true),
    CASE("crop as CIFAR's", 32, 32, .random_crop = { 32, 32 }, .pad = 4, .flip = true, .cutout = 8,
         .fill = { 125, 123, 114 }),
    CASE("crop with a wide pad", 6, 5, .random_crop = { 20, 20 }, .pad = 9, .fill = { 5, 6, 7, 8 }),
    CASE("crop that may miss the image", 3, 3, .random_crop = { 4, 4 }, .pad = 6, .flip = true,
         .fill = { 50, 60, 70, 80 }),
    CASE("crop of a few blocks that may miss the image", 9, 10, .random_crop = { 12, 13 },
         .pad = 14, .flip = true, .fill = { 60, 61, 62, 63 }),
    CASE("crop of a few blocks with a wide cut", 40, 64, .random_crop = { 40, 61 }, .pad = 5,
         .flip = true, .cutout = 20, .fill = { 31, 32, 33, 34 }),
    CASE("crop of a few blocks that overlap, far beside the image", 26, 27,
         .random_crop = { 26, 27 }, .pad = 8, .fill = { 71, 72, 73, 74 }),
    CASE("crop of two blocks", 20, 18, .random_crop = { 18, 16 }, .pad = 8, .flip = true),
    CASE("crop of wide lines", 20, 75, .random_crop = { 22, 80 }, .pad = 11, .flip = true,
         .cutout = 12, .fill = { 41, 42, 43, 44 }),
    CASE("crop of wide lines that may miss the image", 9, 70, .random_crop = { 12, 81 }, .pad = 74,
         .flip = true, .fill = { 51, 52, 53, 54 }),
    CASE("small crop of a large image", 50, 41, .random_crop = { 17, 19 }, .flip = true),
    CASE("one pixel of an image", 13, 12, .random_crop = { 1, 1 }),
    CASE("middle", 15, 22, .center_crop = { 8, 9 }),
    CASE("middle of what is as large", 8, 9, .center_crop = { 8, 9 }),
    CASE("down", 37, 53, .resize = { 16, 23 }),
    CASE("down a little", 64, 64, .resize = { 56, 56 }, .flip = true),
    CASE("down much", 200, 150, .resize = { 5, 3 }),
    CASE("to a pixel", 20, 30, .resize = { 1, 1 }),
    CASE("up", 7, 5, .resize = { 31, 40 }),
    CASE("up from a pixel", 1, 1, .resize = { 6, 7 }),
    CASE("up from a line", 1, 9, .resize = { 5, 17 }),
    CASE("up from a column", 9, 1, .resize = { 17, 4 }),
    CASE("down and up", 40, 6, .resize = { 10, 33 }),
    CASE("narrow", 30, 2, .resize = { 11, 2 }),
    CASE("the same height", 24, 31, .resize = { 24, 15 }),
    CASE("the same size", 12, 13, .resize = { 12, 13 }, .flip = true),
    CASE("resized, then cropped", 48, 64, .resize = { 24, 30 }, .random_crop = { 20, 21 },
         .flip = true, .cutout = 5),
    CASE("resized, padded, cropped", 48, 40, .resize = { 16, 16 }, .random_crop = { 16, 16 },
         .pad = 3, .fill = { 100, 110, 120, 130 }),
    CASE("shorter side of a tall one", 90, 50, .resize_shorter = 32, .center_crop = { 28, 28 }),
    CASE("shorter side of a wide one", 33, 97, .resize_shorter = 20, .random_crop = { 20, 24 }),
    CASE("shorter side up", 11, 19, .resize_shorter = 24, .center_crop = { 24, 24 }, .flip = true),
    CASE("a rectangle", 57, 71, .random_resized_crop = { 24, 24 }, STK_USUAL_AREA, STK_USUAL_RATIO,
         .flip = true),
    CASE("a small rectangle", 64, 48, .random_resized_crop = { 20, 28 }, STK_USUAL_RATIO,
         .area_min = 0.01F, .area_max = 0.05F),
    CASE("a rectangle that never fits", 4, 90, .random_resized_crop = { 12, 12 }, STK_USUAL_RATIO,
         .area_min = 1.0F, .area_max = 1.0F),
    CASE("a tall rectangle of a wide image", 16, 64, .random_resized_crop = { 9, 17 },
         STK_USUAL_AREA, .ratio_min = 0.02F, .ratio_max = 0.1F, .cutout = 3),
    CASE("a rectangle of a pixel", 1, 1, .random_resized_crop = { 8, 8 }, STK_USUAL_AREA,
         STK_USUAL_RATIO),
    CASE("brightness of a pixel", 1, 1, .brightness = 0.5F),
    CASE("contrast", 9, 14, .contrast = 0.8F),
    CASE("saturation", 8, 9, .saturation = 3.0F),
    CASE("hue", 11, 13, .hue = 0.5F),
    CASE("all colors", 23, 17, .brightness = 0.4F, .contrast = 0.4F, .saturation = 0.4F,
         .hue = 0.1F),
    CASE("strong colors of one block of pixels", 8, 8, .brightness = 9.0F, .contrast = 5.0F,
         .hue = 0.3F),
    CASE("rotation of a pixel", 1, 1, .rotate_min = -30, .rotate_max = 30, .fill = { 1, 2, 3, 4 }),
    CASE("rotation", 21, 34, .rotate_min = -20, .rotate_max = 20, .fill = { 9, 99, 199, 255 }),
    CASE("rotation by a quarter", 12, 12, .rotate_min = 90, .rotate_max = 90, .flip = true),
    CASE("rotation all around", 2, 40, .rotate_min = -360, .rotate_max = 360,
         .fill = { 77, 7, 70, 1 }),
    CASE("blur of few pixels", 2, 2, .blur = 3, STK_USUAL_SIGMA),
    CASE("blur", 25, 37, .blur = 9, .sigma_min = 0.5F, .sigma_max = 3),
    CASE("blur of the largest kernel", 32, 33, .blur = 63, .sigma_min = 64, .sigma_max = 64),
    CASE("hardly any blur", 7, 19, .blur = 5, .sigma_min = 0.01F, .sigma_max = 0.01F),
    CASE("crop beside the image, flip, rotation, colors, blur, cutout", 30, 28,
         .random_crop = { 26, 31 }, .pad = 9, .flip = true, .rotate_min = -45, .rotate_max = 5,
         .brightness = 0.3F, .contrast = 0.3F, .saturation = 1.5F, .hue = 0.2F, .blur = 7,
         STK_USUAL_SIGMA, .cutout = 9, .fill = { 21, 122, 223, 44 }),
    CASE("a rectangle, rotation, colors, blur", 57, 71, .random_resized_crop = { 24, 20 },
         STK_USUAL_AREA, STK_USUAL_RATIO, .flip = true, .rotate_min = 5, .rotate_max = 6,
         .contrast = 0.9F, .hue = 0.05F, .blur = 3, STK_USUAL_SIGMA),
    CASE("resized, cropped, colors", 48, 64, .resize = { 24, 30 }, .random_crop = { 20, 21 },
         .brightness = 0.1F, .saturation = 0.7F, .cutout = 5),
};
#undef CASE

enum { TRANSFORM_CASES = sizeof(transform_cases) / sizeof(transform_cases[0]) };

/* Returns true if images of other sizes can be transformed, too. */
static inline bool transform_case_resizes(const struct transform_case *it)
{
    const stoker_transform *t = &it->transform;
    const stoker_size crop = t->center_crop.height > 0 ? t->center_crop : t->random_crop;
    return t->resize.height > 0 || t->random_resized_crop.height > 0 ||
           (crop.height > 0 && crop.height <= t->resize_shorter && crop.width <= t->resize_shorter);
}

/* Images of up to the case's size, where ones of that size would lie, to rows in reverse order. */
static inline void transform_case_sources(const struct transform_case *it, uint32_t channels,
                                          struct stk_launch_source *sources, uint64_t *places,
                                          uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t height = it->height - it->height * k / 9;
        sources[k] = (struct stk_launch_source){
            .at = (uint64_t)k * it->height * it->width * channels,
            .height = height,
            .width = it->width - it->width * (k % 3) / 4,
        };
        places[k] = count - 1 - k;
    }
}

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
