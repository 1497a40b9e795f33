/* batch_decoder.c - see batch_decoder.h. */
#include "loader/device/batch_decoder.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <stoker/error.h>

static int fail_decoder_call(const char *call, int status, char why[STK_BATCH_DECODER_WHY_BYTES])
{
    (void)snprintf(why, STK_BATCH_DECODER_WHY_BYTES, "%s: %s (%d)", call,
                   stk_nvimgcodec_words(status), status);
    return STOKER_EDEVICE;
}

/* ---- the library ---- */

int stk_decoding_library_open(struct stk_decoding_library *library,
                              char why[STK_BATCH_DECODER_WHY_BYTES])
{
    /* No messenger: what a call has to say comes as its status. */
    const struct stk_nvimgcodec_instance_info info = {
        .head = { STK_NVIMGCODEC_INSTANCE_CREATE_INFO, sizeof(info), NULL },
        .load_builtin_modules = 1,
        .load_extension_modules = 1,
    };
    *library = (struct stk_decoding_library){ .instance = NULL };
    const int rc = stk_nvimgcodec_load(&library->calls, why, STK_BATCH_DECODER_WHY_BYTES);
    if (rc < 0)
        return rc;
    const int status = library->calls.nvimgcodecInstanceCreate(&library->instance, &info);
    if (status == STK_NVIMGCODEC_SUCCESS)
        return 0;
    library->instance = NULL;
    return fail_decoder_call("nvimgcodecInstanceCreate", status, why);
}

void stk_decoding_library_close(struct stk_decoding_library *library)
{
    if (library->instance != NULL)
        (void)library->calls.nvimgcodecInstanceDestroy(library->instance);
    *library = (struct stk_decoding_library){ .instance = NULL };
}

/* ---- a decoder ---- */

#define BACKEND(which)                                                                             \
    {                                                                                              \
        .head = { STK_NVIMGCODEC_BACKEND, sizeof(struct stk_nvimgcodec_backend), NULL },           \
        .kind = (which), .params = {                                                               \
            .head = { STK_NVIMGCODEC_BACKEND_PARAMS,                                               \
                      sizeof(((struct stk_nvimgcodec_backend *)NULL)->params), NULL },             \
            .load_hint = 1.0F,                                                                     \
            .load_hint_policy = STK_NVIMGCODEC_LOAD_HINT_IGNORE                                    \
        }                                                                                          \
    }

int stk_batch_decoder_open(struct stk_batch_decoder *decoder,
                           const struct stk_decoding_library *library, int device, void *stream,
                           char why[STK_BATCH_DECODER_WHY_BYTES])
{
    /* What no back end of a GPU decodes is left to the loader's own decoders, not to the library's
     * CPU back ends. */
    static const struct stk_nvimgcodec_backend of_gpu[] = { BACKEND(STK_NVIMGCODEC_HARDWARE),
                                                            BACKEND(STK_NVIMGCODEC_GPU_ONLY),
                                                            BACKEND(STK_NVIMGCODEC_HYBRID) };
    static const struct stk_nvimgcodec_backend of_cpu[] = { BACKEND(STK_NVIMGCODEC_CPU_ONLY) };
    const bool on_gpu = device >= 0;
    /* The calling thread is a worker, of which there are several: the library needs no threads of
     * its own. */
    const struct stk_nvimgcodec_execution execution = {
        .head = { STK_NVIMGCODEC_EXECUTION_PARAMS, sizeof(execution), NULL },
        .max_num_cpu_threads = 1,
        .device_id = on_gpu ? device : STK_NVIMGCODEC_DEVICE_CPU_ONLY,
        .pre_init = 1,
        .num_backends = on_gpu ? 3 : 1,
        .backends = on_gpu ? of_gpu : of_cpu,
    };
    *decoder = (struct stk_batch_decoder){ .library = library, .stream = stream };
    /* Chroma is interpolated, as libjpeg does it. */
    const int status = library->calls.nvimgcodecDecoderCreate(library->instance, &decoder->decoder,
                                                              &execution, ":fancy_upsampling=1");
    if (status == STK_NVIMGCODEC_SUCCESS)
        return 0;
    *decoder = (struct stk_batch_decoder){ .library = NULL };
    return fail_decoder_call("nvimgcodecDecoderCreate", status, why);
}

void stk_batch_decoder_close(struct stk_batch_decoder *decoder)
{
    if (decoder->library == NULL)
        return;
    const struct stk_nvimgcodec *calls = &decoder->library->calls;
    for (uint32_t i = 0; i < STK_BATCH_DECODER_IMAGES_MAX; i++) {
        if (decoder->images[i] != NULL)
            (void)calls->nvimgcodecImageDestroy(decoder->images[i]);
        if (decoder->streams[i] != NULL)
            (void)calls->nvimgcodecCodeStreamDestroy(decoder->streams[i]);
    }
    (void)calls->nvimgcodecDecoderDestroy(decoder->decoder);
    *decoder = (struct stk_batch_decoder){ .library = NULL };
}

/* ---- decode ---- */

static struct stk_nvimgcodec_image_info info_of(const struct stk_batch_decoder *decoder,
                                                const struct stk_batch_file *file)
{
    const bool gray = file->channels == 1;
    struct stk_nvimgcodec_image_info info;
    memset(&info, 0, sizeof(info));
    info.head = (struct stk_nvimgcodec_head){ STK_NVIMGCODEC_IMAGE_INFO, sizeof(info), NULL };
    info.color_spec = gray ? STK_NVIMGCODEC_COLOR_GRAY : STK_NVIMGCODEC_COLOR_SRGB;
    info.chroma_subsampling = STK_NVIMGCODEC_SAMPLING_NONE;
    info.sample_format = gray ? STK_NVIMGCODEC_P_Y : STK_NVIMGCODEC_I_RGB;
    info.orientation.head =
        (struct stk_nvimgcodec_head){ STK_NVIMGCODEC_ORIENTATION, sizeof(info.orientation), NULL };
    info.num_planes = 1;
    info.plane_info[0] = (struct stk_nvimgcodec_plane){
        .head = { STK_NVIMGCODEC_IMAGE_PLANE_INFO, sizeof(info.plane_info[0]), NULL },
        .width = file->width,
        .height = file->height,
        .row_stride = (size_t)file->width * file->channels,
        .num_channels = file->channels,
        .sample_type = STK_NVIMGCODEC_UINT8,
    };
    info.buffer = file->pixels;
    info.buffer_kind =
        decoder->stream != NULL ? STK_NVIMGCODEC_BUFFER_DEVICE : STK_NVIMGCODEC_BUFFER_HOST;
    info.cuda_stream = decoder->stream;
    return info;
}

/* Describe file i and its pixels to the library. */
static int describe(struct stk_batch_decoder *decoder, uint32_t i,
                    const struct stk_batch_file *file, char why[STK_BATCH_DECODER_WHY_BYTES])
{
    const struct stk_decoding_library *library = decoder->library;
    const struct stk_nvimgcodec_image_info info = info_of(decoder, file);
    int status = library->calls.nvimgcodecCodeStreamCreateFromHostMem(
        library->instance, &decoder->streams[i], file->bytes, file->size, NULL);
    if (status != STK_NVIMGCODEC_SUCCESS)
        return fail_decoder_call("nvimgcodecCodeStreamCreateFromHostMem", status, why);
    status = library->calls.nvimgcodecImageCreate(library->instance, &decoder->images[i], &info);
    return status == STK_NVIMGCODEC_SUCCESS
               ? 0
               : fail_decoder_call("nvimgcodecImageCreate", status, why);
}

/* Wait for the host's part, and take what became of each image. */
static int take_decoded_images(struct stk_batch_decoder *decoder, stk_nvimgcodec_future future,
                               uint32_t count, char why[STK_BATCH_DECODER_WHY_BYTES])
{
    const struct stk_nvimgcodec *calls = &decoder->library->calls;
    size_t known = count;
    int status = calls->nvimgcodecFutureWaitForAll(future);
    if (status != STK_NVIMGCODEC_SUCCESS)
        return fail_decoder_call("nvimgcodecFutureWaitForAll", status, why);
    status = calls->nvimgcodecFutureGetProcessingStatus(future, decoder->status, &known);
    if (status != STK_NVIMGCODEC_SUCCESS)
        return fail_decoder_call("nvimgcodecFutureGetProcessingStatus", status, why);
    if (known == count)
        return 0;
    (void)snprintf(why, STK_BATCH_DECODER_WHY_BYTES,
                   "nvimgcodecFutureGetProcessingStatus: %zu images instead of %u", known, count);
    return STOKER_EDEVICE;
}

int stk_batch_decoder_run(struct stk_batch_decoder *decoder, struct stk_batch_file *files,
                          uint32_t count, char why[STK_BATCH_DECODER_WHY_BYTES])
{
    const struct stk_nvimgcodec *calls = &decoder->library->calls;
    /* As the CPU's decoders do: the orientation that a camera notes is not applied. */
    const struct stk_nvimgcodec_decode params = { .head = { STK_NVIMGCODEC_DECODE_PARAMS,
                                                            sizeof(params), NULL } };
    assert(count >= 1);
    assert(count <= STK_BATCH_DECODER_IMAGES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const int rc = describe(decoder, i, &files[i], why);
        if (rc < 0)
            return rc;
    }
    stk_nvimgcodec_future future = NULL;
    int status = calls->nvimgcodecDecoderDecode(decoder->decoder, decoder->streams, decoder->images,
                                                (int)count, &params, &future);
    if (status != STK_NVIMGCODEC_SUCCESS)
        return fail_decoder_call("nvimgcodecDecoderDecode", status, why);
    const int rc = take_decoded_images(decoder, future, count, why);
    status = calls->nvimgcodecFutureDestroy(future);
    if (rc == 0 && status != STK_NVIMGCODEC_SUCCESS)
        return fail_decoder_call("nvimgcodecFutureDestroy", status, why);
    for (uint32_t i = 0; i < count; i++)
        files[i].decoded = rc == 0 && decoder->status[i] == STK_NVIMGCODEC_DONE;
    return rc;
}
