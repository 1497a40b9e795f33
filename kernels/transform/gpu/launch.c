/* launch.c - the table of the transform kernels, and their grids. */
#include "kernels/transform/gpu/launch.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/float16.h"

static inline void stk_store_f16(uint16_t *at, float value)
{
    *at = float16_of_float(value);
}

static inline void stk_store_bf16(uint16_t *at, float value)
{
    *at = bfloat16_of_float(value);
}

static inline uint32_t stk_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Stores the first `bytes` of the words. */
static inline void stk_store_chunk(uint8_t *at, const uint32_t *words, uint32_t bytes)
{
    memcpy(at, words, bytes);
}

#include "kernels/transform/gpu/launch_blend.h"
#include "kernels/transform/gpu/launch_crop_body.h"

/* ---- grids ----------------------------------------------------------------------- */

static uint32_t pixels_of(const struct stk_launch_batch *batch)
{
    return batch->framing.out_height * batch->framing.out_width;
}

static uint32_t stored_pixels_of(const struct stk_launch_batch *batch)
{
    return batch->height * batch->width;
}

static uint32_t coordinates_of(const struct stk_launch_batch *batch)
{
    return batch->framing.out_height + batch->framing.out_width;
}

/* Blocks of one sample. */
static uint32_t row_blocks_of(const struct stk_rows_launch *launch)
{
    uint64_t longest = 1;
    for (uint32_t i = 0; i < launch->field_count; i++)
        if (launch->fields[i].row_bytes > longest)
            longest = launch->fields[i].row_bytes;
    const uint64_t pieces = (longest + STK_ROWS_PIECE_BYTES - 1) / STK_ROWS_PIECE_BYTES;
    return launch->field_count * (uint32_t)pieces;
}

/* X(name) for every kernel with one thread a pixel of a retouched image. */
#define RETOUCH_KERNELS(X)                                                                         \
    X(stk_rotate)                                                                                  \
    X(stk_color)                                                                                   \
    X(stk_blur_along)                                                                              \
    X(stk_blur_across)

static struct stk_launch_grid grid_for(const struct stk_launch_batch *batch, uint32_t threads)
{
    return (struct stk_launch_grid){
        .x = (threads + STK_LAUNCH_THREADS - 1) / STK_LAUNCH_THREADS,
        .y = batch->count < STK_LAUNCH_SAMPLES_MAX ? batch->count : STK_LAUNCH_SAMPLES_MAX,
    };
}

/* Every struct begins with the batch. */
static struct stk_launch_grid grid_of_coordinates(const void *arguments)
{
    return grid_for(arguments, coordinates_of(arguments));
}

static struct stk_launch_grid grid_of_pixels(const void *arguments)
{
    return grid_for(arguments, pixels_of(arguments));
}

static struct stk_launch_grid grid_of_stored_pixels(const void *arguments)
{
    return grid_for(arguments, stored_pixels_of(arguments));
}

static struct stk_launch_grid grid_of_rows(const void *arguments)
{
    return grid_for(arguments, row_blocks_of(arguments) * STK_LAUNCH_THREADS);
}

static struct stk_launch_grid grid_of_samples(const void *arguments)
{
    const struct stk_launch_batch *batch = arguments;
    return (struct stk_launch_grid){
        .x = (batch->count + STK_LAUNCH_THREADS - 1) / STK_LAUNCH_THREADS, .y = 1
    };
}

static struct stk_launch_grid grid_of_rectangles(const void *arguments)
{
    const struct stk_launch_batch *batch = arguments;
    return (struct stk_launch_grid){
        .x = (batch->count + STK_RECTANGLES_SAMPLES - 1) / STK_RECTANGLES_SAMPLES, .y = 1
    };
}

/* A block adds up a sample. */
static struct stk_launch_grid grid_of_blocks(const void *arguments)
{
    return grid_for(arguments, 1);
}

static struct stk_launch_grid grid_of_crop(const struct stk_crop_launch *launch, int type,
                                           int planes)
{
    const uint32_t packs = stk_crop_packs(launch, stk_crop_pack(launch, type, planes));
    const uint32_t shift = stk_crop_samples_shift(packs), threads = STK_LAUNCH_THREADS >> shift;
    const uint32_t blocks = (packs + threads - 1) / threads;
    return (struct stk_launch_grid){
        .x = (launch->batch.count + (1U << shift) - 1) >> shift,
        .y = blocks < STK_LAUNCH_SAMPLES_MAX ? blocks : STK_LAUNCH_SAMPLES_MAX,
    };
}

/* X(name, type, planes) for every crop kernel, in the order of stk_kernel_crop(). */
#define CROP_KERNELS(X)                                                                            \
    X(stk_crop_f32_nhwc, STK_STORE_F32, 0)                                                         \
    X(stk_crop_f32_nchw, STK_STORE_F32, 1)                                                         \
    X(stk_crop_f16_nhwc, STK_STORE_F16, 0)                                                         \
    X(stk_crop_f16_nchw, STK_STORE_F16, 1)                                                         \
    X(stk_crop_bf16_nhwc, STK_STORE_BF16, 0)                                                       \
    X(stk_crop_bf16_nchw, STK_STORE_BF16, 1)                                                       \
    X(stk_crop_u8_nhwc, STK_STORE_U8, 0)                                                           \
    X(stk_crop_u8_nchw, STK_STORE_U8, 1)

#define DEFINE_GRID(name, type, planes)                                                            \
    static struct stk_launch_grid name##_grid(const void *arguments)                               \
    {                                                                                              \
        return grid_of_crop(arguments, type, planes);                                              \
    }
CROP_KERNELS(DEFINE_GRID)

static_assert(offsetof(struct stk_retouch_launch, batch) == 0, "the batch comes first");
static_assert(offsetof(struct stk_keep_launch, batch) == 0, "the batch comes first");
static_assert(offsetof(struct stk_rows_launch, batch) == 0, "the batch comes first");
static_assert(offsetof(struct stk_rectangles_launch, batch) == 0, "the batch comes first");
static_assert(offsetof(struct stk_taps_launch, batch) == 0, "the batch comes first");
static_assert(offsetof(struct stk_resize_launch, batch) == 0, "the batch comes first");
static_assert(offsetof(struct stk_crop_launch, batch) == 0, "the batch comes first");

const struct stk_kernel stk_kernels[] = {
#define ROW_OF_TABLE(name, type, planes) { #name, sizeof(struct stk_crop_launch), name##_grid },
    CROP_KERNELS(ROW_OF_TABLE)
#undef ROW_OF_TABLE
        { "stk_rectangles", sizeof(struct stk_rectangles_launch), grid_of_rectangles },
    { "stk_taps", sizeof(struct stk_taps_launch), grid_of_coordinates },
    { "stk_resize", sizeof(struct stk_resize_launch), grid_of_pixels },
    { "stk_keep", sizeof(struct stk_keep_launch), grid_of_stored_pixels },
    { "stk_rows", sizeof(struct stk_rows_launch), grid_of_rows },
    { "stk_retouch", sizeof(struct stk_retouch_launch), grid_of_samples },
    { "stk_gray", sizeof(struct stk_retouch_launch), grid_of_blocks },
#define ROW_OF_TABLE(name) { #name, sizeof(struct stk_retouch_launch), grid_of_pixels },
    RETOUCH_KERNELS(ROW_OF_TABLE)
#undef ROW_OF_TABLE
#define ROW_OF_TABLE(name, type) { #name, sizeof(struct stk_mixup_launch), stk_mixup_grid },
        STK_MIXUP_KERNELS(ROW_OF_TABLE)
#undef ROW_OF_TABLE
            { "stk_cutmix", sizeof(struct stk_cutmix_launch), stk_cutmix_grid },
    { .name = NULL },
};

const struct stk_kernel *stk_kernel_named(const char *name)
{
    for (const struct stk_kernel *kernel = stk_kernels; kernel->name != NULL; kernel++)
        if (strcmp(kernel->name, name) == 0)
            return kernel;
    return NULL;
}

const struct stk_kernel *stk_kernel_crop(const struct stk_transform_plan *plan)
{
    const struct stk_convert_plan *convert = plan->convert;
    const enum stk_store_type type = convert->copies                       ? STK_STORE_U8
                                     : convert->to == STOKER_DTYPE_FLOAT32 ? STK_STORE_F32
                                     : convert->to == STOKER_DTYPE_FLOAT16 ? STK_STORE_F16
                                                                           : STK_STORE_BF16;
    return &stk_kernels[2 * (unsigned)type + (convert->layout == STOKER_LAYOUT_NCHW)];
}

/* Rounded up: exact for all pixels below 2^31 (Granlund and Montgomery, "Division by invariant
 * integers using multiplication", PLDI 1994). */
static void set_width_inverse(struct stk_crop_launch *launch)
{
    const uint32_t width = launch->batch.framing.out_width;
    launch->width_shift = 0;
    while (UINT64_C(1) << launch->width_shift < width)
        launch->width_shift++;
    const uint64_t power = UINT64_C(1) << (31 + launch->width_shift);
    launch->width_inverse = (uint32_t)((power + width - 1) / width);
}

void stk_launch_take_as_lines(struct stk_crop_launch *launch)
{
    struct stk_launch_batch *const batch = &launch->batch;
    struct stk_framing *const framing = &batch->framing;
    if (framing->resizing != STK_RESIZE_NONE || framing->cropping != STK_CROP_NONE ||
        framing->flip != 0 || framing->cutout != 0)
        return;
    batch->width *= batch->height;
    batch->height = 1;
    framing->out_width = batch->width;
    framing->out_height = 1;
    set_width_inverse(launch);
}

void stk_launch_of(struct stk_crop_launch *launch, const struct stk_transform_plan *plan,
                   uint32_t height, uint32_t width)
{
    const struct stk_framing *framing = &plan->framing;
    *launch = (struct stk_crop_launch){ .batch = { .framing = *framing,
                                                   .height = height,
                                                   .width = width,
                                                   .channels = plan->channels } };
    if (framing->resizing != STK_RESIZE_NONE) {
        const uint32_t down = stk_taps_max(height, framing->resize_height);
        const uint32_t across = stk_taps_max(width, framing->resize_width);
        launch->batch.taps_max = down > across ? down : across;
    }
    for (uint32_t channel = 0; channel < plan->channels; channel++) {
        launch->factor[channel] = plan->factor[channel];
        launch->bias[channel] = plan->bias[channel];
        launch->fill[channel] = plan->fill[channel];
    }
    set_width_inverse(launch);
}

bool stk_launch_resizes(const struct stk_launch_batch *batch)
{
    return batch->framing.resizing != STK_RESIZE_NONE;
}
