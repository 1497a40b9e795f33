/* fast.c - see fast.h. Of libdeflate it uses only CRC-32.
 *
 *   file       [IHDR]...[IDAT][IDAT]...[IEND]     every CRC is checked
 *                           |  bodies joined, if there is more than one
 *   packed     [ zlib stream            ]
 *                           |  inflated in one go, Adler-32 checked
 *   filtered   [t|row][t|row]...[t|row]           t = filter type
 *                           |  unfiltered
 *   row        [row][row]...[row]
 */
#include "loader/codec/png/fast.h"

#ifdef STOKER_HAVE_DEFLATE
#include <assert.h>
#include <libdeflate.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/codec/png/inflate.h"
#include "loader/codec/png/paeth.h"
#include "loader/codec/png/unfilter.h"

enum { IDAT = STK_PNG_TYPE('I', 'D', 'A', 'T'), IEND = STK_PNG_TYPE('I', 'E', 'N', 'D') };

struct stk_png_fast {
    struct stk_inflate inflate;
    stk_png_unfilter_fn *unfilter;
    struct stk_png_room room;
    uint8_t *zeros;
    uint8_t *filtered; /* overwritten by each file */
    uint8_t *packed;   /* the joined bodies of several IDAT chunks, and slack */
    size_t packed_bytes_max;
};

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Stored blocks add 5 bytes per 64 KiB; a file packed worse than this takes the full path. */
static size_t packed_bytes_of(const struct stk_png_room *room)
{
    return room->filtered_bytes + room->filtered_bytes / 256 + 1024;
}

size_t stk_png_fast_bytes(const struct stk_png_room *room)
{
    return aligned(sizeof(struct stk_png_fast)) +
           aligned(room->stride_bytes + STK_PNG_SLACK_BYTES) +
           aligned(room->filtered_bytes + STK_INFLATE_OUT_SLACK_BYTES) +
           aligned(packed_bytes_of(room) + STK_INFLATE_IN_SLACK_BYTES);
}

struct stk_png_fast *stk_png_fast_init(void *memory, const struct stk_png_room *room)
{
    struct stk_png_fast *fast = memory;
    fast->room = *room;
    fast->zeros = (uint8_t *)memory + aligned(sizeof(*fast));
    fast->filtered = fast->zeros + aligned(room->stride_bytes + STK_PNG_SLACK_BYTES);
    fast->packed = fast->filtered + aligned(room->filtered_bytes + STK_INFLATE_OUT_SLACK_BYTES);
    fast->packed_bytes_max = packed_bytes_of(room);
    fast->unfilter = stk_png_unfilter_best();
    return fast;
}

bool stk_png_fast_takes(const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                        bool values)
{
    const struct stk_png_header *header = &walk->header;
    const uint32_t colour = values && walk->has_palette ? STK_PNG_PALETTE
                            : shape->channels == 1      ? STK_PNG_GRAY
                            : shape->channels == 3      ? STK_PNG_RGB
                                                        : STK_PNG_RGBA;
    return walk->plain && walk->idat_runs == 1 && !header->interlaced && header->depth == 8 &&
           header->colour == colour;
}

static bool sum_is_right(const struct stk_png_chunk *chunk)
{
    const uint32_t sum = libdeflate_crc32(0, chunk->body - 4, (size_t)chunk->bytes + 4);
    return sum == stk_load_be32(chunk->body + chunk->bytes);
}

/* Check all CRCs and return the zlib stream: in the file if it is in one chunk, else joined. In the
 * file, the CRC and IEND after it are its slack. */
static_assert((int)STK_INFLATE_IN_SLACK_BYTES <= 4 + STK_PNG_CHUNK_BYTES, "a CRC and IEND");
static_assert((int)STK_PNG_SLACK_BYTES <= (int)STK_INFLATE_OUT_SLACK_BYTES,
              "the unfilters read there");

static const uint8_t *gather(const struct stk_png_fast *fast, const uint8_t *bytes, size_t size,
                             const struct stk_png_walk *walk)
{
    const bool joined = walk->idat_count > 1;
    if (joined && walk->idat_bytes > fast->packed_bytes_max)
        return NULL;
    const uint8_t *stream = joined ? fast->packed : NULL;
    size_t packed = 0;
    size_t at = STK_PNG_SIGNATURE_BYTES;
    for (;;) {
        struct stk_png_chunk chunk;
        const bool whole = stk_png_chunk_at(bytes, size, at, &chunk);
        assert(whole); /* checked by the walk */
        if (!whole || !sum_is_right(&chunk))
            return NULL;
        if (chunk.type == IEND)
            return stream;
        if (chunk.type == IDAT && !joined) {
            stream = chunk.body;
        } else if (chunk.type == IDAT) {
            assert(packed + chunk.bytes <= fast->packed_bytes_max);
            memcpy(fast->packed + packed, chunk.body, chunk.bytes);
            packed += chunk.bytes;
        }
        at += STK_PNG_CHUNK_BYTES + (size_t)chunk.bytes;
    }
}

/* The same check as the unfilter's, of the rows below. */
static bool types_are_valid(const struct stk_png_filtered *image, uint32_t height)
{
    uint8_t highest = 0;
    for (uint32_t y = image->height; y < height; y++) {
        const uint8_t type = image->bytes[y * (image->stride + 1)];
        highest = type > highest ? type : highest;
    }
    return highest <= STK_PNG_PAETH;
}

bool stk_png_fast_decode(struct stk_png_fast *fast, const uint8_t *bytes, size_t size,
                         const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                         uint32_t rows, uint8_t *row)
{
    const uint8_t *stream = gather(fast, bytes, size, walk);
    if (stream == NULL)
        return false;
    const struct stk_png_room image = stk_png_room_of(shape);
    const struct stk_png_filtered filtered = {
        .bytes = fast->filtered,
        .zeros = fast->zeros,
        .stride = image.stride_bytes,
        .height = rows,
        .pixel_bytes = shape->channels,
    };
    assert(image.stride_bytes <= fast->room.stride_bytes);
    assert(image.filtered_bytes <= fast->room.filtered_bytes);
    return stk_inflate(&fast->inflate, stream, walk->idat_bytes, fast->filtered,
                       image.filtered_bytes) &&
           fast->unfilter(&filtered, row) && types_are_valid(&filtered, shape->height);
}

#else

size_t stk_png_fast_bytes(const struct stk_png_room *room)
{
    (void)room;
    return 0;
}

struct stk_png_fast *stk_png_fast_init(void *memory, const struct stk_png_room *room)
{
    (void)memory;
    (void)room;
    return NULL;
}

bool stk_png_fast_takes(const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                        bool values)
{
    (void)walk;
    (void)shape;
    (void)values;
    return false;
}

bool stk_png_fast_decode(struct stk_png_fast *fast, const uint8_t *bytes, size_t size,
                         const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                         uint32_t rows, uint8_t *row)
{
    (void)fast;
    (void)bytes;
    (void)size;
    (void)walk;
    (void)shape;
    (void)rows;
    (void)row;
    return false;
}

#endif
