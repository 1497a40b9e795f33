/* stoker/codec.h - from the bytes of one sample to its row.
 *
 * A codec is a constant table of functions. The loader opens one scratch per
 * worker and codec object, so decode() never shares scratch between threads, and
 * closes it when the loader is destroyed. A data set may have any number of codec
 * objects, one per shard for example; each costs every worker a scratch.
 *
 * Every function returns 0, or a stoker_err below 0. Anything above 0 counts as
 * STOKER_EINVAL: the row is not delivered.
 */
#ifndef STOKER_CODEC_H
#define STOKER_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/transform.h>

STOKER_BEGIN_DECLS

/* What decode() is given. */
typedef struct stoker_encoded {
    const uint8_t *bytes; /* the sample as stored; NULL when size is 0 */
    size_t size;          /* bytes */
    uint64_t sample;      /* sample id: a generated set draws its row from this */
    uint64_t tag;         /* of the sample, as its data set located it */
} stoker_encoded;

typedef struct stoker_codec {
    const char *name; /* "raw", "png", ...; static */
    const void *self; /* handed to each call; may be NULL */

    /* Make the scratch of one worker. Optional: NULL = the codec needs none. */
    int (*open)(const void *self, void **scratch);
    void (*close)(const void *self, void *scratch);

    /* Write exactly row_bytes bytes to row: elements in host byte order, channels
     * last. Called from many threads, each with its own scratch. On failure return
     * a stoker_err, set error->message if there is more to say than the code does,
     * and leave any bytes in row. Must not allocate after open. */
    int (*decode)(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error);

    /* Optional, both or none: for a loader that resizes images, so that they need not have the data
     * set's size. open_any() makes a scratch for images of up to info.pixels_max pixels, with sides
     * of at most STOKER_SOURCE_SIDE_MAX, which close() takes back. decode_any() writes the image in
     * its own size, which it tells in *size, with as many channels as a row of the data set has;
     * one of more than pixels_bytes bytes, or over those limits, gives STOKER_ELIMIT. */
    int (*open_any)(const void *self, void **scratch);
    int (*decode_any)(const void *self, void *scratch, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error);

    /* Optional: tell whether the bytes are as they were stored, by a checksum that decode() then
     * does not look at. Who reads bytes calls it before decode(); of bytes that he keeps, once.
     * STOKER_ECORRUPT if they are not. The same rules as decode()'s, without scratch. */
    int (*verify)(const void *self, const stoker_encoded *in, stoker_error *error);

    /* The bytes are the row, and decode() only copies them: a loader may read them to where the row
     * is to be. */
    bool bytes_are_row;
} stoker_codec;

STOKER_END_DECLS
#endif
