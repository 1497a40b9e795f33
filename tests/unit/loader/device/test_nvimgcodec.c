/* test_nvimgcodec.c - the real nvImageCodec, if it is here: nvimgcodec.h has the types and numbers
 * of loader/device/nvimgcodec.h, and its CPU back ends decode real files, several at once, to what
 * our own decoder makes of them.
 *
 * STOKER_TEST_NVIMGCODEC is the wheel's folder, see tests/README.md. What remains for a GPU: its
 * back ends, the stream.
 */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stoker/error.h>

#include "loader/device/batch_decoder.h"

#ifdef STOKER_TEST_NVIMGCODEC_HEADER
#include <nvimgcodec.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(STK_NVIMGCODEC_PROPERTIES, NVIMGCODEC_STRUCTURE_TYPE_PROPERTIES);
SAME(STK_NVIMGCODEC_INSTANCE_CREATE_INFO, NVIMGCODEC_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
SAME(STK_NVIMGCODEC_DECODE_PARAMS, NVIMGCODEC_STRUCTURE_TYPE_DECODE_PARAMS);
SAME(STK_NVIMGCODEC_ORIENTATION, NVIMGCODEC_STRUCTURE_TYPE_ORIENTATION);
SAME(STK_NVIMGCODEC_IMAGE_INFO, NVIMGCODEC_STRUCTURE_TYPE_IMAGE_INFO);
SAME(STK_NVIMGCODEC_IMAGE_PLANE_INFO, NVIMGCODEC_STRUCTURE_TYPE_IMAGE_PLANE_INFO);
SAME(STK_NVIMGCODEC_BACKEND, NVIMGCODEC_STRUCTURE_TYPE_BACKEND);
SAME(STK_NVIMGCODEC_BACKEND_PARAMS, NVIMGCODEC_STRUCTURE_TYPE_BACKEND_PARAMS);
SAME(STK_NVIMGCODEC_EXECUTION_PARAMS, NVIMGCODEC_STRUCTURE_TYPE_EXECUTION_PARAMS);
SAME(STK_NVIMGCODEC_SUCCESS, NVIMGCODEC_STATUS_SUCCESS);
SAME(STK_NVIMGCODEC_DONE, NVIMGCODEC_PROCESSING_STATUS_SUCCESS);
SAME(STK_NVIMGCODEC_FAILED, NVIMGCODEC_PROCESSING_STATUS_FAIL);
SAME(STK_NVIMGCODEC_CORRUPTED, NVIMGCODEC_PROCESSING_STATUS_IMAGE_CORRUPTED);
SAME(STK_NVIMGCODEC_DEVICE_CPU_ONLY, NVIMGCODEC_DEVICE_CPU_ONLY);
SAME(STK_NVIMGCODEC_UINT8, NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8);
SAME(STK_NVIMGCODEC_SAMPLING_NONE, NVIMGCODEC_SAMPLING_NONE);
SAME(STK_NVIMGCODEC_P_Y, NVIMGCODEC_SAMPLEFORMAT_P_Y);
SAME(STK_NVIMGCODEC_I_RGB, NVIMGCODEC_SAMPLEFORMAT_I_RGB);
SAME(STK_NVIMGCODEC_COLOR_SRGB, NVIMGCODEC_COLORSPEC_SRGB);
SAME(STK_NVIMGCODEC_COLOR_GRAY, NVIMGCODEC_COLORSPEC_GRAY);
SAME(STK_NVIMGCODEC_BUFFER_DEVICE, NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_DEVICE);
SAME(STK_NVIMGCODEC_BUFFER_HOST, NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST);
SAME(STK_NVIMGCODEC_LOAD_HINT_IGNORE, NVIMGCODEC_LOAD_HINT_POLICY_IGNORE);
SAME(STK_NVIMGCODEC_CPU_ONLY, NVIMGCODEC_BACKEND_KIND_CPU_ONLY);
SAME(STK_NVIMGCODEC_GPU_ONLY, NVIMGCODEC_BACKEND_KIND_GPU_ONLY);
SAME(STK_NVIMGCODEC_HYBRID, NVIMGCODEC_BACKEND_KIND_HYBRID_CPU_GPU);
SAME(STK_NVIMGCODEC_HARDWARE, NVIMGCODEC_BACKEND_KIND_HW_GPU_ONLY);
SAME(STK_NVIMGCODEC_PLANES_MAX, NVIMGCODEC_MAX_NUM_PLANES);
SAME(STK_NVIMGCODEC_NAME_BYTES, NVIMGCODEC_MAX_CODEC_NAME_SIZE);

#define SIZE(ours, theirs) SAME(sizeof(struct stk_nvimgcodec_##ours), sizeof(nvimgcodec##theirs))
#define PLACE(ours, theirs, member)                                                                \
    SAME(offsetof(struct stk_nvimgcodec_##ours, member), offsetof(nvimgcodec##theirs, member))
SIZE(properties, Properties_t);
PLACE(properties, Properties_t, version);
SIZE(instance_info, InstanceCreateInfo_t);
PLACE(instance_info, InstanceCreateInfo_t, load_extension_modules);
PLACE(instance_info, InstanceCreateInfo_t, extension_modules_path);
PLACE(instance_info, InstanceCreateInfo_t, create_debug_messenger);
SIZE(backend, Backend_t);
PLACE(backend, Backend_t, kind);
PLACE(backend, Backend_t, params);
PLACE(backend, Backend_t, params.load_hint);
PLACE(backend, Backend_t, params.load_hint_policy);
SIZE(execution, ExecutionParams_t);
PLACE(execution, ExecutionParams_t, max_num_cpu_threads);
PLACE(execution, ExecutionParams_t, device_id);
PLACE(execution, ExecutionParams_t, pre_init);
PLACE(execution, ExecutionParams_t, num_backends);
PLACE(execution, ExecutionParams_t, backends);
SIZE(decode, DecodeParams_t);
PLACE(decode, DecodeParams_t, apply_exif_orientation);
SIZE(plane, ImagePlaneInfo_t);
PLACE(plane, ImagePlaneInfo_t, height);
PLACE(plane, ImagePlaneInfo_t, row_stride);
PLACE(plane, ImagePlaneInfo_t, num_channels);
PLACE(plane, ImagePlaneInfo_t, sample_type);
PLACE(plane, ImagePlaneInfo_t, precision);
SIZE(image_info, ImageInfo_t);
PLACE(image_info, ImageInfo_t, color_spec);
PLACE(image_info, ImageInfo_t, chroma_subsampling);
PLACE(image_info, ImageInfo_t, sample_format);
PLACE(image_info, ImageInfo_t, orientation);
PLACE(image_info, ImageInfo_t, orientation.rotated);
PLACE(image_info, ImageInfo_t, num_planes);
PLACE(image_info, ImageInfo_t, plane_info);
PLACE(image_info, ImageInfo_t, buffer);
PLACE(image_info, ImageInfo_t, buffer_kind);
PLACE(image_info, ImageInfo_t, cuda_stream);
_Static_assert(NVIMGCODEC_VER >= STK_NVIMGCODEC_VERSION_MIN, "an older header");
_Static_assert(NVIMGCODEC_VER < STK_NVIMGCODEC_VERSION_END, "a newer header");

/* Declared again with the header's types: a function with other arguments would not compile. */
extern __typeof__(nvimgcodecStatus_t(nvimgcodecProperties_t *)) nvimgcodecGetProperties;
extern __typeof__(nvimgcodecStatus_t(
    nvimgcodecInstance_t *, const nvimgcodecInstanceCreateInfo_t *)) nvimgcodecInstanceCreate;
extern __typeof__(nvimgcodecStatus_t(nvimgcodecInstance_t, nvimgcodecDecoder_t *,
                                     const nvimgcodecExecutionParams_t *,
                                     const char *)) nvimgcodecDecoderCreate;
extern __typeof__(nvimgcodecStatus_t(
    nvimgcodecInstance_t, nvimgcodecCodeStream_t *, const unsigned char *, size_t,
    const nvimgcodecCodeStreamView_t *)) nvimgcodecCodeStreamCreateFromHostMem;
extern __typeof__(nvimgcodecStatus_t(nvimgcodecInstance_t, nvimgcodecImage_t *,
                                     const nvimgcodecImageInfo_t *)) nvimgcodecImageCreate;
extern __typeof__(nvimgcodecStatus_t(
    nvimgcodecDecoder_t, const nvimgcodecCodeStream_t *, const nvimgcodecImage_t *, int,
    const nvimgcodecDecodeParams_t *, nvimgcodecFuture_t *)) nvimgcodecDecoderDecode;
extern __typeof__(nvimgcodecStatus_t(nvimgcodecFuture_t, nvimgcodecProcessingStatus_t *,
                                     size_t *)) nvimgcodecFutureGetProcessingStatus;
#endif

TestSuite(nvimgcodec);

Test(nvimgcodec, a_missing_library_is_named)
{
    struct stk_decoding_library library;
    char why[STK_BATCH_DECODER_WHY_BYTES] = "";
    cr_assert_eq(setenv("STOKER_NVIMGCODEC", "/nowhere/libnvimgcodec.so.0", 1), 0);
    cr_assert_eq(stk_decoding_library_open(&library, why), STOKER_EDEVICE);
    cr_assert_not_null(strstr(why, "/nowhere/libnvimgcodec.so.0"), "%s", why);
    stk_decoding_library_close(&library);
}

#ifdef STOKER_HAVE_JPEG
#include "loader/codec/jpeg/jpeg.h"
#include "support/files/jpeg_files.h"
#include "support/sets/decode.h"
#include "support/sets/image_codec.h"

enum { SIDE_MAX = 80, FILES = 5 };

/* Another inverse transform and another order of rounding: a level or two. */
enum { LEVELS_MAX = 3 };

static const struct stk_jpeg_kind kinds[FILES] = {
    { .height = 45, .width = 61, .channels = 3, .h_factor = 2, .v_factor = 2 },
    { .height = 17, .width = 80, .channels = 3, .h_factor = 1, .v_factor = 1 },
    { .height = 64, .width = 33, .channels = 1 },
    { .height = 40, .width = 40, .channels = 3, .h_factor = 2, .v_factor = 1, .progressive = true },
    { .height = 8, .width = 8, .channels = 3, .restart_rows = 1 },
};

static void open_library(struct stk_decoding_library *library)
{
    char why[STK_BATCH_DECODER_WHY_BYTES] = "no wheel in STOKER_TEST_NVIMGCODEC";
#ifdef STOKER_TEST_NVIMGCODEC
    cr_assert_eq(setenv("STOKER_NVIMGCODEC", STOKER_TEST_NVIMGCODEC "/libnvimgcodec.so.0", 1), 0);
    if (stk_decoding_library_open(library, why) == STOKER_OK)
        return;
#endif
    cr_skip_test("SKIPPED, no nvImageCodec (tests/README.md has the command): %s", why);
    (void)library;
}

/* By our own decoder. */
static void decode_here(const struct stk_jpeg_file *file, const struct stk_jpeg_kind *kind,
                        uint8_t *to)
{
    const struct stk_image_options options = { .shape = { kind->height, kind->width,
                                                          kind->channels } };
    const stoker_encoded in = { .bytes = file->at, .size = file->size };
    stoker_codec *codec = NULL;
    void *scratch = NULL;
    stoker_error error;
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_jpeg, &options), STOKER_OK);
    cr_assert_eq(codec->open(codec->self, false, &scratch), STOKER_OK);
    cr_assert_eq(stk_decode_row(codec, scratch, &in, to,
                                (size_t)kind->height * kind->width * kind->channels, &error),
                 STOKER_OK);
    codec->close(codec->self, scratch);
    stk_image_codec_destroy(&codec);
}

static void expect_close(const uint8_t *got, const uint8_t *expected, size_t bytes, int file)
{
    for (size_t i = 0; i < bytes; i++)
        cr_assert_leq(abs(got[i] - expected[i]), LEVELS_MAX, "file %d, byte %zu: %d, not %d", file,
                      i, got[i], expected[i]);
}

/* Several at once, in another order and number in each run: the library's objects are used
 * again. */
Test(nvimgcodec, its_cpu_back_ends_decode_real_files)
{
    static uint8_t got[FILES][SIDE_MAX * SIDE_MAX * 3], expected[SIDE_MAX * SIDE_MAX * 3];
    struct stk_decoding_library library;
    struct stk_batch_decoder decoder;
    struct stk_jpeg_file files[FILES];
    struct stk_batch_file batch[FILES];
    char why[STK_BATCH_DECODER_WHY_BYTES] = "";
    open_library(&library);
    cr_assert_eq(stk_batch_decoder_open(&decoder, &library, -1, NULL, why), STOKER_OK, "%s", why);
    for (int i = 0; i < FILES; i++)
        files[i] = stk_jpeg_write(&kinds[i]);
    for (uint32_t run = 0; run < 3; run++) {
        const uint32_t count = FILES - run;
        memset(got, 0, sizeof(got));
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t i = (k + run) % FILES;
            batch[k] = (struct stk_batch_file){ .bytes = files[i].at,
                                                .size = files[i].size,
                                                .pixels = got[i],
                                                .height = kinds[i].height,
                                                .width = kinds[i].width,
                                                .channels = kinds[i].channels };
        }
        cr_assert_eq(stk_batch_decoder_run(&decoder, batch, count, why), STOKER_OK, "%s", why);
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t i = (k + run) % FILES;
            cr_assert(batch[k].decoded, "file %u", i);
            decode_here(&files[i], &kinds[i], expected);
            expect_close(got[i], expected,
                         (size_t)kinds[i].height * kinds[i].width * kinds[i].channels, (int)i);
        }
    }
    for (int i = 0; i < FILES; i++)
        free(files[i].at);
    stk_batch_decoder_close(&decoder);
    stk_decoding_library_close(&library);
}

/* A file that ends too early is its own affair: the others of its batch are decoded. */
Test(nvimgcodec, a_truncated_file_is_reported_alone)
{
    static uint8_t got[3][SIDE_MAX * SIDE_MAX * 3];
    struct stk_decoding_library library;
    struct stk_batch_decoder decoder;
    struct stk_batch_file batch[3];
    char why[STK_BATCH_DECODER_WHY_BYTES] = "";
    open_library(&library);
    cr_assert_eq(stk_batch_decoder_open(&decoder, &library, -1, NULL, why), STOKER_OK, "%s", why);
    struct stk_jpeg_file file = stk_jpeg_write(&kinds[0]);
    for (int i = 0; i < 3; i++)
        batch[i] = (struct stk_batch_file){ .bytes = file.at,
                                            .size = i == 1 ? file.size / 2 : file.size,
                                            .pixels = got[i],
                                            .height = kinds[0].height,
                                            .width = kinds[0].width,
                                            .channels = 3 };
    cr_assert_eq(stk_batch_decoder_run(&decoder, batch, 3, why), STOKER_OK, "%s", why);
    cr_assert(batch[0].decoded);
    cr_assert_not(batch[1].decoded);
    cr_assert(batch[2].decoded);
    cr_assert_eq(memcmp(got[0], got[2], (size_t)kinds[0].height * kinds[0].width * 3), 0);
    free(file.at);
    stk_batch_decoder_close(&decoder);
    stk_decoding_library_close(&library);
}

/* A file whose first bytes are unknown makes version 0.9 decode nothing of its batch, so such files
 * must not come here. */
Test(nvimgcodec, a_file_of_no_known_kind_is_not_decoded)
{
    static uint8_t got[SIDE_MAX * SIDE_MAX * 3];
    static const uint8_t nothing[100];
    struct stk_decoding_library library;
    struct stk_batch_decoder decoder;
    char why[STK_BATCH_DECODER_WHY_BYTES] = "";
    open_library(&library);
    cr_assert_eq(stk_batch_decoder_open(&decoder, &library, -1, NULL, why), STOKER_OK, "%s", why);
    struct stk_batch_file batch = { .bytes = nothing,
                                    .size = sizeof(nothing),
                                    .pixels = got,
                                    .height = 8,
                                    .width = 8,
                                    .channels = 3 };
    cr_assert_eq(stk_batch_decoder_run(&decoder, &batch, 1, why), STOKER_OK, "%s", why);
    cr_assert_not(batch.decoded);
    stk_batch_decoder_close(&decoder);
    stk_decoding_library_close(&library);
}

/* Without a driver it says so, and nothing stays. */
Test(nvimgcodec, a_gpu_that_is_missing_is_an_error)
{
    struct stk_decoding_library library;
    struct stk_batch_decoder decoder;
    char why[STK_BATCH_DECODER_WHY_BYTES] = "";
    int on_stream; /* a stream that is never used */
    open_library(&library);
    if (stk_batch_decoder_open(&decoder, &library, 0, &on_stream, why) == STOKER_OK)
        stk_batch_decoder_close(&decoder); /* there is one */
    else
        cr_assert_not_null(strstr(why, "nvimgcodecDecoderCreate"), "%s", why);
    stk_decoding_library_close(&library);
}
#endif
