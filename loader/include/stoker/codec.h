/* stoker/codec.h - the interface to decoders: stored bytes of a sample to rows of its fields.
 *
 * A codec is a constant table of functions. Each worker opens one scratch per codec and image mode,
 * and closes it when the loader is destroyed, so a scratch is never used by two threads at once.
 * All functions may be called by many threads at once. A data set may have any number of codecs,
 * for example one per shard.
 *
 * Functions return 0 or a stoker_err < 0, and may set error->message; error may be NULL. Any other
 * value counts as STOKER_EINVAL. After a failure the sample is bad, whatever its fields contain.
 *
 * The loader checks a codec when locate() first returns it. A wrong struct_size, an unknown flag,
 * no name, no decode(), or a part that the flags do not allow ends the run with STOKER_EINVAL,
 * regardless of on_bad_sample.
 */
#ifndef STOKER_CODEC_H
#define STOKER_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/transform.h>

STOKER_BEGIN_DECLS

/* What a codec noted about the bytes of a part when it decoded them, for the next time: of use to
 * that codec alone. The loader may keep it with the sample, or not. The bytes may have changed
 * since: the codec must notice. Its size never changes: new members replace reserved ones. */
typedef struct stoker_notes {
    const void *known; /* noted before, 8-byte aligned; NULL = nothing */
    size_t known_bytes;
    void *room; /* where decode() may note something, 8-byte aligned; NULL = nothing is kept */
    size_t room_bytes;
    size_t noted_bytes; /* out: set by decode() if it did; 0 at first */
    uint64_t reserved;  /* 0 */
} stoker_notes;

/* The stored bytes of one part. Its size never changes: new members replace reserved ones. */
typedef struct stoker_encoded {
    const uint8_t *bytes; /* NULL if size is 0 */
    size_t size;          /* bytes */
    uint64_t sample;      /* sample id: generated data sets compute the fields from it */
    uint64_t tag;         /* stoker_part.tag */
    stoker_notes *notes;  /* for decode() of a region; NULL = none are kept */
    uint64_t reserved;    /* 0 */
} stoker_encoded;

/* A rectangle of an image scaled by eighths / 8: a side of n pixels becomes n * eighths / 8,
 * rounded up. Its size never changes. */
typedef struct stoker_region {
    uint32_t y, x;          /* first pixel, in pixels of the scaled image */
    uint32_t height, width; /* pixels of the scaled image, >= 1 */
    uint32_t eighths;       /* 1..8; 8 = the image's own size */
} stoker_region;

/* Memory for one field of one sample. Its size never changes: new members replace the reserved one.
 */
typedef struct stoker_row {
    void *data;
    size_t bytes_max;  /* room; exactly the field's bytes if it neither varies nor is an image in
                          its own size */
    uint64_t length;   /* out, if the field varies: elements along its first axis */
    uint64_t reserved; /* 0 */
} stoker_row;

/* What decode() fills. The caller sets all members. */
typedef struct stoker_decoded {
    size_t struct_size;    /* sizeof(stoker_decoded) */
    stoker_row *rows;      /* [field_count] fields of the part, in order */
    uint32_t field_count;  /* >= 1; more than 1 only with STOKER_CODEC_FIELDS */
    uint32_t sample_count; /* >= 1; more than 1 only with STOKER_CODEC_RUNS */
    size_t step;           /* with several samples: bytes from one stored sample to the next */
    /* Only with STOKER_CODEC_ANY_SIZE: the pixels that are needed, in pixels of the image's own
     * size; eighths is the smallest scale that suffices. NULL = the whole image in its own size. */
    const stoker_region *wanted;
    /* Only with STOKER_CODEC_ANY_SIZE: decode the first field as an image in its own size, and set
     * *got to the rectangle written. NULL = the first field has the shape in the data set. */
    stoker_region *got;
} stoker_decoded;

/* Image file formats that a decoder on the device may know. */
typedef enum stoker_image_format {
    STOKER_IMAGE_FORMAT_OTHER = 0, /* only the codec decodes it */
    STOKER_IMAGE_FORMAT_JPEG = 1   /* gray, or YCbCr delivered as RGB; 8 bits, Huffman codes */
} stoker_image_format;

/* What probe() finds in an image file. Its size never changes: new members replace reserved ones.
 */
typedef struct stoker_image_header {
    uint32_t format;        /* stoker_image_format; 0 unless probe() inspects the file */
    uint32_t height, width; /* pixels; may be 0 if probe() inspects and the format is OTHER */
    uint32_t channels;      /* of the decoded rows; 0 if the format is OTHER */
    uint64_t reserved[2];   /* 0 */
} stoker_image_header;

/* stoker_codec.flags: what the codec can do beyond one field of fixed shape per call. */
enum {
    /* The stored bytes are the row, and decode() only copies them: a loader may read them straight
     * to the row. */
    STOKER_CODEC_ROW = 1,
    /* Decodes parts of several fields, and fields that vary, whose rows[i].length it sets. */
    STOKER_CODEC_FIELDS = 2,
    /* Decodes several consecutive samples per call, for codecs that do little more than copy. Only
     * for parts whose fields do not vary. */
    STOKER_CODEC_RUNS = 4,
    /* Decodes images in their own size, which may differ from the data set's shape: for loaders
     * that resize or crop. */
    STOKER_CODEC_ANY_SIZE = 8,
    /* Parts are image files, and another decoder of the same format may replace decode(): see
     * options.decode. Requires probe(). */
    STOKER_CODEC_FILE = 16
};

typedef struct stoker_codec {
    size_t struct_size; /* sizeof(stoker_codec) */
    const char *name;   /* "raw", "png", ...; static */
    const void *self;   /* passed to every function; may be NULL */
    uint64_t flags;     /* STOKER_CODEC_... */

    /* Make and free a worker's scratch. Optional: NULL = no scratch. any_size: for decode() with
     * `got`, of images up to info.pixels_max pixels with sides up to STOKER_SOURCE_SIDE_MAX. */
    int (*open)(const void *self, bool any_size, void **scratch);
    void (*close)(const void *self, void *scratch);

    /* Decode *in to out->rows: elements in host byte order, channels last. Must not allocate.
     *
     * Several samples: in is the first one. Sample i is stored at in->bytes + i * out->step, has id
     * in->sample + i and in->size bytes, and fills rows[f].data + i * rows[f].bytes_max. If one is
     * bad, fail without a message: the loader then decodes each alone.
     *
     * With out->got: write a rectangle of the image densely to rows[0].data, with the channels of
     * the data set's shape, and describe it in *got. It must contain *wanted scaled to
     * got->eighths, which is at least wanted->eighths; the whole image at 8 eighths always does.
     * rows[0].bytes_max is the room for the whole image. Pixels outside of *wanted may have any
     * value, but report damage anywhere in the file, whatever is wanted: transform and cache must
     * not decide which samples are bad. Bytes that notes show to be those of an earlier, complete
     * decode need not be checked again. STOKER_ELIMIT: the image exceeds the room or the limits of
     * open(). */
    int (*decode)(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error);

    /* Optional. Find an image's size in its header, without decoding; with STOKER_CODEC_ANY_SIZE
     * the loader then decodes only the pixels that it needs. inspect (only with STOKER_CODEC_FILE):
     * also find the format, and fail as decode() does if the structure of the file is damaged or it
     * has colors that the rows must not have. Does not compare the size to the data set's shape. */
    int (*probe)(const void *self, const stoker_encoded *in, bool inspect,
                 stoker_image_header *header, stoker_error *error);

    /* Optional. Verify a checksum, which decode() then ignores. Called before decode(), once for
     * bytes that stay in memory. copy (only with STOKER_CODEC_ROW): also copy the in->size bytes
     * there in the same pass over memory; otherwise NULL. STOKER_ECORRUPT if the bytes changed. */
    int (*verify)(const void *self, const stoker_encoded *in, void *copy, stoker_error *error);
} stoker_codec;

STOKER_END_DECLS
#endif
