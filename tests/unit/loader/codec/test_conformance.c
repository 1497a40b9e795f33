/* test_conformance.c - what the codec of every image format must do, in one table: PNG, JPEG, WebP.
 *
 * Each format writes small files of several sorts. Damaged files (each prefix, each flipped bit)
 * must do the same to a worker that has decoded other files as to one that has decoded none. malloc
 * and its kin are this program's own and count. AddressSanitizer wants malloc for itself: that
 * build counts what goes through loader/base/memory/memory.h alone.
 */
#include <stdatomic.h>

#include "loader/codec/jpeg/jpeg.h"
#include "loader/codec/png/png.h"
#include "loader/codec/webp/webp.h"
#include "support/leaks.h"
#include "support/runs/image_run.h"
#ifdef STOKER_HAVE_PNG
#include "support/files/picture.h"
#endif
#ifdef STOKER_HAVE_JPEG
#include "support/files/jpeg_files.h"
#endif
#ifdef STOKER_HAVE_WEBP
#include "support/files/webp_files.h"
#endif

struct sample {
    uint8_t *at; /* from malloc */
    size_t size;
    struct stk_image_shape own; /* what a probe finds */
    uint32_t channels;          /* the row's, so that all that is stored is looked at */
};

enum { SORTS = 5 };

static struct sample write_png(uint32_t sort)
{
    struct sample out = { .own = { 5, 6, 3 }, .channels = 3 };
#ifdef STOKER_HAVE_PNG
    static const uint8_t colors[SORTS] = { PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB,
                                           PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_PALETTE,
                                           PNG_COLOR_TYPE_RGB_ALPHA };
    static const uint32_t channels[SORTS] = { 1, 3, 4, 3, 4 };
    static const uint8_t depths[SORTS] = { 8, 8, 16, 4, 8 };
    static struct stk_picture picture;
    static struct stk_file_bytes file;
    picture = (struct stk_picture){ .width = 6,
                                    .height = 5,
                                    .color = colors[sort],
                                    .depth = depths[sort],
                                    .interlaced = sort == 2,
                                    .filters = PNG_ALL_FILTERS };
    stk_picture_paint(&picture, sort);
    stk_picture_write(&picture, &file);
    out.own.channels = out.channels = channels[sort];
    out.at = malloc(file.size);
    out.size = file.size;
    memcpy(out.at, file.at, file.size);
#endif
    (void)sort;
    return out;
}

static struct sample write_jpeg(uint32_t sort)
{
    struct sample out = { .channels = 3 };
#ifdef STOKER_HAVE_JPEG
    static const struct stk_jpeg_kind sorts[SORTS] = {
        { .height = 9, .width = 10, .channels = 1 },
        { .height = 9,
          .width = 10,
          .channels = 3,
          .h_factor = 2,
          .v_factor = 2,
          .restart_rows = 1 },
        { .height = 17,
          .width = 10,
          .channels = 3,
          .h_factor = 1,
          .v_factor = 1,
          .progressive = true },
        { .height = 9, .width = 10, .channels = 4, .ycck = true, .h_factor = 2, .v_factor = 1 },
        { .height = 9,
          .width = 10,
          .channels = 3,
          .h_factor = 2,
          .v_factor = 2,
          .arithmetic = true },
    };
    const struct stk_jpeg_file file = stk_jpeg_write(&sorts[sort]);
    out.at = file.at;
    out.size = file.size;
    out.own = (struct stk_image_shape){ sorts[sort].height, sorts[sort].width, sort == 0 ? 1 : 3 };
#endif
    (void)sort;
    return out;
}

static struct sample write_webp(uint32_t sort)
{
    struct sample out = { .channels = 3 };
#ifdef STOKER_HAVE_WEBP
    const bool alpha = sort % 2 == 1, lossless = sort == 2 || sort == 3;
    const struct stk_webp_kind kind = { lossless ? 9 : 19, lossless ? 10 : 18, lossless, alpha,
                                        NULL };
    const struct stk_webp_file file = stk_webp_write(&kind);
    out = (struct sample){
        file.at, file.size, { kind.height, kind.width, alpha ? 4 : 3 }, alpha ? 4 : 3
    };
#endif
    (void)sort;
    return out;
}

static const struct format {
    const struct stk_image_kind *kind;
    struct sample (*write)(uint32_t sort);
    uint32_t side_max;        /* the longest side of a row, below 2^31 */
    unsigned refused_min;     /* flipped bits that are noticed, at least */
    uint64_t allocations_min; /* lower bound, for a codec with its scratch */
    bool allocates;           /* its library does, while it decodes */
} formats[] = {
    { &stk_image_png, write_png, INT32_MAX, 1000, 4, false },
    { &stk_image_jpeg, write_jpeg, UINT16_MAX, 1000, 5, false },
    { &stk_image_webp, write_webp, 0, 500, 3, true },
};

#define EACH_FORMAT(format)                                                                        \
    for (const struct format *format = formats;                                                    \
         format < formats + sizeof(formats) / sizeof(formats[0]); format++)                        \
        if (format->kind->present)

static struct stk_image_run open_for(const struct format *format, const struct sample *sample)
{
    const struct stk_image_options options = { .shape = { sample->own.height, sample->own.width,
                                                          sample->channels } };
    return stk_image_run_open(format->kind, &options);
}

CleanTest(codec_conformance, a_build_without_the_library_says_so)
{
    const struct stk_image_options options = { .shape = { 1, 1, 1 } };
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        stoker_codec *codec = NULL;
        if (formats[i].kind->present)
            continue;
        cr_assert_eq(stk_image_codec_create(&codec, formats[i].kind, &options), STOKER_ENOTSUP);
        cr_assert_null(codec);
    }
}

/* The shape is known from some prefix on. */
CleanTest(codec_conformance, a_probe_reports_the_shape)
{
    EACH_FORMAT(format)
    for (uint32_t sort = 0; sort < SORTS; sort++) {
        const struct sample sample = format->write(sort);
        struct stk_image_shape shape = { 0 };
        size_t known = 0;
        cr_assert_eq(stk_kind_of_bytes(sample.at, sample.size), format->kind->number);
        for (size_t size = 0; size <= sample.size; size++) {
            const int rc = format->kind->probe(sample.at, size, NULL, &shape, NULL);
            known += rc == STOKER_OK;
            cr_assert(rc == STOKER_OK || (rc == STOKER_ETRUNCATED && known == 0));
        }
        cr_assert_gt(known, 0);
        cr_assert_eq(shape.height, sample.own.height);
        cr_assert_eq(shape.width, sample.own.width);
        cr_assert_eq(shape.channels, sample.own.channels);
        sample.at[0] ^= 1U;
        cr_assert_eq(format->kind->probe(sample.at, sample.size, NULL, &shape, NULL),
                     STOKER_EMAGIC);
        cr_assert_eq(stk_kind_of_bytes(sample.at, sample.size), STK_SHARD_RAW);
        free(sample.at);
    }
}

CleanTest(codec_conformance, every_prefix_is_refused)
{
    EACH_FORMAT(format)
    for (uint32_t sort = 0; sort < SORTS; sort++) {
        const struct sample sample = format->write(sort);
        struct stk_image_run image = open_for(format, &sample);
        for (size_t prefix = 0; prefix < sample.size; prefix++)
            cr_assert_eq(stk_codec_run(&image.run, sample.at, prefix), STOKER_ETRUNCATED,
                         "%zu of %zu bytes", prefix, sample.size);
        cr_assert_eq(stk_image_run_alike(&image, sample.at, sample.size), STOKER_OK);
        stk_image_run_close(&image);
        free(sample.at);
    }
}

CleanTest(codec_conformance, a_flipped_bit_gives_an_error_or_the_same_row_to_everybody)
{
    EACH_FORMAT(format)
    {
        unsigned refused = 0;
        for (uint32_t sort = 0; sort < SORTS; sort++) {
            const struct sample sample = format->write(sort);
            struct stk_image_run image = open_for(format, &sample);
            for (size_t bit = 0; bit < 8 * sample.size; bit++) {
                sample.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
                refused += stk_image_run_alike(&image, sample.at, sample.size) != STOKER_OK;
                sample.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
            }
            stk_image_run_close(&image);
            free(sample.at);
        }
        cr_assert_gt(refused, format->refused_min);
    }
}

CleanTest(codec_conformance, a_file_of_another_size_is_refused)
{
    char size[32];
    EACH_FORMAT(format)
    {
        const struct sample sample = format->write(0);
        struct sample turned = sample;
        turned.own.height = sample.own.width;
        turned.own.width = sample.own.height;
        struct stk_image_run image = open_for(format, &turned);
        cr_assert_eq(stk_codec_run(&image.run, sample.at, sample.size), STOKER_EFORMAT);
        (void)snprintf(size, sizeof(size), "%u x %u", sample.own.height, sample.own.width);
        cr_assert_not_null(strstr(image.run.error.message, size));
        stk_image_run_close(&image);
        free(sample.at);
    }
}

/* Rows without pixels, of an odd number of channels, with a side or more pixels than are
 * allowed. */
CleanTest(codec_conformance, shapes_out_of_range_are_refused)
{
    EACH_FORMAT(format)
    {
        const struct stk_image_shape wrong[] = {
            { 0, 1, 1 },
            { 1, 0, 1 },
            { 1, 1, 0 },
            { 1, 1, 2 },
            { 1, 1, 5 },
            { format->side_max + 1, 1, 1 },
            { 1, format->side_max + 1, 1 },
        };
        const size_t count = sizeof(wrong) / sizeof(wrong[0]) - (format->side_max == 0 ? 2 : 0);
        stoker_codec *codec = NULL;
        for (size_t i = 0; i < count; i++) {
            const struct stk_image_options options = { .shape = wrong[i] };
            cr_assert_eq(stk_image_codec_create(&codec, format->kind, &options), STOKER_EINVAL);
        }
        const struct stk_image_options over = { .shape = { 10, 11, 1 },
                                                .limits = { .pixels_max = 109 } };
        cr_assert_eq(stk_image_codec_create(&codec, format->kind, &over), STOKER_ELIMIT);
        cr_assert_null(codec);
    }
}

/* ---- memory ---- */

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

/* Decode the file, whole, damaged in its middle and whole again, without an allocation. */
CleanTest(codec_conformance, decoding_allocates_nothing)
{
    EACH_FORMAT(format)
    for (uint32_t sort = 0; sort < SORTS && !format->allocates; sort++) {
        const struct sample sample = format->write(sort);
        struct stk_image_run image = open_for(format, &sample);
        const stoker_encoded in = { .bytes = sample.at, .size = sample.size };
        const stoker_codec *codec = image.codec;
        int rc[3];
        cr_assert(!COUNTS_MALLOC || atomic_load(&allocations) > 0);
        const uint64_t before = allocated();
        cr_assert_gt(before, 0);
        for (int i = 0; i < 3; i++) {
            sample.at[sample.size / 2] ^= i == 0 ? 0 : 0x55;
            rc[i] = stk_decode_row(codec, image.run.scratch, &in, image.run.row,
                                   image.run.row_bytes, &image.run.error);
        }
        const uint64_t after = allocated();
        cr_assert(rc[0] == STOKER_OK && rc[1] <= STOKER_OK && rc[2] == STOKER_OK);
        cr_assert_eq(after, before, "%s: %u allocations", codec->name, (unsigned)(after - before));
        stk_image_run_close(&image);
        free(sample.at);
    }
}

/* Make a codec and a scratch until no allocation of theirs fails any more. */
CleanTest(codec_conformance, each_allocation_may_fail)
{
    EACH_FORMAT(format)
    {
        const struct stk_image_options options = { .shape = { 8, 8, 1 } };
        uint64_t nth = 0;
        for (bool done = false; !done;) {
            stk_fault_arm(STK_FAULT_MEMORY, ++nth);
            cr_assert_lt(nth, 20);
            stoker_codec *codec = NULL;
            void *scratch = NULL;
            int rc = stk_image_codec_create(&codec, format->kind, &options);
            if (rc == STOKER_OK)
                rc = codec->open(codec->self, false, &scratch);
            done = !stk_fault_disarm();
            cr_assert_eq(rc, done ? STOKER_OK : STOKER_ENOMEM);
            if (scratch != NULL)
                codec->close(codec->self, scratch);
            stk_image_codec_destroy(&codec);
            cr_assert_eq(stk_fault_live_bytes(), 0);
        }
        cr_assert_geq(nth, format->allocations_min);
    }
}
