/* test_jpeg_library.c - a libjpeg that is not as expected keeps its own decoder of codes.
 *
 * Method: functions of libjpeg are replaced by ones that call it and make it look like another
 * library.
 */
#include <criterion/criterion.h>

#ifdef STOKER_HAVE_JPEG
#include <dlfcn.h>

#include "loader/codec/jpeg/jpeg.h"
#include "support/files/jpeg_files.h"
#include "support/leaks.h"
#include "support/runs/image_run.h"

enum library {
    AS_EXPECTED,
    FOREIGN_METHOD,  /* a method lies outside of the library */
    OTHER_ARGUMENTS, /* the method is called with other arguments */
    OTHER_BLOCKS,    /* the last of them is elsewhere */
    NO_CALL,         /* the method is not called */
    OTHER_PIXELS
};

static enum library library;

typedef boolean decode_mcu_fn(j_decompress_ptr decompress, JBLOCKROW *blocks);

/* libjpeg's inner table. */
struct methods {
    void (*start_pass)(j_decompress_ptr decompress);
    decode_mcu_fn *decode_mcu;
};

static decode_mcu_fn *of_library, *of_codec;
static uint32_t own_lines; /* read while the codec's method was in place */

static struct methods *methods_of(j_decompress_ptr decompress)
{
    return (struct methods *)(void *)decompress->entropy;
}

static boolean pass_on(j_decompress_ptr decompress, JBLOCKROW *blocks)
{
    return of_library(decompress, blocks);
}

static boolean pass_other_arguments(j_decompress_ptr decompress, JBLOCKROW *blocks)
{
    if (library == OTHER_ARGUMENTS)
        blocks = (JBLOCKROW *)(uintptr_t)sizeof(JBLOCK);
    else
        blocks[decompress->blocks_in_MCU - 1] = (JBLOCKROW)(uintptr_t)sizeof(JBLOCK);
    return of_codec(decompress, blocks);
}

boolean jpeg_start_decompress(j_decompress_ptr decompress)
{
    boolean (*start)(j_decompress_ptr) = NULL;
    *(void **)(void *)&start = dlsym(RTLD_NEXT, "jpeg_start_decompress");
    const boolean rc = start(decompress);
    struct methods *methods = methods_of(decompress);
    of_library = methods->decode_mcu;
    if (library == FOREIGN_METHOD)
        methods->decode_mcu = pass_on;
    return rc;
}

JDIMENSION jpeg_read_scanlines(j_decompress_ptr decompress, JSAMPARRAY lines, JDIMENSION count)
{
    JDIMENSION (*read)(j_decompress_ptr, JSAMPARRAY, JDIMENSION) = NULL;
    *(void **)(void *)&read = dlsym(RTLD_NEXT, "jpeg_read_scanlines");
    struct methods *methods = methods_of(decompress);
    const bool is_replaced = methods->decode_mcu != of_library && methods->decode_mcu != pass_on;
    if (is_replaced && methods->decode_mcu != pass_other_arguments)
        of_codec = methods->decode_mcu;
    if (is_replaced && (library == OTHER_ARGUMENTS || library == OTHER_BLOCKS))
        methods->decode_mcu = pass_other_arguments;
    if (is_replaced && library == NO_CALL)
        methods->decode_mcu = of_library;
    const JDIMENSION rc = read(decompress, lines, count);
    if (is_replaced && library == OTHER_PIXELS)
        lines[0][0] ^= 1;
    own_lines += is_replaced ? rc : 0;
    return rc;
}

CleanTest(codec_jpeg_library, that_is_not_as_expected_decodes_alone)
{
    const struct stk_jpeg_kind kind = {
        .height = 64, .width = 40, .channels = 3, .h_factor = 2, .v_factor = 2
    };
    const struct stk_image_options options = { .shape = { kind.height, kind.width, 3 } };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    static uint8_t expected[64 * 40 * 3];
    library = AS_EXPECTED;
    stk_jpeg_expect(&file, 3, expected);
    for (int other = AS_EXPECTED; other <= OTHER_PIXELS; other++) {
        library = (enum library)other;
        struct stk_image_run image = stk_image_run_open(&stk_image_jpeg, &options);
        for (int again = 0; again < 3; again++) {
            own_lines = 0;
            cr_assert_eq(stk_codec_run(&image.run, file.at, file.size), STOKER_OK, "%s",
                         image.run.error.message);
            cr_assert_arr_eq(image.run.row, expected, sizeof(expected), "library %d", other);
            const uint32_t tried = again == 0 && other != FOREIGN_METHOD ? 8 : 0;
            if (other == AS_EXPECTED)
                cr_assert_eq(own_lines, kind.height + tried);
            else
                cr_assert_leq(own_lines, tried, "library %d: %u lines", other, own_lines);
        }
        stk_image_run_close(&image);
    }
    free(file.at);
}
#else
Test(codec_jpeg_library, is_missing_in_this_build)
{
}
#endif
