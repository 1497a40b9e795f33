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
    bool any_size;             /* made by open_any() */
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

/* Where decoded pixels go, and what they are. */
struct stk_decoding {
    void *to;
    size_t row_bytes;  /* the data set's row */
    size_t bytes_max;  /* any_size: room at `to` */
    uint32_t channels; /* any_size */
    bool any_size;     /* images are decoded in their own size, if the codec can */
    /* Images of one size, of which only a part is decoded if the codec can; both 0 = not so. */
    stoker_size one_size;
    /* any_size or one_size: decode only what it chooses, if the codec can. */
    stk_choose_region_fn *choose;
    const void *chooser;
    bool in_own_size;  /* out: size and got are set */
    stoker_size size;  /* out: the whole image's */
    stoker_region got; /* out: what was decoded */
};

/* Decode one part, opening the scratch at the codec's first use. Returns 0 or the error, with its
 * message, if there is one, in *said. */
int stk_codecs_decode(struct stk_codecs *codecs, const stoker_codec *codec,
                      const stoker_encoded *encoded, struct stk_decoding *decoding,
                      stoker_error *said);

/* Returns true if stk_codecs_decode_fields() can do it: the image is needed in parts, and the codec
 * has them. */
bool stk_codecs_has_parts(const stoker_codec *codec, const struct stk_decoding *decoding);

/* Decode a part that fills more fields after the image: rows[0..count). decoding->to is not used.
 * Returns as stk_codecs_decode() does. */
int stk_codecs_decode_fields(struct stk_codecs *codecs, const stoker_codec *codec,
                             const stoker_encoded *encoded, struct stk_decoding *decoding,
                             stoker_row *rows, uint32_t count, stoker_error *said);

/* Find the codec's scratch, for a caller that decodes by itself; it is opened at the codec's first
 * use. Returns as stk_codecs_decode() does. */
int stk_codecs_scratch(struct stk_codecs *codecs, const stoker_codec *codec, void **scratch,
                       stoker_error *said);

/* Verify the bytes of a part, if its codec can, and copy them to `into` meanwhile, unless it is
 * NULL. Returns as stk_codecs_decode() does. */
int stk_codecs_verify(const stoker_codec *codec, const stoker_encoded *encoded, void *into,
                      stoker_error *said);
bool stk_codecs_can_verify_into(const stoker_codec *codec);

/* Returns true if the codec decodes runs of samples. */
bool stk_codecs_can_decode_run(const stoker_codec *codec);

/* Inspect an image file, by a codec that can. Returns as stk_codecs_decode() does. codec: NULL =
 * the part is a raw row. */
bool stk_codecs_can_inspect(const stoker_codec *codec);
int stk_codecs_inspect(const stoker_codec *codec, const stoker_encoded *encoded,
                       stoker_image_header *header, stoker_error *said);

#endif
