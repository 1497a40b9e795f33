/* jpeg.c - see jpeg.h. libjpeg-turbo, whose longjmp stays inside this file.
 *
 *   bytes ──▶ walk: limits, markers ──▶ libjpeg: header, scans, rows ──▶ row       codes: huffman.h
 *                 │ refused                  │ error, or warning of damage
 *                 ▼                          ▼
 *               error                      error
 *
 * Each worker has one decompress object for all files. Tables of the previous file are dropped, or
 * a row of a file without tables would depend on the order of decoding.
 */
#include "loader/codec/jpeg/jpeg.h"

#include <assert.h>

#include "loader/base/memory/memory.h"
#include "loader/codec/jpeg/inspect.h"
#include "loader/codec/jpeg/walk.h"
#include "loader/codec/refuse.h"

#ifdef STOKER_HAVE_JPEG
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include "loader/base/fault.h"
#include "loader/codec/gray.h"
#include "loader/codec/jpeg/huffman.h"
#include "loader/codec/jpeg/memory.h"

#include <jerror.h>

enum {
    ARENA_FIXED_BYTES = 1 << 20, /* tables and small objects; pages are allocated when used */
    ARENA_ROWS = 256,            /* rows of samples between steps: at most 180 */
    PADDING = 256,               /* most pixels that rows and columns are rounded up by */
    COEFFICIENT_BYTES = 8,       /* per pixel: two for each component */
    RGB_COMPONENTS = 3,
    CMYK_COMPONENTS = 4,
    CHROMA_MARGIN = 2 /* columns: narrow() */
};

struct scratch {
    struct jpeg_decompress_struct decompress;
    struct jpeg_error_mgr errors;
    struct stk_jpeg_huffman huffman; /* and the source */
    struct stk_jpeg_arena arena;
    struct stk_region memory;
    jmp_buf failed;
    stoker_error *error;
    bool warnings_fail;
    bool created;
    bool plain;    /* libjpeg reads all codes of this image */
    bool is_tried; /* huffman.is_trusted is known */
};

/* What setjmp() returns: libjpeg failed, or the own decoder declined. */
enum { FAILED = 1, DECLINED = 2 };

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
    longjmp(own->failed, FAILED);
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

static void decline(j_decompress_ptr decompress)
{
    longjmp(scratch_of((j_common_ptr)decompress)->failed, DECLINED);
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
    own->huffman.decline = decline;
    own->huffman.source = (struct jpeg_source_mgr){
        .init_source = begin_source,
        .fill_input_buffer = no_more_bytes,
        .skip_input_data = skip_bytes,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = begin_source,
    };
    own->decompress.src = &own->huffman.source;
    stk_jpeg_memory_install((j_common_ptr)&own->decompress, &own->arena);
    return STOKER_OK;
}

/* Reserve address space for the largest image; pages are allocated when one needs them. */
static int open_scratch(const void *self, bool any_size, void **out)
{
    const struct stk_image_options *options = &((const struct stk_image_codec *)self)->options;
    struct scratch *own = stk_calloc(1, sizeof(*own));
    if (own == NULL)
        return STOKER_ENOMEM;
    own->warnings_fail = options->warnings_fail;
    int rc = stk_region_map(&own->memory, any_size ? arena_bytes_any(options->any_pixels_max)
                                                   : arena_bytes_of(&options->shape));
    if (rc == STOKER_OK) {
        own->arena =
            (struct stk_jpeg_arena){ .base = own->memory.base, .bytes = own->memory.bytes };
        rc = create_decompress(own);
    }
    if (rc != STOKER_OK) {
        close_scratch(self, own);
        return rc;
    }
    *out = own;
    return STOKER_OK;
}

/* ---- decoding ---- */

static void forget_tables(struct jpeg_decompress_struct *decompress)
{
    memset(decompress->quant_tbl_ptrs, 0, sizeof(decompress->quant_tbl_ptrs));
    memset(decompress->dc_huff_tbl_ptrs, 0, sizeof(decompress->dc_huff_tbl_ptrs));
    memset(decompress->ac_huff_tbl_ptrs, 0, sizeof(decompress->ac_huff_tbl_ptrs));
}

/* Gray is made from the RGB samples, as for all formats. The stored luma would be up to 3 levels
 * off for colors outside of RGB. */
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

/* An image to be read, or a part of it. */
struct reading {
    const struct stk_image_shape *shape; /* the whole image's */
    const stoker_region *wanted;         /* NULL = all */
    stoker_region *got;
    uint8_t *row;
};

static void convert_line(const struct jpeg_decompress_struct *decompress, uint32_t channels,
                         const uint8_t *line, uint8_t *to)
{
    if (decompress->out_color_space == JCS_CMYK)
        convert_inks(line, decompress->output_width, channels, to);
    else
        stk_gray_from_rgb(line, decompress->output_width, to);
}

/* Read rows that must be converted, through a line of libjpeg's samples. */
static void read_converted(struct jpeg_decompress_struct *decompress, uint32_t channels,
                           uint32_t rows, uint8_t *to)
{
    const size_t components =
        decompress->out_color_space == JCS_CMYK ? CMYK_COMPONENTS : RGB_COMPONENTS;
    const size_t stride = (size_t)decompress->output_width * channels;
    JSAMPROW line = decompress->mem->alloc_large((j_common_ptr)decompress, JPOOL_IMAGE,
                                                 decompress->output_width * components);
    for (uint32_t y = 0; y < rows;) {
        if (jpeg_read_scanlines(decompress, &line, 1) != 1)
            continue;
        convert_line(decompress, channels, line, to + y * stride);
        y++;
    }
}

static void read_rows(struct jpeg_decompress_struct *decompress, uint32_t channels, uint32_t rows,
                      uint8_t *to)
{
    const size_t stride = (size_t)decompress->output_width * channels;
    const JDIMENSION end = decompress->output_scanline + rows;
    while (decompress->output_scanline < end) {
        JSAMPROW line = to + (rows - (end - decompress->output_scanline)) * stride;
        (void)jpeg_read_scanlines(decompress, &line, 1);
    }
}

/* The smallest scale that will do and for which libjpeg has vector code: the others cost more than
 * the whole image. */
static uint32_t scale_for(const stoker_region *wanted)
{
    uint32_t eighths = 1;
    while (eighths < wanted->eighths)
        eighths *= 2;
    return eighths;
}

/* libjpeg estimates the missing coefficients of an unfinished progressive image from the blocks
 * around, which are not those of the whole image at a region's edge. */
static bool is_unfinished(const struct jpeg_decompress_struct *decompress)
{
    if (!decompress->progressive_mode || decompress->coef_bits == NULL)
        return false;
    for (int c = 0; c < decompress->num_components; c++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (decompress->coef_bits[c][k] != 0)
                return true;
    return false;
}

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((component)->DCT_h_scaled_size)
#define SMALLEST_SIZE(image)   ((image)->min_DCT_h_scaled_size)
#else
#define SCALED_SIZE(component) ((component)->DCT_scaled_size)
#define SMALLEST_SIZE(image)   ((image)->min_DCT_scaled_size)
#endif

/* jpeg_crop_scanline() finds the width of a component by its sampling factor alone: too narrow for
 * one whose blocks are scaled less than the others and still are upsampled (4:1:0 at 4/8). */
static bool can_crop_columns(const struct jpeg_decompress_struct *decompress)
{
    const int smallest = SMALLEST_SIZE(decompress);
    for (int c = 0; c < decompress->num_components; c++) {
        const jpeg_component_info *component = &decompress->comp_info[c];
        const int size = SCALED_SIZE(component);
        if (size != smallest &&
            component->h_samp_factor * size != decompress->max_h_samp_factor * smallest)
            return false;
    }
    return true;
}

/* left becomes a multiple of an MCU's width. */
static void crop_columns(struct jpeg_decompress_struct *decompress, JDIMENSION *left,
                         JDIMENSION *width)
{
    struct scratch *own = scratch_of((j_common_ptr)decompress);
    const uint32_t all = decompress->output_width;
    jpeg_crop_scanline(decompress, left, width);
    if (own->plain || *width == all)
        return;
    const uint32_t factor =
        decompress->num_components == 1 ? 1 : (uint32_t)decompress->max_h_samp_factor;
    const uint32_t mcu = (uint32_t)SMALLEST_SIZE(decompress) * factor;
#if STOKER_OWN_DECODERS
    stk_jpeg_huffman_need(&own->huffman, *left / mcu, (*left + *width - 1) / mcu);
#else
    (void)mcu;
#endif
}

/* Take the columns that are needed, which libjpeg rounds down to whole blocks, and leave out the
 * rows above. Smooth upsampling looks at one sample of chroma on each side. */
static void narrow(struct jpeg_decompress_struct *decompress, const struct reading *reading)
{
    const stoker_region *wanted = reading->wanted;
    stoker_region *got = reading->got;
    const uint32_t margin = CHROMA_MARGIN * (uint32_t)decompress->max_h_samp_factor;
    const struct stk_image_range x = stk_image_range(wanted->x, wanted->width, got->eighths);
    const struct stk_image_range y = stk_image_range(wanted->y, wanted->height, got->eighths);
    JDIMENSION left = x.from > margin ? x.from - margin : 0;
    JDIMENSION width = decompress->output_width - left;
    if (width > x.to - left + margin)
        width = x.to - left + margin;
    if (can_crop_columns(decompress))
        crop_columns(decompress, &left, &width);
    else
        left = 0;
    if (y.from > 0)
        (void)jpeg_skip_scanlines(decompress, y.from);
    got->y = y.from;
    got->height = y.to - y.from;
    got->x = left;
    got->width = decompress->output_width;
}

/* Start, with the own decoder of codes if it reads such files. */
static void start(struct jpeg_decompress_struct *decompress)
{
    (void)jpeg_start_decompress(decompress);
#if STOKER_OWN_DECODERS
    struct scratch *own = scratch_of((j_common_ptr)decompress);
    own->plain = own->plain || !stk_jpeg_huffman_begin(&own->huffman, decompress);
#endif
}

static void begin_image(struct jpeg_decompress_struct *decompress, const struct reading *reading)
{
    (void)jpeg_read_header(decompress, TRUE);
    if (decompress->image_width != reading->shape->width ||
        decompress->image_height != reading->shape->height)
        ERREXIT(decompress, JERR_NO_IMAGE); /* the walk found another frame */
    set_conversion(decompress, reading->shape);
    if (reading->wanted == NULL) {
        start(decompress);
        return;
    }
    stoker_region *got = reading->got;
    got->eighths = scale_for(reading->wanted);
    decompress->scale_num = got->eighths;
    decompress->scale_denom = 8;
    start(decompress);
    got->height = decompress->output_height;
    got->width = decompress->output_width;
    if (!is_unfinished(decompress))
        narrow(decompress, reading);
}

/* Read the file to its end marker, so that damage below a region is noticed, unless these bytes
 * were read to their end before. Once libjpeg reads the last row, it reads the codes of those that
 * were skipped. */
static void end_image(struct jpeg_decompress_struct *decompress)
{
    const JDIMENSION left = decompress->output_height - decompress->output_scanline;
    const struct scratch *own = scratch_of((j_common_ptr)decompress);
    const bool was_read = !own->plain && own->huffman.known != NULL;
    if (was_read || jpeg_input_complete(decompress)) { /* all scans were read at the start */
        jpeg_abort_decompress(decompress);
        return;
    }
    if (left > 0) {
        const size_t bytes = decompress->output_width * (size_t)decompress->out_color_components;
        JSAMPROW line = decompress->mem->alloc_large((j_common_ptr)decompress, JPOOL_IMAGE, bytes);
        (void)jpeg_skip_scanlines(decompress, left - 1);
        while (decompress->output_scanline < decompress->output_height)
            (void)jpeg_read_scanlines(decompress, &line, 1);
    }
    (void)jpeg_finish_decompress(decompress);
}

static void read_image(struct jpeg_decompress_struct *decompress, const struct reading *reading)
{
    begin_image(decompress, reading);
    const uint32_t channels = reading->shape->channels;
    const uint32_t rows =
        reading->wanted == NULL ? decompress->output_height : reading->got->height;
    if (decompress->out_color_space == JCS_CMYK || makes_gray(decompress, reading->shape))
        read_converted(decompress, channels, rows, reading->row);
    else
        read_rows(decompress, channels, rows, reading->row);
    end_image(decompress);
}

/* The setjmp of decoding. libjpeg changes only the scratch, not this frame. */
static int read_or_fail(struct scratch *own, const struct reading *reading)
{
    switch (setjmp(own->failed)) {
    case 0:
        read_image(&own->decompress, reading);
        return STOKER_OK;
    case DECLINED:
        jpeg_abort_decompress(&own->decompress);
        return DECLINED;
    default:
        break;
    }
    const bool full = own->errors.msg_code == JERR_OUT_OF_MEMORY;
    jpeg_abort_decompress(&own->decompress);
    return full ? STOKER_ENOMEM : STOKER_ECORRUPT;
}

/* Read the file from its start. */
static int read_file(struct scratch *own, const stoker_encoded *in, const struct reading *reading)
{
    own->arena.used = 0;
    own->huffman.source.next_input_byte = in->bytes;
    own->huffman.source.bytes_in_buffer = in->size;
    forget_tables(&own->decompress);
    return read_or_fail(own, reading);
}

/* Returns true if the own decoder of codes and libjpeg's make the same pixels of a small image:
 * this libjpeg is as expected. */
static bool try_huffman(struct scratch *own)
{
    enum { HEIGHT = 8, WIDTH = 24 };
    static const char file[] =
        "\377\330\377\333\000C\000@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@"
        "\377\300\000\021\010\000\010\000\030\003\001\042\000\002\021\000\003\021\000\377\304\000"
        "\026\000\001\001\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\003\004\377"
        "\304\000\027\020\001\001\001\001\000\000\000\000\000\000\000\000\000\000\000\000\000\001"
        "\002\003\377\304\000\026\001\001\001\001\000\000\000\000\000\000\000\000\000\000\000\000"
        "\000\004\001\003\377\304\000\030\021\000\003\001\001\000\000\000\000\000\000\000\000\000"
        "\000\000\000\000\001\002\003\021\377\332\000\014\003\001\000\002\021\003\021\000\077\000"
        "\313\042\223 N\214\262Rs\000J\247\323UL\377\331";
    static const struct stk_image_shape shape = { HEIGHT, WIDTH, RGB_COMPONENTS };
    const stoker_encoded in = { .bytes = (const uint8_t *)file, .size = sizeof(file) - 1 };
    uint8_t pixels[2][HEIGHT * WIDTH * RGB_COMPONENTS];
    own->error = NULL;
    own->huffman.known = NULL;
    own->huffman.noting = NULL;
    for (int alone = 0; alone < 2; alone++) {
        const struct reading reading = { .shape = &shape, .row = pixels[alone] };
        own->plain = alone == 1;
        if (read_file(own, &in, &reading) != STOKER_OK || own->plain != (alone == 1))
            return false;
    }
    return own->huffman.row == own->huffman.rows &&
           memcmp(pixels[0], pixels[1], sizeof(pixels[0])) == 0;
}

/* Take the places of an image's codes from the notes, or have them noted. */
static void take_notes(struct scratch *own, const stoker_encoded *in, const struct reading *reading)
{
    struct stk_jpeg_huffman *huffman = &own->huffman;
    const stoker_region *wanted = reading->wanted;
    const bool in_part = wanted != NULL && (wanted->height < reading->shape->height ||
                                            wanted->width < reading->shape->width);
    const stoker_notes *notes = in_part ? in->notes : NULL;
    huffman->known = NULL;
    huffman->noting = NULL;
    huffman->file = in->bytes;
    huffman->file_bytes = in->size;
    if (notes == NULL)
        return;
    if (notes->known != NULL &&
        stk_jpeg_places_fit(notes->known, notes->known_bytes, in->bytes, in->size))
        huffman->known = notes->known;
    else
        huffman->noting = notes->room;
    huffman->noting_bytes = notes->room_bytes;
}

/* Decode a file after the walk. */
static int decode_walked(struct scratch *own, const stoker_encoded *in,
                         const struct reading *reading, bool plain, stoker_error *error)
{
    if (STOKER_OWN_DECODERS && !plain && !own->is_tried) {
        own->is_tried = true;
        own->huffman.is_trusted = try_huffman(own);
    }
    own->error = error;
    own->plain = plain || !own->huffman.is_trusted;
    take_notes(own, in, reading);
    int rc = read_file(own, in, reading);
    if (rc == DECLINED) {
        own->plain = true;
        rc = read_file(own, in, reading);
    }
    if (rc == STOKER_OK && !own->plain && own->huffman.noting != NULL)
        in->notes->noted_bytes = stk_jpeg_places_end(own->huffman.noting, in->bytes, in->size);
    return rc;
}

static int decode(const struct stk_image_codec *jpeg, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    struct stk_jpeg_walk seen;
    struct stk_image_shape shape;
    int rc = stk_jpeg_walk(in->bytes, in->size, &jpeg->options.limits, &seen, error);
    if (rc == STOKER_OK)
        rc = stk_image_accept(jpeg, seen.height, seen.width, out, &shape, error);
    const struct reading reading = { &shape, out->wanted, out->got, out->rows[0].data };
    return rc == STOKER_OK ? decode_walked(scratch, in, &reading, jpeg->options.full_only, error)
                           : rc;
}
#endif

const struct stk_image_kind stk_image_jpeg = {
    .number = STK_SHARD_JPEG,
    .missing = "this build reads no JPEG files: it was made without libjpeg-turbo",
    .side_max = UINT16_MAX,
    .any_pixels_max = (uint64_t)STK_IMAGE_SIDE_MAX * STK_IMAGE_SIDE_MAX,
    .probe = stk_codec_jpeg_probe,
#ifdef STOKER_HAVE_JPEG
    .present = true,
    .open = open_scratch,
    .close = close_scratch,
    .decode = decode,
    .inspect = stk_jpeg_inspect,
#endif
};
