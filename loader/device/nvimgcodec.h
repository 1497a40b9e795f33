/* nvimgcodec.h - what is called of nvImageCodec 0.8 and 0.9, with the types and numbers of its
 * header nvimgcodec.h; a test compares them with it, if it is there. So no build needs
 * nvImageCodec.
 *
 * libnvimgcodec.so.0 is loaded by name when a GPU is to decode; STOKER_NVIMGCODEC names another
 * file, such as that of the wheel nvidia-nvimgcodec-cu12. On a GPU the library loads libnvjpeg by
 * itself.
 */
#ifndef STK_DEVICE_NVIMGCODEC_H
#define STK_DEVICE_NVIMGCODEC_H

#include <stddef.h>
#include <stdint.h>

typedef struct nvimgcodecInstance *stk_nvimgcodec_instance;
typedef struct nvimgcodecDecoder *stk_nvimgcodec_decoder;
typedef struct nvimgcodecCodeStream *stk_nvimgcodec_stream;
typedef struct nvimgcodecImage *stk_nvimgcodec_image;
typedef struct nvimgcodecFuture *stk_nvimgcodec_future;

/* Versions are 1000 x major + 100 x minor + patch. Before 0.8 a code stream was made from other
 * arguments; a later minor version may lay out its structs differently, as 0.7 did. */
enum { STK_NVIMGCODEC_VERSION_MIN = 800, STK_NVIMGCODEC_VERSION_END = 1000 };

/* Values of struct_type. */
enum {
    STK_NVIMGCODEC_PROPERTIES = 1,
    STK_NVIMGCODEC_INSTANCE_CREATE_INFO = 2,
    STK_NVIMGCODEC_DECODE_PARAMS = 5,
    STK_NVIMGCODEC_ORIENTATION = 7,
    STK_NVIMGCODEC_IMAGE_INFO = 11,
    STK_NVIMGCODEC_IMAGE_PLANE_INFO = 12,
    STK_NVIMGCODEC_BACKEND = 17,
    STK_NVIMGCODEC_BACKEND_PARAMS = 29,
    STK_NVIMGCODEC_EXECUTION_PARAMS = 30
};

enum { STK_NVIMGCODEC_SUCCESS = 0 }; /* the status that a call returns */

/* What became of one image: bits. */
enum { STK_NVIMGCODEC_DONE = 1, STK_NVIMGCODEC_FAILED = 3, STK_NVIMGCODEC_CORRUPTED = 7 };

enum {
    STK_NVIMGCODEC_DEVICE_CPU_ONLY = -99999, /* as device_id */
    STK_NVIMGCODEC_UINT8 = 0x0802,           /* sample_type */
    STK_NVIMGCODEC_SAMPLING_NONE = 0,
    STK_NVIMGCODEC_P_Y = 3,   /* sample_format: one plane of gray */
    STK_NVIMGCODEC_I_RGB = 8, /* interleaved RGB */
    STK_NVIMGCODEC_COLOR_SRGB = 1,
    STK_NVIMGCODEC_COLOR_GRAY = 2,
    STK_NVIMGCODEC_BUFFER_DEVICE = 1,
    STK_NVIMGCODEC_BUFFER_HOST = 2,
    STK_NVIMGCODEC_LOAD_HINT_IGNORE = 1
};

/* Kinds of back ends. */
enum {
    STK_NVIMGCODEC_CPU_ONLY = 1,
    STK_NVIMGCODEC_GPU_ONLY = 2,
    STK_NVIMGCODEC_HYBRID = 3,
    STK_NVIMGCODEC_HARDWARE = 4
};

/* Every struct begins so. */
struct stk_nvimgcodec_head {
    int struct_type;
    size_t struct_size;
    void *struct_next;
};

struct stk_nvimgcodec_properties {
    struct stk_nvimgcodec_head head;
    uint32_t version;
    uint32_t cudart_version;
};

struct stk_nvimgcodec_instance_info {
    struct stk_nvimgcodec_head head;
    int load_builtin_modules;
    int load_extension_modules;
    const char *extension_modules_path; /* NULL = beside the library */
    int create_debug_messenger;
    const void *debug_messenger_desc;
    uint32_t message_severity;
    uint32_t message_category;
};

struct stk_nvimgcodec_backend {
    struct stk_nvimgcodec_head head;
    int kind;
    struct {
        struct stk_nvimgcodec_head head;
        float load_hint;
        int load_hint_policy;
    } params;
};

struct stk_nvimgcodec_execution {
    struct stk_nvimgcodec_head head;
    void *device_allocator;
    void *pinned_allocator;
    int max_num_cpu_threads;
    void *executor;
    int device_id;
    int pre_init;
    int skip_pre_sync;
    int num_backends; /* 0 = all */
    const struct stk_nvimgcodec_backend *backends;
};

struct stk_nvimgcodec_decode {
    struct stk_nvimgcodec_head head;
    int apply_exif_orientation;
};

struct stk_nvimgcodec_plane {
    struct stk_nvimgcodec_head head;
    uint32_t width, height;
    size_t row_stride;
    uint32_t num_channels;
    int sample_type;
    uint8_t precision; /* 0 = the sample type's */
};

enum { STK_NVIMGCODEC_PLANES_MAX = 32, STK_NVIMGCODEC_NAME_BYTES = 256 };

struct stk_nvimgcodec_image_info {
    struct stk_nvimgcodec_head head;
    char codec_name[STK_NVIMGCODEC_NAME_BYTES];
    int color_spec;
    int chroma_subsampling;
    int sample_format;
    struct {
        struct stk_nvimgcodec_head head;
        int rotated, flip_x, flip_y;
    } orientation;
    uint32_t num_planes;
    struct stk_nvimgcodec_plane plane_info[STK_NVIMGCODEC_PLANES_MAX];
    void *buffer;
    int buffer_kind;
    void *cuda_stream; /* the pixels are there for what comes next on it */
};

#define STK_NVIMGCODEC_FUNCTIONS(X)                                                                \
    X(nvimgcodecGetProperties, (struct stk_nvimgcodec_properties *))                               \
    X(nvimgcodecInstanceCreate,                                                                    \
      (stk_nvimgcodec_instance *, const struct stk_nvimgcodec_instance_info *))                    \
    X(nvimgcodecInstanceDestroy, (stk_nvimgcodec_instance))                                        \
    X(nvimgcodecDecoderCreate, (stk_nvimgcodec_instance, stk_nvimgcodec_decoder *,                 \
                                const struct stk_nvimgcodec_execution *, const char *))            \
    X(nvimgcodecDecoderDestroy, (stk_nvimgcodec_decoder))                                          \
    X(nvimgcodecCodeStreamCreateFromHostMem, (stk_nvimgcodec_instance, stk_nvimgcodec_stream *,    \
                                              const unsigned char *, size_t, const void *))        \
    X(nvimgcodecCodeStreamDestroy, (stk_nvimgcodec_stream))                                        \
    X(nvimgcodecImageCreate,                                                                       \
      (stk_nvimgcodec_instance, stk_nvimgcodec_image *, const struct stk_nvimgcodec_image_info *)) \
    X(nvimgcodecImageDestroy, (stk_nvimgcodec_image))                                              \
    X(nvimgcodecDecoderDecode,                                                                     \
      (stk_nvimgcodec_decoder, const stk_nvimgcodec_stream *, const stk_nvimgcodec_image *, int,   \
       const struct stk_nvimgcodec_decode *, stk_nvimgcodec_future *))                             \
    X(nvimgcodecFutureWaitForAll, (stk_nvimgcodec_future))                                         \
    X(nvimgcodecFutureGetProcessingStatus, (stk_nvimgcodec_future, uint32_t *, size_t *))          \
    X(nvimgcodecFutureDestroy, (stk_nvimgcodec_future))

/* Each returns STK_NVIMGCODEC_SUCCESS or another status. */
#define STK_NVIMGCODEC_FIELD(name, arguments) int(*name) arguments;
struct stk_nvimgcodec {
    STK_NVIMGCODEC_FUNCTIONS(STK_NVIMGCODEC_FIELD)
    uint32_t version;
};
#undef STK_NVIMGCODEC_FIELD

/* Load the library and fill the table. Returns 0; or STOKER_EDEVICE with the reason in `why`, if
 * there is no library or its version is another. It stays loaded until the program ends. */
int stk_nvimgcodec_load(struct stk_nvimgcodec *out, char *why, size_t why_bytes);

/* A status of a call in words. */
const char *stk_nvimgcodec_words(int status);

#endif
