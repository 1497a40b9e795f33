/* png.c - a row as a PNG file, through libpng. */
#include "datasets/pack/encode/pixels.h"

#ifdef STOKER_HAVE_PNG
#include <png.h>
#include <string.h>

bool pack_png_present(void)
{
    return true;
}

static void append(png_structp png, png_bytep bytes, size_t size)
{
    struct pack_room *room = png_get_io_ptr(png);
    if (!pack_room_for(room, size))
        png_error(png, "out of memory");
    memcpy(room->at + room->used, bytes, size);
    room->used += size;
}

static void flush(png_structp png)
{
    (void)png;
}

/* libpng comes back here by longjmp. */
static bool write_file(png_structp png, png_infop info, const struct pack_pixels *pixels,
                       const uint8_t *row, struct pack_room *room)
{
    const int color = pixels->channels == 1   ? PNG_COLOR_TYPE_GRAY
                      : pixels->channels == 3 ? PNG_COLOR_TYPE_RGB
                                              : PNG_COLOR_TYPE_RGBA;
    if (setjmp(png_jmpbuf(png)) != 0)
        return false;
    png_set_write_fn(png, room, append, flush);
    png_set_IHDR(png, info, pixels->width, pixels->height, 8, color, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (uint32_t y = 0; y < pixels->height; y++)
        png_write_row(png, row + (size_t)y * pixels->width * pixels->channels);
    png_write_end(png, info);
    return true;
}

const char *pack_png(const struct pack_pixels *pixels, const uint8_t *row, struct pack_room *room)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png == NULL ? NULL : png_create_info_struct(png);
    const bool written = info != NULL && write_file(png, info, pixels, row, room);
    png_destroy_write_struct(&png, &info);
    return written ? NULL : "libpng could not write the image";
}
#else
bool pack_png_present(void)
{
    return false;
}

const char *pack_png(const struct pack_pixels *pixels, const uint8_t *row, struct pack_room *room)
{
    (void)pixels;
    (void)row;
    (void)room;
    return "built without libpng";
}
#endif
