/* full.c - see full.h. libpng, whose longjmp stays inside this file.
 *
 * All chunks but IHDR, PLTE, tRNS, IDAT and IEND are skipped unread: no text is unpacked, no color
 * profile parsed, no gamma applied. Warnings of libpng are errors.
 *
 *   arena   [png_struct|info|inflate state|rows ...          ]  a bump allocator;
 *            ^ start of each file                               reset for each file
 */
#include "loader/codec/png/full.h"

#include "loader/base/bytes.h"
#include "loader/codec/gray.h"
#include "loader/codec/refuse.h"

#ifdef STOKER_HAVE_PNG
#include <assert.h>
#include <png.h>
#include <stdbool.h>
#include <string.h>

enum {
    ARENA_FIXED_BYTES = 512 * 1024, /* zlib's state and window, and zlib-ng's, which are larger */
    ARENA_ALIGNMENT = 64,
    READ_BYTES = 1024, /* compressed pixels at a time; may unpack to 1032 times that */
    ROW_BUFFERS = 6,   /* libpng keeps two rows, with room around them, and may grow them */
    PIXEL_BYTES_MAX = 8
};

struct reading {
    const uint8_t *bytes;
    size_t size;
    size_t at;
    size_t chunk_at;    /* offset of the next chunk */
    size_t body_end;    /* end of the current chunk */
    size_t body_budget; /* bytes of chunk bodies that may still be read */
    uint8_t *arena;
    size_t arena_bytes;
    size_t arena_used;
    const struct stk_png_header *header;
    const struct stk_image_shape *shape;
    const struct stk_image_options *options;
    stoker_error *error;
    bool no_memory;
};

size_t stk_png_full_arena_bytes(uint32_t width)
{
    return ARENA_FIXED_BYTES + ROW_BUFFERS * ((size_t)width * PIXEL_BYTES_MAX + 1024);
}

static png_voidp take(png_structp png, png_alloc_size_t bytes)
{
    struct reading *reading = png_get_mem_ptr(png);
    const size_t left = reading->arena_bytes - reading->arena_used;
    if (bytes > left || left - bytes < ARENA_ALIGNMENT) {
        reading->no_memory = true;
        return NULL;
    }
    uint8_t *block = reading->arena + reading->arena_used;
    reading->arena_used += (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    return block;
}

static void give_back(png_structp png, png_voidp block)
{
    (void)png;
    (void)block;
}

static void on_error(png_structp png, png_const_charp message)
{
    struct reading *reading = png_get_error_ptr(png);
    (void)stk_refuse(reading->error, 0, "libpng: %s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* libpng asks for the head of a chunk, its body in pieces, and its CRC. */
static void read_bytes(png_structp png, png_bytep out, size_t bytes)
{
    struct reading *reading = png_get_io_ptr(png);
    if (bytes > reading->size - reading->at)
        png_error(png, "the file ends too early");
    if (reading->at == reading->chunk_at && bytes == 8) {
        reading->body_end = reading->at + 8 + stk_load_be32(reading->bytes + reading->at);
        reading->chunk_at = reading->body_end + 4;
    } else if (reading->at < reading->body_end) {
        if (bytes > reading->body_budget)
            png_error(png, "more compressed pixels than the image has");
        reading->body_budget -= bytes;
    }
    memcpy(out, reading->bytes + reading->at, bytes);
    reading->at += bytes;
}

/* Set limits and strictness before the first byte is read. */
static void set_rules(png_structp png, const struct reading *reading)
{
    static const png_byte ignored[] =
        "bKGD\0cHRM\0cICP\0cLLI\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0mDCV\0oFFs\0"
        "pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0sTER\0tEXt\0tIME\0zTXt";
    png_set_user_limits(png, reading->shape->width, reading->shape->height);
    png_set_chunk_cache_max(png, 1);
    png_set_chunk_malloc_max(png, reading->options->limits.chunk_bytes_max);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, ignored, sizeof(ignored) / 5);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(png, 0);
    png_set_compression_buffer_size(png, READ_BYTES);
#ifdef PNG_MAXIMUM_INFLATE_WINDOW
    /* Some writers declare a smaller window than they use: accept these files, like the fast
     * path. */
    (void)png_set_option(png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
#endif
}

/* libpng's last step on a row. libpng has a gray conversion too, but it truncates. */
static void make_gray(png_structp png, png_row_infop row, png_bytep samples)
{
    (void)png;
    stk_gray_from_rgb(samples, row->width, samples);
    row->color_type = PNG_COLOR_TYPE_GRAY;
}

/* Keep the file's samples, a byte each. Every index is a value, whether the palette has a color for
 * it or not. */
static void keep_values(png_structp png)
{
    png_set_packing(png);
#ifdef PNG_READ_CHECK_FOR_INVALID_INDEX_SUPPORTED
    png_set_check_for_invalid_index(png, -1);
#endif
}

/* Convert the file's samples to those of a row. */
static void set_conversion(png_structp png, png_infop info, const struct reading *reading)
{
    const uint8_t color = reading->header->color;
    const bool gray_file = color == STK_PNG_GRAY || color == STK_PNG_GRAY_ALPHA;
    const bool transparent = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
    if (color == STK_PNG_PALETTE)
        png_set_palette_to_rgb(png);
    if (gray_file && reading->header->depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (reading->header->depth == 16)
        png_set_scale_16(png);

    if (reading->shape->channels == 4) {
        if (transparent)
            png_set_tRNS_to_alpha(png);
        else if (color != STK_PNG_GRAY_ALPHA && color != STK_PNG_RGBA)
            png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
    } else {
        png_set_strip_alpha(png);
    }
    if (reading->shape->channels == 1 && !gray_file) {
        png_set_read_user_transform_fn(png, make_gray);
        png_set_user_transform_info(png, NULL, 8, 1);
    }
    if (reading->shape->channels != 1 && gray_file)
        png_set_gray_to_rgb(png);
}

/* After the last row libpng unpacks all that is left to check it, which may be a bomb. So limit the
 * compressed bytes to what the rows could need: packing never doubles its input. */
static void read_row(png_structp png, struct reading *reading, uint8_t *row)
{
    const size_t filtered = (size_t)reading->shape->width * PIXEL_BYTES_MAX + 1;
    reading->body_budget = 2 * filtered + 512 + READ_BYTES;
    png_read_row(png, row, NULL);
    reading->body_budget = SIZE_MAX;
}

static void read_image(png_structp png, png_infop info, struct reading *reading, uint8_t *row)
{
    const size_t stride = (size_t)reading->shape->width * reading->shape->channels;
    png_set_read_fn(png, reading, read_bytes);
    png_read_info(png, info);
    if (png_get_image_width(png, info) != reading->shape->width ||
        png_get_image_height(png, info) != reading->shape->height)
        png_error(png, "not the size it was");
    if (reading->options->values)
        keep_values(png);
    else
        set_conversion(png, info, reading);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != stride)
        png_error(png, "the conversion gives rows of another length");
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < reading->shape->height; y++)
            read_row(png, reading, row + y * stride);
    png_read_end(png, NULL); /* checks the chunks after the pixels */
}

/* The only setjmp. The callbacks change only the caller's frame, not this one. */
static int read_or_fail(png_structp png, png_infop info, struct reading *reading, uint8_t *row)
{
    if (setjmp(png_jmpbuf(png)) != 0)
        return reading->no_memory ? STOKER_ENOMEM : STOKER_ECORRUPT;
    set_rules(png, reading);
    read_image(png, info, reading, row);
    return STOKER_OK;
}

int stk_png_full_decode(const uint8_t *bytes, size_t size, const struct stk_png_header *header,
                        const struct stk_image_shape *shape,
                        const struct stk_image_options *options, void *arena, size_t arena_bytes,
                        uint8_t *row, stoker_error *error)
{
    struct reading reading = {
        .bytes = bytes,
        .size = size,
        .chunk_at = STK_PNG_SIGNATURE_BYTES,
        .body_budget = SIZE_MAX,
        .arena = arena,
        .arena_bytes = arena_bytes,
        .header = header,
        .shape = shape,
        .options = options,
        .error = error,
    };
    png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &reading, on_error,
                                               on_warning, &reading, take, give_back);
    png_infop info = png == NULL ? NULL : png_create_info_struct(png);
    if (info == NULL)
        return stk_refuse(error, STOKER_ENOMEM, "libpng could not start");
    /* Nothing to destroy: all of libpng and zlib is in the arena. */
    return read_or_fail(png, info, &reading, row);
}

#else

size_t stk_png_full_arena_bytes(uint32_t width)
{
    (void)width;
    return 0;
}

int stk_png_full_decode(const uint8_t *bytes, size_t size, const struct stk_png_header *header,
                        const struct stk_image_shape *shape,
                        const struct stk_image_options *options, void *arena, size_t arena_bytes,
                        uint8_t *row, stoker_error *error)
{
    (void)bytes;
    (void)size;
    (void)header;
    (void)shape;
    (void)options;
    (void)arena;
    (void)arena_bytes;
    (void)row;
    return stk_refuse(error, STOKER_ENOTSUP, "PNG, but this build lacks libpng");
}

#endif
