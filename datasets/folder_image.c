/* folder_image.c - see folder_image.h. */
#include "datasets/folder_image.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/memory.h"
#include "loader/codec/jpeg.h"
#include "loader/codec/png.h"

/* What one worker has open. */
struct scratch {
    void *png;
    void *jpeg;
};

static void close_one(const stoker_codec *codec, void *scratch)
{
    if (codec != NULL && codec->close != NULL && scratch != NULL)
        codec->close(codec->self, scratch);
}

static int open_one(const stoker_codec *codec, bool any, void **scratch)
{
    if (codec == NULL)
        return STOKER_OK;
    int (*const open)(const void *self, void **scratch) = any ? codec->open_any : codec->open;
    return open == NULL ? STOKER_OK : open(codec->self, scratch);
}

static void close_scratch(const void *self, void *at)
{
    const struct stk_folder_image *image = self;
    struct scratch *scratch = at;
    if (scratch == NULL)
        return;
    close_one(image->png, scratch->png);
    close_one(image->jpeg, scratch->jpeg);
    stk_free(scratch);
}

static int open_both(const struct stk_folder_image *image, bool any, void **out)
{
    struct scratch *scratch = stk_calloc(1, sizeof(*scratch));
    if (scratch == NULL)
        return STOKER_ENOMEM;
    int rc = open_one(image->png, any, &scratch->png);
    if (rc == STOKER_OK)
        rc = open_one(image->jpeg, any, &scratch->jpeg);
    if (rc == STOKER_OK)
        *out = scratch;
    else
        close_scratch(image, scratch);
    return rc;
}

static int open_scratch(const void *self, void **out)
{
    return open_both(self, false, out);
}

static int open_any(const void *self, void **out)
{
    return open_both(self, true, out);
}

static int refuse(stoker_error *error, int code, const char *what)
{
    if (error != NULL)
        (void)snprintf(error->message, sizeof(error->message), "%s", what);
    return code;
}

/* The codec of a file that begins with these bytes, and this worker's scratch of it. */
static int choose(const struct stk_folder_image *image, const struct scratch *scratch,
                  const stoker_encoded *in, const stoker_codec **codec, void **own,
                  stoker_error *error)
{
    if (in->size == 0)
        return refuse(error, STOKER_ETRUNCATED, "the file is empty");
    const bool is_png = stk_codec_png_magic(in->bytes, in->size);
    const bool is_jpeg = !is_png && stk_codec_jpeg_magic(in->bytes, in->size);
    if (!is_png && !is_jpeg)
        return refuse(error, STOKER_EMAGIC, "neither PNG nor JPEG");
    *codec = is_png ? image->png : image->jpeg;
    *own = is_png ? scratch->png : scratch->jpeg;
    if (*codec == NULL)
        return refuse(error, STOKER_ENOTSUP,
                      is_png ? "built without libpng" : "built without libjpeg-turbo");
    return STOKER_OK;
}

static int decode(const void *self, void *at, const stoker_encoded *in, void *row, size_t row_bytes,
                  stoker_error *error)
{
    const stoker_codec *codec;
    void *own;
    int rc = choose(self, at, in, &codec, &own, error);
    return rc == STOKER_OK ? codec->decode(codec->self, own, in, row, row_bytes, error) : rc;
}

static int decode_any(const void *self, void *at, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    const stoker_codec *codec;
    void *own;
    int rc = choose(self, at, in, &codec, &own, error);
    return rc == STOKER_OK
               ? codec->decode_any(codec->self, own, in, pixels, pixels_bytes, size, error)
               : rc;
}

bool stk_folder_image_on_warning(const char *value, bool *warnings_fail)
{
    *warnings_fail = strcmp(value, "fail") == 0;
    return *warnings_fail || value[0] == '\0' || strcmp(value, "accept") == 0;
}

int stk_folder_image_init(struct stk_folder_image *image,
                          const struct stk_folder_image_options *options)
{
    const struct stk_png_options png = { .shape = options->shape,
                                         .any_pixels_max = options->any_pixels_max };
    const struct stk_jpeg_options jpeg = { .shape = options->shape,
                                           .any_pixels_max = options->any_pixels_max,
                                           .warnings_fail = options->warnings_fail };
    *image = (struct stk_folder_image){ 0 };
    const int png_rc = stk_codec_png_create(&image->png, &png);
    const int jpeg_rc = stk_codec_jpeg_create(&image->jpeg, &jpeg);
    int rc = png_rc == STOKER_ENOTSUP ? jpeg_rc : png_rc;
    if (rc == STOKER_OK && jpeg_rc != STOKER_ENOTSUP)
        rc = jpeg_rc;
    if (rc != STOKER_OK) {
        stk_folder_image_close(image);
        return rc;
    }
    image->codec = (stoker_codec){ .name = "image",
                                   .self = image,
                                   .open = open_scratch,
                                   .close = close_scratch,
                                   .decode = decode };
    if (options->any_pixels_max > 0) {
        image->codec.open_any = open_any;
        image->codec.decode_any = decode_any;
    }
    return STOKER_OK;
}

void stk_folder_image_close(struct stk_folder_image *image)
{
    stk_codec_png_destroy(&image->png);
    stk_codec_jpeg_destroy(&image->jpeg);
    *image = (struct stk_folder_image){ 0 };
}

int stk_folder_image_probe(const uint8_t *bytes, size_t size, struct stk_image_shape *out,
                           stoker_error *error)
{
    if (size == 0)
        return refuse(error, STOKER_ETRUNCATED, "the file is empty");
    if (stk_codec_png_magic(bytes, size))
        return stk_codec_png_probe(bytes, size, NULL, out, error);
    if (stk_codec_jpeg_magic(bytes, size))
        return stk_codec_jpeg_probe(bytes, size, NULL, out, error);
    return refuse(error, STOKER_EMAGIC, "neither PNG nor JPEG");
}
