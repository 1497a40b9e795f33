/* walk.c - see walk.h.
 *
 *   SOI | segment | ... | SOF | ... | SOS pixels | ... | SOS pixels | EOI | ignored
 *
 *   marker   =  FF xx            xx neither 00 nor FF
 *   segment  =  marker  length:2 (itself included)  body
 *   pixels   =  bytes in which FF is followed by 00 or a restart marker
 */
#include "loader/codec/jpeg/walk.h"

#include <stdbool.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/codec/jpeg/jpeg.h"
#include "loader/codec/refuse.h"

enum {
    TEM = 0x01,
    SOF0 = 0xC0, /* baseline */
    SOF1 = 0xC1, /* extended */
    SOF2 = 0xC2, /* progressive */
    DHT = 0xC4,
    JPG = 0xC8,
    SOF9 = 0xC9,  /* extended, arithmetic coding */
    SOF10 = 0xCA, /* progressive, arithmetic coding */
    DAC = 0xCC,
    SOF15 = 0xCF,
    RST0 = 0xD0,
    SOI = 0xD8,
    EOI = 0xD9,
    SOS = 0xDA,
    SOF_BYTES_MIN = 8
};

struct walking {
    const uint8_t *bytes;
    size_t size;
    size_t at; /* behind the marker found last */
    const struct stk_image_limits *limits;
    struct stk_jpeg_walk seen; /* width 0: no frame header yet */
    stoker_error *error;
};

/* Find the next marker and step behind it; -1 if the file ends first. */
static int next_marker(struct walking *walking)
{
    const uint8_t *end = walking->bytes + walking->size;
    const uint8_t *at = walking->bytes + walking->at;
    while ((at = memchr(at, 0xFF, (size_t)(end - at))) != NULL) {
        while (at < end && *at == 0xFF) /* as many as there are */
            at++;
        if (at == end)
            break;
        if (*at++ != 0) {
            walking->at = (size_t)(at - walking->bytes);
            return at[-1];
        }
    }
    return -1;
}

static bool stands_alone(int marker)
{
    return marker == TEM || (marker >= RST0 && marker <= EOI);
}

static bool begins_frame(int marker)
{
    return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

static int take_frame(struct walking *walking, int marker, uint32_t bytes)
{
    stoker_error *error = walking->error;
    if (marker > SOF2 && marker != SOF9 && marker != SOF10)
        return stk_refuse(error, STOKER_EFORMAT, "a lossless or hierarchical frame (SOF%d)",
                          marker - SOF0);
    if (walking->seen.width != 0)
        return stk_refuse(error, STOKER_EFORMAT, "a second frame at byte %zu", walking->at);
    if (bytes < SOF_BYTES_MIN)
        return stk_refuse(error, STOKER_EFORMAT, "a frame header cannot have %u bytes", bytes);
    const uint8_t *body = walking->bytes + walking->at + 2;
    struct stk_jpeg_walk *seen = &walking->seen;
    seen->height = stk_load_be16(body + 1);
    seen->width = stk_load_be16(body + 3);
    seen->components = body[5];
    if (seen->height == 0 || seen->width == 0)
        return stk_refuse(error, STOKER_EFORMAT, "a size of %u x %u pixels is impossible",
                          seen->height, seen->width);
    if (body[0] != 8)
        return stk_refuse(error, STOKER_EFORMAT, "%u bits a sample: only 8 can be decoded",
                          body[0]);
    if (seen->components != 1 && seen->components != 3 && seen->components != 4)
        return stk_refuse(error, STOKER_EFORMAT, "%u components: not gray, color or CMYK",
                          seen->components);
    if ((uint64_t)seen->height * seen->width > walking->limits->pixels_max)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels, at most %llu allowed",
                          seen->height, seen->width,
                          (unsigned long long)walking->limits->pixels_max);
    return STOKER_OK;
}

static int take_segment(struct walking *walking, int marker)
{
    const size_t left = walking->size - walking->at;
    const uint32_t bytes = left < 2 ? 0 : stk_load_be16(walking->bytes + walking->at);
    if (left < 2 || bytes > left)
        return stk_refuse(walking->error, STOKER_ETRUNCATED,
                          "the file ends inside a segment, begun at byte %zu", walking->at - 2);
    if (bytes < 2)
        return stk_refuse(walking->error, STOKER_EFORMAT,
                          "a segment cannot have the %u bytes that it has at byte %zu", bytes,
                          walking->at - 2);
    int rc = STOKER_OK;
    if (begins_frame(marker))
        rc = take_frame(walking, marker, bytes);
    if (marker == SOS && ++walking->seen.scans > walking->limits->scans_max)
        rc = stk_refuse(walking->error, STOKER_ELIMIT, "more than %u scans",
                        walking->limits->scans_max);
    walking->at += bytes;
    return rc;
}

static int begin(struct walking *walking)
{
    static const uint8_t magic[] = { 0xFF, SOI, 0xFF };
    const size_t looked = walking->size < sizeof(magic) ? walking->size : sizeof(magic);
    if (looked == 0)
        return stk_refuse(walking->error, STOKER_ETRUNCATED, "an empty file");
    if (memcmp(walking->bytes, magic, looked) != 0)
        return stk_refuse(walking->error, STOKER_EMAGIC, "not a JPEG file");
    walking->at = looked < 2 ? looked : 2;
    return STOKER_OK;
}

/* Walk to the first frame header: no scans are counted. */
static int read_header(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                       struct stk_jpeg_walk *out, stoker_error *error)
{
    struct walking walking = { .bytes = bytes, .size = size, .limits = limits, .error = error };
    int rc = begin(&walking);
    while (rc == STOKER_OK && walking.seen.width == 0) {
        const int marker = next_marker(&walking);
        if (marker < 0)
            return stk_refuse(error, STOKER_ETRUNCATED, "the file ends before its frame header");
        if (marker == SOS || marker == EOI)
            return stk_refuse(error, STOKER_EFORMAT, "no frame header before the pixels");
        if (!stands_alone(marker))
            rc = take_segment(&walking, marker);
    }
    if (rc == STOKER_OK)
        *out = walking.seen;
    return rc;
}

int stk_jpeg_walk(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                  struct stk_jpeg_walk *out, stoker_error *error)
{
    struct walking walking = { .bytes = bytes, .size = size, .limits = limits, .error = error };
    int rc = begin(&walking);
    while (rc == STOKER_OK) {
        const int marker = next_marker(&walking);
        if (marker < 0)
            return stk_refuse(error, STOKER_ETRUNCATED, "the file ends before its end marker");
        if (marker == EOI)
            break;
        if (!stands_alone(marker))
            rc = take_segment(&walking, marker);
    }
    if (rc == STOKER_OK && (walking.seen.width == 0 || walking.seen.scans == 0))
        rc = stk_refuse(error, STOKER_EFORMAT, "the end marker comes before the pixels");
    if (rc == STOKER_OK)
        *out = walking.seen;
    return rc;
}

int stk_codec_jpeg_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                         struct stk_image_shape *out, stoker_error *error)
{
    const struct stk_image_limits none = { 0 };
    const struct stk_image_limits checked = stk_image_limits(limits == NULL ? &none : limits);
    struct stk_jpeg_walk seen;
    int rc = read_header(bytes, size, &checked, &seen, error);
    if (rc != STOKER_OK)
        return rc;
    *out = (struct stk_image_shape){
        .height = seen.height,
        .width = seen.width,
        .channels = seen.components == 1 ? 1 : 3,
    };
    return STOKER_OK;
}
