/* codecs.h - the calls of codecs, and the scratches of one worker, one per codec object that its
 * samples use.
 *
 * A data set may have any number of codec objects, for example one per shard: a hash table with
 * open addressing, keyed by address and kind of scratch, at most half full. Entries stay until the
 * worker is destroyed. Not shared.
 */
#ifndef STK_PIPELINE_CODECS_H
#define STK_PIPELINE_CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

struct stk_codec_state {
    const stoker_codec *codec; /* NULL = empty */
    bool any_size;             /* opened for images in their own size */
    void *scratch;
};

struct stk_codecs {
    struct stk_codec_state *states;
    uint32_t capacity; /* a power of two */
    uint32_t count;
};

/* Returns 0 or STOKER_ENOMEM. */
int stk_codecs_init(struct stk_codecs *codecs);

/* Close every scratch and free the table. All zero is allowed. */
void stk_codecs_destroy(struct stk_codecs *codecs);

/* Finds the part of an image of that size that is needed, and the smallest scale that will do. */
typedef void stk_choose_region_fn(const void *chooser, stoker_size size, stoker_region *wanted);

/* How an image is decoded in its own size. */
struct stk_image_decoding {
    size_t bytes_max; /* room for the whole image */
    uint32_t channels;
    stoker_size one_size; /* any other is refused; 0 x 0 = any size will do */
    /* Decode only what it chooses, if the codec has probe(); NULL = the whole image. */
    stk_choose_region_fn *choose;
    const void *chooser;
    stoker_size size;  /* out: the whole image's */
    stoker_region got; /* out: what was decoded */
};

/* Decode a part whose first field is an image to rows[0..count), the image in its own size, by a
 * codec with STOKER_CODEC_ANY_SIZE. Returns 0 or the error, with its message, if there is one, in
 * *said. */
int stk_codecs_decode_image(struct stk_codecs *codecs, const stoker_codec *codec,
                            const stoker_encoded *encoded, stoker_row *rows, uint32_t count,
                            struct stk_image_decoding *decoding, stoker_error *said);

/* Find the codec's scratch, which is opened at the codec's first use. Returns as
 * stk_codecs_decode_image() does. */
int stk_codecs_scratch(struct stk_codecs *codecs, const stoker_codec *codec, bool any_size,
                       void **scratch, stoker_error *said);

/* Verify the bytes of a part by a codec that can, and copy them to `copy` meanwhile, unless it is
 * NULL. Returns as stk_codecs_decode_image() does. */
int stk_codecs_verify(const stoker_codec *codec, const stoker_encoded *encoded, void *copy,
                      stoker_error *said);

/* Returns true if a part is an image file, which another decoder may decode. NULL = a raw row. */
static inline bool stk_codec_is_file(const stoker_codec *codec)
{
    return codec != NULL && (codec->flags & STOKER_CODEC_FILE) != 0;
}

/* Call probe() of a codec that has it. Returns as stk_codecs_decode_image() does. */
int stk_codecs_probe(const stoker_codec *codec, const stoker_encoded *encoded, bool inspect,
                     stoker_image_header *header, stoker_error *said);

#endif
