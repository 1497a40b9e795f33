/* jpeg.c - a row as a JPEG file, and a JPEG file in another form, through libjpeg-turbo. */
#include "datasets/pack/encode/pixels.h"

#ifdef STOKER_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h wants it before */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

bool pack_jpeg_present(void)
{
    return true;
}

struct failure {
    struct jpeg_error_mgr manager; /* first: libjpeg hands it back */
    jmp_buf back;
};

static void leave_libjpeg(j_common_ptr cinfo)
{
    struct failure *failure = (struct failure *)(void *)cinfo->err;
    longjmp(failure->back, 1);
}

static void silent(j_common_ptr cinfo)
{
    (void)cinfo;
}

static void compress_rows(struct jpeg_compress_struct *cinfo, const struct pack_pixels *pixels,
                          uint32_t quality, const uint8_t *row)
{
    cinfo->image_width = pixels->width;
    cinfo->image_height = pixels->height;
    cinfo->input_components = (int)pixels->channels;
    cinfo->in_color_space = pixels->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, (int)quality, TRUE);
    jpeg_start_compress(cinfo, TRUE);
    while (cinfo->next_scanline < cinfo->image_height) {
        JSAMPROW line =
            (JSAMPROW)(row + (size_t)cinfo->next_scanline * pixels->width * pixels->channels);
        (void)jpeg_write_scanlines(cinfo, &line, 1);
    }
    jpeg_finish_compress(cinfo);
}

/* What libjpeg writes to, kept out of the frame that longjmp goes back to. */
struct output {
    unsigned char *bytes;
    unsigned long size;
};

static struct jpeg_error_mgr *quiet_errors(struct failure *failure)
{
    (void)jpeg_std_error(&failure->manager);
    failure->manager.error_exit = leave_libjpeg;
    failure->manager.output_message = silent;
    return &failure->manager;
}

static bool write_file(struct output *output, const struct pack_pixels *pixels, uint32_t quality,
                       const uint8_t *row)
{
    struct jpeg_compress_struct cinfo;
    struct failure failure;
    memset(&cinfo, 0, sizeof(cinfo));
    cinfo.err = quiet_errors(&failure);
    if (setjmp(failure.back) != 0) {
        jpeg_destroy_compress(&cinfo);
        return false;
    }
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &output->bytes, &output->size);
    compress_rows(&cinfo, pixels, quality, row);
    jpeg_destroy_compress(&cinfo);
    return true;
}

/* Move what was written to the room. */
static const char *hand_over(struct output *output, struct pack_room *room)
{
    const bool kept = pack_room_add(room, output->bytes, output->size);
    free(output->bytes);
    return kept ? NULL : "out of memory";
}

const char *pack_jpeg(const struct pack_pixels *pixels, uint32_t quality, const uint8_t *row,
                      struct pack_room *room)
{
    struct output output = { 0 };
    if (write_file(&output, pixels, quality, row))
        return hand_over(&output, room);
    free(output.bytes);
    return "libjpeg could not write the image";
}

/* ---- another form ---- */

/* Both ends of a conversion. */
struct conversion {
    struct jpeg_decompress_struct from;
    struct jpeg_compress_struct to;
    struct failure failure;
};

/* Returns true if bits of coefficients are missing. */
static bool is_unfinished(const struct jpeg_decompress_struct *from)
{
    for (int c = 0; from->coef_bits != NULL && c < from->num_components; c++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (from->coef_bits[c][k] != 0)
                return true;
    return false;
}

/* All but those that libjpeg writes itself. */
static void copy_markers(struct jpeg_decompress_struct *from, struct jpeg_compress_struct *to)
{
    for (jpeg_saved_marker_ptr marker = from->marker_list; marker != NULL; marker = marker->next) {
        const bool jfif = marker->marker == JPEG_APP0 && marker->data_length >= 5 &&
                          memcmp(marker->data, "JFIF", 5) == 0;
        const bool adobe = marker->marker == JPEG_APP0 + 14 && marker->data_length >= 5 &&
                           memcmp(marker->data, "Adobe", 5) == 0;
        if (!(jfif && to->write_JFIF_header) && !(adobe && to->write_Adobe_marker))
            jpeg_write_marker(to, marker->marker, marker->data, marker->data_length);
    }
}

/* Returns true if a file was written. */
static bool convert(struct conversion *both, const uint8_t *file, size_t size,
                    struct output *output)
{
    enum { APP_MARKERS = 16 };
    struct jpeg_decompress_struct *from = &both->from;
    struct jpeg_compress_struct *to = &both->to;
    jpeg_create_decompress(from);
    jpeg_create_compress(to);
    jpeg_mem_src(from, file, size);
    jpeg_save_markers(from, JPEG_COM, UINT16_MAX);
    for (int i = 0; i < APP_MARKERS; i++)
        jpeg_save_markers(from, JPEG_APP0 + i, UINT16_MAX);
    (void)jpeg_read_header(from, TRUE);
    if (!from->progressive_mode && !from->arith_code)
        return false;
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(from);
    if (from->err->num_warnings > 0 || is_unfinished(from))
        return false;
    jpeg_mem_dest(to, &output->bytes, &output->size);
    jpeg_copy_critical_parameters(from, to);
    to->optimize_coding = TRUE; /* else standard tables, which are longer */
    jpeg_write_coefficients(to, coefficients);
    copy_markers(from, to);
    jpeg_finish_compress(to);
    return true;
}

/* The setjmp of a conversion: a file that libjpeg refuses is not converted. */
static bool convert_or_fail(struct conversion *both, const uint8_t *file, size_t size,
                            struct output *output)
{
    both->from.err = both->to.err = quiet_errors(&both->failure);
    const bool written = setjmp(both->failure.back) == 0 && convert(both, file, size, output);
    jpeg_destroy_compress(&both->to);
    jpeg_destroy_decompress(&both->from);
    return written;
}

const char *pack_jpeg_baseline(const uint8_t *file, size_t size, struct pack_room *room)
{
    struct conversion both = { 0 };
    struct output output = { 0 };
    if (convert_or_fail(&both, file, size, &output))
        return hand_over(&output, room);
    free(output.bytes);
    return NULL;
}
#else
bool pack_jpeg_present(void)
{
    return false;
}

const char *pack_jpeg(const struct pack_pixels *pixels, uint32_t quality, const uint8_t *row,
                      struct pack_room *room)
{
    (void)pixels;
    (void)quality;
    (void)row;
    (void)room;
    return "built without libjpeg-turbo";
}

const char *pack_jpeg_baseline(const uint8_t *file, size_t size, struct pack_room *room)
{
    (void)file;
    (void)size;
    (void)room;
    return "built without libjpeg-turbo";
}
#endif
