/* codecs.c - see codecs.h. */
#include "loader/pipeline/codecs.h"

#include "loader/base/memory.h"
#include "loader/base/rng.h"

enum { CAPACITY_FIRST = 16 };

int stk_codecs_init(struct stk_codecs *codecs)
{
    *codecs = (struct stk_codecs){ .capacity = CAPACITY_FIRST };
    codecs->states = stk_calloc(codecs->capacity, sizeof(codecs->states[0]));
    return codecs->states == NULL ? STOKER_ENOMEM : 0;
}

void stk_codecs_destroy(struct stk_codecs *codecs)
{
    for (uint32_t i = 0; codecs->states != NULL && i < codecs->capacity; i++) {
        const struct stk_codec_state *state = &codecs->states[i];
        if (state->codec != NULL && state->codec->close != NULL)
            state->codec->close(state->codec->self, state->scratch);
    }
    stk_free(codecs->states);
    *codecs = (struct stk_codecs){ 0 };
}

/* The cell of a codec, or the empty cell where it belongs. */
static struct stk_codec_state *place_of(const struct stk_codecs *codecs, const stoker_codec *codec)
{
    uint32_t at = (uint32_t)stk_mix64((uintptr_t)codec) & (codecs->capacity - 1);
    while (codecs->states[at].codec != NULL && codecs->states[at].codec != codec)
        at = (at + 1) & (codecs->capacity - 1);
    return &codecs->states[at];
}

static int grow(struct stk_codecs *codecs)
{
    struct stk_codecs larger = { .capacity = 2 * codecs->capacity, .count = codecs->count };
    larger.states = stk_calloc(larger.capacity, sizeof(larger.states[0]));
    if (larger.states == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < codecs->capacity; i++)
        if (codecs->states[i].codec != NULL)
            *place_of(&larger, codecs->states[i].codec) = codecs->states[i];
    stk_free(codecs->states);
    *codecs = larger;
    return 0;
}

int stk_codecs_find(struct stk_codecs *codecs, const stoker_codec *codec,
                    struct stk_codec_state **out)
{
    *out = place_of(codecs, codec);
    if ((*out)->codec != NULL || codecs->count < codecs->capacity / 2)
        return 0;
    int rc = grow(codecs);
    if (rc == 0)
        *out = place_of(codecs, codec);
    return rc;
}

void stk_codecs_add(struct stk_codecs *codecs, struct stk_codec_state *state,
                    const stoker_codec *codec, void *scratch)
{
    *state = (struct stk_codec_state){ .codec = codec, .scratch = scratch };
    codecs->count++;
}
