/* test_allocation.c - decoding allocates nothing: not here, not in the libraries.
 *
 * Method: malloc and its kin are this program's own and count while a codec decodes files that
 * it has not seen before, good and bad ones. AddressSanitizer wants malloc for itself: that
 * build counts what goes through loader/base/memory.h alone.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stddef.h>

#include "support/leaks.h"

#include "loader/base/fault.h"
#include "loader/codec/jpeg/jpeg.h"
#include "loader/codec/png/png.h"

#if defined(STOKER_HAVE_PNG) && defined(STOKER_HAVE_JPEG)
#include "support/codec_run.h"
#include "support/jpeg_files.h"
#include "support/png_chunks.h"

static atomic_ulong allocations; /* those of malloc and its kin */

#if defined(__GLIBC__) && !defined(STK_TEST_ASAN)
enum { COUNTS_MALLOC = 1 };
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    atomic_fetch_add(&allocations, 1UL);
    return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&allocations, 1UL);
    return __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *block, size_t bytes)
{
    atomic_fetch_add(&allocations, 1UL);
    return __libc_realloc(block, bytes);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&allocations, 1UL);
    return __libc_memalign(alignment, bytes);
}

#else
enum { COUNTS_MALLOC = 0 };
#endif

static uint64_t allocated(void)
{
    return stk_fault_allocations() + atomic_load(&allocations);
}

static struct stk_picture picture;
static struct stk_file_bytes file;

/* Decode the file, whole and then cut in the middle of its pixels, without an allocation. */
static void decode_without(const stoker_codec *codec, const uint8_t *bytes, size_t size,
                           size_t row_bytes)
{
    struct stk_codec_run run = stk_codec_run_open(codec, row_bytes);
    const stoker_encoded whole = { .bytes = bytes, .size = size };
    uint8_t *broken = malloc(size);
    cr_assert_not_null(broken);
    memcpy(broken, bytes, size);
    broken[size / 2] ^= 0x55;
    const stoker_encoded damaged = { .bytes = broken, .size = size };
    cr_assert(!COUNTS_MALLOC || atomic_load(&allocations) > 0);
    const uint64_t before = allocated();
    cr_assert_gt(before, 0);
    const int good =
        codec->decode(codec->self, run.scratch, &whole, run.row, row_bytes, &run.error);
    const int bad =
        codec->decode(codec->self, run.scratch, &damaged, run.row, row_bytes, &run.error);
    const int again =
        codec->decode(codec->self, run.scratch, &whole, run.row, row_bytes, &run.error);
    const uint64_t after = allocated();
    cr_assert_eq(good, STOKER_OK, "%s", run.error.message);
    cr_assert_leq(bad, STOKER_OK);
    cr_assert_eq(again, STOKER_OK, "%s", run.error.message);
    cr_assert_eq(after, before, "%s: %u allocations", codec->name, (unsigned)(after - before));
    free(broken);
    stk_codec_run_close(&run);
}

CleanTest(codec_allocation, png_takes_no_memory_to_decode)
{
    static const struct {
        uint8_t colour, depth;
        bool interlaced, transparent;
    } sorts[] = { { PNG_COLOR_TYPE_GRAY, 8, false, false },
                  { PNG_COLOR_TYPE_RGB, 8, false, false },
                  { PNG_COLOR_TYPE_RGB, 16, true, true },
                  { PNG_COLOR_TYPE_PALETTE, 4, true, true },
                  { PNG_COLOR_TYPE_RGB_ALPHA, 16, true, false } };
    for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
        picture = (struct stk_picture){ .width = 60,
                                        .height = 50,
                                        .colour = sorts[i].colour,
                                        .depth = sorts[i].depth,
                                        .interlaced = sorts[i].interlaced,
                                        .transparent = sorts[i].transparent,
                                        .filters = PNG_ALL_FILTERS };
        stk_picture_paint(&picture, i);
        stk_picture_write(&picture, &file);
        static const uint32_t row_channels[] = { 1, 3, 4 };
        for (size_t c = 0; c < 3; c++) {
            stoker_codec *codec = NULL;
            const struct stk_image_options options = { .shape = { 50, 60, row_channels[c] } };
            cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png, &options), STOKER_OK);
            decode_without(codec, file.at, file.size, (size_t)50 * 60 * row_channels[c]);
            stk_image_codec_destroy(&codec);
        }
    }
}

CleanTest(codec_allocation, jpeg_takes_no_memory_to_decode)
{
    for (int sort = 0; sort < 8; sort++) {
        const struct stk_jpeg_kind kind = { .height = 130,
                                            .width = 170,
                                            .channels = (sort & 1) != 0 ? 3 : 1,
                                            .h_factor = 2,
                                            .v_factor = 2,
                                            .progressive = (sort & 2) != 0,
                                            .arithmetic = (sort & 4) != 0 };
        struct stk_jpeg_file jpeg = stk_jpeg_write(&kind);
        stoker_codec *codec = NULL;
        const struct stk_image_options options = { .shape = { 130, 170, 3 } };
        cr_assert_eq(stk_image_codec_create(&codec, &stk_image_jpeg, &options), STOKER_OK);
        decode_without(codec, jpeg.at, jpeg.size, (size_t)130 * 170 * 3);
        stk_image_codec_destroy(&codec);
        free(jpeg.at);
    }
}

#else

CleanTest(codec_allocation, a_codec_that_is_not_there_is_not_made)
{
    stoker_codec *codec = NULL;
    const uint64_t before = stk_fault_allocations();
#ifndef STOKER_HAVE_PNG
    const struct stk_image_options png = { .shape = { 1, 1, 1 } };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png, &png), STOKER_ENOTSUP);
#endif
#ifndef STOKER_HAVE_JPEG
    const struct stk_image_options jpeg = { .shape = { 1, 1, 1 } };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_jpeg, &jpeg), STOKER_ENOTSUP);
#endif
    cr_assert_null(codec);
    cr_assert_eq(stk_fault_allocations(), before);
}

#endif
