/* image.h - what the image codecs have in common: the row they write, and their limits. */
#ifndef STK_CODEC_IMAGE_H
#define STK_CODEC_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

/* A row of 8-bit samples, channels last: 1 gray, 3 RGB, 4 RGBA (opaque where the file
 * knows no alpha). A file of other colours is converted, one of another size refused. */
struct stk_image_shape {
    uint32_t height; /* pixels, >= 1 */
    uint32_t width;  /* pixels, >= 1 */
    uint32_t channels;
};

/* Of a file that is decoded in a size of its own: neither side is longer. */
enum { STK_IMAGE_SIDE_MAX = 65535 };

/* Whether an image may be decoded in its own size: STOKER_ELIMIT and error->message (error may be
 * NULL) if a side, its pixels or its bytes are too many. */
int stk_image_check_any(const struct stk_image_shape *shape, uint64_t pixels_max, size_t bytes_max,
                        stoker_error *error);

/* Checked on the headers of a file, before memory is taken or a pixel decoded. 0 = default. */
struct stk_image_limits {
    uint64_t pixels_max;      /* height x width; default 2^28 */
    uint32_t chunks_max;      /* PNG: chunks of one file other than IDAT; default 1000 */
    uint32_t chunk_bytes_max; /* PNG: longest chunk other than IDAT; default 8 MiB */
    uint32_t scans_max;       /* JPEG: scans of one file, of which a progressive one has
                                 about ten; default 100 */
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

#endif
