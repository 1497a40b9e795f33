/* digits.c - "synth:digits?count=60000&seed=0&size=28": any number of drawn digits.
 *
 *   (seed, split, id) -> digit -> pen strokes -> bent, turned, scaled -> ink -> noise
 *
 * All arithmetic is on integers, so every machine draws the same bytes. Lengths are in
 * 1/64 pixel, directions in 1/4096.
 */
#include <assert.h>
#include <endian.h>
#include <string.h>

#include "datasets/synth/draws.h"
#include "datasets/synth/images.h"
#include "datasets/synth/synth.h"
#include "loader/base/rng.h"

enum {
    PIXEL = 64,         /* lengths per pixel */
    ONE = 4096,         /* a factor of 1 */
    CURVE_STEPS = 4,    /* lines that stand for a curve between two points */
    SIDE_MIN = 8,       /* pixels */
    SIDE_MAX = 256,     /* pixels; products below fit 32 bits up to here */
    REFERENCE_SIZE = 28 /* jitter and pen are given for this size */
};

/* ---- glyphs --------------------------------------------------------------------- */

enum {
    GLYPH_POINTS_MAX = 16,
    GLYPH_VARIANTS_MAX = 3,
    GLYPH_HALF_HEIGHT = 60 /* points lie in -40..40 across, -60..60 down */
};

/* The pen at a point. */
enum pen {
    PEN_CURVE = 0, /* round */
    PEN_CORNER,    /* sharp */
    PEN_DOWN       /* starts a new stroke */
};

struct glyph_point {
    int8_t x;
    int8_t y; /* downwards */
    uint8_t pen;
};

struct glyph {
    uint8_t count; /* points; 0 = no such variant */
    struct glyph_point points[GLYPH_POINTS_MAX];
};

/* Curves run through the points; B starts a stroke, C is a corner, P a point on a curve. */
/* clang-format off */
#define B(x, y) { x, y, PEN_DOWN }
#define C(x, y) { x, y, PEN_CORNER }
#define P(x, y) { x, y, PEN_CURVE }

static const uint8_t glyph_variants[10] = { 1, 3, 2, 2, 2, 1, 1, 2, 1, 2 };

static const struct glyph glyphs[10][GLYPH_VARIANTS_MAX] = {
    [0] = { { 9, { B(2, -55), P(-20, -42), P(-30, 0), P(-21, 42), P(0, 55), P(22, 42), P(30, 0),
                   P(21, -43), P(0, -55) } } },
    [1] = { { 3, { B(2, -56), P(0, 0), P(0, 56) } },
            { 4, { B(-20, -34), C(2, -56), P(2, 0), P(2, 56) } },
            { 5, { B(-18, -36), C(2, -56), C(2, 55), B(-22, 55), P(24, 55) } } },
    [2] = { { 8, { B(-28, -34), P(-17, -52), P(5, -56), P(26, -40), P(22, -12), P(-2, 18),
                   C(-30, 53), P(31, 53) } },
            { 11, { B(-26, -38), P(-8, -55), P(16, -52), P(26, -30), P(14, 4), P(-12, 42),
                    P(-28, 50), P(-26, 34), P(-8, 36), P(12, 52), P(32, 46) } } },
    [3] = { { 10, { B(-26, -46), P(-4, -57), P(21, -46), P(21, -20), C(-6, -4), P(20, 6),
                    P(28, 30), P(14, 51), P(-10, 56), P(-30, 44) } },
            { 8, { B(-28, -54), C(24, -54), C(-4, -12), P(22, -2), P(29, 26), P(14, 50),
                   P(-10, 56), P(-30, 46) } } },
    [4] = { { 5, { B(-20, -54), C(-30, 12), P(34, 12), B(14, -34), P(12, 57) } },
            { 4, { B(12, 57), C(14, -56), C(-33, 18), P(34, 18) } } },
    [5] = { { 9, { B(28, -54), C(-18, -54), C(-24, -8), P(0, -17), P(25, 0), P(28, 28), P(9, 53),
                   P(-15, 54), P(-31, 42) } } },
    [6] = { { 10, { B(18, -56), P(-9, -36), P(-27, 2), P(-25, 34), P(-6, 55), P(18, 49),
                    P(27, 26), P(14, 4), P(-8, 6), P(-25, 26) } } },
    [7] = { { 4, { B(-30, -52), C(31, -54), P(6, 4), P(-8, 56) } },
            { 6, { B(-30, -52), C(31, -54), P(6, 4), P(-8, 56), B(-18, 3), P(27, 0) } } },
    [8] = { { 13, { B(18, -46), P(-2, -56), P(-22, -43), P(-16, -18), P(8, 2), P(25, 28),
                    P(13, 52), P(-10, 54), P(-26, 34), P(-15, 8), P(9, -12), P(24, -32),
                    P(14, -50) } } },
    [9] = { { 9, { B(25, -36), P(4, -55), P(-22, -42), P(-23, -15), P(-1, -3), P(20, -18),
                   C(26, -38), P(23, 10), P(16, 56) } },
            { 10, { B(24, -38), P(4, -55), P(-22, -42), P(-23, -15), P(-1, -3), P(20, -18),
                    C(26, -38), P(26, 12), P(10, 48), P(-20, 54) } } },
};
/* clang-format on */

#undef B
#undef C
#undef P

/* ---- ink ------------------------------------------------------------------------ */

struct point {
    int32_t x, y; /* 1/64 pixel */
};

struct canvas {
    uint8_t *row;
    int32_t size;   /* pixels */
    int32_t radius; /* the pen's, 1/64 pixel */
    int32_t ink;    /* 0..255 */
};

static int32_t lesser(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* The largest root with root x root <= square. */
static int32_t root_of(uint32_t square)
{
    uint32_t root = 0;
    for (uint32_t bit = 1U << 15; bit != 0; bit >>= 1) {
        uint32_t tried = root | bit;
        if (tried * tried <= square)
            root = tried;
    }
    return (int32_t)root;
}

/* A straight piece of a stroke, ready to measure distances. */
struct piece {
    struct point from, to;
    int32_t length;
    int32_t along_x, along_y; /* unit vector, 1/4096 */
    int32_t half_per_radius;  /* 65536 / (2 x radius) */
};

/* How far a pixel's center is from the piece. Round ends need a root; the tangent of
 * the root at `radius` is exact where it matters, at the edge of the ink. */
static int32_t distance(const struct piece *piece, int32_t radius, int32_t x, int32_t y)
{
    int32_t dx = x - piece->from.x;
    int32_t dy = y - piece->from.y;
    int32_t along = (dx * piece->along_x + dy * piece->along_y) / ONE;
    if (along >= 0 && along <= piece->length) {
        int32_t across = (dx * piece->along_y - dy * piece->along_x) / ONE;
        return across < 0 ? -across : across;
    }
    if (along > 0) {
        dx = x - piece->to.x;
        dy = y - piece->to.y;
    }
    int64_t square = (int64_t)dx * dx + (int64_t)dy * dy;
    return (int32_t)((square * piece->half_per_radius) >> 16) + radius / 2;
}

static void ink_piece(const struct canvas *canvas, struct point from, struct point to)
{
    int32_t dx = to.x - from.x;
    int32_t dy = to.y - from.y;
    int32_t length = root_of((uint32_t)(dx * dx) + (uint32_t)(dy * dy));
    if (length == 0)
        return; /* its neighbors cover it */
    const struct piece piece = { .from = from,
                                 .to = to,
                                 .length = length,
                                 .along_x = dx * ONE / length,
                                 .along_y = dy * ONE / length,
                                 .half_per_radius = 65536 / (2 * canvas->radius) };
    /* A pixel takes ink if its center is nearer than radius + half a pixel. */
    const int32_t reach = canvas->radius;
    const int32_t last = canvas->size - 1;
    const int32_t left = larger((lesser(from.x, to.x) - reach) / PIXEL, 0);
    const int32_t right = lesser((larger(from.x, to.x) + reach) / PIXEL, last);
    const int32_t top = larger((lesser(from.y, to.y) - reach) / PIXEL, 0);
    const int32_t bottom = lesser((larger(from.y, to.y) + reach) / PIXEL, last);
    for (int32_t y = top; y <= bottom; y++) {
        uint8_t *line = canvas->row + (size_t)y * (size_t)canvas->size;
        for (int32_t x = left; x <= right; x++) {
            int32_t away =
                distance(&piece, canvas->radius, x * PIXEL + PIXEL / 2, y * PIXEL + PIXEL / 2);
            int32_t covered = lesser(canvas->radius + PIXEL / 2 - away, PIXEL);
            if (covered * canvas->ink > line[x] * PIXEL)
                line[x] = (uint8_t)(covered * canvas->ink / PIXEL);
        }
    }
}

/* ---- strokes -------------------------------------------------------------------- */

/* One coordinate of the Catmull-Rom curve from b to c, step / CURVE_STEPS of the way. */
static int32_t curve(int32_t a, int32_t b, int32_t c, int32_t d, int32_t step)
{
    int32_t linear = 16 * step * (c - a);
    int32_t square = 4 * step * step * (2 * a - 5 * b + 4 * c - d);
    int32_t cube = step * step * step * (-a + 3 * b - 3 * c + d);
    return (128 * b + linear + square + cube) / 128;
}

static void ink_span(const struct canvas *canvas, const struct point *at, bool bends_before,
                     bool bends_after)
{
    struct point before = bends_before ? at[-1] : at[0];
    struct point after = bends_after ? at[2] : at[1];
    struct point from = at[0];
    const int32_t steps = bends_before || bends_after ? CURVE_STEPS : 1;
    for (int32_t step = 1; step <= steps; step++) {
        int32_t t = step * CURVE_STEPS / steps;
        struct point to = { curve(before.x, at[0].x, at[1].x, after.x, t),
                            curve(before.y, at[0].y, at[1].y, after.y, t) };
        ink_piece(canvas, from, to);
        from = to;
    }
}

static void ink_glyph(const struct canvas *canvas, const struct glyph *glyph,
                      const struct point *points)
{
    for (uint32_t i = 0; i + 1 < glyph->count; i++) {
        if (glyph->points[i + 1].pen == PEN_DOWN)
            continue;
        bool bends_before = glyph->points[i].pen == PEN_CURVE;
        bool bends_after = glyph->points[i + 1].pen == PEN_CURVE && i + 2 < glyph->count &&
                           glyph->points[i + 2].pen != PEN_DOWN;
        ink_span(canvas, &points[i], bends_before, bends_after);
    }
}

/* Move, turn, slant and stretch the glyph, each point a little by itself. */
static void place_glyph(struct stk_draws *draws, const struct glyph *glyph, int32_t size,
                        struct point *out)
{
    const int32_t across = stk_draw_between(draws, 3200, 4600); /* / ONE */
    const int32_t down = stk_draw_between(draws, 3500, 4500);
    const int32_t turn = stk_draw_between(draws, -800, 800);
    const int32_t slant = stk_draw_between(draws, -600, 1100); /* most people lean right */
    const int32_t shift = size * PIXEL * 2 / REFERENCE_SIZE;
    const int32_t center_x = size * PIXEL / 2 + stk_draw_between(draws, -shift, shift);
    const int32_t center_y = size * PIXEL / 2 + stk_draw_between(draws, -shift, shift);
    /* A glyph 2 x 60 high takes 20 of 28 pixels; wobble is in 1/16 of its unit. */
    const int64_t unit =
        (int64_t)size * PIXEL * 20 * ONE / (REFERENCE_SIZE * 2 * GLYPH_HALF_HEIGHT * 16);
    for (uint32_t i = 0; i < glyph->count; i++) {
        int64_t x = glyph->points[i].x * 16 + stk_draw_between(draws, -64, 64);
        int64_t y = glyph->points[i].y * 16 + stk_draw_between(draws, -64, 64);
        x = x * across / ONE;
        y = y * down / ONE;
        int64_t leaning = x - y * slant / ONE;
        int64_t turned_x = leaning - y * turn / ONE;
        int64_t turned_y = y + leaning * turn / ONE;
        out[i].x = center_x + (int32_t)(turned_x * unit / ONE);
        out[i].y = center_y + (int32_t)(turned_y * unit / ONE);
    }
}

/* Add 0..level to every pixel, up to white. */
static void add_noise(struct stk_draws *draws, uint8_t *row, size_t row_bytes, uint32_t level)
{
    uint64_t state = ((uint64_t)stk_draw(draws) << 32) | stk_draw(draws);
    for (size_t at = 0; at < row_bytes; at += 8) {
        uint64_t bits = stk_mix64(state++);
        size_t here = row_bytes - at < 8 ? row_bytes - at : 8;
        for (size_t i = 0; i < here; i++) {
            uint32_t pixel = row[at + i] + ((((uint32_t)(bits >> (8 * i)) & 0xFF) * level) >> 8);
            row[at + i] = (uint8_t)(pixel < 255 ? pixel : 255);
        }
    }
}

static void draw(const struct stk_synth_images *images, uint64_t id, void *scratch, uint8_t *row)
{
    (void)scratch;
    struct stk_draws draws = { .key = images->key, .sample = id, .used = 4 };
    const uint32_t digit = stk_synth_images_label(images, id);
    const int32_t size = (int32_t)images->size;
    const size_t row_bytes = (size_t)size * (size_t)size;
    const struct glyph *glyph =
        &glyphs[digit][stk_draw_between(&draws, 0, glyph_variants[digit] - 1)];
    struct canvas canvas = { .row = row, .size = size };
    canvas.radius = larger(stk_draw_between(&draws, 50, 110) * size / REFERENCE_SIZE, PIXEL / 2);
    canvas.ink = stk_draw_between(&draws, 170, 255);
    const int32_t noise = stk_draw_between(&draws, -30, 40);

    struct point points[GLYPH_POINTS_MAX] = { { 0, 0 } };
    memset(row, 0, row_bytes);
    place_glyph(&draws, glyph, size, points);
    ink_glyph(&canvas, glyph, points);
    if (noise > 0)
        add_noise(&draws, row, row_bytes, (uint32_t)noise);
}

int stk_synth_digits_open(stoker_dataset **out, const char *parameters,
                          const stoker_dataset_options *options, stoker_error *error)
{
    static const struct stk_synth_artist artist = { .name = "synth:digits",
                                                    .count = 60000,
                                                    .size = REFERENCE_SIZE,
                                                    .size_min = SIDE_MIN,
                                                    .size_max = SIDE_MAX,
                                                    .channels = 1,
                                                    .class_count = 10,
                                                    .draw = draw };
    return stk_synth_images_open(out, &artist, parameters, options, error);
}
