/* jpeg.c - see jpeg.h. */
#include "jpeg.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct errors {
    struct jpeg_error_mgr manager; /* first: what libjpeg sees */
    jmp_buf failed;
};

static void fail(j_common_ptr common)
{
    longjmp(((struct errors *)(void *)common->err)->failed, 1);
}

/* A warning is damage. */
static void fail_of_warning(j_common_ptr common, int level)
{
    if (level < 0)
        fail(common);
}

static bool read_rows(struct jpeg_decompress_struct *decompress, uint32_t height, uint32_t width,
                      uint32_t channels, uint8_t *pixels)
{
    (void)jpeg_read_header(decompress, TRUE);
    if (decompress->image_height != height || decompress->image_width != width)
        return false;
    decompress->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    (void)jpeg_start_decompress(decompress);
    while (decompress->output_scanline < height) {
        JSAMPROW row = pixels + (size_t)decompress->output_scanline * width * channels;
        (void)jpeg_read_scanlines(decompress, &row, 1);
    }
    (void)jpeg_finish_decompress(decompress);
    return true;
}

bool standin_jpeg_decode(const uint8_t *bytes, size_t size, uint32_t height, uint32_t width,
                         uint32_t channels, uint8_t *pixels)
{
    struct jpeg_decompress_struct decompress;
    struct errors errors;
    volatile bool done = false;
    decompress.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = fail;
    errors.manager.emit_message = fail_of_warning;
    jpeg_create_decompress(&decompress);
    if (setjmp(errors.failed) == 0) {
        jpeg_mem_src(&decompress, bytes, size);
        done = read_rows(&decompress, height, width, channels, pixels);
    }
    jpeg_destroy_decompress(&decompress);
    return done;
}
