/* framing.c - checks the options of a transform and computes the output's size. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "kernels/transform/transform.h"

#define RATIO_MAX  64.0F
#define FACTOR_MAX 100.0F
#define HUE_MAX    0.5F
#define ANGLE_MAX  360.0F
#define SIGMA_MIN  0.01F
#define SIGMA_MAX  64.0F

static const stoker_transform defaults = STOKER_TRANSFORM_INIT;

/* Writes the broken rule to why. */
__attribute__((format(printf, 2, 3))) static int refuse_framing(char *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, STK_TRANSFORM_WHY_BYTES, format, arguments);
    va_end(arguments);
    return STOKER_EINVAL;
}

static bool is_set(stoker_size size)
{
    return size.height != 0 || size.width != 0;
}

bool stk_transform_resizes(const stoker_transform *transform)
{
    return is_set(transform->resize) || transform->resize_shorter != 0 ||
           is_set(transform->random_resized_crop);
}

static bool crops(const stoker_transform *transform)
{
    return is_set(transform->center_crop) || is_set(transform->random_crop);
}

static bool rotates(const stoker_transform *transform)
{
    return transform->rotate_min != 0.0F || transform->rotate_max != 0.0F;
}

static bool retouches(const stoker_transform *transform)
{
    return rotates(transform) || transform->brightness != 0.0F || transform->contrast != 0.0F ||
           transform->saturation != 0.0F || transform->hue != 0.0F || transform->blur != 0;
}

bool stk_transform_wanted(const stoker_transform *transform)
{
    return stk_transform_resizes(transform) || crops(transform) || transform->flip ||
           transform->cutout != 0 || retouches(transform);
}

/* A range that no step uses must be its default, or 0 in a struct that was not begun with
 * STOKER_TRANSFORM_INIT. */
static bool differs(float low, float high, float low_default, float high_default)
{
    return (low != 0.0F || high != 0.0F) && (low != low_default || high != high_default);
}

static bool has_area_or_ratio(const stoker_transform *transform)
{
    return differs(transform->area_min, transform->area_max, defaults.area_min,
                   defaults.area_max) ||
           differs(transform->ratio_min, transform->ratio_max, defaults.ratio_min,
                   defaults.ratio_max);
}

static bool has_sigma(const stoker_transform *transform)
{
    return differs(transform->sigma_min, transform->sigma_max, defaults.sigma_min,
                   defaults.sigma_max);
}

bool stk_transform_has_ranges(const stoker_transform *transform)
{
    return has_area_or_ratio(transform) || has_sigma(transform);
}

static int check_size(const char *name, stoker_size size, char *why)
{
    const bool fits = size.height >= 1 && size.height <= STOKER_TRANSFORM_SIDE_MAX &&
                      size.width >= 1 && size.width <= STOKER_TRANSFORM_SIDE_MAX;
    if (fits || !is_set(size))
        return STOKER_OK;
    return refuse_framing(why, "%s %" PRIu32 " x %" PRIu32 ": each side is 1..%d", name,
                          size.height, size.width, STOKER_TRANSFORM_SIDE_MAX);
}

static int check_number(const char *name, uint32_t number, char *why)
{
    if (number <= STOKER_TRANSFORM_SIDE_MAX)
        return STOKER_OK;
    return refuse_framing(why, "%s %" PRIu32 " is not in 0..%d", name, number,
                          STOKER_TRANSFORM_SIDE_MAX);
}

static int check_values(const stoker_transform *transform, char *why)
{
    int rc = check_size("resize", transform->resize, why);
    if (rc == STOKER_OK)
        rc = check_size("random_resized_crop", transform->random_resized_crop, why);
    if (rc == STOKER_OK)
        rc = check_size("center_crop", transform->center_crop, why);
    if (rc == STOKER_OK)
        rc = check_size("random_crop", transform->random_crop, why);
    if (rc == STOKER_OK)
        rc = check_number("resize_shorter", transform->resize_shorter, why);
    if (rc == STOKER_OK)
        rc = check_number("pad", transform->pad, why);
    if (rc == STOKER_OK)
        rc = check_number("cutout", transform->cutout, why);
    return rc;
}

/* Checks which options go together. */
static int check_together(const stoker_transform *transform, char *why)
{
    const int resizings = is_set(transform->resize) + (transform->resize_shorter != 0) +
                          is_set(transform->random_resized_crop);
    if (resizings > 1)
        return refuse_framing(
            why, "resize, resize_shorter and random_resized_crop: at most one of them");
    if (is_set(transform->center_crop) && is_set(transform->random_crop))
        return refuse_framing(why, "center_crop and random_crop: at most one of them");
    if (transform->decode_scale != STOKER_DECODE_SCALE_EXACT &&
        transform->decode_scale != STOKER_DECODE_SCALE_FAST)
        return refuse_framing(why, "decode_scale %d is none of the enumerators",
                              (int)transform->decode_scale);
    if (transform->decode_scale != STOKER_DECODE_SCALE_EXACT && resizings == 0)
        return refuse_framing(why, "decode_scale is for images that are resized");
    if (transform->resize_shorter != 0 && !crops(transform))
        return refuse_framing(why,
                              "resize_shorter leaves images of differing size: a crop must follow");
    if (transform->pad != 0 && !is_set(transform->random_crop))
        return refuse_framing(why, "pad is for random_crop");
    if (has_area_or_ratio(transform) && !is_set(transform->random_resized_crop))
        return refuse_framing(why, "area and ratio are for random_resized_crop");
    return STOKER_OK;
}

static int take_ranges(struct stk_framing *framing, const stoker_transform *transform, char *why)
{
    const stoker_transform *from = is_set(transform->random_resized_crop) ? transform : &defaults;
    const double area[2] = { (double)from->area_min, (double)from->area_max };
    const double ratio[2] = { (double)from->ratio_min, (double)from->ratio_max };
    if (!(area[0] > 0.0 && area[0] <= area[1] && area[1] <= 1.0))
        return refuse_framing(why, "area_min %g, area_max %g: not 0 < min <= max <= 1", area[0],
                              area[1]);
    if (!(ratio[0] >= 1.0 / (double)RATIO_MAX && ratio[0] <= ratio[1] &&
          ratio[1] <= (double)RATIO_MAX))
        return refuse_framing(why, "ratio_min %g, ratio_max %g: not 1/64 <= min <= max <= 64",
                              ratio[0], ratio[1]);
    framing->area_min = area[0];
    framing->area_max = area[1];
    /* Rounded to float: libraries differ in the last bit of a double's logarithm. */
    framing->ratio_log_min = (double)(float)log(ratio[0]);
    framing->ratio_log_max = (double)(float)log(ratio[1]);
    framing->ratio_least = stk_frame_exp(framing->ratio_log_min);
    framing->ratio_most = stk_frame_exp(framing->ratio_log_max);
    return STOKER_OK;
}

static void take_resizing(struct stk_framing *framing, const stoker_transform *transform)
{
    framing->resizing = STK_RESIZE_NONE;
    stoker_size size = { 0, 0 };
    if (is_set(transform->resize)) {
        framing->resizing = STK_RESIZE_EXACT;
        size = transform->resize;
    } else if (transform->resize_shorter != 0) {
        framing->resizing = STK_RESIZE_SHORTER;
        size = (stoker_size){ transform->resize_shorter, transform->resize_shorter };
    } else if (is_set(transform->random_resized_crop)) {
        framing->resizing = STK_RESIZE_RANDOM;
        size = transform->random_resized_crop;
    }
    framing->resize_height = size.height;
    framing->resize_width = size.width;
}

/* The least size of any image's grid; `grid` if it is the same for all. */
static stoker_size least_grid(const struct stk_framing *framing, uint32_t height, uint32_t width,
                              bool any_size)
{
    const stoker_size side = { framing->resize_height, framing->resize_width };
    if (framing->resizing == STK_RESIZE_EXACT || framing->resizing == STK_RESIZE_RANDOM)
        return side;
    if (framing->resizing == STK_RESIZE_SHORTER && any_size)
        return side;
    struct stk_frame frame = { .height = height, .width = width };
    stk_frame_grid(framing, &frame);
    return (stoker_size){ frame.grid_height, frame.grid_width };
}

static int take_cropping(struct stk_framing *framing, const stoker_transform *transform,
                         stoker_size grid, char *why)
{
    const bool random = is_set(transform->random_crop);
    framing->cropping = random                           ? STK_CROP_RANDOM
                        : is_set(transform->center_crop) ? STK_CROP_CENTER
                                                         : STK_CROP_NONE;
    framing->pad = transform->pad;
    if (framing->cropping == STK_CROP_NONE) {
        framing->out_height = grid.height;
        framing->out_width = grid.width;
        return STOKER_OK;
    }
    const stoker_size out = random ? transform->random_crop : transform->center_crop;
    framing->out_height = out.height;
    framing->out_width = out.width;
    if (out.height > grid.height + 2 * framing->pad || out.width > grid.width + 2 * framing->pad)
        return refuse_framing(why,
                              "%s %" PRIu32 " x %" PRIu32 " of images of %" PRIu32 " x %" PRIu32
                              " with a pad of %" PRIu32,
                              random ? "random_crop" : "center_crop", out.height, out.width,
                              grid.height, grid.width, framing->pad);
    return STOKER_OK;
}

static int take_color(struct stk_retouching *retouching, enum stk_color_step step, float amount,
                      const char *name, char *why)
{
    const bool is_hue = step == STK_COLOR_HUE;
    const float most = is_hue ? HUE_MAX : FACTOR_MAX;
    if (!(amount >= 0.0F && amount <= most))
        return refuse_framing(why, "%s %g is not in 0..%g", name, (double)amount, (double)most);
    if (amount == 0.0F)
        return STOKER_OK;
    retouching->colors |= 1U << step;
    retouching->least[step] = is_hue ? -amount : amount < 1.0F ? 1.0F - amount : 0.0F;
    retouching->most[step] = is_hue ? amount : 1.0F + amount;
    return STOKER_OK;
}

static int take_colors(struct stk_retouching *retouching, const stoker_transform *transform,
                       char *why)
{
    int rc = take_color(retouching, STK_COLOR_BRIGHTNESS, transform->brightness, "brightness", why);
    if (rc == STOKER_OK)
        rc = take_color(retouching, STK_COLOR_CONTRAST, transform->contrast, "contrast", why);
    if (rc == STOKER_OK)
        rc = take_color(retouching, STK_COLOR_SATURATION, transform->saturation, "saturation", why);
    if (rc == STOKER_OK)
        rc = take_color(retouching, STK_COLOR_HUE, transform->hue, "hue", why);
    return rc;
}

static int take_rotation(struct stk_retouching *retouching, const stoker_transform *transform,
                         char *why)
{
    const float least = transform->rotate_min, most = transform->rotate_max;
    if (!(least >= -ANGLE_MAX && least <= most && most <= ANGLE_MAX))
        return refuse_framing(why, "rotate_min %g, rotate_max %g: not -360 <= min <= max <= 360",
                              (double)least, (double)most);
    retouching->rotates = rotates(transform) ? 1 : 0;
    retouching->angle_min = (double)least;
    retouching->angle_max = (double)most;
    return STOKER_OK;
}

static int take_blur(struct stk_retouching *retouching, const stoker_transform *transform,
                     char *why)
{
    const double sigma[2] = { (double)transform->sigma_min, (double)transform->sigma_max };
    if (transform->blur == 0)
        return has_sigma(transform) ? refuse_framing(why, "sigma is for blur") : STOKER_OK;
    if (transform->blur % 2 == 0 || transform->blur < 3 || transform->blur > STOKER_BLUR_MAX)
        return refuse_framing(why, "blur %" PRIu32 " is neither odd and in 3..%d nor 0 (none)",
                              transform->blur, STOKER_BLUR_MAX);
    if (!(sigma[0] >= (double)SIGMA_MIN && sigma[0] <= sigma[1] && sigma[1] <= (double)SIGMA_MAX))
        return refuse_framing(why, "sigma_min %g, sigma_max %g: not 0.01 <= min <= max <= 64",
                              sigma[0], sigma[1]);
    retouching->blur = transform->blur;
    retouching->sigma_min = sigma[0];
    retouching->sigma_max = sigma[1];
    return STOKER_OK;
}

static int take_retouching(struct stk_retouching *retouching, const stoker_transform *transform,
                           uint64_t seed, char *why)
{
    *retouching = (struct stk_retouching){ .key = stk_rng_key(seed, STK_RNG_OWN(STK_RNG_RETOUCH)) };
    int rc = take_colors(retouching, transform, why);
    if (rc == STOKER_OK)
        rc = take_rotation(retouching, transform, why);
    return rc == STOKER_OK ? take_blur(retouching, transform, why) : rc;
}

/* The edges are reflected: a side must be longer than what lies beyond it. */
static int check_blurred_size(const struct stk_framing *framing, char *why)
{
    const uint32_t reach = framing->retouch.blur / 2;
    if (reach == 0 || (reach < framing->out_height && reach < framing->out_width))
        return STOKER_OK;
    return refuse_framing(why,
                          "blur %" PRIu32 " of images of %" PRIu32 " x %" PRIu32
                          ": half of it must be less than each side",
                          framing->retouch.blur, framing->out_height, framing->out_width);
}

int stk_framing_init(struct stk_framing *framing, const stoker_transform *transform, uint64_t seed,
                     uint32_t height, uint32_t width, bool any_size,
                     char why[STK_TRANSFORM_WHY_BYTES])
{
    struct stk_framing made = { .key = stk_frame_key(seed) };
    int rc = check_values(transform, why);
    if (rc == STOKER_OK)
        rc = check_together(transform, why);
    if (rc == STOKER_OK)
        rc = take_ranges(&made, transform, why);
    if (rc == STOKER_OK)
        rc = take_retouching(&made.retouch, transform, seed, why);
    if (rc != STOKER_OK)
        return rc;
    take_resizing(&made, transform);
    if (height < 1 || width < 1 || height > STOKER_SOURCE_SIDE_MAX ||
        width > STOKER_SOURCE_SIDE_MAX)
        return refuse_framing(
            why, "images of %" PRIu32 " x %" PRIu32 " cannot be transformed: a side is 1..%d",
            height, width, STOKER_SOURCE_SIDE_MAX);
    rc = take_cropping(&made, transform, least_grid(&made, height, width, any_size), why);
    if (rc != STOKER_OK)
        return rc;
    if (made.out_height > STOKER_TRANSFORM_SIDE_MAX || made.out_width > STOKER_TRANSFORM_SIDE_MAX)
        return refuse_framing(why,
                              "transforms without a new size take images of 1..%d pixels a side",
                              STOKER_TRANSFORM_SIDE_MAX);
    rc = check_blurred_size(&made, why);
    if (rc != STOKER_OK)
        return rc;
    made.flip = transform->flip ? 1 : 0;
    made.cutout = transform->cutout;
    made.scales = transform->decode_scale == STOKER_DECODE_SCALE_FAST ? 1 : 0;
    *framing = made;
    return STOKER_OK;
}
