/* image.h - what the PNG, JPEG and WebP codecs share: rows, limits, options, and the codec around a
 * kind of file.
 */
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

/* Longest side of a file that decode_any() takes. */
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
    /* decode_any() takes files of up to this many pixels; 0 = the codec has no decode_any(). */
    uint64_t any_pixels_max;
    bool warnings_fail; /* JPEG: warnings that jpeg.h lists are errors */
    /* PNG, one channel: pixels are values as stored: palette indices, gray levels of any depth up
     * to 8 bits, unscaled */
    bool values;
    bool full_only; /* PNG, JPEG: libpng, libjpeg alone: for tests and measurements */
};

/* The common part of an image codec; also the codec's self. */
struct stk_image_codec {
    stoker_codec codec; /* first: what create returns */
    const struct stk_image_kind *kind;
    struct stk_image_options options; /* limits with their defaults */
};

/* Where an image is decoded to. */
struct stk_image_room {
    uint8_t *at;
    size_t bytes;
    stoker_size *size; /* decode_any(): set to the image's size. NULL: the size must be the row's */
    const stoker_region *wanted; /* decode_region(): see there. NULL: the whole image */
    stoker_region *got; /* with wanted: what is decoded; whole unless the kind narrows it */
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
    int (*open)(const void *self, void **scratch);
    int (*open_any)(const void *self, void **scratch);
    void (*close)(const void *self, void *scratch);

    /* Walk over the file, stk_image_accept() its size, decode: all of it, or what room->got then
     * says. */
    int (*decode)(const struct stk_image_codec *codec, void *scratch, const stoker_encoded *in,
                  const struct stk_image_room *room, stoker_error *error);

    /* As in stoker_codec, of a file with the kind's magic. NULL: the format is OTHER. */
    int (*inspect)(const struct stk_image_codec *codec, const stoker_encoded *in,
                   stoker_image_header *header, stoker_error *error);
};

/* Make the codec of one row shape. Immutable: any number of threads may decode with it, each with
 * its own scratch. On failure *out is untouched. Errors: STOKER_EINVAL (the shape), STOKER_ELIMIT
 * (too many pixels), STOKER_ENOMEM, STOKER_ENOTSUP (not in this build). decode() returns
 * STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ECORRUPT, STOKER_ELIMIT or, for WebP,
 * STOKER_ENOMEM. */
int stk_image_codec_create(stoker_codec **out, const struct stk_image_kind *kind,
                           const struct stk_image_options *options);

/* Free it and set *codec to NULL. NULL and a pointer to NULL are allowed. */
void stk_image_codec_destroy(stoker_codec **codec);

/* Check the size of a file against the room; sets *shape, *room->size, and *room->got to the whole
 * image. STOKER_EFORMAT (not the row's size), STOKER_ELIMIT or STOKER_EINVAL (wanted is not in the
 * image), with error->message; error may be NULL. */
int stk_image_accept(const struct stk_image_codec *codec, uint32_t height, uint32_t width,
                     const struct stk_image_room *room, struct stk_image_shape *shape,
                     stoker_error *error);

#endif
