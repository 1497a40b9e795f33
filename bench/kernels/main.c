/* kernelbench - how fast a GPU runs the kernels of a training step on arrays far beyond its caches, beside a copy in its memory.
 *
 *   KERNEL   GB/s of what it must read and write   that, as a share of the copy's
 *
 * kernels/sass/table.py has the shares by a model. usage: kernelbench [--quick]   quick: small arrays, to see that it runs
 *
 * Exits 77 with the reason if there is no GPU, runtime or fatbin. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/float16.h"
#include "kernels/train/dropout.h"
#include "kernels/train/train.h"
#include "loader/base/cuda_runtime.h"

enum {
    ROUNDS_MAX = 5,   /* the median counts */
    LAUNCHES_MAX = 8, /* a round, without a pause */
    CHANNELS = 64,
    CHUNKS = 512,
    IMAGE = 112, /* pixels of a side */
    SMALL_BYTES = 1 << 22,
    NOTHING_TO_DO = 77
};

struct bench {
    struct stk_cuda_runtime cuda;
    cudaLibrary_t library;
    cudaEvent_t from, to;
    uint64_t elements; /* an array has, in whole images */
    uint32_t images;
    int rounds, launches;
    void *x, *y, *z; /* float32 [elements], or T */
    void *places;    /* zeros: a byte each */
    float *channels; /* random numbers below 1, for parameters by channel */
    void *scratch;   /* partial sums; at its end, zeros: tickets */
    struct stk_train_state *state;
    stoker_dtype dtype;
    double copy_rate; /* bytes a second */
};

static void check(enum cudaError status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "kernelbench: %s: CUDA error %d\n", what, (int)status);
    exit(1);
}

#define CUDA(bench, name, ...) check((bench)->cuda.name(__VA_ARGS__), #name)

/* ---- arrays -------------------------------------------------------------------------------------- */

static void *array(struct bench *b, uint64_t bytes)
{
    void *memory;
    CUDA(b, cudaMalloc, &memory, bytes);
    CUDA(b, cudaMemsetAsync, memory, 0, bytes, NULL);
    return memory;
}

static void put(void *numbers, stoker_dtype dtype, size_t i, float value)
{
    if (dtype == STOKER_DTYPE_FLOAT32)
        ((float *)numbers)[i] = value;
    else
        ((uint16_t *)numbers)[i] =
            dtype == STOKER_DTYPE_FLOAT16 ? float16_of_float(value) : bfloat16_of_float(value);
}

/* The same numbers in [-1, 1) again and again: no kernel looks at them twice. */
static void fill(struct bench *b, void *to, uint64_t bytes, stoker_dtype dtype)
{
    enum { FLOATS = 1 << 16 };
    static uint32_t numbers[FLOATS];
    const size_t piece = dtype == STOKER_DTYPE_FLOAT32 ? sizeof(numbers) : sizeof(numbers) / 2;
    for (size_t i = 0; i < FLOATS; i++)
        put(numbers, dtype, i, (float)(int32_t)((uint32_t)i * 0x9E3779B9U) * 0x1p-31F);
    for (uint64_t at = 0; at < bytes; at += piece) {
        const size_t part = bytes - at < piece ? (size_t)(bytes - at) : piece;
        CUDA(b, cudaMemcpyAsync, (char *)to + at, numbers, part, cudaMemcpyHostToDevice, NULL);
    }
    CUDA(b, cudaStreamSynchronize, NULL);
}

static uint64_t size_of(const struct bench *b)
{
    return b->dtype == STOKER_DTYPE_FLOAT32 ? 4 : 2;
}

static void make_arrays(struct bench *b, bool quick)
{
    const struct stk_train_state state = { .loss_scale = 1, .use = 1, .finite = 1 };
    b->rounds = quick ? 1 : ROUNDS_MAX;
    b->launches = quick ? 1 : LAUNCHES_MAX;
    b->images = quick ? 1 : 128;
    b->elements = (uint64_t)b->images * IMAGE * IMAGE * CHANNELS / (quick ? 14 : 1);
    void **const arrays[] = { &b->x, &b->y, &b->z };
    for (int i = 0; i < 3; i++)
        *arrays[i] = array(b, b->elements * sizeof(float));
    b->places = array(b, b->elements);
    b->channels = array(b, SMALL_BYTES);
    b->scratch = array(b, SMALL_BYTES);
    b->state = array(b, sizeof(*b->state));
    fill(b, b->channels, SMALL_BYTES, STOKER_DTYPE_FLOAT32);
    CUDA(b, cudaMemcpyAsync, b->state, &state, sizeof(state), cudaMemcpyHostToDevice, NULL);
    CUDA(b, cudaStreamSynchronize, NULL);
    CUDA(b, cudaEventCreateWithFlags, &b->from, cudaEventDefault);
    CUDA(b, cudaEventCreateWithFlags, &b->to, cudaEventDefault);
}

static uint32_t *tickets(const struct bench *b)
{
    return (uint32_t *)((char *)b->scratch + SMALL_BYTES / 2);
}

/* ---- measuring ------------------------------------------------------------------------------------ */

typedef void enqueue_fn(struct bench *b, const void *what);

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns seconds of one. */
static double time_of(struct bench *b, enqueue_fn *enqueue, const void *what)
{
    double seconds[ROUNDS_MAX] = { 0 };
    enqueue(b, what);
    for (int round = 0; round < b->rounds; round++) {
        float ms = 0;
        CUDA(b, cudaEventRecord, b->from, NULL);
        for (int i = 0; i < b->launches; i++)
            enqueue(b, what);
        CUDA(b, cudaEventRecord, b->to, NULL);
        CUDA(b, cudaStreamSynchronize, NULL);
        CUDA(b, cudaEventElapsedTime, &ms, b->from, b->to);
        seconds[round] = (double)ms / 1000 / b->launches;
    }
    qsort(seconds, (size_t)b->rounds, sizeof(seconds[0]), by_size);
    return seconds[b->rounds / 2] > 0 ? seconds[b->rounds / 2] : 1e-9;
}

static void show(const struct bench *b, const char *name, double bytes, double seconds)
{
    printf("%-38s %8.1f GB/s  %5.2f of a copy\n", name, bytes / seconds / 1e9,
           bytes / seconds / b->copy_rate);
}

static void enqueue_copy(struct bench *b, const void *what)
{
    (void)what;
    CUDA(b, cudaMemcpyAsync, b->y, b->x, b->elements * sizeof(float), cudaMemcpyDeviceToDevice,
         NULL);
}

static void measure_copy(struct bench *b)
{
    const double bytes = (double)b->elements * 2 * sizeof(float);
    const double seconds = time_of(b, enqueue_copy, NULL);
    b->copy_rate = bytes / seconds;
    show(b, "copy", bytes, seconds);
}

struct launch {
    const struct stk_kernel *kernel;
    const void *function;
    struct stk_launch_grid grid;
    void *arguments;
};

static void enqueue_kernel(struct bench *b, const void *what)
{
    const struct launch *const launch = what;
    void *list[] = { launch->arguments };
    check(stk_cuda_launch_kernel(&b->cuda, launch->function,
                                 (dim3){ launch->grid.x, launch->grid.y, 1 },
                                 (dim3){ STK_LAUNCH_THREADS, 1, 1 }, list, NULL),
          launch->kernel->name);
}

/* bytes: what the kernel must read and write. */
static void measure(struct bench *b, const char *name, const char *form, void *arguments,
                    double bytes)
{
    cudaKernel_t function;
    char title[64];
    struct launch launch = { stk_train_kernel_in(name, b->dtype), NULL, { 0, 0 }, arguments };
    CUDA(b, cudaLibraryGetKernel, &function, b->library, launch.kernel->name);
    launch.function = (const void *)function;
    launch.grid = launch.kernel->grid(arguments);
    (void)snprintf(title, sizeof(title), "%s%s", launch.kernel->name, form);
    show(b, title, bytes, time_of(b, enqueue_kernel, &launch));
}

/* ---- kernels -------------------------------------------------------------------------------------- */

static void measure_elementwise(struct bench *b)
{
    const uint64_t n = b->elements;
    const double t = (double)size_of(b) * (double)n, f = 4 * (double)n;
    measure(b, "stk_train_relu", "", &(struct stk_train_relu){ b->x, b->y, n }, 2 * t);
    measure(b, "stk_train_relu_backward", "",
            &(struct stk_train_relu_backward){ b->x, b->y, b->z, n }, 3 * t);
    measure(b, "stk_train_add", "", &(struct stk_train_add){ b->x, b->y, b->z, n }, 3 * t);
    measure(b, "stk_train_bias_relu", "",
            &(struct stk_train_bias_relu){ b->y, b->channels, n, CHANNELS, 1 }, 2 * t);
    measure(b, "stk_train_dropout", "",
            &(struct stk_train_dropout){ .x = b->x,
                                         .y = b->y,
                                         .elements = (uint64_t)IMAGE * CHANNELS,
                                         .samples = (uint32_t)(n / (IMAGE * CHANNELS)),
                                         .dropped_below = stk_dropout_dropped_below(0.25F),
                                         .scale = stk_dropout_scale(0.25F) },
            2 * t);
    measure(b, "stk_train_gradient_norm", "",
            &(struct stk_train_norm){ b->x, n, b->state, b->scratch,
                                      (uint32_t *)b->scratch + SMALL_BYTES / 16, tickets(b) },
            t);
    measure(b, "stk_train_cast", "", &(struct stk_train_cast){ b->z, b->y, n }, t + f);
    measure(b, "stk_train_add_gradient", "", &(struct stk_train_add_gradient){ b->x, b->z, n, 0 },
            t + 2 * f);
}

static struct stk_train_window window_of(const struct bench *b, uint32_t side, uint32_t stride)
{
    const uint32_t height = (uint32_t)(b->elements / b->images / IMAGE / CHANNELS);
    const uint32_t padding = side == 3 ? 1 : 0;
    return (struct stk_train_window){ .n = b->images,
                                      .in_h = height,
                                      .in_w = IMAGE,
                                      .c = CHANNELS,
                                      .out_h = (height + 2 * padding - side) / stride + 1,
                                      .out_w = (IMAGE + 2 * padding - side) / stride + 1,
                                      .kernel = { side, side },
                                      .stride = { stride, stride },
                                      .padding = { padding, padding } };
}

static void measure_pools(struct bench *b)
{
    static const struct {
        const char *form;
        uint32_t side, stride;
    } forms[] = { { " 2x2", 2, 2 }, { " 3x3/2", 3, 2 }, { " 3x3/1", 3, 1 } };
    for (int i = 0; i < 3; i++) {
        const struct stk_train_window w = window_of(b, forms[i].side, forms[i].stride);
        const double out = (double)w.n * w.out_h * w.out_w * CHANNELS;
        const double both = (double)size_of(b) * (out + (double)b->elements);
        measure(b, "stk_train_max_pool_forward", forms[i].form,
                &(struct stk_train_max_pool){ w, b->x, b->y, b->places, 1 }, both + out);
        measure(b, "stk_train_max_pool_backward", forms[i].form,
                &(struct stk_train_max_pool_backward){ w, b->x, b->y, b->places, NULL },
                both + out);
        if (i > 0)
            continue;
        measure(b, "stk_train_avg_pool_forward", forms[i].form,
                &(struct stk_train_avg_pool){ w, b->x, b->y }, both);
        measure(b, "stk_train_avg_pool_backward", forms[i].form,
                &(struct stk_train_avg_pool){ w, b->x, b->y }, both);
        struct stk_train_pool_bias pool = { .window = w,
                                            .dy = b->x,
                                            .dx = b->y,
                                            .places = b->places,
                                            .pixels = (uint64_t)(out / CHANNELS),
                                            .c = CHANNELS,
                                            .chunks = CHUNKS,
                                            .bias_grad = b->channels,
                                            .partial_sums = b->scratch,
                                            .tickets = tickets(b),
                                            .write = 1 };
        measure(b, "stk_train_pool_bias", forms[i].form, &pool, both + out);
    }
}

static void measure_channels(struct bench *b)
{
    const uint64_t pixels = b->elements / CHANNELS;
    const double t = (double)size_of(b) * (double)b->elements;
    float *const p = b->channels;
    struct stk_train_relu_bias relu = { b->x,   b->y, b->z,       pixels,     CHANNELS,
                                        CHUNKS, p,    b->scratch, tickets(b), 1 };
    struct stk_train_batch_norm_moments moments = { b->x,  pixels, CHANNELS,   CHUNKS,
                                                    1e-5F, 0.1F,   p,          p + CHANNELS,
                                                    NULL,  NULL,   b->scratch, tickets(b) };
    struct stk_train_batch_norm norm = { .x = b->x,
                                         .y = b->y,
                                         .count = (uint32_t)b->elements,
                                         .c = CHANNELS,
                                         .relu = 1,
                                         .mean = p,
                                         .inverse = p + CHANNELS,
                                         .gamma = p + 2 * CHANNELS,
                                         .beta = p + 3 * CHANNELS };
    struct stk_train_batch_norm_backward back = { .x = b->x,
                                                  .dy = b->y,
                                                  .dx = b->z,
                                                  .pixels = pixels,
                                                  .c = CHANNELS,
                                                  .chunks = CHUNKS,
                                                  .relu = 1,
                                                  .mean = p,
                                                  .inverse = p + CHANNELS,
                                                  .gamma = p + 2 * CHANNELS,
                                                  .beta = p + 3 * CHANNELS,
                                                  .gamma_grad = p + 4 * CHANNELS,
                                                  .beta_grad = p + 5 * CHANNELS,
                                                  .sums = p + 6 * CHANNELS,
                                                  .partial_sums = b->scratch,
                                                  .tickets = tickets(b),
                                                  .write = 1 };
    measure(b, "stk_train_relu_bias", "", &relu, 3 * t);
    measure(b, "stk_train_batch_norm_moments", "", &moments, t);
    measure(b, "stk_train_batch_norm", "", &norm, 2 * t);
    measure(b, "stk_train_batch_norm_backward_sums", "", &back, 2 * t);
    measure(b, "stk_train_batch_norm_backward", "", &back, 3 * t);
}

int main(int count, char **words)
{
    static struct bench b;
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16 };
    size_t bytes;
    int gpus = 0;
    const char *why = "built without nvcc";
    const void *const fatbin = stk_train_fatbin(&bytes);
    if (fatbin != NULL && stk_cuda_runtime_load(&b.cuda, &why) == 0)
        why = b.cuda.cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0 ? NULL : "no GPU";
    if (why != NULL) {
        printf("SKIPPED: %s\n", why);
        return NOTHING_TO_DO;
    }
    CUDA(&b, cudaLibraryLoadData, &b.library, fatbin, NULL, NULL, 0, NULL, NULL, 0);
    make_arrays(&b, count > 1 && strcmp(words[1], "--quick") == 0);
    measure_copy(&b);
    for (int i = 0; i < 3; i++) {
        b.dtype = types[i];
        fill(&b, b.x, b.elements * size_of(&b), b.dtype);
        fill(&b, b.y, b.elements * size_of(&b), b.dtype);
        fill(&b, b.z, b.elements * sizeof(float), STOKER_DTYPE_FLOAT32);
        measure_elementwise(&b);
        measure_pools(&b);
        measure_channels(&b);
    }
    return 0;
}
