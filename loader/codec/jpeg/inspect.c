/* inspect.c - see inspect.h. */
#include "loader/codec/jpeg/inspect.h"

#include <string.h>

#include "loader/base/bytes.h"
#include "loader/codec/jpeg/walk.h"

enum {
    SOF0 = 0xC0, /* baseline */
    SOF2 = 0xC2, /* progressive; SOF1 lies between: extended. All with Huffman codes */
    SOF10 = 0xCA,
    RST0 = 0xD0,
    SOI = 0xD8,
    SOS = 0xDA,
    APP0 = 0xE0,
    APP14 = 0xEE,
    TEM = 0x01,
    COMPONENT_BYTES = 3, /* in a frame header: id, sampling factors, table */
    FRAME_BYTES = 8,     /* before them, with the segment's length */
    ADOBE_BYTES = 14,    /* Adobe's segment, with its length */
    ADOBE_TRANSFORM_AT = 13,
    ADOBE_YCC = 1,
    FACTOR_MAX = 4
};

/* What decides how components become colors: libjpeg's default_decompress_parms(). */
struct seen {
    bool jfif, adobe;
    uint8_t transform; /* Adobe's */
    int frame;         /* marker of the frame header; 0 = none yet */
    uint8_t ids[3];
    uint8_t factors[3]; /* across x 16 + down */
};

static void take(struct seen *seen, int marker, const uint8_t *segment, size_t bytes)
{
    if (marker == APP0 && bytes >= 7 && memcmp(segment + 2, "JFIF", 5) == 0)
        seen->jfif = true;
    if (marker == APP14 && bytes >= ADOBE_BYTES && memcmp(segment + 2, "Adobe", 5) == 0) {
        seen->adobe = true;
        seen->transform = segment[ADOBE_TRANSFORM_AT];
    }
    if (marker < SOF0 || marker > SOF10 || bytes < FRAME_BYTES || seen->frame != 0)
        return;
    if (marker > SOF2 && marker != SOF10 && marker != SOF10 - 1)
        return; /* a table, or a frame that the walk refuses */
    seen->frame = marker;
    const uint8_t *component = segment + FRAME_BYTES;
    for (size_t i = 0; i < 3 && FRAME_BYTES + COMPONENT_BYTES * (i + 1) <= bytes; i++) {
        seen->ids[i] = component[COMPONENT_BYTES * i];
        seen->factors[i] = component[COMPONENT_BYTES * i + 1];
    }
}

/* The segments before the pixels of a file that has passed the walk. */
static struct seen look(const uint8_t *bytes, size_t size)
{
    struct seen seen = { .frame = 0 };
    size_t at = 2;
    while (at + 4 <= size) {
        if (bytes[at] != 0xFF || bytes[at + 1] == 0xFF || bytes[at + 1] == 0) {
            at++;
            continue;
        }
        const int marker = bytes[at + 1];
        at += 2;
        if (marker == TEM || (marker >= RST0 && marker <= SOI))
            continue;
        const size_t segment = stk_load_be16(bytes + at);
        if (marker == SOS || segment > size - at)
            break;
        take(&seen, marker, bytes + at, segment);
        at += segment;
    }
    return seen;
}

static bool is_ycc(const struct seen *seen)
{
    if (seen->jfif)
        return true;
    if (seen->adobe)
        return seen->transform == ADOBE_YCC;
    return seen->ids[0] == 1 && seen->ids[1] == 2 && seen->ids[2] == 3;
}

/* 4:4:4, 4:2:2, 4:2:0, 4:4:0, 4:1:1, 4:1:0: chroma has factors of 1. */
static bool is_common(const struct seen *seen)
{
    const unsigned across = seen->factors[0] >> 4, down = seen->factors[0] & 15;
    return seen->factors[1] == 0x11 && seen->factors[2] == 0x11 && across >= 1 &&
           across <= FACTOR_MAX && across != 3 && down >= 1 && down <= 2;
}

int stk_jpeg_inspect(const struct stk_image_codec *codec, const stoker_encoded *in,
                     stoker_image_header *header, stoker_error *error)
{
    const uint32_t channels = codec->options.shape.channels;
    struct stk_jpeg_walk walk;
    const int rc = stk_jpeg_walk(in->bytes, in->size, &codec->options.limits, &walk, error);
    if (rc != STOKER_OK)
        return rc;
    const struct seen seen = look(in->bytes, in->size);
    const bool huffman = seen.frame >= SOF0 && seen.frame <= SOF2;
    const bool gray = walk.components == 1 && channels == 1;
    const bool color = walk.components == 3 && channels == 3 && is_ycc(&seen) && is_common(&seen);
    *header = (stoker_image_header){ .format = STOKER_IMAGE_FORMAT_OTHER };
    if (huffman && (gray || color) && !codec->options.warnings_fail)
        *header = (stoker_image_header){ .format = STOKER_IMAGE_FORMAT_JPEG,
                                         .height = walk.height,
                                         .width = walk.width,
                                         .channels = channels };
    return STOKER_OK;
}
