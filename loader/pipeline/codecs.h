/* codecs.h - the scratches of one worker: one for each codec object that its samples have brought.
 *
 * A data set may have any number of codec objects, one per shard for example: a table with open addressing,
 * by their addresses, at most half full. Kept until the worker is destroyed. Not shared.
 */
#ifndef STK_PIPELINE_CODECS_H
#define STK_PIPELINE_CODECS_H

#include <stdint.h>
#include <stoker/codec.h>

struct stk_codec_state {
    const stoker_codec *codec; /* NULL = free */
    void *scratch;
};

struct stk_codecs {
    struct stk_codec_state *states;
    uint32_t capacity; /* a power of two */
    uint32_t count;
};

/* Room for the first few. 0 or STOKER_ENOMEM. */
int stk_codecs_init(struct stk_codecs *codecs);

/* Close every scratch and free the table. All zero is allowed. */
void stk_codecs_destroy(struct stk_codecs *codecs);

/* *out = the state of the codec, or a free one for it, which the caller fills in by stk_codecs_keep. Allocates
 * where the table is half full. 0 or STOKER_ENOMEM. */
int stk_codecs_find(struct stk_codecs *codecs, const stoker_codec *codec,
                    struct stk_codec_state **out);

void stk_codecs_keep(struct stk_codecs *codecs, struct stk_codec_state *state,
                     const stoker_codec *codec, void *scratch);

#endif
