/* pictures.c - "synth:pictures?count=1000&seed=0&size=256": color images that compress like
 * photographs.
 *
 *   (seed, split, id) -> waves of six octaves -> shapes -> noise of a sensor
 *
 * All arithmetic is on integers, so every machine draws the same bytes. A level is 1/256 of a
 * byte's unit. The label is the number of shapes.
 */
#include <stdbool.h>

#include "datasets/synth/draws.h"
#include "datasets/synth/images.h"
#include "datasets/synth/synth.h"
#include "loader/base/rng.h"

enum {
    CHANNELS = 3,
    LEVEL = 256, /* levels of one step of a byte */
    SIDE_MIN = 16,
    SIDE_MAX = 4096,
    OCTAVES = 6,
    SHAPES_MAX = 9,
    NOISE_LEVELS = 400 /* most of one of the four draws that make up a sensor's noise */
};

/* ---- waves ---------------------------------------------------------------------- */

/* The value at a grid point of an octave, -128..127. */
static int32_t crossing(uint64_t wave, int32_t x, int32_t y)
{
    const uint64_t at = (uint64_t)(uint32_t)y << 32 | (uint32_t)x;
    return (int32_t)(stk_mix64(wave ^ stk_mix64(at)) >> 56) - 128;
}

/* 0..256 for 0..256, level at both ends: 3t^2 - 2t^3. */
static int32_t eased(int32_t t)
{
    return t * t * (768 - 2 * t) / (256 * 256);
}

/* One row of one octave, whose grid has that many pixels: add `weight` times it to every third
 * level. */
static void add_wave_row(uint64_t wave, int32_t y, int32_t grid, int32_t weight, int32_t size,
                         int32_t *levels)
{
    const int32_t down = eased(y % grid * 256 / grid);
    for (int32_t left = 0; left < size; left += grid) {
        const int32_t x = left / grid;
        const int32_t from =
            crossing(wave, x, y / grid) * (256 - down) + crossing(wave, x, y / grid + 1) * down;
        const int32_t to = crossing(wave, x + 1, y / grid) * (256 - down) +
                           crossing(wave, x + 1, y / grid + 1) * down;
        const int32_t end = grid < size - left ? grid : size - left;
        for (int32_t i = 0; i < end; i++) {
            const int32_t across = eased(i * 256 / grid);
            levels[(left + i) * CHANNELS] +=
                (from * (256 - across) + to * across) / (256 * 256) * weight;
        }
    }
}

/* All octaves of one row: each has half the grid of the one before and almost its weight. Light is
 * common to the three colors, but for what the two coarsest add to each. */
static void draw_wave_row(uint64_t wave, int32_t y, int32_t size, int32_t *levels)
{
    for (int32_t color = 0; color < CHANNELS; color++) {
        int32_t grid = size / 2;
        int32_t weight = 160;
        for (int32_t octave = 0; octave < OCTAVES && grid > 1;
             octave++, grid /= 2, weight = weight * 6 / 7) {
            const uint64_t own = wave + (uint64_t)(1 + octave) * 64;
            add_wave_row(own, y, grid, weight, size, levels + color);
            if (octave < 2)
                add_wave_row(own + 1 + (uint64_t)color, y, grid, weight / 2, size, levels + color);
        }
    }
}

/* ---- shapes --------------------------------------------------------------------- */

struct shape {
    int32_t x, y;         /* center, pixels */
    int32_t across, down; /* half of them */
    bool round;
    int32_t slope;           /* levels it changes by from pixel to pixel, downwards */
    int32_t color[CHANNELS]; /* levels in the middle */
};

static void draw_shapes(struct stk_draws *draws, int32_t size, struct shape *shapes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct shape *shape = &shapes[i];
        shape->x = stk_draw_between(draws, 0, size - 1);
        shape->y = stk_draw_between(draws, 0, size - 1);
        shape->across = stk_draw_between(draws, size / 16, size / 5);
        shape->down = stk_draw_between(draws, size / 16, size / 5);
        shape->round = stk_draw_between(draws, 0, 1) == 1;
        shape->slope = stk_draw_between(draws, -64, 64);
        for (int32_t color = 0; color < CHANNELS; color++)
            shape->color[color] = stk_draw_between(draws, 20 * LEVEL, 235 * LEVEL);
    }
}

static bool covers(const struct shape *shape, int32_t x, int32_t y)
{
    const int64_t right = x - shape->x;
    const int64_t below = y - shape->y;
    const int64_t across = shape->across;
    const int64_t down = shape->down;
    if (right < -across || right > across)
        return false;
    return !shape->round || right * right * down * down + below * below * across * across <=
                                across * across * down * down;
}

static void cover_row(const struct shape *shape, int32_t y, int32_t size, int32_t *levels)
{
    if (y < shape->y - shape->down || y > shape->y + shape->down)
        return;
    for (int32_t x = 0; x < size; x++)
        for (int32_t color = 0; covers(shape, x, y) && color < CHANNELS; color++)
            levels[x * CHANNELS + color] = shape->color[color] + (y - shape->y) * shape->slope;
}

/* ---- noise ---------------------------------------------------------------------- */

/* The sum of four even draws is nearly a normal one. */
static void finish_row(const int32_t *levels, uint64_t *state, uint8_t *row, size_t row_bytes)
{
    for (size_t at = 0; at < row_bytes; at += 2) {
        const uint64_t bits = stk_mix64((*state)++);
        for (size_t i = 0; i < 2 && at + i < row_bytes; i++) {
            const uint32_t half = (uint32_t)(bits >> (32 * i));
            const uint32_t sum =
                (half & 0xFF) + (half >> 8 & 0xFF) + (half >> 16 & 0xFF) + (half >> 24);
            const int32_t noise = ((int32_t)sum - 510) * NOISE_LEVELS / 256;
            const int32_t value = (levels[at + i] + noise + LEVEL / 2) / LEVEL;
            row[at + i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
    }
}

/* ---- pictures ------------------------------------------------------------------- */

struct scratch {
    int32_t levels[SIDE_MAX * CHANNELS]; /* one row */
};

static void draw(const struct stk_synth_images *images, uint64_t id, void *state, uint8_t *row)
{
    struct scratch *scratch = state;
    struct stk_draws draws = { .key = images->key, .sample = id, .used = 4 };
    const int32_t size = (int32_t)images->size;
    const size_t line_bytes = (size_t)size * CHANNELS;
    const uint32_t count = stk_synth_images_label(images, id);
    struct shape shapes[SHAPES_MAX];
    const uint64_t wave = (uint64_t)stk_draw(&draws) << 32;
    uint64_t noise = (uint64_t)stk_draw(&draws) << 32;
    draw_shapes(&draws, size, shapes, count);
    for (int32_t y = 0; y < size; y++) {
        for (size_t i = 0; i < line_bytes; i++)
            scratch->levels[i] = 128 * LEVEL;
        draw_wave_row(wave, y, size, scratch->levels);
        for (uint32_t i = 0; i < count; i++)
            cover_row(&shapes[i], y, size, scratch->levels);
        finish_row(scratch->levels, &noise, row + (size_t)y * line_bytes, line_bytes);
    }
}

int stk_synth_pictures_open(stoker_dataset **out, const char *parameters,
                            const stoker_dataset_options *options, stoker_error *error)
{
    static const struct stk_synth_artist artist = { .name = "synth:pictures",
                                                    .count = 1000,
                                                    .size = 256,
                                                    .size_min = SIDE_MIN,
                                                    .size_max = SIDE_MAX,
                                                    .channels = CHANNELS,
                                                    .class_count = SHAPES_MAX + 1,
                                                    .scratch_bytes = sizeof(struct scratch),
                                                    .draw = draw };
    return stk_synth_images_open(out, &artist, parameters, options, error);
}
