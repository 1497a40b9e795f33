/* transform_kernel_cases.h - launches of every kernel of the transforms: the cases of
 * transform_cases.h, each step with what the steps before it made.
 */
#ifndef STK_TEST_TRANSFORM_KERNEL_CASES_H
#define STK_TEST_TRANSFORM_KERNEL_CASES_H

#include "kernels/transform/gpu/launch_blend.h"
#include "support/gpu/channel_kernel_cases.h"
#include "support/gpu/transform_cases.h"

enum { STEP_SAMPLES = 4, STEP_IMAGES = 7 };

/* One of a launch's arrays; those with a NULL pointer in the arguments are not there. */
struct step_array {
    size_t hole;
    const char *name;
    size_t bytes;
};

enum { STEP_ARRAYS_MAX = 12 };

/* batch: with which each launch's arguments begin. */
static inline size_t step_arrays(const char *kernel, const struct stk_launch_batch *batch,
                                 struct step_array *out)
{
    const size_t image_bytes = (size_t)batch->height * batch->width * batch->channels;
    const size_t made =
        (size_t)batch->framing.out_height * batch->framing.out_width * batch->channels;
    const size_t sides = batch->framing.out_height + batch->framing.out_width;
    const size_t element = strstr(kernel, "_u8_") != NULL    ? 1
                           : strstr(kernel, "_f32_") != NULL ? 4
                                                             : 2;
    const struct step_array all[] = {
        { HOLE(stk_launch_batch, ids), "ids", STEP_SAMPLES * sizeof(uint64_t) },
        { HOLE(stk_launch_batch, images), "images",
          (batch->gather ? STEP_IMAGES : STEP_SAMPLES) * image_bytes },
        { HOLE(stk_launch_batch, sources), "sources",
          STEP_SAMPLES * sizeof(struct stk_launch_source) },
        { HOLE(stk_launch_batch, rectangles), "rectangles",
          STEP_SAMPLES * sizeof(struct stk_rectangle) },
        { HOLE(stk_launch_batch, taps), "taps",
          STEP_SAMPLES * sides * (2 + (size_t)batch->taps_max) * sizeof(uint32_t) },
        { HOLE(stk_launch_batch, resized), "resized", STEP_SAMPLES * made },
    };
    const struct step_array retouch[] = {
        { HOLE(stk_retouch_launch, drawn), "drawn", STEP_SAMPLES * sizeof(struct stk_retouch) },
        { HOLE(stk_retouch_launch, means), "means", STEP_SAMPLES * sizeof(float) },
        { HOLE(stk_retouch_launch, cropped), "cropped", STEP_SAMPLES * made },
        { HOLE(stk_retouch_launch, turned), "turned", STEP_SAMPLES * made },
        { HOLE(stk_retouch_launch, lines), "lines", STEP_SAMPLES * made * sizeof(int16_t) },
    };
    const struct step_array crop[] = {
        { HOLE(stk_crop_launch, out), "out", STEP_SAMPLES * made * element },
        { HOLE(stk_crop_launch, places), "places", STEP_SAMPLES * sizeof(uint64_t) },
    };
    const bool crops = strncmp(kernel, "stk_crop_", strlen("stk_crop_")) == 0;
    const bool shapes = strcmp(kernel, "stk_rectangles") == 0 || strcmp(kernel, "stk_taps") == 0 ||
                        strcmp(kernel, "stk_resize") == 0;
    memcpy(out, all, sizeof(all));
    if (crops)
        memcpy(out + COUNT_OF(all), crop, sizeof(crop));
    else if (!shapes)
        memcpy(out + COUNT_OF(all), retouch, sizeof(retouch));
    return COUNT_OF(all) + (crops ? COUNT_OF(crop) : shapes ? 0 : COUNT_OF(retouch));
}

/* Returns true if a kernel writes that array. */
static inline bool step_writes(const char *kernel, const char *array, bool turned)
{
    static const char *const written[][2] = {
        { "stk_rectangles", "rectangles" }, { "stk_taps", "taps" },     { "stk_resize", "resized" },
        { "stk_retouch", "drawn" },         { "stk_rotate", "turned" }, { "stk_gray", "means" },
        { "stk_blur_along", "lines" }
    };
    for (size_t i = 0; i < COUNT_OF(written); i++)
        if (strcmp(written[i][0], kernel) == 0)
            return strcmp(written[i][1], array) == 0;
    if (strcmp(kernel, "stk_color") == 0 || strcmp(kernel, "stk_blur_across") == 0)
        return strcmp(array, turned ? "turned" : "cropped") == 0;
    return strcmp(array, "out") == 0;
}

/* The case of one step, before it has run. Two pointers may be the same array: it comes in once. */
static inline struct kernel_case *step_case(const struct stk_launch_steps *steps, uint32_t step)
{
    const struct stk_kernel *kernel = steps->kernels[step];
    const unsigned char *arguments = steps->arguments[step];
    struct kernel_case *c = kernel_case_begin(kernel->name, "", arguments, kernel->arguments_bytes);
    struct step_array arrays[STEP_ARRAYS_MAX];
    const size_t count = step_arrays(kernel->name, steps->arguments[step], arrays);
    void *seen[STEP_ARRAYS_MAX];
    for (size_t i = 0; i < count; i++) {
        int same = -1;
        memcpy(&seen[i], arguments + arrays[i].hole, sizeof(seen[i]));
        for (int k = 0; k < c->count; k++)
            if (c->buffers[k].alias < 0 &&
                memcmp(arguments + c->buffers[k].hole, &seen[i], sizeof(void *)) == 0)
                same = k;
        if (seen[i] == NULL)
            continue;
        if (same >= 0) {
            kernel_case_alias(c, arrays[i].hole, &c->buffers[same]);
            continue;
        }
        const bool writes =
            step_writes(kernel->name, arrays[i].name, steps->retouch.turned != NULL);
        const bool changes = strcmp(kernel->name, "stk_color") == 0;
        kernel_case_bytes(c, arrays[i].hole, arrays[i].name,
                          !writes   ? ROLE_IN
                          : changes ? ROLE_IN_OUT
                                    : ROLE_OUT,
                          seen[i], arrays[i].bytes);
    }
    return c;
}

/* All steps of a transform. sized: of images of several sizes, to rows in another order. */
static inline void each_step_case(kernel_case_fn *visit, const struct transform_case *it,
                                  uint32_t channels, stoker_dtype to, stoker_layout layout,
                                  bool sized)
{
    static const uint64_t ids[STEP_SAMPLES] = { 3, 0, 6, 1 };
    static struct stk_launch_steps steps;
    struct stk_planned made;
    struct stk_launch_source sources[STEP_SAMPLES];
    uint64_t places[STEP_SAMPLES];
    cr_assert_eq(transform_case_plan(&made, it, 5, channels, to, layout,
                                     to == STOKER_DTYPE_UINT8 ? 0 : channels),
                 STOKER_OK, "%s: %s", it->name, made.why);
    const size_t image_bytes = (size_t)it->height * it->width * channels;
    stk_launch_steps_init(&steps, &made.plan, it->height, it->width, STEP_SAMPLES);
    unsigned char *images = malloc(STEP_IMAGES * image_bytes);
    unsigned char *out = aligned_alloc(16, STEP_SAMPLES * made.convert.to_bytes / 16 * 16 + 16);
    unsigned char *scratch = aligned_alloc(256, (steps.scratch_bytes + 256) / 256 * 256);
    cr_assert(images != NULL && out != NULL && scratch != NULL);
    for (size_t i = 0; i < STEP_IMAGES * image_bytes; i++)
        images[i] = (unsigned char)(stk_mix64(i) >> 40);
    memset(scratch, 0xA5, steps.scratch_bytes);
    memset(out, 0, STEP_SAMPLES * made.convert.to_bytes);
    if (steps.scratch_bytes > 0)
        stk_launch_steps_place(&steps, scratch, STEP_SAMPLES);
    transform_case_sources(it, channels, sources, places, STEP_SAMPLES);
    stk_launch_steps_take(&steps, &(struct stk_launch_rows){ .images = images,
                                                             .gather = layout == STOKER_LAYOUT_NHWC,
                                                             .ids = ids,
                                                             .out = out,
                                                             .count = STEP_SAMPLES,
                                                             .epoch = 2,
                                                             .sources = sized ? sources : NULL,
                                                             .places = sized ? places : NULL });
    for (uint32_t i = 0; i < steps.count; i++) {
        struct kernel_case *c = step_case(&steps, i);
        kernel_case_label(c, "%s, %u channels", it->name, channels);
        run_kernel(steps.kernels[i], steps.arguments[i]);
        visit(c);
    }
    free(images);
    free(out);
    free(scratch);
}

static inline void each_transform_case(kernel_case_fn *visit)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16, STOKER_DTYPE_UINT8 };
    /* Each case in one type and layout with 1 and 3 channels, and in others with 2 and 4: together
     * every kernel. */
    for (uint32_t i = 0; i < TRANSFORM_CASES; i++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            if (channels % 2 == 1 || i % 4 == channels / 2)
                each_step_case(visit, &transform_cases[i], channels, types[(i + channels) % 4],
                               (i / 4 + channels / 2) % 2 == 0 ? STOKER_LAYOUT_NHWC
                                                               : STOKER_LAYOUT_NCHW,
                               false);
    for (uint32_t i = 0; i < TRANSFORM_CASES; i++)
        if (transform_case_resizes(&transform_cases[i]))
            each_step_case(visit, &transform_cases[i], 1 + i % 4, types[i % 4],
                           i % 2 == 0 ? STOKER_LAYOUT_NHWC : STOKER_LAYOUT_NCHW, true);
    for (uint32_t i = 0; i < COUNT_OF(untouched_cases); i++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            each_step_case(visit, &untouched_cases[i], channels, types[(i + channels) % 4],
                           channels > 2 ? STOKER_LAYOUT_NHWC : STOKER_LAYOUT_NCHW, false);
}

/* ---- keeping rows ---------------------------------------------------------------------------- */

static inline struct kernel_case *keep_case(uint32_t channels, uint32_t side)
{
    static const uint64_t ids[STEP_SAMPLES] = { 3, 0, 6, 1 };
    static const uint8_t fresh[STEP_SAMPLES] = { 1, 0, 1, 1 };
    const struct stk_keep_launch a = {
        .batch = { .count = STEP_SAMPLES, .height = side, .width = side + 1, .channels = channels }
    };
    const size_t row = (size_t)side * (side + 1) * channels;
    struct kernel_case *c = kernel_case_begin("stk_keep", "", &a, sizeof(a));
    kernel_case_label(c, "%u x %u x %u", side, side + 1, channels);
    kernel_case_bytes(c, HOLE(stk_keep_launch, batch.ids), "ids", ROLE_IN, ids, sizeof(ids));
    kernel_case_bytes(c, HOLE(stk_keep_launch, fresh), "fresh", ROLE_IN, fresh, sizeof(fresh));
    struct kernel_buffer *images = kernel_case_add(c, HOLE(stk_keep_launch, batch.images), "images",
                                                   NUMBER_BYTE, ROLE_IN, STEP_SAMPLES * row);
    for (size_t i = 0; i < images->count; i++)
        images->begin[i] = (unsigned char)stk_mix64(i);
    kernel_case_add(c, HOLE(stk_keep_launch, kept), "kept", NUMBER_BYTE, ROLE_OUT,
                    STEP_IMAGES * row);
    return c;
}

/* Fields of every length that the loops treat differently. */
static inline struct kernel_case *rows_case(void)
{
    static const uint64_t lengths[] = { 1, 7, 8, 24, 2048, 2049, 65537, 65544 };
    static const uint64_t ids[STEP_SAMPLES] = { 3, 0, 6, 1 };
    static const uint8_t fresh[STEP_SAMPLES] = { 1, 0, 1, 0 };
    struct stk_rows_launch a = { .batch = { .count = STEP_SAMPLES },
                                 .field_count = COUNT_OF(lengths) };
    for (size_t f = 0; f < COUNT_OF(lengths); f++)
        a.fields[f].row_bytes = lengths[f];
    struct kernel_case *c = kernel_case_begin("stk_rows", "", &a, sizeof(a));
    kernel_case_bytes(c, HOLE(stk_rows_launch, batch.ids), "ids", ROLE_IN, ids, sizeof(ids));
    kernel_case_bytes(c, HOLE(stk_rows_launch, fresh), "fresh", ROLE_IN, fresh, sizeof(fresh));
    for (size_t f = 0; f < COUNT_OF(lengths); f++) {
        const size_t at = HOLE(stk_rows_launch, fields) + f * sizeof(struct stk_rows_field);
        struct kernel_buffer *b[2];
        b[0] = kernel_case_add(c, at + HOLE(stk_rows_field, rows), "rows", NUMBER_BYTE, ROLE_IN_OUT,
                               STEP_SAMPLES * lengths[f]);
        b[1] = kernel_case_add(c, at + HOLE(stk_rows_field, kept), "kept", NUMBER_BYTE, ROLE_IN_OUT,
                               STEP_IMAGES * lengths[f]);
        for (size_t side = 0; side < 2; side++)
            for (size_t i = 0; i < b[side]->count; i++)
                b[side]->begin[i] = (unsigned char)(stk_mix64(i) >> (8 * side));
    }
    return c;
}

static inline void each_keep_case(kernel_case_fn *visit)
{
    static const uint32_t sides[] = { 1, 5, 16, 17 };
    for (uint32_t channels = 1; channels <= 4; channels++)
        for (size_t i = 0; i < COUNT_OF(sides); i++)
            visit(keep_case(channels, sides[i]));
    visit(rows_case());
}

/* ---- mixing ---------------------------------------------------------------------------------- */

static inline struct kernel_case *mixup_case(enum stk_mix_type type, uint32_t count,
                                             uint64_t elements)
{
    static const enum kernel_number numbers[] = { [STK_MIX_U8] = NUMBER_BYTE,
                                                  [STK_MIX_F16] = NUMBER_F16,
                                                  [STK_MIX_BF16] = NUMBER_BF16,
                                                  [STK_MIX_F32] = NUMBER_F32 };
    const struct stk_mixup_launch a = { .stride_bytes =
                                            elements * kernel_number_bytes(numbers[type]),
                                        .elements = elements,
                                        .count = count,
                                        .steps = 19661 };
    struct kernel_case *c = kernel_case_begin(stk_mixup_kernel_name(type), "", &a, sizeof(a));
    kernel_case_label(c, "%u rows of %d", count, (int)elements);
    struct kernel_buffer *rows = kernel_case_add(c, HOLE(stk_mixup_launch, rows), "rows",
                                                 numbers[type], ROLE_IN_OUT, count * elements);
    for (size_t i = 0; i < rows->made && type == STK_MIX_U8; i++)
        rows->begin[i] = (unsigned char)stk_mix64(i);
    return c;
}

/* Boxes of all but 19 units of `width`, which end three before the end of their lines. */
static inline struct kernel_case *cutmix_case(uint32_t unit, uint32_t count, uint32_t lines,
                                              uint64_t width)
{
    enum { HEIGHT = 9, PLANES = 2, BEFORE = 16, BEHIND = 3 };
    const uint64_t line = width * unit, plane = HEIGHT * line;
    const struct stk_cutmix_launch a = { .stride_bytes = PLANES * plane,
                                         .box = { .first_bytes = 2 * line + BEFORE * unit,
                                                  .run_bytes = line - (BEFORE + BEHIND) * unit,
                                                  .line_bytes = line,
                                                  .plane_bytes = plane,
                                                  .lines = lines,
                                                  .planes = PLANES },
                                         .count = count,
                                         .unit_bytes = unit };
    struct kernel_case *c = kernel_case_begin("stk_cutmix", "", &a, sizeof(a));
    kernel_case_label(c, "%u rows, %u lines of units of %u", count, lines, unit);
    struct kernel_buffer *rows = kernel_case_add(c, HOLE(stk_cutmix_launch, rows), "rows",
                                                 NUMBER_BYTE, ROLE_IN_OUT, count * a.stride_bytes);
    for (size_t i = 0; i < rows->made; i++)
        rows->begin[i] = (unsigned char)stk_mix64(i);
    return c;
}

static inline void each_mix_case(kernel_case_fn *visit)
{
    static const uint64_t elements[] = { 1, 7, 255, 256, 257, 600 };
    static const uint32_t counts[] = { 2, 8, 9, 10, 19 };
    for (int type = 0; type < STK_MIX_TYPES; type++)
        for (size_t i = 0; i < COUNT_OF(elements); i++)
            visit(mixup_case((enum stk_mix_type)type, counts[i % COUNT_OF(counts)], elements[i]));
    for (uint32_t unit = 1; unit <= 4; unit *= 2)
        for (uint32_t lines = 1; lines <= 6; lines += 5)
            visit(cutmix_case(unit, counts[unit % 5], lines, 24));
}

/* All launches of the transforms' kernels. */
static inline void each_picture_case(kernel_case_fn *visit)
{
    each_transform_case(visit);
    each_keep_case(visit);
    each_mix_case(visit);
}

#endif
