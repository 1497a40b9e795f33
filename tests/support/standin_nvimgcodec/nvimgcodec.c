/* nvimgcodec.c - see standin_nvimgcodec.h. */
#include <cuda_runtime_api.h>
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

/* Every object begins with this. */
struct object {
    uint32_t kind;
    stk_nvimgcodec_instance instance; /* NULL: it is one */
};

struct nvimgcodecInstance {
    struct object object;
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
    struct object object;
    int device;
    _Atomic bool busy; /* a thread is in Decode: a decoder is one thread's */
};

struct nvimgcodecCodeStream {
    struct object object;
    const unsigned char *bytes;
    size_t size;
};

struct nvimgcodecImage {
    struct object object;
    struct stk_nvimgcodec_image_info info;
};

struct nvimgcodecFuture {
    struct object object;
    size_t count;
    uint32_t status[];
};

/* The names, with the types that the loader calls them by. */
#define DECLARE(name, arguments) int name arguments;
STK_NVIMGCODEC_FUNCTIONS(DECLARE)

static struct {
    _Atomic uint32_t version;
    _Atomic uint64_t calls, images, batches, pageable, violations;
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
    atomic_store(&standin.pageable, 0U);
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

#define TELL(name, type)                                                                           \
    type standin_nvimgcodec_##name(void)                                                           \
    {                                                                                              \
        return atomic_load(&standin.name);                                                         \
    }
TELL(batches, uint64_t)
TELL(failed, bool)
TELL(images, uint64_t)
TELL(live, int64_t)
TELL(pageable, uint64_t)
TELL(violations, uint64_t)

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

/* One of this kind; unless it is an instance, made from this one. */
static bool is_object(const void *object, uint32_t kind, stk_nvimgcodec_instance instance)
{
    const struct object *const head = object;
    return head != NULL && head->kind == kind && head->instance == instance;
}

static void *make(size_t bytes, uint32_t kind, stk_nvimgcodec_instance instance)
{
    struct object *object = calloc(1, bytes);
    if (object == NULL)
        abort();
    *object = (struct object){ kind, instance };
    atomic_fetch_add(&standin.live, 1);
    if (instance != NULL)
        atomic_fetch_add(&instance->objects, 1);
    return object;
}

/* What is made before may be used again. */
static bool is_reusable(const void *object, uint32_t kind, stk_nvimgcodec_instance instance)
{
    return object == NULL || is_object(object, kind, instance);
}

/* It ends even if the call is to fail. */
static int end(void *object, uint32_t kind)
{
    struct object *const head = object;
    const bool fails = refused();
    if (head == NULL || head->kind != kind)
        return misuse();
    if (head->instance != NULL)
        atomic_fetch_sub(&head->instance->objects, 1);
    head->kind = 0;
    free(head);
    atomic_fetch_sub(&standin.live, 1);
    return fails ? standin.status : STK_NVIMGCODEC_SUCCESS;
}

/* ---- the library ----------------------------------------------------------------- */

int nvimgcodecGetProperties(struct stk_nvimgcodec_properties *properties)
{
    BEGIN;
    if (!is_struct(properties, STK_NVIMGCODEC_PROPERTIES, sizeof(*properties)))
        return misuse();
    properties->version = atomic_load(&standin.version);
    return STK_NVIMGCODEC_SUCCESS;
}

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

int nvimgcodecInstanceDestroy(stk_nvimgcodec_instance instance)
{
    const bool used = is_object(instance, INSTANCE, NULL) && atomic_load(&instance->objects) != 0;
    return used ? misuse() : end(instance, INSTANCE);
}

int nvimgcodecDecoderCreate(stk_nvimgcodec_instance instance, stk_nvimgcodec_decoder *out,
                            const struct stk_nvimgcodec_execution *execution, const char *options)
{
    int current = -1;
    BEGIN;
    (void)options;
    if (!is_object(instance, INSTANCE, NULL) ||
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
    (*out)->device = execution->device_id;
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecDecoderDestroy(stk_nvimgcodec_decoder decoder)
{
    return end(decoder, DECODER);
}

int nvimgcodecCodeStreamCreateFromHostMem(stk_nvimgcodec_instance instance,
                                          stk_nvimgcodec_stream *stream, const unsigned char *bytes,
                                          size_t size, const void *view)
{
    BEGIN;
    if (!is_object(instance, INSTANCE, NULL) || bytes == NULL || size == 0 || view != NULL ||
        !is_reusable(*stream, STREAM, instance))
        return misuse();
    if (*stream == NULL)
        *stream = make(sizeof(**stream), STREAM, instance);
    if (standin_cuda_pinned_with(bytes) < 0)
        atomic_fetch_add(&standin.pageable, 1U);
    (*stream)->bytes = bytes;
    (*stream)->size = size;
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecCodeStreamDestroy(stk_nvimgcodec_stream stream)
{
    return end(stream, STREAM);
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
           standin_cuda_view_range(info->buffer, bytes_of(info)) != NULL;
}

int nvimgcodecImageCreate(stk_nvimgcodec_instance instance, stk_nvimgcodec_image *image,
                          const struct stk_nvimgcodec_image_info *info)
{
    BEGIN;
    if (!is_object(instance, INSTANCE, NULL) || !is_image(info) ||
        !is_reusable(*image, IMAGE, instance))
        return misuse();
    if (*image == NULL)
        *image = make(sizeof(**image), IMAGE, instance);
    (*image)->info = *info;
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecImageDestroy(stk_nvimgcodec_image image)
{
    return end(image, IMAGE);
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
    standin_cuda_own_calls(true);
    const bool queued = standin_cuda_queue(&kernel, task, stream);
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
        all = is_object(streams[i], STREAM, decoder->object.instance) &&
              is_object(images[i], IMAGE, decoder->object.instance);
    return all;
}

int nvimgcodecDecoderDecode(stk_nvimgcodec_decoder decoder, const stk_nvimgcodec_stream *streams,
                            const stk_nvimgcodec_image *images, int count,
                            const struct stk_nvimgcodec_decode *params, stk_nvimgcodec_future *out)
{
    int current = -1;
    BEGIN;
    standin_cuda_own_calls(true);
    (void)cudaGetDevice(&current);
    standin_cuda_own_calls(false);
    if (decoder == NULL || decoder->object.kind != DECODER || current != decoder->device ||
        !is_struct(params, STK_NVIMGCODEC_DECODE_PARAMS, sizeof(*params)) ||
        !is_batch(decoder, streams, images, count))
        return misuse();
    if (atomic_exchange(&decoder->busy, true))
        return misuse();
    stk_nvimgcodec_future future = make(sizeof(*future) + (size_t)count * sizeof(future->status[0]),
                                        FUTURE, decoder->object.instance);
    future->count = (size_t)count;
    for (int i = 0; i < count; i++)
        future->status[i] = begin_image(streams[i], images[i]);
    atomic_fetch_add(&standin.batches, 1U);
    atomic_store(&decoder->busy, false);
    *out = future;
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecFutureWaitForAll(stk_nvimgcodec_future future)
{
    BEGIN;
    return future != NULL && future->object.kind == FUTURE ? STK_NVIMGCODEC_SUCCESS : misuse();
}

int nvimgcodecFutureGetProcessingStatus(stk_nvimgcodec_future future, uint32_t *status,
                                        size_t *count)
{
    BEGIN;
    if (future == NULL || future->object.kind != FUTURE || status == NULL || *count < future->count)
        return misuse();
    *count = future->count;
    memcpy(status, future->status, future->count * sizeof(status[0]));
    return STK_NVIMGCODEC_SUCCESS;
}

int nvimgcodecFutureDestroy(stk_nvimgcodec_future future)
{
    return end(future, FUTURE);
}
