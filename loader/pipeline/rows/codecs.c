/* codecs.c - see codecs.h. */
#include "loader/pipeline/rows/codecs.h"

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/codec/refuse.h"

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
static struct stk_codec_state *cell_of_codec(const struct stk_codecs *codecs,
                                             const stoker_codec *codec, bool any_size)
{
    uint32_t at = (uint32_t)stk_mix64((uintptr_t)codec + any_size) & (codecs->capacity - 1);
    while (codecs->states[at].codec != NULL &&
           (codecs->states[at].codec != codec || codecs->states[at].any_size != any_size))
        at = (at + 1) & (codecs->capacity - 1);
    return &codecs->states[at];
}

static int grow_codecs(struct stk_codecs *codecs)
{
    struct stk_codecs larger = { .capacity = 2 * codecs->capacity, .count = codecs->count };
    larger.states = stk_calloc(larger.capacity, sizeof(larger.states[0]));
    if (larger.states == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < codecs->capacity; i++)
        if (codecs->states[i].codec != NULL)
            *cell_of_codec(&larger, codecs->states[i].codec, codecs->states[i].any_size) =
                codecs->states[i];
    stk_free(codecs->states);
    *codecs = larger;
    return 0;
}

/* *out = the state of the codec, or an empty one for the caller to fill. Allocates if the table is
 * half full. */
static int find_state(struct stk_codecs *codecs, const stoker_codec *codec, bool any_size,
                      struct stk_codec_state **out)
{
    *out = cell_of_codec(codecs, codec, any_size);
    if ((*out)->codec != NULL || codecs->count < codecs->capacity / 2)
        return 0;
    int rc = grow_codecs(codecs);
    if (rc == 0)
        *out = cell_of_codec(codecs, codec, any_size);
    return rc;
}

/* ---- calls ---- */

int stk_codecs_scratch(struct stk_codecs *codecs, const stoker_codec *codec, bool any_size,
                       void **scratch, stoker_error *said)
{
    struct stk_codec_state *state;
    int rc = find_state(codecs, codec, any_size, &state);
    *scratch = NULL;
    if (rc == 0 && state->codec == NULL) {
        if (codec->open != NULL)
            rc = stk_callback_code(codec->open(codec->self, any_size, scratch), "open()", said);
        if (rc == 0) {
            *state = (struct stk_codec_state){ codec, any_size, *scratch };
            codecs->count++;
        }
    }
    if (rc == 0)
        *scratch = state->scratch;
    return rc;
}

/* The user's code may return any size. */
static int check_size(const struct stk_image_decoding *decoding, const char *call,
                      stoker_error *said)
{
    const stoker_size *size = &decoding->size;
    const bool fits =
        size->height >= 1 && size->width >= 1 && size->height <= STOKER_SOURCE_SIDE_MAX &&
        size->width <= STOKER_SOURCE_SIDE_MAX &&
        (uint64_t)size->height * size->width * decoding->channels <= decoding->bytes_max;
    return fits ? 0
                : stk_refuse(said, STOKER_ELIMIT, "%s returned %u x %u pixels", call, size->height,
                             size->width);
}

/* Returns true if [at, at + count) at that scale lies in a side, and holds what is wanted of it. */
static bool covers(uint32_t at, uint32_t count, uint32_t eighths, uint32_t side, uint32_t wanted_at,
                   uint32_t wanted_count)
{
    const uint64_t scaled = ((uint64_t)side * eighths + 7) / 8;
    const uint64_t from = (uint64_t)wanted_at * eighths / 8;
    const uint64_t to = (((uint64_t)wanted_at + wanted_count) * eighths + 7) / 8;
    return at <= from && to <= (uint64_t)at + count && (uint64_t)at + count <= scaled;
}

/* Check the region that the codec claims to have decoded: rows are made from it. */
static int check_region(const struct stk_image_decoding *decoding, const stoker_region *wanted,
                        stoker_error *said)
{
    const stoker_region *got = &decoding->got;
    const stoker_size *size = &decoding->size;
    if (got->eighths >= wanted->eighths && got->eighths <= 8 &&
        covers(got->y, got->height, got->eighths, size->height, wanted->y, wanted->height) &&
        covers(got->x, got->width, got->eighths, size->width, wanted->x, wanted->width))
        return 0;
    return stk_refuse(said, STOKER_ELIMIT, "decode() returned %u x %u pixels at %u, %u",
                      got->height, got->width, got->y, got->x);
}

/* Refuse an image that does not have the row's size, as a codec does that decodes one size. */
static int check_one_size(const struct stk_image_decoding *decoding, stoker_error *said)
{
    const stoker_size *size = &decoding->size, *expected = &decoding->one_size;
    if (expected->height == 0 ||
        (size->height == expected->height && size->width == expected->width))
        return 0;
    return stk_refuse(said, STOKER_EFORMAT, "%u x %u pixels where %u x %u are expected",
                      size->height, size->width, expected->height, expected->width);
}

/* Find the image's size, and what is wanted of it. */
static int choose_region(const stoker_codec *codec, const stoker_encoded *encoded,
                         struct stk_image_decoding *decoding, stoker_region *wanted,
                         stoker_error *said)
{
    stoker_image_header header = { 0 };
    int rc = stk_codecs_probe(codec, encoded, false, &header, said);
    decoding->size = (stoker_size){ header.height, header.width };
    if (rc == 0)
        rc = check_one_size(decoding, said);
    if (rc == 0)
        rc = check_size(decoding, "probe()", said);
    if (rc == 0)
        decoding->choose(decoding->chooser, decoding->size, wanted);
    return rc;
}

int stk_codecs_decode_image(struct stk_codecs *codecs, const stoker_codec *codec,
                            const stoker_encoded *encoded, stoker_row *rows, uint32_t count,
                            struct stk_image_decoding *decoding, stoker_error *said)
{
    const bool in_part = codec->probe != NULL && decoding->choose != NULL;
    void *scratch;
    stoker_region wanted = { 0 };
    const stoker_decoded out = { .struct_size = sizeof(out),
                                 .rows = rows,
                                 .field_count = count,
                                 .sample_count = 1,
                                 .wanted = in_part ? &wanted : NULL,
                                 .got = &decoding->got };
    decoding->got = (stoker_region){ 0 };
    rows[0].bytes_max = decoding->bytes_max;
    int rc = stk_codecs_scratch(codecs, codec, true, &scratch, said);
    if (rc == 0 && in_part)
        rc = choose_region(codec, encoded, decoding, &wanted, said);
    if (rc == 0)
        rc = stk_callback_code(codec->decode(codec->self, scratch, encoded, &out, said), "decode()",
                               said);
    if (rc == 0 && !in_part) {
        decoding->size = (stoker_size){ decoding->got.height, decoding->got.width };
        wanted = (stoker_region){ 0, 0, decoding->got.height, decoding->got.width, 8 };
        rc = check_size(decoding, "decode()", said);
    }
    return rc == 0 ? check_region(decoding, &wanted, said) : rc;
}

int stk_codecs_verify(const stoker_codec *codec, const stoker_encoded *encoded, void *copy,
                      stoker_error *said)
{
    return stk_callback_code(codec->verify(codec->self, encoded, copy, said), "verify()", said);
}

int stk_codecs_probe(const stoker_codec *codec, const stoker_encoded *encoded, bool inspect,
                     stoker_image_header *header, stoker_error *said)
{
    *header = (stoker_image_header){ .format = STOKER_IMAGE_FORMAT_OTHER };
    return stk_callback_code(codec->probe(codec->self, encoded, inspect, header, said), "probe()",
                             said);
}
