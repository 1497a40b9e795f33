/* glyphs.h - the pen strokes of the ten digits, for synth:digits. */
#ifndef STK_DATASETS_SYNTH_GLYPHS_H
#define STK_DATASETS_SYNTH_GLYPHS_H

#include <stdint.h>

enum {
    STK_GLYPH_POINTS_MAX = 16,
    STK_GLYPH_VARIANTS_MAX = 3,
    STK_GLYPH_HALF_HEIGHT = 60 /* points lie in -40..40 across, -60..60 down */
};

/* The pen at a point. */
enum stk_pen {
    STK_PEN_CURVE = 0, /* round */
    STK_PEN_CORNER,    /* sharp */
    STK_PEN_DOWN       /* starts a new stroke */
};

struct stk_glyph_point {
    int8_t x;
    int8_t y; /* downwards */
    uint8_t pen;
};

struct stk_glyph {
    uint8_t count; /* points; 0 = no such variant */
    struct stk_glyph_point points[STK_GLYPH_POINTS_MAX];
};

/* [digit][variant]: some digits have several handwritten forms. */
extern const struct stk_glyph stk_glyphs[10][STK_GLYPH_VARIANTS_MAX];
extern const uint8_t stk_glyph_variants[10];

#endif
