/* test_jpeg_inspect.c - which JPEG files another decoder may decode: every kind that libjpeg
 * writes, every prefix, every flipped bit.
 */
#include "loader/codec/jpeg/jpeg.h"
#include "support/leaks.h"
#include "support/sets/image_codec.h"

#ifdef STOKER_HAVE_JPEG

#include "support/files/jpeg_files.h"

enum { HEIGHT = 9, WIDTH = 13 };

static stoker_codec *codec_of(uint32_t channels, bool warnings_fail)
{
    const struct stk_image_options options = { .shape = { HEIGHT, WIDTH, channels },
                                               .warnings_fail = warnings_fail };
    stoker_codec *codec = NULL;
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_jpeg, &options), STOKER_OK);
    return codec;
}

/* In memory that ends where the file does. */
static int inspect(const stoker_codec *codec, const uint8_t *bytes, size_t size,
                   stoker_image_header *header)
{
    stoker_error error = { .message = "" };
    uint8_t *copy = malloc(size > 0 ? size : 1);
    cr_assert_not_null(copy);
    memcpy(copy, bytes, size);
    const stoker_encoded in = { .bytes = copy, .size = size };
    *header = (stoker_image_header){ .format = 77 };
    const int rc = codec->probe(codec->self, &in, true, header, &error);
    cr_assert(rc == STOKER_OK || error.message[0] != '\0');
    free(copy);
    return rc;
}

static uint32_t format_of(const struct stk_jpeg_file *file, uint32_t channels, bool warnings_fail)
{
    stoker_codec *codec = codec_of(channels, warnings_fail);
    stoker_image_header header;
    cr_assert_eq(inspect(codec, file->at, file->size, &header), STOKER_OK);
    if (header.format == STOKER_IMAGE_FORMAT_JPEG) {
        cr_assert_eq(header.height, HEIGHT);
        cr_assert_eq(header.width, WIDTH);
        cr_assert_eq(header.channels, channels);
    }
    stk_image_codec_destroy(&codec);
    return header.format;
}

CleanTest(jpeg_inspect, kinds_of_files)
{
    static const struct {
        struct stk_jpeg_kind kind;
        uint32_t channels, format; /* channels that rows have; format that is expected */
    } cases[] = {
        { { .channels = 3, .h_factor = 2, .v_factor = 2 }, 3, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 3, .h_factor = 2, .v_factor = 1 }, 3, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 3, .h_factor = 1, .v_factor = 1 }, 3, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 3, .h_factor = 1, .v_factor = 2 }, 3, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 3, .h_factor = 4, .v_factor = 1 }, 3, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 3, .progressive = true }, 3, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 3, .restart_rows = 1 }, 3, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 1 }, 1, STOKER_IMAGE_FORMAT_JPEG },
        { { .channels = 3, .h_factor = 3, .v_factor = 1 }, 3, STOKER_IMAGE_FORMAT_OTHER },
        { { .channels = 3, .h_factor = 1, .v_factor = 4 }, 3, STOKER_IMAGE_FORMAT_OTHER },
        { { .channels = 3, .arithmetic = true }, 3, STOKER_IMAGE_FORMAT_OTHER },
        { { .channels = 4 }, 3, STOKER_IMAGE_FORMAT_OTHER },
        { { .channels = 4, .ycck = true }, 3, STOKER_IMAGE_FORMAT_OTHER },
        { { .channels = 1 }, 3, STOKER_IMAGE_FORMAT_OTHER }, /* would have to become color */
        { { .channels = 3 }, 1, STOKER_IMAGE_FORMAT_OTHER }, /* and gray */
        { { .channels = 3 }, 4, STOKER_IMAGE_FORMAT_OTHER },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_jpeg_kind kind = cases[i].kind;
        kind.height = HEIGHT;
        kind.width = WIDTH;
        struct stk_jpeg_file file = stk_jpeg_write(&kind);
        cr_assert_eq(format_of(&file, cases[i].channels, false), cases[i].format, "case %zu", i);
        /* What a decoder warns of is then an error, which only libjpeg finds. */
        cr_assert_eq(format_of(&file, cases[i].channels, true), STOKER_IMAGE_FORMAT_OTHER,
                     "case %zu", i);
        free(file.at);
    }
}

/* Components without a color transform: by their names, and by Adobe's segment in place of
 * JFIF's. */
CleanTest(jpeg_inspect, colors_that_are_not_transformed)
{
    struct stk_jpeg_file file =
        stk_jpeg_write(&(struct stk_jpeg_kind){ .height = HEIGHT, .width = WIDTH, .channels = 3 });
    cr_assert_eq(memcmp(file.at + 6, "JFIF", 5), 0);
    file.at[6] = 'X';                                                   /* some other segment */
    cr_assert_eq(format_of(&file, 3, false), STOKER_IMAGE_FORMAT_JPEG); /* components 1, 2, 3 */
    unsigned char *frame = memmem(file.at, file.size, "\xFF\xC0", 2);
    cr_assert_not_null(frame);
    frame[10] = 'R';
    cr_assert_eq(format_of(&file, 3, false), STOKER_IMAGE_FORMAT_OTHER);
    frame[10] = 1;
    file.at[3] = 0xEE; /* Adobe's, of the same length, but for its name */
    memcpy(file.at + 6, "Adobe", 5);
    file.at[17] = 1;
    cr_assert_eq(format_of(&file, 3, false), STOKER_IMAGE_FORMAT_JPEG);
    file.at[17] = 0;
    cr_assert_eq(format_of(&file, 3, false), STOKER_IMAGE_FORMAT_OTHER);
    free(file.at);
}

CleanTest(jpeg_inspect, prefixes_and_flipped_bits)
{
    struct stk_jpeg_file file = stk_jpeg_write(&(struct stk_jpeg_kind){
        .height = HEIGHT, .width = WIDTH, .channels = 3, .progressive = true });
    stoker_codec *codec = codec_of(3, false);
    stoker_image_header header;
    for (size_t size = 0; size < file.size; size++)
        cr_assert_lt(inspect(codec, file.at, size, &header), 0, "%zu bytes", size);
    for (size_t bit = 0; bit < 8 * (size_t)file.size; bit++) {
        struct stk_image_shape shape;
        file.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (inspect(codec, file.at, file.size, &header) == STOKER_OK &&
            header.format == STOKER_IMAGE_FORMAT_JPEG) {
            cr_assert_eq(stk_codec_jpeg_probe(file.at, file.size, NULL, &shape, NULL), STOKER_OK);
            cr_assert_eq(header.height, shape.height);
            cr_assert_eq(header.width, shape.width);
        }
        file.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    stk_image_codec_destroy(&codec);
    free(file.at);
}

#else

Test(jpeg_inspect, needs_libjpeg)
{
    cr_assert_not(stk_image_jpeg.present);
}

#endif
