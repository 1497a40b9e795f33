/* walk.c - see walk.h.
 *
 *   signature | IHDR | ... | IDAT IDAT ... | ... | IEND | ignored
 *
 *   chunk  =  length:4  type:4  body:length  CRC:4      big-endian
 */
#include "loader/codec/png/walk.h"

#include <assert.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/codec/png/png.h"
#include "loader/codec/refuse.h"

enum {
    IHDR = STK_PNG_TYPE('I', 'H', 'D', 'R'),
    IDAT = STK_PNG_TYPE('I', 'D', 'A', 'T'),
    IEND = STK_PNG_TYPE('I', 'E', 'N', 'D'),
    PLTE = STK_PNG_TYPE('P', 'L', 'T', 'E'),
    TRNS = STK_PNG_TYPE('t', 'R', 'N', 'S'),
    ANCILLARY = 0x20000000, /* type bit: a decoder may ignore the chunk */
    RESERVED = 0x00002000,  /* type bit: 0 in all versions of PNG */
    IHDR_BYTES = 13,
    COLOR_BYTES = 3, /* a color of a palette */
    COLORS_MAX = 256
};

#define NUMBER_MAX 0x7FFFFFFFU /* PNG's integers have 31 bits */

static const uint8_t signature[STK_PNG_SIGNATURE_BYTES] = { 0x89, 'P',  'N',  'G',
                                                            0x0D, 0x0A, 0x1A, 0x0A };

bool stk_png_chunk_at(const uint8_t *bytes, size_t size, size_t at, struct stk_png_chunk *out)
{
    assert(at <= size);
    if (size - at < STK_PNG_CHUNK_BYTES)
        return false;
    out->bytes = stk_load_be32(bytes + at);
    out->type = stk_load_be32(bytes + at + 4);
    out->body = bytes + at + 8;
    return out->bytes <= size - at - STK_PNG_CHUNK_BYTES;
}

static bool depth_fits_color(uint8_t depth, uint8_t color)
{
    switch (color) {
    case STK_PNG_GRAY:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case STK_PNG_PALETTE:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case STK_PNG_RGB:
    case STK_PNG_GRAY_ALPHA:
    case STK_PNG_RGBA:
        return depth == 8 || depth == 16;
    default:
        return false;
    }
}

static int check_header(const struct stk_png_header *header, const uint8_t *body,
                        const struct stk_image_limits *limits, stoker_error *error)
{
    if (header->width < 1 || header->width > NUMBER_MAX || header->height < 1 ||
        header->height > NUMBER_MAX)
        return stk_refuse(error, STOKER_EFORMAT, "IHDR: a size of %u x %u pixels is impossible",
                          header->height, header->width);
    if (!depth_fits_color(header->depth, header->color))
        return stk_refuse(error, STOKER_EFORMAT, "IHDR: color type %u cannot have %u bits",
                          header->color, header->depth);
    if (body[10] != 0 || body[11] != 0 || body[12] > 1)
        return stk_refuse(error, STOKER_EFORMAT, "IHDR: methods %u, %u, %u are unknown", body[10],
                          body[11], body[12]);
    if ((uint64_t)header->width * header->height > limits->pixels_max)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels, at most %llu allowed",
                          header->height, header->width, (unsigned long long)limits->pixels_max);
    return STOKER_OK;
}

static int read_header(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                       struct stk_png_header *out, stoker_error *error)
{
    const size_t looked = size < sizeof(signature) ? size : sizeof(signature);
    if (looked == 0)
        return stk_refuse(error, STOKER_ETRUNCATED, "an empty file");
    if (memcmp(bytes, signature, looked) != 0)
        return stk_refuse(error, STOKER_EMAGIC, "not a PNG file");
    struct stk_png_chunk chunk = { 0 };
    if (!stk_png_chunk_at(bytes, size, looked, &chunk) && size < STK_PNG_PROBE_BYTES)
        return stk_refuse(error, STOKER_ETRUNCATED, "the file ends inside IHDR");
    if (chunk.type != IHDR || chunk.bytes != IHDR_BYTES)
        return stk_refuse(error, STOKER_EFORMAT, "does not begin with IHDR");
    const struct stk_png_header header = {
        .width = stk_load_be32(chunk.body),
        .height = stk_load_be32(chunk.body + 4),
        .depth = chunk.body[8],
        .color = chunk.body[9],
        .interlaced = chunk.body[12] == 1,
    };
    int rc = check_header(&header, chunk.body, limits, error);
    if (rc == STOKER_OK)
        *out = header;
    return rc;
}

/* The four letters of a type for messages, with dots for other characters. */
struct type_name {
    char letters[5];
};

static bool is_letter(uint8_t byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

static struct type_name name_of(uint32_t type)
{
    struct type_name name = { "...." };
    for (int i = 0; i < 4; i++) {
        const uint8_t letter = (uint8_t)(type >> (24 - 8 * i));
        if (is_letter(letter))
            name.letters[i] = (char)letter;
    }
    return name;
}

/* Returns true for the only palette of an image of palette indices, before the pixels, of a length
 * that suits 8 bits. */
static bool is_palette(const struct stk_png_walk *walk, const struct stk_png_chunk *chunk)
{
    return chunk->type == PLTE && walk->header.color == STK_PNG_PALETTE && !walk->has_palette &&
           walk->idat_runs == 0 && chunk->bytes > 0 && chunk->bytes % COLOR_BYTES == 0 &&
           chunk->bytes <= COLOR_BYTES * COLORS_MAX;
}

/* Record a chunk other than IHDR and IEND. */
static int take(struct stk_png_walk *walk, const struct stk_png_chunk *chunk, size_t at,
                bool after_idat, uint32_t *others, const struct stk_image_limits *limits,
                stoker_error *error)
{
    if (chunk->type == IDAT) {
        if (walk->idat_runs == 0)
            walk->idat_at = at;
        if (!after_idat)
            walk->idat_runs++;
        walk->idat_count++;
        walk->idat_bytes += chunk->bytes;
        return STOKER_OK;
    }
    /* Some versions of libpng refuse the reserved bit (1.6.48), others do not (1.6.39): what is
     * right must not depend on that. */
    if (strchr(name_of(chunk->type).letters, '.') != NULL || (chunk->type & RESERVED) != 0)
        return stk_refuse(error, STOKER_EFORMAT, "no chunk type at byte %zu", at);
    if (++*others > limits->chunks_max)
        return stk_refuse(error, STOKER_ELIMIT, "more than %u chunks", limits->chunks_max);
    if (chunk->bytes > limits->chunk_bytes_max)
        return stk_refuse(error, STOKER_ELIMIT, "%s: %u bytes, at most %u allowed",
                          name_of(chunk->type).letters, chunk->bytes, limits->chunk_bytes_max);
    if (is_palette(walk, chunk))
        walk->has_palette = true;
    else if ((chunk->type & ANCILLARY) == 0 || chunk->type == TRNS)
        walk->plain = false;
    return STOKER_OK;
}

/* There is no complete chunk at `at`: report what is missing. */
static int incomplete(const uint8_t *bytes, size_t size, size_t at, stoker_error *error)
{
    if (size - at < 8)
        return stk_refuse(error, STOKER_ETRUNCATED, "the file ends before IEND");
    const struct type_name name = name_of(stk_load_be32(bytes + at + 4));
    if (stk_load_be32(bytes + at) > NUMBER_MAX)
        return stk_refuse(error, STOKER_EFORMAT, "%s at byte %zu: a length over 2^31", name.letters,
                          at);
    return stk_refuse(error, STOKER_ETRUNCATED, "the file ends inside %s, begun at byte %zu",
                      name.letters, at);
}

int stk_png_walk(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                 struct stk_png_walk *out, stoker_error *error)
{
    struct stk_png_walk walk = { .plain = true };
    int rc = read_header(bytes, size, limits, &walk.header, error);
    if (rc != STOKER_OK)
        return rc;
    uint32_t others = 0;
    bool after_idat = false;
    size_t at = STK_PNG_PROBE_BYTES;
    struct stk_png_chunk chunk;
    while (stk_png_chunk_at(bytes, size, at, &chunk)) {
        if (chunk.type == IEND) {
            if (walk.idat_runs == 0)
                return stk_refuse(error, STOKER_EFORMAT, "no IDAT: no pixels");
            walk.plain = walk.plain && chunk.bytes == 0;
            *out = walk;
            return STOKER_OK;
        }
        rc = take(&walk, &chunk, at, after_idat, &others, limits, error);
        if (rc != STOKER_OK)
            return rc;
        after_idat = chunk.type == IDAT;
        at += STK_PNG_CHUNK_BYTES + (size_t)chunk.bytes;
    }
    return incomplete(bytes, size, at, error);
}

/* The CRC-32 of IHDR, one bit at a time: it is short, and a probe must not need a library. */
static bool header_sum_is_right(const uint8_t *bytes)
{
    const uint8_t *type = bytes + STK_PNG_SIGNATURE_BYTES + 4;
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < 4 + IHDR_BYTES; i++) {
        sum ^= type[i];
        for (int bit = 0; bit < 8; bit++)
            sum = (sum >> 1) ^ (0xEDB88320U & (0U - (sum & 1)));
    }
    return ~sum == stk_load_be32(type + 4 + IHDR_BYTES);
}

int stk_codec_png_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                        struct stk_image_shape *out, stoker_error *error)
{
    const struct stk_image_limits none = { 0 };
    const struct stk_image_limits checked = stk_image_limits(limits == NULL ? &none : limits);
    struct stk_png_header header;
    int rc = read_header(bytes, size, &checked, &header, error);
    if (rc != STOKER_OK)
        return rc;
    if (!header_sum_is_right(bytes))
        return stk_refuse(error, STOKER_ECORRUPT, "IHDR fails its CRC");
    const bool alpha = header.color == STK_PNG_GRAY_ALPHA || header.color == STK_PNG_RGBA;
    *out = (struct stk_image_shape){
        .height = header.height,
        .width = header.width,
        .channels = alpha                          ? 4
                    : header.color == STK_PNG_GRAY ? 1
                                                   : 3,
    };
    return STOKER_OK;
}
