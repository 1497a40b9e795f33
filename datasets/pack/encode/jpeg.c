/* jpeg.c - a row as a JPEG file, through libjpeg-turbo. */
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

static bool write_file(struct output *output, const struct pack_pixels *pixels, uint32_t quality,
                       const uint8_t *row)
{
    struct jpeg_compress_struct cinfo;
    struct failure failure;
    memset(&cinfo, 0, sizeof(cinfo));
    cinfo.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = leave_libjpeg;
    failure.manager.output_message = silent;
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

const char *pack_jpeg(const struct pack_pixels *pixels, uint32_t quality, const uint8_t *row,
                      struct pack_room *room)
{
    struct output output = { 0 };
    const bool written = write_file(&output, pixels, quality, row);
    const bool kept = written && pack_room_for(room, output.size);
    if (kept) {
        memcpy(room->at, output.bytes, output.size);
        room->used = output.size;
    }
    free(output.bytes);
    if (!written)
        return "libjpeg could not write the image";
    return kept ? NULL : "out of memory";
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
#endif
