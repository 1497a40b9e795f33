/* walk.c - see walk.h.
 *
 *   "RIFF" bytes:4 "WEBP" | chunk | chunk ...      bytes: length of the rest
 *
 *   chunk  =  name:4  bytes:4  body, and a 0 if bytes is odd
 *   VP8    =  a lossy frame, the only chunk or after VP8X
 *   VP8L   =  a lossless frame, likewise
 *   VP8X   =  flags:1  0:3  width - 1:3  height - 1:3; other chunks and one frame follow
 */
#include "loader/codec/webp/walk.h"

#include <string.h>

#include "loader/base/bytes.h"
#include "loader/codec/refuse.h"
#include "loader/codec/webp/webp.h"

#define NAME(a, b, c, d)                                                                           \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

enum {
    RIFF_BYTES = 12,
    CHUNK_BYTES = 8, /* before the body */
    VP8X_BYTES = 10,
    VP8_BYTES = 10,
    VP8L_BYTES = 5,
    FLAG_ANIMATION = 0x02,
    FLAG_ALPHA = 0x10
};

struct walking {
    const uint8_t *bytes;
    size_t size; /* bytes available */
    size_t end;  /* length of the file by its header */
    size_t at;   /* offset of the next chunk */
    const struct stk_image_limits *limits;
    struct stk_webp_walk seen; /* width 0: not found yet */
    stoker_error *error;
};

struct chunk {
    uint32_t name;
    uint32_t bytes;
    const uint8_t *body;
};

static uint32_t load_le24(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
}

static int truncated(const struct walking *walking)
{
    return stk_refuse(walking->error, STOKER_ETRUNCATED, "the file ends inside a chunk at byte %zu",
                      walking->at);
}

static int begin(struct walking *walking)
{
    static const char magic[] = "RIFF\0\0\0\0WEBP";
    const size_t looked = walking->size < RIFF_BYTES ? walking->size : RIFF_BYTES;
    for (size_t i = 0; i < looked; i++)
        if ((i < 4 || i >= 8) && walking->bytes[i] != (uint8_t)magic[i])
            return stk_refuse(walking->error, STOKER_EMAGIC, "not a WebP file");
    if (looked < RIFF_BYTES)
        return stk_refuse(walking->error, STOKER_ETRUNCATED, "the file ends after %zu bytes",
                          looked);
    walking->end = (size_t)stk_load_le32(walking->bytes + 4) + CHUNK_BYTES;
    walking->at = RIFF_BYTES;
    return STOKER_OK;
}

/* Find the next chunk and check that its first `needed` bytes are available. */
static int next_chunk(struct walking *walking, size_t needed, struct chunk *out)
{
    if (walking->at > walking->end || walking->end - walking->at < CHUNK_BYTES)
        return stk_refuse(walking->error, STOKER_EFORMAT, "no image among its chunks");
    if (walking->at > walking->size || walking->size - walking->at < CHUNK_BYTES)
        return truncated(walking);
    const uint8_t *at = walking->bytes + walking->at;
    *out = (struct chunk){ stk_load_le32(at), stk_load_le32(at + 4), at + CHUNK_BYTES };
    if (out->bytes > walking->end - walking->at - CHUNK_BYTES)
        return stk_refuse(walking->error, STOKER_EFORMAT,
                          "the chunk at byte %zu is longer than the file", walking->at);
    if (out->bytes < needed)
        return stk_refuse(walking->error, STOKER_EFORMAT, "a chunk of %u bytes at byte %zu",
                          out->bytes, walking->at);
    if (walking->size - walking->at - CHUNK_BYTES < needed)
        return truncated(walking);
    walking->at += CHUNK_BYTES + (size_t)out->bytes + out->bytes % 2;
    return STOKER_OK;
}

static int take_size(struct walking *walking, uint32_t width, uint32_t height)
{
    struct stk_webp_walk *seen = &walking->seen;
    if (width == 0 || height == 0)
        return stk_refuse(walking->error, STOKER_EFORMAT, "%u x %u pixels", height, width);
    if (seen->width != 0 && (seen->width != width || seen->height != height))
        return stk_refuse(walking->error, STOKER_EFORMAT,
                          "a frame of %u x %u pixels on a canvas of %u x %u", height, width,
                          seen->height, seen->width);
    if ((uint64_t)width * height > walking->limits->pixels_max)
        return stk_refuse(walking->error, STOKER_ELIMIT, "%u x %u pixels, at most %llu allowed",
                          height, width, (unsigned long long)walking->limits->pixels_max);
    seen->width = width;
    seen->height = height;
    return STOKER_OK;
}

static int take_lossy(struct walking *walking, const uint8_t *body)
{
    static const uint8_t start[] = { 0x9D, 0x01, 0x2A };
    if ((body[0] & 1) != 0 || memcmp(body + 3, start, sizeof(start)) != 0)
        return stk_refuse(walking->error, STOKER_EFORMAT, "the lossy image is no key frame");
    return take_size(walking, stk_load_le32(body + 6) & 0x3FFF,
                     stk_load_le32(body + 6) >> 16 & 0x3FFF);
}

static int take_lossless(struct walking *walking, const uint8_t *body)
{
    const uint32_t bits = stk_load_le32(body + 1);
    if (body[0] != 0x2F || bits >> 29 != 0)
        return stk_refuse(walking->error, STOKER_EFORMAT,
                          "the lossless image is of no known version");
    walking->seen.alpha = walking->seen.alpha || (bits >> 28 & 1) != 0;
    return take_size(walking, (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1);
}

static int take_canvas(struct walking *walking, const uint8_t *body)
{
    if ((body[0] & FLAG_ANIMATION) != 0)
        return stk_refuse(walking->error, STOKER_EFORMAT,
                          "an animated WebP file: only still images can be decoded");
    walking->seen.alpha = (body[0] & FLAG_ALPHA) != 0;
    return take_size(walking, load_le24(body + 4) + 1, load_le24(body + 7) + 1);
}

static size_t needed_of(uint32_t name)
{
    return name == NAME('V', 'P', '8', ' ')   ? VP8_BYTES
           : name == NAME('V', 'P', '8', 'L') ? VP8L_BYTES
           : name == NAME('V', 'P', '8', 'X') ? VP8X_BYTES
                                              : 0;
}

/* Walk to the frame; for a probe, only to the first chunk with the size. */
static int find_image(struct walking *walking, bool probing)
{
    int rc = begin(walking);
    for (bool first = true; rc == STOKER_OK; first = false) {
        struct chunk chunk;
        uint32_t name = 0;
        if (walking->size > walking->at && walking->size - walking->at >= CHUNK_BYTES)
            name = stk_load_le32(walking->bytes + walking->at);
        rc = next_chunk(walking, needed_of(name), &chunk);
        if (rc != STOKER_OK)
            break;
        if (name == NAME('V', 'P', '8', ' '))
            return take_lossy(walking, chunk.body);
        if (name == NAME('V', 'P', '8', 'L'))
            return take_lossless(walking, chunk.body);
        if (first != (name == NAME('V', 'P', '8', 'X')))
            return stk_refuse(walking->error, STOKER_EFORMAT, "no image and no VP8X in front");
        if (first)
            rc = take_canvas(walking, chunk.body);
        if (first && probing)
            return rc;
    }
    return rc;
}

int stk_webp_walk(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                  struct stk_webp_walk *out, stoker_error *error)
{
    struct walking walking = { .bytes = bytes, .size = size, .limits = limits, .error = error };
    int rc = find_image(&walking, false);
    if (rc == STOKER_OK && walking.end > size)
        rc = stk_refuse(error, STOKER_ETRUNCATED, "the file ends after %zu of %zu bytes", size,
                        walking.end);
    if (rc != STOKER_OK)
        return rc;
    *out = walking.seen;
    out->bytes = walking.end;
    return STOKER_OK;
}

int stk_codec_webp_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                         struct stk_image_shape *out, stoker_error *error)
{
    const struct stk_image_limits none = { 0 };
    const struct stk_image_limits checked = stk_image_limits(limits == NULL ? &none : limits);
    struct walking walking = { .bytes = bytes, .size = size, .limits = &checked, .error = error };
    const int rc = find_image(&walking, true);
    if (rc == STOKER_OK)
        *out = (struct stk_image_shape){ .height = walking.seen.height,
                                         .width = walking.seen.width,
                                         .channels = walking.seen.alpha ? 4 : 3 };
    return rc;
}
