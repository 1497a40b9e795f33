/* stoker/codec.h - from the bytes of one sample to its row.
 *
 * A codec is a constant table of functions. The loader opens one scratch per worker and codec
 * object, so decode() never shares scratch between threads, and closes it when the loader is
 * destroyed. A data set may have any number of codec objects, for example one per shard; each costs
 * every worker a scratch.
 *
 * Every function returns 0 or a stoker_err < 0. Any other value counts as STOKER_EINVAL: the row is
 * not delivered.
 *
 * The loader looks at the table of each codec when locate() names it. A wrong struct_size, no name,
 * or no function for what the part has to fill ends the run with STOKER_EINVAL, regardless of
 * on_bad_sample.
 */
#ifndef STOKER_CODEC_H
#define STOKER_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/transform.h>

STOKER_BEGIN_DECLS

/* The input of decode(). Its size never changes: new members take the place of reserved ones. */
typedef struct stoker_encoded {
    const uint8_t *bytes; /* the sample as stored; NULL if size is 0 */
    size_t size;          /* bytes */
    uint64_t sample;      /* sample id, from which generated data sets make the row */
    uint64_t tag;         /* stoker_part.tag */
    uint64_t reserved[2]; /* 0 */
} stoker_encoded;

/* A rectangle of an image at a scale of eighths / 8: a side of n pixels becomes n * eighths / 8,
 * rounded up. Its size never changes. */
typedef struct stoker_region {
    uint32_t y, x;          /* its first pixel, in pixels of the scaled image */
    uint32_t height, width; /* pixels of the scaled image, >= 1 */
    uint32_t eighths;       /* 1..8; 8 = the image's own size */
} stoker_region;

/* The place of one field of one sample, to be filled. Its size never changes: new members take the
 * place of the reserved one. */
typedef struct stoker_row {
    void *data;
    size_t bytes_max;  /* room; of a field that does not vary, exactly its bytes */
    uint64_t length;   /* out, of a field that varies: elements of its first axis */
    uint64_t reserved; /* 0 */
} stoker_row;

/* Samples whose bytes lie at equal distances: sample i at bytes + i * step. Its size never changes:
 * new members take the place of reserved ones. */
typedef struct stoker_run {
    const uint8_t *bytes; /* the first sample as stored */
    size_t size;          /* bytes of each, >= 1 */
    size_t step;          /* bytes from one to the next, 1..size: less than size if they overlap */
    uint64_t sample;      /* id of the first; the ids follow each other */
    uint64_t tag;         /* stoker_part.tag of each */
    uint32_t count;       /* samples, >= 1 */
    uint32_t reserved32;  /* 0 */
    uint64_t reserved[2]; /* 0 */
} stoker_run;

/* Formats of image files that another decoder than the codec's may decode. */
typedef enum stoker_image_format {
    STOKER_IMAGE_FORMAT_OTHER = 0, /* only the codec can */
    STOKER_IMAGE_FORMAT_JPEG =
        1 /* gray, or YCbCr that is delivered as RGB; 8 bits, Huffman codes */
} stoker_image_format;

/* What the header of an image file says. Its size never changes: new members take the place of
 * reserved ones. */
typedef struct stoker_image_header {
    uint32_t format;        /* stoker_image_format */
    uint32_t height, width; /* pixels; 0 if the format is OTHER */
    uint32_t channels;      /* those of the rows; 0 if the format is OTHER */
    uint64_t reserved[2];   /* 0 */
} stoker_image_header;

typedef struct stoker_codec {
    size_t struct_size; /* sizeof(stoker_codec) */
    const char *name;   /* "raw", "png", ...; static */
    const void *self;   /* passed to each call; may be NULL */

    /* Make and free the scratch of one worker. Optional: NULL = the codec needs none. */
    int (*open)(const void *self, void **scratch);
    void (*close)(const void *self, void *scratch);

    /* Write exactly row_bytes bytes to row: elements in host byte order, channels last. Called from
     * many threads, each with its own scratch. On failure return a stoker_err, set error->message
     * if there is more to say than the code, and leave any bytes in row. Must not allocate after
     * open. Required for parts of one field that does not vary. */
    int (*decode)(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error);

    /* The same for a part that fills several fields, or one that varies: rows[0..count) are the
     * part's fields in order. Sets rows[i].length of those that vary. Required for such parts. */
    int (*decode_fields)(const void *self, void *scratch, const stoker_encoded *in,
                         stoker_row *rows, uint32_t count, stoker_error *error);

    /* Optional, both or none: for a loader that resizes images, which then may differ in size from
     * the data set's shape. open_any() makes a scratch for images of up to info.pixels_max pixels,
     * sides up to STOKER_SOURCE_SIDE_MAX, which close() frees. decode_any() writes the image in its
     * own size, which it stores in *size, with the channels of the data set's rows. STOKER_ELIMIT:
     * the image has more than pixels_bytes bytes or exceeds those limits. */
    int (*open_any)(const void *self, void **scratch);
    int (*decode_any)(const void *self, void *scratch, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error);

    /* Optional, both or none, and only with decode_any(): for a loader that resizes or crops
     * images. measure() finds its size from the header, without decoding. decode_region() writes a
     * rectangle that contains *wanted, densely, and stores in *got which: got->height x got->width
     * pixels. The rectangle never has more bytes than the whole image, for which there must be
     * room, and the pixels of *wanted are those that decode_any() gives; others may differ. *wanted
     * is in pixels of the image's own size and lies in it, except that wanted->eighths is the
     * smallest scale that will do: 8 for exact pixels. If it is less the codec may decode a smaller
     * image, at got->eighths >= wanted->eighths, and *got covers what *wanted becomes at that
     * scale. Both take a scratch of open_any(); errors are those of decode_any(), and for the same
     * files, wherever the damage lies: else the transform and the cache decide which samples are
     * bad. */
    int (*measure)(const void *self, void *scratch, const stoker_encoded *in, stoker_size *size,
                   stoker_error *error);
    int (*decode_region)(const void *self, void *scratch, const stoker_encoded *in,
                         const stoker_region *wanted, void *pixels, size_t pixels_bytes,
                         stoker_region *got, stoker_error *error);

    /* Optional: verify a checksum, which decode() then ignores. Called before decode() on bytes
     * that were read, and only once for bytes that stay in memory. STOKER_ECORRUPT if the bytes
     * changed. Rules as for decode(), but without scratch. */
    int (*verify)(const void *self, const stoker_encoded *in, stoker_error *error);

    /* The bytes are the row, and decode() only copies them: a loader may read them straight into
     * the row. */
    bool bytes_are_row;

    /* Optional: decode_fields() for a part whose first field is field 0 and an image, of which only
     * a rectangle is needed; rows[0] is filled as decode_region() does, the other rows as
     * decode_fields() does. rows[0].bytes_max is the room for the whole image. Needs measure(), and
     * a scratch of open_any(). */
    int (*decode_region_fields)(const void *self, void *scratch, const stoker_encoded *in,
                                const stoker_region *wanted, stoker_row *rows, uint32_t count,
                                stoker_region *got, stoker_error *error);

    /* Optional, if bytes_are_row and there is a verify(): copy the bytes to row, which has in->size
     * bytes, and verify them in the same pass over memory. Called instead of verify() for bytes in
     * memory that are delivered as they are. Rules as for decode(), but without scratch. */
    int (*verify_into)(const void *self, const stoker_encoded *in, void *row, stoker_error *error);

    /* Optional: the part is an image file of its own, and decode() gives its pixels, converted to
     * the rows' channels. So another decoder of the same format may take decode()'s place (see
     * options.decode). inspect() finds the format from the file's structure, without decoding, and
     * refuses what decode() refuses by it: a file that is truncated, is none, or has colors that
     * the rows must not have. It does not compare its size with the rows'. Any thread, without
     * scratch; errors as decode(). */
    int (*inspect)(const void *self, const stoker_encoded *in, stoker_image_header *header,
                   stoker_error *error);

    /* Optional: decode a run of samples in one call, if none of their fields varies: saves the
     * calls per sample of a codec that does little more than copy. A loader that delivers samples
     * in order uses it, and reads such samples together. rows[0..count) are the fields of the first
     * sample, as for decode_fields(); field f of sample i belongs at rows[f].data + i *
     * rows[f].bytes_max. If a sample is bad, return a stoker_err < 0 without a message: then the
     * loader decodes each alone, to report the bad ones. Rules as for decode(). */
    int (*decode_run)(const void *self, void *scratch, const stoker_run *run, stoker_row *rows,
                      uint32_t count);
} stoker_codec;

STOKER_END_DECLS
#endif
