/* png.c - see png.h: walk over the chunks, then the fast path, then the full one.
 *
 *   bytes ──▶ walk: limits, lengths ──▶ fast path ──▶ row
 *                 │ refused                 │ declined
 *                 ▼                         ▼
 *               error              full path (libpng) ──▶ row or error
 *
 * The fast path decodes 8-bit gray, RGB, RGBA and palette indices, not interlaced. It gives the
 * bytes of the full path, or declines. It needs libdeflate.
 *
 *   file       [IHDR]...[IDAT][IDAT]...[IEND]     every CRC is checked
 *                           |  bodies joined, if there is more than one
 *   packed     [ zlib stream            ]
 *                           |  inflated in one go, Adler-32 checked
 *   filtered   [t|row][t|row]...[t|row]           t = filter type
 *                           |  unfiltered
 *   row        [row][row]...[row]
 */
#include "loader/codec/png/png.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/fault.h"
#include "loader/base/memory/memory.h"
#include "loader/codec/png/full.h"
#include "loader/codec/png/paeth.h"
#include "loader/codec/png/unfilter.h"
#include "loader/codec/png/walk.h"
#include "loader/codec/refuse.h"

#if defined(STOKER_HAVE_DEFLATE) && STOKER_OWN_DECODERS
#define FAST_PATH 1
#include <libdeflate.h>
#endif

/* One worker's scratch: two regions whose pages are allocated when a file needs them. */
struct scratch {
#ifdef FAST_PATH
    struct libdeflate_decompressor *inflate; /* NULL: full_only */
    stk_png_unfilter_fn *unfilter;
    uint8_t *zeros;
    uint8_t *filtered; /* overwritten by each file */
    uint8_t *packed;   /* the joined bodies of several IDAT chunks */
    size_t packed_bytes_max;
    struct stk_region fast_memory; /* the three above */
#endif
    struct stk_region arena; /* libpng's */
};

/* The largest image that a scratch is opened for. */
struct room {
    size_t stride_bytes;   /* one row of pixels */
    size_t filtered_bytes; /* all rows, each with a filter byte */
};

static struct room room_of(const struct stk_image_shape *shape)
{
    const size_t stride = (size_t)shape->width * shape->channels;
    return (struct room){ stride, shape->height * (stride + 1) };
}

/* ---- the fast path ----------------------------------------------------------------- */

#ifdef FAST_PATH
enum { IDAT = STK_PNG_TYPE('I', 'D', 'A', 'T'), IEND = STK_PNG_TYPE('I', 'E', 'N', 'D') };

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int open_fast(struct scratch *own, const struct room *room)
{
    const size_t zeros_bytes = aligned(room->stride_bytes + STK_PNG_SLACK_BYTES);
    const size_t filtered_bytes = aligned(room->filtered_bytes + STK_PNG_SLACK_BYTES);
    /* Stored blocks add 5 bytes per 64 KiB; a file packed worse than this takes the full path. */
    own->packed_bytes_max = room->filtered_bytes + room->filtered_bytes / 256 + 1024;
    own->unfilter = stk_png_unfilter_best();
    /* libdeflate allocates by itself; the tests let that fail too. */
    own->inflate = stk_fault_hit(STK_FAULT_MEMORY) ? NULL : libdeflate_alloc_decompressor();
    if (own->inflate == NULL)
        return STOKER_ENOMEM;
    const int rc = stk_region_map(&own->fast_memory,
                                  zeros_bytes + filtered_bytes + aligned(own->packed_bytes_max));
    if (rc == STOKER_OK) {
        own->zeros = own->fast_memory.base;
        own->filtered = own->zeros + zeros_bytes;
        own->packed = own->filtered + filtered_bytes;
    }
    return rc;
}

static void close_fast(struct scratch *own)
{
    if (own->inflate != NULL)
        libdeflate_free_decompressor(own->inflate);
    stk_region_unmap(&own->fast_memory);
}

/* Returns true for a common kind of file with the channels of the row. */
static bool can_try_fast(const struct scratch *own, const struct stk_png_walk *walk,
                         const struct stk_image_shape *shape, bool values)
{
    const struct stk_png_header *header = &walk->header;
    const uint32_t color = values && walk->has_palette ? STK_PNG_PALETTE
                           : shape->channels == 1      ? STK_PNG_GRAY
                           : shape->channels == 3      ? STK_PNG_RGB
                                                       : STK_PNG_RGBA;
    return own->inflate != NULL && walk->plain && walk->idat_runs == 1 && !header->interlaced &&
           header->depth == 8 && header->color == color;
}

static bool sum_is_right(const struct stk_png_chunk *chunk)
{
    const uint32_t sum = libdeflate_crc32(0, chunk->body - 4, (size_t)chunk->bytes + 4);
    return sum == stk_load_be32(chunk->body + chunk->bytes);
}

/* Check all CRCs and return the zlib stream: in the file if it is in one chunk, else joined. NULL:
 * a CRC is wrong, or there is no room. */
static const uint8_t *gather(const struct scratch *own, const stoker_encoded *in,
                             const struct stk_png_walk *walk)
{
    const bool joined = walk->idat_count > 1;
    if (joined && walk->idat_bytes > own->packed_bytes_max)
        return NULL;
    const uint8_t *stream = joined ? own->packed : NULL;
    size_t packed = 0;
    size_t at = STK_PNG_SIGNATURE_BYTES;
    for (;;) {
        struct stk_png_chunk chunk;
        const bool whole = stk_png_chunk_at(in->bytes, in->size, at, &chunk);
        assert(whole); /* checked by the walk */
        if (!whole || !sum_is_right(&chunk))
            return NULL;
        if (chunk.type == IEND)
            return stream;
        if (chunk.type == IDAT && !joined) {
            stream = chunk.body;
        } else if (chunk.type == IDAT) {
            assert(packed + chunk.bytes <= own->packed_bytes_max);
            memcpy(own->packed + packed, chunk.body, chunk.bytes);
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

/* Decode the first `rows` rows; the whole file is checked. Returns false if it declines, with the
 * row partly written. */
static bool decode_fast(const struct scratch *own, const stoker_encoded *in,
                        const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                        uint32_t rows, uint8_t *row)
{
    const uint8_t *stream = gather(own, in, walk);
    if (stream == NULL)
        return false;
    const struct room image = room_of(shape);
    const struct stk_png_filtered filtered = {
        .bytes = own->filtered,
        .zeros = own->zeros,
        .stride = image.stride_bytes,
        .height = rows,
        .pixel_bytes = shape->channels,
    };
    size_t used = 0;
    return libdeflate_zlib_decompress_ex(own->inflate, stream, walk->idat_bytes, own->filtered,
                                         image.filtered_bytes, &used, NULL) == LIBDEFLATE_SUCCESS &&
           used == walk->idat_bytes && own->unfilter(&filtered, row) &&
           types_are_valid(&filtered, shape->height);
}
#else
static int open_fast(struct scratch *own, const struct room *room)
{
    (void)own;
    (void)room;
    return STOKER_OK;
}

static void close_fast(struct scratch *own)
{
    (void)own;
}
#endif

/* ---- scratch ----------------------------------------------------------------------- */

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    struct scratch *own = scratch;
    if (own == NULL)
        return;
    close_fast(own);
    stk_region_unmap(&own->arena);
    stk_free(own);
}

/* Open a scratch for images with that room and up to `width` pixels wide. */
static int open_room(const struct stk_image_codec *png, const struct room *room, uint32_t width,
                     void **out)
{
    struct scratch *own = stk_calloc(1, sizeof(*own));
    if (own == NULL)
        return STOKER_ENOMEM;
    int rc = png->options.full_only ? STOKER_OK : open_fast(own, room);
    if (rc == STOKER_OK)
        rc = stk_region_map(&own->arena, stk_png_full_arena_bytes(width));
    if (rc != STOKER_OK) {
        close_scratch(png, own);
        return rc;
    }
    *out = own;
    return STOKER_OK;
}

/* Reserve address space for the largest image; pages are allocated when one needs them. */
static int open_scratch(const void *self, bool any_size, void **out)
{
    const struct stk_image_codec *png = self;
    const struct stk_image_shape *shape = &png->options.shape;
    const struct room largest = {
        .stride_bytes = (size_t)STK_IMAGE_SIDE_MAX * shape->channels,
        .filtered_bytes = png->options.any_pixels_max * shape->channels + STK_IMAGE_SIDE_MAX,
    };
    const struct room room = any_size ? largest : room_of(shape);
    return open_room(png, &room, any_size ? STK_IMAGE_SIDE_MAX : shape->width, out);
}

/* ---- decoding ---------------------------------------------------------------------- */

/* Decode a file after the walk, at least its first rows; shape: its size and the row's channels. */
static int decode_walked(const struct stk_image_codec *png, const struct scratch *own,
                         const stoker_encoded *in, const struct stk_png_walk *walk,
                         const struct stk_image_shape *shape, uint32_t rows, uint8_t *row,
                         stoker_error *error)
{
#ifdef FAST_PATH
    if (can_try_fast(own, walk, shape, png->options.values) &&
        decode_fast(own, in, walk, shape, rows, row))
        return STOKER_OK;
#else
    (void)rows;
#endif
    return stk_png_full_decode(in->bytes, in->size, &walk->header, shape, &png->options,
                               own->arena.base, own->arena.bytes, row, error);
}

/* The rows that a region needs: a row is decoded from the one above, so they begin at the top. The
 * rest is unpacked and checked, but not unfiltered. */
static uint32_t rows_for(const stoker_decoded *out, const struct stk_png_header *header)
{
    if (out->wanted == NULL || header->interlaced)
        return header->height;
    return out->got->height = out->wanted->y + out->wanted->height;
}

/* Returns true if the pixels are values of 8 bits at most. */
static bool has_values(const struct stk_png_header *header)
{
    return (header->color == STK_PNG_GRAY || header->color == STK_PNG_PALETTE) &&
           header->depth <= 8;
}

static int decode(const struct stk_image_codec *png, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    struct stk_png_walk walk;
    struct stk_image_shape shape;
    int rc = stk_png_walk(in->bytes, in->size, &png->options.limits, &walk, error);
    if (rc == STOKER_OK)
        rc = stk_image_accept(png, walk.header.height, walk.header.width, out, &shape, error);
    if (rc != STOKER_OK)
        return rc;
    if (png->options.values && !has_values(&walk.header))
        return stk_refuse(error, STOKER_EFORMAT,
                          "a mask of %s: its values must be the indices of a palette, or gray "
                          "levels of up to 8 bits",
                          walk.header.color == STK_PNG_GRAY ? "16 bits" : "colors or with alpha");
    const uint32_t rows = rows_for(out, &walk.header);
    return decode_walked(png, scratch, in, &walk, &shape, rows, out->rows[0].data, error);
}

const struct stk_image_kind stk_image_png = {
    .number = STK_SHARD_PNG,
    .missing = "this build reads no PNG files: it was made without libpng",
#ifdef STOKER_HAVE_PNG
    .present = true,
#endif
    .side_max = INT32_MAX,
    .any_pixels_max = (uint64_t)1 << 40,
    .probe = stk_codec_png_probe,
    .open = open_scratch,
    .close = close_scratch,
    .decode = decode,
};
