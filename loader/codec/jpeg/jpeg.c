/* jpeg.c - see jpeg.h. libjpeg-turbo, whose longjmp stays inside this file.
 *
 *   bytes ──▶ walk: limits, markers ──▶ libjpeg: header, scans, rows ──▶ row
 *                 │ refused                  │ error, or warning of damage
 *                 ▼                          ▼
 *               error                      error
 *
 * Each worker has one decompress object for all files. Tables of the previous file are dropped, or a
 * row of a file without tables would depend on the order of decoding.
 */
#include "loader/codec/jpeg/jpeg.h"

#include <assert.h>

#include "loader/base/memory.h"
#include "loader/codec/jpeg/walk.h"
#include "loader/codec/refuse.h"

#ifdef STOKER_HAVE_JPEG
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include "loader/base/fault.h"
#include "loader/codec/gray.h"
#include "loader/codec/jpeg/memory.h"

#include <jerror.h>

enum {
    ARENA_FIXED_BYTES = 1 << 20, /* tables and small objects; pages are allocated when used */
    ARENA_ROWS = 256,            /* rows of samples between steps: at most 180 */
    PADDING = 256,               /* most pixels that rows and columns are rounded up by */
    COEFFICIENT_BYTES = 8,       /* per pixel: two for each component */
    RGB_COMPONENTS = 3,
    CMYK_COMPONENTS = 4
};

struct scratch {
    struct jpeg_decompress_struct decompress;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct stk_jpeg_arena arena;
    struct stk_region memory;
    jmp_buf failed;
    stoker_error *error;
    bool warnings_fail;
    bool created;
};

/* ---- callbacks of libjpeg ---- */

static struct scratch *scratch_of(j_common_ptr cinfo)
{
    return (struct scratch *)(void *)((uint8_t *)cinfo->err - offsetof(struct scratch, errors));
}

static void on_error(j_common_ptr cinfo)
{
    struct scratch *own = scratch_of(cinfo);
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    (void)stk_refuse(own->error, 0, "libjpeg: %s", text);
    longjmp(own->failed, 1);
}

/* The warnings that do not concern pixels, listed in jpeg.h. All others mean missing or damaged
 * pixels, which libjpeg would fill in. */
static bool is_harmless(int warning)
{
    return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_JFIF_MAJOR ||
           warning == JWRN_NOT_SEQUENTIAL || warning == JWRN_ADOBE_XFORM;
}

/* Level -1 is a warning; the others are traces. */
static void on_message(j_common_ptr cinfo, int level)
{
    if (level < 0 && (scratch_of(cinfo)->warnings_fail || !is_harmless(cinfo->err->msg_code)))
        on_error(cinfo);
}

static void no_output(j_common_ptr cinfo)
{
    (void)cinfo;
}

static void begin_source(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

static boolean no_more_bytes(j_decompress_ptr cinfo)
{
    ERREXIT(cinfo, JERR_INPUT_EOF);
    return FALSE;
}

static void skip_bytes(j_decompress_ptr cinfo, long bytes)
{
    struct jpeg_source_mgr *source = cinfo->src;
    if (bytes <= 0)
        return;
    if ((size_t)bytes > source->bytes_in_buffer)
        ERREXIT(cinfo, JERR_INPUT_EOF);
    source->next_input_byte += bytes;
    source->bytes_in_buffer -= (size_t)bytes;
}

/* ---- scratch ---- */

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    struct scratch *own = scratch;
    if (own == NULL)
        return;
    if (own->created)
        jpeg_destroy_decompress(&own->decompress);
    stk_region_unmap(&own->memory);
    stk_free(own);
}

static size_t arena_bytes_of(const struct stk_image_shape *shape)
{
    const size_t width = (size_t)shape->width + PADDING;
    const size_t height = (size_t)shape->height + PADDING;
    return ARENA_FIXED_BYTES + width * ARENA_ROWS + width * height * COEFFICIENT_BYTES;
}

/* The same for any shape of up to pixels_max pixels: (w + p) (h + p) is at most
 * w h + p (w + h) + p^2. */
static size_t arena_bytes_any(uint64_t pixels_max)
{
    const size_t side = (size_t)STK_IMAGE_SIDE_MAX + PADDING;
    return ARENA_FIXED_BYTES + side * ARENA_ROWS +
           (pixels_max + 2 * PADDING * side) * COEFFICIENT_BYTES;
}

static int create_decompress(struct scratch *own)
{
    own->decompress.err = jpeg_std_error(&own->errors);
    own->errors.error_exit = on_error;
    own->errors.emit_message = on_message;
    own->errors.output_message = no_output;
    /* The only place where libjpeg allocates by itself; tests make that fail, too. */
    if (stk_fault_hit(STK_FAULT_MEMORY) || setjmp(own->failed) != 0)
        return STOKER_ENOMEM;
    jpeg_create_decompress(&own->decompress);
    own->created = true;
    own->source = (struct jpeg_source_mgr){
        .init_source = begin_source,
        .fill_input_buffer = no_more_bytes,
        .skip_input_data = skip_bytes,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = begin_source,
    };
    own->decompress.src = &own->source;
    stk_jpeg_memory_install((j_common_ptr)&own->decompress, &own->arena);
    return STOKER_OK;
}

static int open_arena(const struct stk_image_codec *jpeg, size_t arena_bytes, void **out)
{
    struct scratch *own = stk_calloc(1, sizeof(*own));
    if (own == NULL)
        return STOKER_ENOMEM;
    own->warnings_fail = jpeg->options.warnings_fail;
    int rc = stk_region_map(&own->memory, arena_bytes);
    if (rc == STOKER_OK) {
        own->arena =
            (struct stk_jpeg_arena){ .base = own->memory.base, .bytes = own->memory.bytes };
        rc = create_decompress(own);
    }
    if (rc != STOKER_OK) {
        close_scratch(jpeg, own);
        return rc;
    }
    *out = own;
    return STOKER_OK;
}

static int open_scratch(const void *self, void **out)
{
    const struct stk_image_codec *jpeg = self;
    return open_arena(jpeg, arena_bytes_of(&jpeg->options.shape), out);
}

/* Reserve address space for the largest image; pages are allocated when one needs them. */
static int open_any(const void *self, void **out)
{
    const struct stk_image_codec *jpeg = self;
    return open_arena(jpeg, arena_bytes_any(jpeg->options.any_pixels_max), out);
}

/* ---- decoding ---- */

static void forget_tables(struct jpeg_decompress_struct *decompress)
{
    memset(decompress->quant_tbl_ptrs, 0, sizeof(decompress->quant_tbl_ptrs));
    memset(decompress->dc_huff_tbl_ptrs, 0, sizeof(decompress->dc_huff_tbl_ptrs));
    memset(decompress->ac_huff_tbl_ptrs, 0, sizeof(decompress->ac_huff_tbl_ptrs));
}

/* Gray is made from the RGB samples, as for all formats. The stored luma would be up to 3 levels off
 * for colours outside of RGB. */
static bool makes_gray(const struct jpeg_decompress_struct *decompress,
                       const struct stk_image_shape *shape)
{
    return shape->channels == 1 && decompress->num_components == RGB_COMPONENTS;
}

static void set_conversion(struct jpeg_decompress_struct *decompress,
                           const struct stk_image_shape *shape)
{
    decompress->out_color_space = decompress->num_components == CMYK_COMPONENTS           ? JCS_CMYK
                                  : shape->channels == 3 || makes_gray(decompress, shape) ? JCS_RGB
                                  : shape->channels == 1 ? JCS_GRAYSCALE
                                                         : JCS_EXT_RGBA;
    decompress->dct_method = JDCT_ISLOW;
}

/* ink x light / 255, rounded. */
static uint8_t absorbed(uint32_t ink, uint32_t light)
{
    const uint32_t product = ink * light + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

/* The samples are inverted, as Adobe stores them: 255 is no ink. The arithmetic is Pillow's. */
static void convert_inks(const uint8_t *inks, size_t pixels, uint32_t channels, uint8_t *to)
{
    for (size_t i = 0; i < pixels; i++, inks += CMYK_COMPONENTS, to += channels) {
        const uint8_t light = inks[3];
        uint8_t rgb[3];
        for (size_t c = 0; c < 3; c++)
            rgb[c] = (uint8_t)(light - absorbed(255U - inks[c], light));
        if (channels == 1)
            to[0] = stk_gray(rgb[0], rgb[1], rgb[2]);
        else
            memcpy(to, rgb, sizeof(rgb));
        if (channels == 4)
            to[3] = 255;
    }
}

/* Read rows that must be converted, through a line of libjpeg's samples. */
static void read_converted(struct jpeg_decompress_struct *decompress,
                           const struct stk_image_shape *shape, uint8_t *row)
{
    const bool inks = decompress->out_color_space == JCS_CMYK;
    const size_t components = inks ? CMYK_COMPONENTS : RGB_COMPONENTS;
    JSAMPROW line = decompress->mem->alloc_large((j_common_ptr)decompress, JPOOL_IMAGE,
                                                 (size_t)shape->width * components);
    const size_t stride = (size_t)shape->width * shape->channels;
    while (decompress->output_scanline < decompress->output_height) {
        uint8_t *to = row + decompress->output_scanline * stride;
        if (jpeg_read_scanlines(decompress, &line, 1) != 1)
            continue;
        if (inks)
            convert_inks(line, shape->width, shape->channels, to);
        else
            stk_gray_from_rgb(line, shape->width, to);
    }
}

static void read_rows(struct jpeg_decompress_struct *decompress,
                      const struct stk_image_shape *shape, uint8_t *row)
{
    const size_t stride = (size_t)shape->width * shape->channels;
    while (decompress->output_scanline < decompress->output_height) {
        JSAMPROW to = row + decompress->output_scanline * stride;
        (void)jpeg_read_scanlines(decompress, &to, 1);
    }
}

static void read_image(struct jpeg_decompress_struct *decompress,
                       const struct stk_image_shape *shape, uint8_t *row)
{
    (void)jpeg_read_header(decompress, TRUE);
    if (decompress->image_width != shape->width || decompress->image_height != shape->height)
        ERREXIT(decompress, JERR_NO_IMAGE); /* the walk found another frame */
    set_conversion(decompress, shape);
    (void)jpeg_start_decompress(decompress);
    if (decompress->out_color_space == JCS_CMYK || makes_gray(decompress, shape))
        read_converted(decompress, shape, row);
    else
        read_rows(decompress, shape, row);
    (void)jpeg_finish_decompress(decompress); /* reads to the end marker */
}

/* The setjmp of decoding. libjpeg changes only the scratch, not this frame. */
static int read_or_fail(struct scratch *own, const struct stk_image_shape *shape, uint8_t *row)
{
    if (setjmp(own->failed) != 0) {
        const bool full = own->errors.msg_code == JERR_OUT_OF_MEMORY;
        jpeg_abort_decompress(&own->decompress);
        return full ? STOKER_ENOMEM : STOKER_ECORRUPT;
    }
    read_image(&own->decompress, shape, row);
    return STOKER_OK;
}

/* Decode a file after the walk; shape: its size and the row's channels. */
static int decode_walked(struct scratch *own, const stoker_encoded *in,
                         const struct stk_image_shape *shape, uint8_t *row, stoker_error *error)
{
    own->error = error;
    own->arena.used = 0;
    own->source.next_input_byte = in->bytes;
    own->source.bytes_in_buffer = in->size;
    forget_tables(&own->decompress);
    return read_or_fail(own, shape, row);
}

static int decode(const struct stk_image_codec *jpeg, void *scratch, const stoker_encoded *in,
                  const struct stk_image_room *room, stoker_error *error)
{
    struct stk_jpeg_walk seen;
    struct stk_image_shape shape;
    int rc = stk_jpeg_walk(in->bytes, in->size, &jpeg->options.limits, &seen, error);
    if (rc == STOKER_OK)
        rc = stk_image_accept(jpeg, seen.height, seen.width, room, &shape, error);
    return rc == STOKER_OK ? decode_walked(scratch, in, &shape, room->at, error) : rc;
}
#endif

const struct stk_image_kind stk_image_jpeg = {
    .name = "jpeg",
    .missing = "a JPEG file: built without libjpeg-turbo",
    .side_max = UINT16_MAX,
    .any_pixels_max = (uint64_t)STK_IMAGE_SIDE_MAX * STK_IMAGE_SIDE_MAX,
    .magic = stk_codec_jpeg_magic,
    .probe = stk_codec_jpeg_probe,
#ifdef STOKER_HAVE_JPEG
    .present = true,
    .open = open_scratch,
    .open_any = open_any,
    .close = close_scratch,
    .decode = decode,
#endif
};
