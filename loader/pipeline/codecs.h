/* codecs.h - the scratches of one worker, one per codec object that its samples use.
 *
 * A data set may have any number of codec objects, for example one per shard: a hash table with open addressing,
 * keyed by address, at most half full. Entries stay until the worker is destroyed. Not shared.
 */
#ifndef STK_PIPELINE_CODECS_H
#define STK_PIPELINE_CODECS_H

#include <stdint.h>
#include <stoker/codec.h>

struct stk_codec_state {
    const stoker_codec *codec; /* NULL = empty */
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

/* *out = the state of the codec, or an empty one, which the caller then fills by stk_codecs_add(). Allocates if the
 * table is half full. Returns 0 or STOKER_ENOMEM. */
int stk_codecs_find(struct stk_codecs *codecs, const stoker_codec *codec,
                    struct stk_codec_state **out);

void stk_codecs_add(struct stk_codecs *codecs, struct stk_codec_state *state,
                    const stoker_codec *codec, void *scratch);

#endif
