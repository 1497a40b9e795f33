/* count_instructions.c VARIANT CASE ROUNDS - does a case ROUNDS times, for count_instructions.sh to
 * count its instructions.
 *
 * Without arguments: prints the variants that this processor runs, then the cases with the elements
 * of a round.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convert/variants.h"
#include "kernels/transform/blend/blend.h"
#include "loader/base/crc32c/crc32c.h"
#include "support/gpu/planned_transform.h"

enum { SIDE = 96, PHOTO_BYTES = SIDE * SIDE * 3, DIGIT_BYTES = 784, ROOM = 4 * PHOTO_BYTES };

static _Alignas(64) uint8_t in[ROOM], out[ROOM];

typedef void run_fn(const char *variant, int rounds);

static void fail(const char *what)
{
    fprintf(stderr, "count_instructions: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- conversions ---------------------------------------------------------------- */

static void convert(const char *name, int rounds, struct stk_convert_options options)
{
    static struct stk_convert_plan plan;
    const struct stk_convert_variant *variant = stk_convert_variants;
    const void *const row = in;
    if (stk_convert_plan_init(&plan, &options) != 0)
        fail("no such conversion");
    while (variant->name != NULL && strcmp(variant->name, name) != 0)
        variant++;
    if (variant->name == NULL)
        fail("no such variant of a conversion");
    stk_convert_rows_fn *const rows = variant->choose(&plan);
    for (int i = 0; i < rounds; i++)
        rows(&plan, &row, 1, 0, out);
}

static void digit(const char *variant, int rounds, stoker_dtype to)
{
    convert(variant, rounds,
            (struct stk_convert_options){ .from = STOKER_DTYPE_UINT8,
                                          .to = to,
                                          .layout = STOKER_LAYOUT_NHWC,
                                          .elements = DIGIT_BYTES,
                                          .channels = 1,
                                          .scale = 1.0F / 255.0F });
}

static void digit_f32(const char *variant, int rounds)
{
    digit(variant, rounds, STOKER_DTYPE_FLOAT32);
}

static void digit_f16(const char *variant, int rounds)
{
    digit(variant, rounds, STOKER_DTYPE_FLOAT16);
}

static void digit_bf16(const char *variant, int rounds)
{
    digit(variant, rounds, STOKER_DTYPE_BFLOAT16);
}

static void digit_gathered(const char *variant, int rounds)
{
    digit(variant, rounds, STOKER_DTYPE_UINT8);
}

static void photo_planes(const char *variant, int rounds)
{
    static const float mean[3] = { 0.5F, 0.25F, 0.125F }, std[3] = { 0.5F, 1.0F, 2.0F };
    convert(variant, rounds,
            (struct stk_convert_options){ .from = STOKER_DTYPE_UINT8,
                                          .to = STOKER_DTYPE_FLOAT32,
                                          .layout = STOKER_LAYOUT_NCHW,
                                          .elements = PHOTO_BYTES,
                                          .channels = 3,
                                          .scale = 1.0F / 255.0F,
                                          .mean = mean,
                                          .std = std,
                                          .mean_count = 3 });
}

static void half_to_float(const char *variant, int rounds)
{
    convert(variant, rounds,
            (struct stk_convert_options){ .from = STOKER_DTYPE_FLOAT16,
                                          .to = STOKER_DTYPE_FLOAT32,
                                          .layout = STOKER_LAYOUT_NHWC,
                                          .elements = PHOTO_BYTES,
                                          .channels = 3,
                                          .scale = 1.0F });
}

/* ---- transforms ----------------------------------------------------------------- */

static void transform(const char *name, int rounds, const stoker_transform *options, uint32_t side,
                      stoker_dtype to)
{
    static struct stk_planned planned;
    static _Alignas(64) uint8_t scratch[1 << 18];
    const struct stk_transform_variant *variant = stk_transform_variants;
    const struct stk_image image = { .pixels = in, .height = side, .width = side };
    const struct stk_convert_options convert = { .to = to,
                                                 .layout = to == STOKER_DTYPE_UINT8
                                                               ? STOKER_LAYOUT_NHWC
                                                               : STOKER_LAYOUT_NCHW,
                                                 .channels = 3 };
    if (stk_planned_make(&planned, options, 1, side, side, false, convert) != 0)
        fail(planned.why);
    while (variant->name != NULL && strcmp(variant->name, name) != 0)
        variant++;
    if (variant->name == NULL)
        fail("no such variant of a transform");
    stk_transform_plan_choose(&planned.plan, variant);
    if (stk_transform_scratch_bytes(&planned.plan) > sizeof(scratch))
        fail("the scratch is too small");
    for (int i = 0; i < rounds; i++)
        stk_transform_row(&planned.plan, scratch, &image, 0, 1, NULL, out);
}

/* As CIFAR's: with padding, perhaps flipped. */
static void crop_narrow(const char *variant, int rounds)
{
    stoker_transform options = STOKER_TRANSFORM_INIT;
    options.random_crop = (stoker_size){ 32, 32 };
    options.pad = 4;
    options.flip = true;
    transform(variant, rounds, &options, 32, STOKER_DTYPE_FLOAT32);
}

static void crop_wide(const char *variant, int rounds, stoker_dtype to)
{
    stoker_transform options = STOKER_TRANSFORM_INIT;
    options.random_crop = (stoker_size){ 80, 80 };
    transform(variant, rounds, &options, SIDE, to);
}

static void crop_f32(const char *variant, int rounds)
{
    crop_wide(variant, rounds, STOKER_DTYPE_FLOAT32);
}

static void crop_f16(const char *variant, int rounds)
{
    crop_wide(variant, rounds, STOKER_DTYPE_FLOAT16);
}

static void crop_bytes(const char *variant, int rounds)
{
    crop_wide(variant, rounds, STOKER_DTYPE_UINT8);
}

static void resized(const char *variant, int rounds)
{
    stoker_transform options = STOKER_TRANSFORM_INIT;
    options.resize = (stoker_size){ 60, 60 };
    transform(variant, rounds, &options, SIDE, STOKER_DTYPE_UINT8);
}

/* ---- rows mixed, sums ----------------------------------------------------------- */

static void mixed_half(const char *name, int rounds)
{
    const struct stk_mix_variant *variant = stk_mix_variants;
    while (variant->name != NULL && strcmp(variant->name, name) != 0)
        variant++;
    if (variant->name == NULL)
        fail("no such variant of mixup");
    for (int i = 0; i < rounds; i++)
        variant->blend[STK_MIX_F16](out, in, PHOTO_BYTES, STK_MIX_STEPS / 4);
}

static void sum(const char *name, int rounds)
{
    stk_crc32c_fn *const sums =
        strcmp(name, "baseline") == 0 ? stk_crc32c_plain() : stk_crc32c_fastest();
    uint32_t crc = 0;
    for (int i = 0; i < rounds; i++)
        crc = sums(crc, in, PHOTO_BYTES);
    memcpy(out, &crc, sizeof(crc));
}

static const struct {
    const char *name;
    run_fn *run;
    unsigned elements; /* elements of the output; bytes that a sum reads */
} cases[] = {
    { "digit_gathered", digit_gathered, DIGIT_BYTES },
    { "digit_f32", digit_f32, DIGIT_BYTES },
    { "digit_f16", digit_f16, DIGIT_BYTES },
    { "digit_bf16", digit_bf16, DIGIT_BYTES },
    { "photo_planes_f32", photo_planes, PHOTO_BYTES },
    { "f16_to_f32", half_to_float, PHOTO_BYTES },
    { "crop_flip_32_f32", crop_narrow, 32 * 32 * 3 },
    { "crop_80_f32", crop_f32, 80 * 80 * 3 },
    { "crop_80_f16", crop_f16, 80 * 80 * 3 },
    { "crop_80_u8", crop_bytes, 80 * 80 * 3 },
    { "resize_96_to_60", resized, 60 * 60 * 3 },
    { "mixup_f16", mixed_half, PHOTO_BYTES },
    { "crc32c", sum, PHOTO_BYTES },
};

int main(int count, char **arguments)
{
    enum { CASES = sizeof(cases) / sizeof(cases[0]) };
    if (count != 4) {
        for (const struct stk_convert_variant *v = stk_convert_variants; v->name != NULL; v++)
            if (v->runs_here())
                printf("variant %s\n", v->name);
        for (int i = 0; i < CASES; i++)
            printf("case %s %u\n", cases[i].name, cases[i].elements);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 37 % 251 % 124); /* no NaN of any type */
    for (int i = 0; i < CASES; i++)
        if (strcmp(cases[i].name, arguments[2]) == 0) {
            cases[i].run(arguments[1], atoi(arguments[3]));
            return EXIT_SUCCESS;
        }
    fail("no such case");
}
