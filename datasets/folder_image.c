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

static int open_one(const stoker_codec *codec, void **scratch)
{
    return codec == NULL || codec->open == NULL ? STOKER_OK : codec->open(codec->self, scratch);
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

static int open_scratch(const void *self, void **out)
{
    const struct stk_folder_image *image = self;
    struct scratch *scratch = stk_calloc(1, sizeof(*scratch));
    if (scratch == NULL)
        return STOKER_ENOMEM;
    int rc = open_one(image->png, &scratch->png);
    if (rc == STOKER_OK)
        rc = open_one(image->jpeg, &scratch->jpeg);
    if (rc == STOKER_OK)
        *out = scratch;
    else
        close_scratch(self, scratch);
    return rc;
}

static int refuse(stoker_error *error, int code, const char *what)
{
    if (error != NULL)
        (void)snprintf(error->message, sizeof(error->message), "%s", what);
    return code;
}

static int decode(const void *self, void *at, const stoker_encoded *in, void *row, size_t row_bytes,
                  stoker_error *error)
{
    const struct stk_folder_image *image = self;
    const struct scratch *scratch = at;
    if (in->size == 0)
        return refuse(error, STOKER_ETRUNCATED, "the file is empty");
    const bool is_png = stk_codec_png_magic(in->bytes, in->size);
    const bool is_jpeg = !is_png && stk_codec_jpeg_magic(in->bytes, in->size);
    if (!is_png && !is_jpeg)
        return refuse(error, STOKER_EMAGIC, "neither PNG nor JPEG");
    const stoker_codec *codec = is_png ? image->png : image->jpeg;
    if (codec == NULL)
        return refuse(error, STOKER_ENOTSUP,
                      is_png ? "built without libpng" : "built without libjpeg-turbo");
    return codec->decode(codec->self, is_png ? scratch->png : scratch->jpeg, in, row, row_bytes,
                         error);
}

int stk_folder_image_init(struct stk_folder_image *image, const struct stk_image_shape *shape)
{
    const struct stk_png_options png = { .shape = *shape };
    const struct stk_jpeg_options jpeg = { .shape = *shape };
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
