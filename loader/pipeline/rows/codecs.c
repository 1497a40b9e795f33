/* codecs.c - see codecs.h. */
#include "loader/pipeline/rows/codecs.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/base/struct_size.h"

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
static struct stk_codec_state *place_of(const struct stk_codecs *codecs, const stoker_codec *codec,
                                        bool any_size)
{
    uint32_t at = (uint32_t)stk_mix64((uintptr_t)codec + any_size) & (codecs->capacity - 1);
    while (codecs->states[at].codec != NULL &&
           (codecs->states[at].codec != codec || codecs->states[at].any_size != any_size))
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
            *place_of(&larger, codecs->states[i].codec, codecs->states[i].any_size) =
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
    *out = place_of(codecs, codec, any_size);
    if ((*out)->codec != NULL || codecs->count < codecs->capacity / 2)
        return 0;
    int rc = grow(codecs);
    if (rc == 0)
        *out = place_of(codecs, codec, any_size);
    return rc;
}

/* ---- calls ---- */

static int open_codec(const stoker_codec *codec, bool any_size, void **scratch)
{
    if (any_size)
        return codec->open_any == NULL ? 0 : codec->open_any(codec->self, scratch);
    return codec->open == NULL ? 0 : codec->open(codec->self, scratch);
}

/* The scratch for a codec, opened on first use. */
static int find_scratch(struct stk_codecs *codecs, const stoker_codec *codec, bool any_size,
                        void **scratch, stoker_error *said)
{
    struct stk_codec_state *state;
    int rc = find_state(codecs, codec, any_size, &state);
    if (rc == 0 && state->codec == NULL) {
        rc = stk_callback_code(open_codec(codec, any_size, scratch), "open()", said);
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
static int check_size(const struct stk_decoding *decoding, const char *call, stoker_error *said)
{
    const stoker_size *size = &decoding->size;
    const bool fits =
        size->height >= 1 && size->width >= 1 && size->height <= STOKER_SOURCE_SIDE_MAX &&
        size->width <= STOKER_SOURCE_SIDE_MAX &&
        (uint64_t)size->height * size->width * decoding->channels <= decoding->bytes_max;
    if (fits)
        return 0;
    (void)snprintf(said->message, sizeof(said->message), "%s returned %u x %u pixels", call,
                   size->height, size->width);
    return STOKER_ELIMIT;
}

static int decode_any(const stoker_codec *codec, void *scratch, const stoker_encoded *encoded,
                      struct stk_decoding *decoding, stoker_error *said)
{
    stoker_size *size = &decoding->size;
    int rc = codec->decode_any(codec->self, scratch, encoded, decoding->to, decoding->bytes_max,
                               size, said);
    rc = stk_callback_code(rc, "decode_any()", said);
    if (rc == 0)
        rc = check_size(decoding, "decode_any()", said);
    decoding->got = (stoker_region){ 0, 0, size->height, size->width, 8 };
    return rc;
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
static int check_region(const struct stk_decoding *decoding, const stoker_region *wanted,
                        stoker_error *said)
{
    const stoker_region *got = &decoding->got;
    const stoker_size *size = &decoding->size;
    if (got->eighths >= wanted->eighths && got->eighths <= 8 &&
        covers(got->y, got->height, got->eighths, size->height, wanted->y, wanted->height) &&
        covers(got->x, got->width, got->eighths, size->width, wanted->x, wanted->width))
        return 0;
    (void)snprintf(said->message, sizeof(said->message),
                   "decode_region() returned %u x %u pixels at %u, %u", got->height, got->width,
                   got->y, got->x);
    return STOKER_ELIMIT;
}

static bool is_one_size(const struct stk_decoding *decoding)
{
    return decoding->one_size.height != 0;
}

/* Refuse an image that does not have the row's size, as a codec's decode() does. */
static int check_one_size(const struct stk_decoding *decoding, stoker_error *said)
{
    const stoker_size *size = &decoding->size, *expected = &decoding->one_size;
    if (!is_one_size(decoding) ||
        (size->height == expected->height && size->width == expected->width))
        return 0;
    (void)snprintf(said->message, sizeof(said->message),
                   "%u x %u pixels where %u x %u are expected", size->height, size->width,
                   expected->height, expected->width);
    return STOKER_EFORMAT;
}

/* Find the image's size, and what is wanted of it. */
static int choose_region(const stoker_codec *codec, void *scratch, const stoker_encoded *encoded,
                         struct stk_decoding *decoding, stoker_region *wanted, stoker_error *said)
{
    int rc = codec->measure(codec->self, scratch, encoded, &decoding->size, said);
    rc = stk_callback_code(rc, "measure()", said);
    if (rc == 0)
        rc = check_one_size(decoding, said);
    if (rc == 0)
        rc = check_size(decoding, "measure()", said);
    if (rc == 0)
        decoding->choose(decoding->chooser, decoding->size, wanted);
    return rc;
}

static int decode_region(const stoker_codec *codec, void *scratch, const stoker_encoded *encoded,
                         struct stk_decoding *decoding, stoker_error *said)
{
    stoker_region wanted;
    int rc = choose_region(codec, scratch, encoded, decoding, &wanted, said);
    if (rc < 0)
        return rc;
    rc = codec->decode_region(codec->self, scratch, encoded, &wanted, decoding->to,
                              decoding->bytes_max, &decoding->got, said);
    rc = stk_callback_code(rc, "decode_region()", said);
    return rc == 0 ? check_region(decoding, &wanted, said) : rc;
}

int stk_codecs_decode(struct stk_codecs *codecs, const stoker_codec *codec,
                      const stoker_encoded *encoded, struct stk_decoding *decoding,
                      stoker_error *said)
{
    void *scratch = NULL;
    const bool by_region = codec->decode_region != NULL && decoding->choose != NULL;
    decoding->in_own_size =
        codec->decode_any != NULL && (decoding->any_size || (is_one_size(decoding) && by_region));
    decoding->size = (stoker_size){ 0, 0 };
    int rc = find_scratch(codecs, codec, decoding->in_own_size, &scratch, said);
    if (rc < 0)
        return rc;
    if (decoding->in_own_size && by_region)
        return decode_region(codec, scratch, encoded, decoding, said);
    if (decoding->in_own_size)
        return decode_any(codec, scratch, encoded, decoding, said);
    rc = codec->decode(codec->self, scratch, encoded, decoding->to, decoding->row_bytes, said);
    return stk_callback_code(rc, "decode()", said);
}

bool stk_codecs_has_parts(const stoker_codec *codec, const struct stk_decoding *decoding)
{
    /* An older, shorter table ends before it. */
    return codec->struct_size >=
               offsetof(stoker_codec, decode_region_fields) + sizeof(codec->decode_region_fields) &&
           codec->decode_region_fields != NULL && codec->measure != NULL &&
           decoding->choose != NULL && (decoding->any_size || is_one_size(decoding));
}

int stk_codecs_decode_fields(struct stk_codecs *codecs, const stoker_codec *codec,
                             const stoker_encoded *encoded, struct stk_decoding *decoding,
                             stoker_row *rows, uint32_t count, stoker_error *said)
{
    void *scratch = NULL;
    stoker_region wanted;
    assert(stk_codecs_has_parts(codec, decoding));
    decoding->in_own_size = true;
    int rc = find_scratch(codecs, codec, true, &scratch, said);
    if (rc == 0)
        rc = choose_region(codec, scratch, encoded, decoding, &wanted, said);
    if (rc < 0)
        return rc;
    rows[0].bytes_max = decoding->bytes_max;
    rc = codec->decode_region_fields(codec->self, scratch, encoded, &wanted, rows, count,
                                     &decoding->got, said);
    rc = stk_callback_code(rc, "decode_region_fields()", said);
    return rc == 0 ? check_region(decoding, &wanted, said) : rc;
}

int stk_codecs_scratch(struct stk_codecs *codecs, const stoker_codec *codec, void **scratch,
                       stoker_error *said)
{
    return find_scratch(codecs, codec, false, scratch, said);
}

int stk_codecs_verify(const stoker_codec *codec, const stoker_encoded *encoded, void *into,
                      stoker_error *said)
{
    if (codec == NULL || codec->verify == NULL)
        return 0;
    if (into != NULL)
        return stk_callback_code(codec->verify_into(codec->self, encoded, into, said),
                                 "verify_into()", said);
    return stk_callback_code(codec->verify(codec->self, encoded, said), "verify()", said);
}

bool stk_codecs_can_verify_into(const stoker_codec *codec)
{
    return codec != NULL && codec->struct_size >= STK_SIZE_UP_TO(stoker_codec, verify_into) &&
           codec->bytes_are_row && codec->verify != NULL && codec->verify_into != NULL;
}

bool stk_codecs_can_decode_run(const stoker_codec *codec)
{
    return codec != NULL &&
           codec->struct_size >= offsetof(stoker_codec, decode_run) + sizeof(codec->decode_run) &&
           codec->decode_run != NULL;
}

bool stk_codecs_can_inspect(const stoker_codec *codec)
{
    return codec != NULL &&
           codec->struct_size >= offsetof(stoker_codec, inspect) + sizeof(codec->inspect) &&
           codec->inspect != NULL;
}

int stk_codecs_inspect(const stoker_codec *codec, const stoker_encoded *encoded,
                       stoker_image_header *header, stoker_error *said)
{
    *header = (stoker_image_header){ .format = STOKER_IMAGE_FORMAT_OTHER };
    return stk_callback_code(codec->inspect(codec->self, encoded, header, said), "inspect()", said);
}
