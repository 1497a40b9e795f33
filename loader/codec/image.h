/* image.h - what the PNG, JPEG and WebP decoders share: rows, limits, options, sizes. */
#ifndef STK_CODEC_IMAGE_H
#define STK_CODEC_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "loader/codec/kinds.h"

/* A row of 8-bit samples, channels last: 1 gray, 3 RGB, 4 RGBA (opaque if the file has no alpha). A
 * file of other colors is converted, one of another size refused. */
struct stk_image_shape {
    uint32_t height; /* pixels, >= 1 */
    uint32_t width;  /* pixels, >= 1 */
    uint32_t channels;
};

/* Longest side of an image that is decoded in its own size. */
enum { STK_IMAGE_SIDE_MAX = 65535 };

/* Checked on the headers of a file, before allocating or decoding. 0 = default. */
struct stk_image_limits {
    uint64_t pixels_max;      /* height x width; default 2^28 */
    uint32_t chunks_max;      /* PNG: chunks of one file other than IDAT; default 1000 */
    uint32_t chunk_bytes_max; /* PNG: longest chunk other than IDAT; default 8 MiB */
    uint32_t scans_max; /* JPEG: scans of one file, about ten in a progressive one; default 100 */
};

/* The limits with each 0 replaced by its default. */
static inline struct stk_image_limits stk_image_limits(const struct stk_image_limits *asked)
{
    return (struct stk_image_limits){
        .pixels_max = asked->pixels_max != 0 ? asked->pixels_max : (uint64_t)1 << 28,
        .chunks_max = asked->chunks_max != 0 ? asked->chunks_max : 1000,
        .chunk_bytes_max = asked->chunk_bytes_max != 0 ? asked->chunk_bytes_max : 8U << 20,
        .scans_max = asked->scans_max != 0 ? asked->scans_max : 100,
    };
}

struct stk_image_options {
    struct stk_image_shape shape; /* the row's; a file of another size gives STOKER_EFORMAT */
    struct stk_image_limits limits;
    /* Images in their own size may have up to this many pixels; 0 = none are decoded so. */
    uint64_t any_pixels_max;
    bool warnings_fail; /* JPEG: warnings that jpeg.h lists are errors */
    bool gray_found;    /* rows are gray only because the images read at open were: refuse color */
    /* Masks of one channel: pixels are values as stored: in PNG palette indices, or gray levels of
     * any depth up to 8 bits, unscaled. Files of colors are refused. */
    bool values;
    bool full_only; /* PNG, JPEG: libpng, libjpeg alone: for tests and measurements */
};

/* The codec of image files; also its self. Immutable: any number of threads may decode with it,
 * each with its own scratch. */
struct stk_image_codec {
    stoker_codec codec;
    const struct stk_image_kind *kind; /* NULL: each file's, by its first bytes */
    struct stk_image_options options;  /* limits with their defaults */
};

/* Pixels of one axis of a region at a scale: from the first that is needed to the end of the
 * last. */
struct stk_image_range {
    uint32_t from, to;
};

/* What `count` pixels from `at` on, of the image's own size, become at eighths / 8: every pixel
 * that shows a part of them. */
static inline struct stk_image_range stk_image_range(uint32_t at, uint32_t count, uint32_t eighths)
{
    const uint64_t end = (uint64_t)at + count;
    return (struct stk_image_range){ (uint32_t)((uint64_t)at * eighths / 8),
                                     (uint32_t)((end * eighths + 7) / 8) };
}

/* One kind of image file: stk_image_png, stk_image_jpeg, stk_image_webp. */
struct stk_image_kind {
    enum stk_shard_codec number; /* in stk_kinds, with its name and magic */
    const char *missing;         /* the error in a build without its library */
    bool present;                /* in this build; if false, only probe is set */
    uint32_t side_max;           /* longest side of a row */
    uint64_t any_pixels_max;     /* the largest that options may ask for */

    /* Find a file's shape from its first bytes, without decoding and without the library. limits
     * may be NULL. Errors: STOKER_EMAGIC, STOKER_ETRUNCATED (more bytes are needed),
     * STOKER_EFORMAT, STOKER_ELIMIT, STOKER_ECORRUPT; sets only error->message. */
    int (*probe)(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                 struct stk_image_shape *out, stoker_error *error);

    /* As in stoker_codec; self is the stk_image_codec. */
    int (*open)(const void *self, bool any_size, void **scratch);
    void (*close)(const void *self, void *scratch);

    /* Walk over the file, stk_image_accept() its size, decode: all of it, or what out->got then
     * says. */
    int (*decode)(const struct stk_image_codec *codec, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error);

    /* stoker_codec.probe() with inspect, for a file with the kind's magic. NULL: the format is
     * OTHER. */
    int (*inspect)(const struct stk_image_codec *codec, const stoker_encoded *in,
                   stoker_image_header *header, stoker_error *error);
};

/* Check the size of a file: it must be the row's or, with out->got, fit in the row. Sets *shape,
 * and *out->got to the whole image. STOKER_EFORMAT (not the row's size), STOKER_ELIMIT or
 * STOKER_EINVAL (wanted is not in the image), with error->message; error may be NULL. */
int stk_image_accept(const struct stk_image_codec *codec, uint32_t height, uint32_t width,
                     const stoker_decoded *out, struct stk_image_shape *shape, stoker_error *error);

#endif
