/* nvimgcodec.c - see standin_nvimgcodec.h. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "jpeg.h"
#include "loader/device/nvimgcodec.h"
#include "standin_nvimgcodec.h"
#include "support/standin_cuda/standin_cuda.h"

enum {
    VERSION = 900,
    INVALID_PARAMETER = 2,
    INSTANCE = 0x6e76696d, /* what an object begins with while it exists */
    DECODER,
    STREAM,
    IMAGE,
    FUTURE
};

struct nvimgcodecInstance {
    uint32_t kind;
    _Atomic int64_t objects; /* that were made from it */
};

/* An image on its way: decoded when its stream comes to it. */
struct task {
    const unsigned char *bytes;
    size_t size;
    uint32_t height, width, channels;
    uint8_t *pixels; /* the accessible address */
};

struct nvimgcodecDecoder {
    uint32_t kind;
    stk_nvimgcodec_instance instance;
    int device;
    pthread_mutex_t busy; /* held while a thread is in Decode: a decoder is one thread's */
};

struct nvimgcodecCodeStream {
    uint32_t kind;
    stk_nvimgcodec_instance instance;
    const unsigned char *bytes;
    size_t size;
};

struct nvimgcodecImage {
    uint32_t kind;
    stk_nvimgcodec_instance instance;
    struct stk_nvimgcodec_image_info info;
};

struct nvimgcodecFuture {
    uint32_t kind;
    stk_nvimgcodec_instance instance;
    size_t count;
    uint32_t status[];
};

static struct {
    _Atomic uint32_t version;
    _Atomic uint64_t calls, images, batches, violations;
    _Atomic int64_t live;
    _Atomic bool failed;
    _Atomic uint64_t fail_at, fail_image_at; /* values of calls and images; 0 = none */
    int status;                              /* set while no loader runs */
    uint32_t image_status;
} standin = { .version = VERSION };

/* ---- controls -------------------------------------------------------------------- */

void standin_nvimgcodec_reset(void)
{
    atomic_store(&standin.version, (uint32_t)VERSION);
    atomic_store(&standin.calls, 0U);
    atomic_store(&standin.images, 0U);
    atomic_store(&standin.batches, 0U);
    atomic_store(&standin.violations, 0U);
    atomic_store(&standin.failed, false);
    atomic_store(&standin.fail_at, 0U);
    atomic_store(&standin.fail_image_at, 0U);
}

void standin_nvimgcodec_version(uint32_t version)
{
    atomic_store(&standin.version, version);
}

void standin_nvimgcodec_fail(uint64_t nth, int status)
{
    standin.status = status;
    atomic_store(&standin.failed, false);
    atomic_store(&standin.fail_at, atomic_load(&standin.calls) + nth);
}

void standin_nvimgcodec_fail_image(uint64_t nth, uint32_t status)
{
    standin.image_status = status;
    atomic_store(&standin.failed, false);
    atomic_store(&standin.fail_image_at, atomic_load(&standin.images) + nth);
}

bool standin_nvimgcodec_failed(void)
{
    return atomic_load(&standin.failed);
}

uint64_t standin_nvimgcodec_calls(void)
{
    return atomic_load(&standin.calls);
}

uint64_t standin_nvimgcodec_images(void)
{
    return atomic_load(&standin.images);
}

uint64_t standin_nvimgcodec_batches(void)
{
    return atomic_load(&standin.batches);
}

uint64_t standin_nvimgcodec_violations(void)
{
    return atomic_load(&standin.violations);
}

int64_t standin_nvimgcodec_live(void)
{
    return atomic_load(&standin.live);
}

/* ---- every call ------------------------------------------------------------------ */

/* Count a call. Returns true if it is to fail. */
static bool refused(void)
{
    const bool fails = atomic_fetch_add(&standin.calls, 1U) + 1 == atomic_load(&standin.fail_at);
    if (fails)
        atomic_store(&standin.failed, true);
    return fails;
}

#define BEGIN                                                                                      \
    do {                                                                                           \
        if (refused())                                                                             \
            return standin.status;                                                                 \
    } while (0)

static int misuse(void)
{
    atomic_fetch_add(&standin.violations, 1U);
    return INVALID_PARAMETER;
}

static bool is_struct(const void *given, int type, size_t size)
{
    const struct stk_nvimgcodec_head *head = given;
    return given != NULL && head->struct_type == type && head->struct_size == size &&
           head->struct_next == NULL;
}

/* Every object begins with its kind. */
static bool is_object(const void *object, uint32_t kind)
{
    return object != NULL && *(const uint32_t *)object == kind;
}

static void *make(size_t bytes, uint32_t kind, stk_nvimgcodec_instance instance)
{
    uint32_t *object = calloc(1, bytes);
    if (object == NULL)
        abort();
    *object = kind;
    atomic_fetch_add(&standin.live, 1);
    if (instance != NULL)
        atomic_fetch_add(&instance->objects, 1);
    return object;
}

static void end(void *object, stk_nvimgcodec_instance instance)
{
    *(uint32_t *)object = 0;
    free(object);
    atomic_fetch_sub(&standin.live, 1);
    if (instance != NULL)
        atomic_fetch_sub(&instance->objects, 1);
}

/* ---- the library ----------------------------------------------------------------- */

int nvimgcodecGetProperties(struct stk_nvimgcodec_properties *properties);
int nvimgcodecGetProperties(struct stk_nvimgcodec_properties *properties)
{
    BEGIN;
    if (!is_struct(properties, STK_NVIMGCODEC_PROPERTIES, sizeof(*properties)))
        return misuse();
    properties->version = atomic_load(&standin.version);
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecInstanceCreate(stk_nvimgcodec_instance *out,
                             const struct stk_nvimgcodec_instance_info *info);
int nvimgcodecInstanceCreate(stk_nvimgcodec_instance *out,
                             const struct stk_nvimgcodec_instance_info *info)
{
    BEGIN;
    if (!is_struct(info, STK_NVIMGCODEC_INSTANCE_CREATE_INFO, sizeof(*info)) ||
        info->load_builtin_modules != 1 || info->load_extension_modules != 1)
        return misuse();
    *out = make(sizeof(**out), INSTANCE, NULL);
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecInstanceDestroy(stk_nvimgcodec_instance instance);
int nvimgcodecInstanceDestroy(stk_nvimgcodec_instance instance)
{
    const bool fails = refused();
    if (!is_object(instance, INSTANCE) || atomic_load(&instance->objects) != 0)
        return misuse();
    end(instance, NULL);
    return fails ? standin.status : STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecDecoderCreate(stk_nvimgcodec_instance instance, stk_nvimgcodec_decoder *out,
                            const struct stk_nvimgcodec_execution *execution, const char *options);
int nvimgcodecDecoderCreate(stk_nvimgcodec_instance instance, stk_nvimgcodec_decoder *out,
                            const struct stk_nvimgcodec_execution *execution, const char *options)
{
    int current = -1;
    BEGIN;
    (void)options;
    if (!is_object(instance, INSTANCE) ||
        !is_struct(execution, STK_NVIMGCODEC_EXECUTION_PARAMS, sizeof(*execution)) ||
        execution->num_backends == 0)
        return misuse();
    for (int i = 0; i < execution->num_backends; i++)
        if (!is_struct(&execution->backends[i], STK_NVIMGCODEC_BACKEND,
                       sizeof(execution->backends[i])) ||
            execution->backends[i].kind == STK_NVIMGCODEC_CPU_ONLY)
            return misuse();
    standin_cuda_own_calls(true);
    const bool there = cudaGetDevice(&current) == cudaSuccess;
    standin_cuda_own_calls(false);
    if (!there || current != execution->device_id)
        return misuse();
    *out = make(sizeof(**out), DECODER, instance);
    (*out)->instance = instance;
    (*out)->device = execution->device_id;
    pthread_mutex_init(&(*out)->busy, NULL);
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecDecoderDestroy(stk_nvimgcodec_decoder decoder);
int nvimgcodecDecoderDestroy(stk_nvimgcodec_decoder decoder)
{
    const bool fails = refused();
    if (!is_object(decoder, DECODER))
        return misuse();
    pthread_mutex_destroy(&decoder->busy);
    end(decoder, decoder->instance);
    return fails ? standin.status : STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecCodeStreamCreateFromHostMem(stk_nvimgcodec_instance instance,
                                          stk_nvimgcodec_stream *stream, const unsigned char *bytes,
                                          size_t size, const void *view);
int nvimgcodecCodeStreamCreateFromHostMem(stk_nvimgcodec_instance instance,
                                          stk_nvimgcodec_stream *stream, const unsigned char *bytes,
                                          size_t size, const void *view)
{
    BEGIN;
    if (!is_object(instance, INSTANCE) || bytes == NULL || size == 0 || view != NULL ||
        (*stream != NULL && (!is_object(*stream, STREAM) || (*stream)->instance != instance)))
        return misuse();
    if (*stream == NULL)
        *stream = make(sizeof(**stream), STREAM, instance);
    (*stream)->instance = instance;
    (*stream)->bytes = bytes;
    (*stream)->size = size;
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecCodeStreamDestroy(stk_nvimgcodec_stream stream);
int nvimgcodecCodeStreamDestroy(stk_nvimgcodec_stream stream)
{
    const bool fails = refused();
    if (!is_object(stream, STREAM))
        return misuse();
    end(stream, stream->instance);
    return fails ? standin.status : STK_NVIMGCODEC_SUCCESS;
}

/* ---- images ---------------------------------------------------------------------- */

static size_t bytes_of(const struct stk_nvimgcodec_image_info *info)
{
    return info->plane_info[0].row_stride * info->plane_info[0].height;
}

/* Returns true if it describes gray or RGB pixels in a GPU's memory. */
static bool is_image(const struct stk_nvimgcodec_image_info *info)
{
    const struct stk_nvimgcodec_plane *plane = &info->plane_info[0];
    const bool gray = plane->num_channels == 1;
    return is_struct(info, STK_NVIMGCODEC_IMAGE_INFO, sizeof(*info)) && info->num_planes == 1 &&
           is_struct(plane, STK_NVIMGCODEC_IMAGE_PLANE_INFO, sizeof(*plane)) &&
           is_struct(&info->orientation, STK_NVIMGCODEC_ORIENTATION, sizeof(info->orientation)) &&
           plane->sample_type == STK_NVIMGCODEC_UINT8 && (gray || plane->num_channels == 3) &&
           info->sample_format == (gray ? STK_NVIMGCODEC_P_Y : STK_NVIMGCODEC_I_RGB) &&
           info->color_spec == (gray ? STK_NVIMGCODEC_COLOR_GRAY : STK_NVIMGCODEC_COLOR_SRGB) &&
           plane->height > 0 && plane->width > 0 &&
           plane->row_stride == (size_t)plane->width * plane->num_channels &&
           info->buffer_kind == STK_NVIMGCODEC_BUFFER_DEVICE && info->cuda_stream != NULL &&
           standin_cuda_view(info->buffer) != NULL &&
           standin_cuda_view((uint8_t *)info->buffer + bytes_of(info) - 1) ==
               (uint8_t *)standin_cuda_view(info->buffer) + bytes_of(info) - 1;
}

int nvimgcodecImageCreate(stk_nvimgcodec_instance instance, stk_nvimgcodec_image *image,
                          const struct stk_nvimgcodec_image_info *info);
int nvimgcodecImageCreate(stk_nvimgcodec_instance instance, stk_nvimgcodec_image *image,
                          const struct stk_nvimgcodec_image_info *info)
{
    BEGIN;
    if (!is_object(instance, INSTANCE) || !is_image(info) ||
        (*image != NULL && (!is_object(*image, IMAGE) || (*image)->instance != instance)))
        return misuse();
    if (*image == NULL)
        *image = make(sizeof(**image), IMAGE, instance);
    (*image)->instance = instance;
    (*image)->info = *info;
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecImageDestroy(stk_nvimgcodec_image image);
int nvimgcodecImageDestroy(stk_nvimgcodec_image image)
{
    const bool fails = refused();
    if (!is_object(image, IMAGE))
        return misuse();
    end(image, image->instance);
    return fails ? standin.status : STK_NVIMGCODEC_SUCCESS;
}

/* ---- decode ---------------------------------------------------------------------- */

/* A kernel to the stand-in for CUDA: on its stream's thread, and not at all once the GPU is
 * lost. */
static void run(const struct standin_cuda_kernel *kernel, void *argument)
{
    const struct task *task = argument;
    (void)kernel;
    (void)standin_jpeg_decode(task->bytes, task->size, task->height, task->width, task->channels,
                              task->pixels);
}

static bool queue(cudaStream_t stream, struct task *task)
{
    static const struct standin_cuda_kernel kernel = { "decode", sizeof(*task), run };
    void *arguments[] = { task };
    const dim3 one = { 1, 1, 1 };
    standin_cuda_own_calls(true);
    const bool queued = cudaLaunchKernel(&kernel, one, one, arguments, 0, stream) == cudaSuccess;
    standin_cuda_own_calls(false);
    return queued;
}

/* The host's part: what becomes of one image. */
static uint32_t begin_image(stk_nvimgcodec_stream stream, stk_nvimgcodec_image image)
{
    const struct stk_nvimgcodec_plane *plane = &image->info.plane_info[0];
    const uint64_t number = atomic_fetch_add(&standin.images, 1U) + 1;
    if (number == atomic_load(&standin.fail_image_at)) {
        atomic_store(&standin.failed, true);
        return standin.image_status;
    }
    uint8_t *tried = malloc(bytes_of(&image->info));
    if (tried == NULL)
        abort();
    struct task task = { .bytes = stream->bytes,
                         .size = stream->size,
                         .height = plane->height,
                         .width = plane->width,
                         .channels = plane->num_channels,
                         .pixels = standin_cuda_view(image->info.buffer) };
    const bool good =
        standin_jpeg_decode(task.bytes, task.size, task.height, task.width, task.channels, tried);
    if (good) /* nvJPEG's hardware engine ignores the stream: torchcodec #1634 */
        memcpy(task.pixels, tried, bytes_of(&image->info));
    free(tried);
    if (!good)
        return STK_NVIMGCODEC_CORRUPTED;
    return queue(image->info.cuda_stream, &task) ? STK_NVIMGCODEC_DONE : STK_NVIMGCODEC_FAILED;
}

static bool is_batch(stk_nvimgcodec_decoder decoder, const stk_nvimgcodec_stream *streams,
                     const stk_nvimgcodec_image *images, int count)
{
    bool all = count >= 1;
    for (int i = 0; i < count && all; i++)
        all = is_object(streams[i], STREAM) && is_object(images[i], IMAGE) &&
              streams[i]->instance == decoder->instance && images[i]->instance == decoder->instance;
    return all;
}

int nvimgcodecDecoderDecode(stk_nvimgcodec_decoder decoder, const stk_nvimgcodec_stream *streams,
                            const stk_nvimgcodec_image *images, int count,
                            const struct stk_nvimgcodec_decode *params, stk_nvimgcodec_future *out);
int nvimgcodecDecoderDecode(stk_nvimgcodec_decoder decoder, const stk_nvimgcodec_stream *streams,
                            const stk_nvimgcodec_image *images, int count,
                            const struct stk_nvimgcodec_decode *params, stk_nvimgcodec_future *out)
{
    int current = -1;
    BEGIN;
    standin_cuda_own_calls(true);
    (void)cudaGetDevice(&current);
    standin_cuda_own_calls(false);
    if (!is_object(decoder, DECODER) || current != decoder->device ||
        !is_struct(params, STK_NVIMGCODEC_DECODE_PARAMS, sizeof(*params)) ||
        !is_batch(decoder, streams, images, count))
        return misuse();
    if (pthread_mutex_trylock(&decoder->busy) != 0)
        return misuse();
    stk_nvimgcodec_future future = make(sizeof(*future) + (size_t)count * sizeof(future->status[0]),
                                        FUTURE, decoder->instance);
    future->instance = decoder->instance;
    future->count = (size_t)count;
    for (int i = 0; i < count; i++)
        future->status[i] = begin_image(streams[i], images[i]);
    atomic_fetch_add(&standin.batches, 1U);
    pthread_mutex_unlock(&decoder->busy);
    *out = future;
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecFutureWaitForAll(stk_nvimgcodec_future future);
int nvimgcodecFutureWaitForAll(stk_nvimgcodec_future future)
{
    BEGIN;
    return is_object(future, FUTURE) ? STK_NVIMGCODEC_SUCCESS : misuse();
}

int nvimgcodecFutureGetProcessingStatus(stk_nvimgcodec_future future, uint32_t *status,
                                        size_t *count);
int nvimgcodecFutureGetProcessingStatus(stk_nvimgcodec_future future, uint32_t *status,
                                        size_t *count)
{
    BEGIN;
    if (!is_object(future, FUTURE) || status == NULL || *count < future->count)
        return misuse();
    *count = future->count;
    memcpy(status, future->status, future->count * sizeof(status[0]));
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecFutureDestroy(stk_nvimgcodec_future future);
int nvimgcodecFutureDestroy(stk_nvimgcodec_future future)
{
    const bool fails = refused();
    if (!is_object(future, FUTURE))
        return misuse();
    end(future, future->instance);
    return fails ? standin.status : STK_NVIMGCODEC_SUCCESS;
}
