/* test_train_kernels.c - the kernels of a training step on a GPU against their host versions, in each storage type.
 *
 *   slots of random numbers ──▶ host kernel: in host memory ──────────┐
 *            └─ copied ───────▶ kernel: the same struct, its pointers ┴─▶ the same bits
 *                               moved to the device's copy
 *
 * All kernels give the host kernel's bits, except the losses, which use exp and log and add in another order.
 * Exits 77 with the reason if there is no GPU, runtime or fatbin. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/float16.h"
#include "kernels/train/dropout.h"
#include "kernels/train/train.h"

#include "first_gpu.h"

enum { SLOTS = 12, SLOT_BYTES = 1 << 16, BYTES = SLOTS * SLOT_BYTES };
enum { SAMPLES = 5, SIDE = 9, OUT = 4, CHANNELS = 13, COUNT = SAMPLES * SIDE * SIDE * CHANNELS };

/* The slots before, after the host kernel, and after the kernel. The last slot is scratch: partial sums and
 * tickets, which host kernels do not use. */
struct gpu {
    struct stk_cuda_runtime cuda;
    cudaLibrary_t library;
    unsigned char *host, *found;
    char *device;
    stoker_dtype dtype;
    uint32_t kernels;
};

static void *slot(const struct gpu *gpu, int index)
{
    return gpu->host + (size_t)index * SLOT_BYTES;
}

static void *tickets(const struct gpu *gpu)
{
    return (char *)slot(gpu, SLOTS - 1) + SLOT_BYTES / 2;
}

/* Slots 0..3 hold T, the others float32; scratch is 0. */
static void fill(struct gpu *gpu)
{
    memset(gpu->host, 0, BYTES);
    for (int s = 0; s < SLOTS - 1; s++)
        for (size_t i = 0; i < SLOT_BYTES / sizeof(float); i++) {
            const uint64_t random = stk_mix64((uint64_t)s * SLOT_BYTES + i);
            const float value = (float)(int32_t)(uint32_t)random * 0x1p-31F;
            if (s > 3 || gpu->dtype == STOKER_DTYPE_FLOAT32)
                ((float *)slot(gpu, s))[i] = value;
            else
                ((uint16_t *)slot(gpu, s))[i] = gpu->dtype == STOKER_DTYPE_FLOAT16
                                                    ? float16_of_float(value)
                                                    : bfloat16_of_float(value);
        }
}

/* Moves the struct's pointers into the host's slots to the device's. */
static void move_pointers(const struct gpu *gpu, void *arguments, size_t bytes)
{
    for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (char *)arguments + at, sizeof(word));
        const uintptr_t offset = word - (uintptr_t)gpu->host;
        if (offset >= BYTES)
            continue;
        word = (uintptr_t)gpu->device + offset;
        memcpy((char *)arguments + at, &word, sizeof(word));
    }
}

/* Runs a kernel and its host version; their results are in `found` and `host`. */
static void run(struct gpu *gpu, const struct stk_kernel *kernel, const void *arguments)
{
    unsigned char moved[1024];
    CHECK(kernel->arguments_bytes <= sizeof(moved));
    memcpy(moved, arguments, kernel->arguments_bytes);
    move_pointers(gpu, moved, kernel->arguments_bytes);
    stk_gpu_copy(&gpu->cuda, gpu->device, gpu->host, BYTES, cudaMemcpyHostToDevice);
    stk_gpu_launch(&gpu->cuda, gpu->library, kernel, moved);
    stk_gpu_copy(&gpu->cuda, gpu->found, gpu->device, BYTES, cudaMemcpyDeviceToHost);
    kernel->run_on_host(arguments);
    gpu->kernels++;
}

static void check_kernel(struct gpu *gpu, const struct stk_kernel *kernel, const void *arguments)
{
    run(gpu, kernel, arguments);
    for (size_t i = 0; i < BYTES - SLOT_BYTES; i++)
        if (gpu->found[i] != gpu->host[i]) {
            fprintf(stderr, "%s: slot %zu, byte %zu differs\n", kernel->name, i / SLOT_BYTES,
                    i % SLOT_BYTES);
            exit(1);
        }
    fill(gpu);
}

static void check_bits(struct gpu *gpu, const char *name, const void *arguments)
{
    check_kernel(gpu, stk_train_kernel_in(name, gpu->dtype), arguments);
}

static void check_elementwise(struct gpu *gpu)
{
    void *const x = slot(gpu, 0);
    void *const x2 = slot(gpu, 1);
    void *const y = slot(gpu, 2);
    enum { ODD = COUNT - 3 };
    check_bits(gpu, "stk_train_relu", &(struct stk_train_relu){ x, y, ODD });
    check_bits(gpu, "stk_train_relu", &(struct stk_train_relu){ x, x, ODD });
    check_bits(gpu, "stk_train_relu_backward", &(struct stk_train_relu_backward){ x, x2, x2, ODD });
    check_bits(gpu, "stk_train_add", &(struct stk_train_add){ x, x2, y, ODD });
    check_bits(gpu, "stk_train_cast", &(struct stk_train_cast){ slot(gpu, 4), y, ODD });
    check_bits(gpu, "stk_train_add_gradient",
               &(struct stk_train_add_gradient){ x, slot(gpu, 4), ODD, 0 });
    check_bits(gpu, "stk_train_bias_relu",
               &(struct stk_train_bias_relu){ y, x2, COUNT, CHANNELS, 1 });
    check_bits(gpu, "stk_train_dropout",
               &(struct stk_train_dropout){ .x = x,
                                            .y = y,
                                            .seed = 5,
                                            .elements = COUNT / SAMPLES,
                                            .samples = SAMPLES,
                                            .dropped_below = stk_dropout_dropped_below(0.25F),
                                            .scale = stk_dropout_scale(0.25F) });
}

static void check_pools(struct gpu *gpu)
{
    const struct stk_train_window w = { SAMPLES, SIDE,     SIDE,     CHANNELS, OUT,
                                        OUT,     { 3, 3 }, { 2, 2 }, { 0, 0 } };
    void *const x = slot(gpu, 0);
    void *const y = slot(gpu, 1);
    void *const places = slot(gpu, 5);
    memset(places, 1, SLOT_BYTES); /* the second position of each window */
    check_bits(gpu, "stk_train_max_pool_backward",
               &(struct stk_train_max_pool_backward){ w, y, x, places, slot(gpu, 2) });
    check_bits(gpu, "stk_train_max_pool_forward",
               &(struct stk_train_max_pool){ w, x, y, places, 1 });
    check_bits(gpu, "stk_train_avg_pool_forward", &(struct stk_train_avg_pool){ w, x, y });
    check_bits(gpu, "stk_train_avg_pool_backward", &(struct stk_train_avg_pool){ w, y, x });
}

enum { PIXELS = COUNT / CHANNELS, CHUNKS = 7, RANKS = 3 };

/* Slot 3: [2][CHANNELS] doubles, sums of all ranks. */
static void fill_sums(struct gpu *gpu)
{
    double *const sums = slot(gpu, 3);
    for (uint32_t c = 0; c < CHANNELS; c++) {
        sums[c] = 0.25 * c - 1;
        sums[CHANNELS + c] = 3 + c;
    }
}

/* What ranks sum between their kernels. */
static void check_ranks(struct gpu *gpu)
{
    const struct stk_train_batch_norm_sums sums = { .x = slot(gpu, 0),
                                                    .shift = slot(gpu, 5),
                                                    .pixels = PIXELS,
                                                    .c = CHANNELS,
                                                    .chunks = CHUNKS,
                                                    .sums = slot(gpu, 3),
                                                    .partial_sums = slot(gpu, SLOTS - 1),
                                                    .tickets = tickets(gpu) };
    const struct stk_train_batch_norm_finish finish = { .sums = slot(gpu, 3),
                                                        .shift = slot(gpu, 5),
                                                        .pixels = RANKS * PIXELS,
                                                        .c = CHANNELS,
                                                        .epsilon = 1e-5F,
                                                        .momentum = 0.1F,
                                                        .mean = slot(gpu, 6),
                                                        .inverse = slot(gpu, 7),
                                                        .running_mean = slot(gpu, 8),
                                                        .running_var = slot(gpu, 9) };
    const struct stk_train_move_statistics move = { .running = slot(gpu, 5),
                                                    .found = slot(gpu, 6),
                                                    .momenta = slot(gpu, 7),
                                                    .count = CHANNELS,
                                                    .ranks = RANKS };
    check_bits(gpu, "stk_train_batch_norm_sums", &sums);
    fill_sums(gpu);
    check_kernel(gpu, stk_train_kernel_named("stk_train_batch_norm_finish"), &finish);
    for (uint32_t c = 0; c < CHANNELS; c++) /* rank 1 had no samples */
        ((float *)slot(gpu, 6))[CHANNELS + c] = NAN;
    check_kernel(gpu, stk_train_kernel_named("stk_train_move_statistics"), &move);
}

static void check_channels(struct gpu *gpu)
{
    float *const f = slot(gpu, 4);
    void *const sums = slot(gpu, SLOTS - 1);
    const struct stk_train_batch_norm_moments moments = {
        slot(gpu, 0), PIXELS,       CHANNELS,     CHUNKS, 1e-5F,       0.1F, f,
        f + CHANNELS, slot(gpu, 5), slot(gpu, 6), sums,   tickets(gpu)
    };
    const struct stk_train_batch_norm_backward backward = { .x = slot(gpu, 0),
                                                            .dy = slot(gpu, 1),
                                                            .dx = slot(gpu, 2),
                                                            .pixels = PIXELS,
                                                            .c = CHANNELS,
                                                            .chunks = CHUNKS,
                                                            .relu = 1,
                                                            .mean = f,
                                                            .inverse = slot(gpu, 5),
                                                            .gamma = slot(gpu, 6),
                                                            .beta = slot(gpu, 7),
                                                            .gamma_grad = slot(gpu, 8),
                                                            .beta_grad = slot(gpu, 9),
                                                            .sums = slot(gpu, 10),
                                                            .partial_sums = sums,
                                                            .tickets = tickets(gpu) };
    check_bits(gpu, "stk_train_batch_norm_moments", &moments);
    check_bits(gpu, "stk_train_batch_norm_backward_sums", &backward);
    check_bits(gpu, "stk_train_batch_norm_backward", &backward);
    check_bits(gpu, "stk_train_batch_norm",
               &(struct stk_train_batch_norm){ .x = slot(gpu, 0),
                                               .y = slot(gpu, 2),
                                               .count = COUNT,
                                               .c = CHANNELS,
                                               .relu = 1,
                                               .mean = f,
                                               .inverse = slot(gpu, 5),
                                               .gamma = slot(gpu, 6),
                                               .beta = slot(gpu, 7) });
    struct stk_train_batch_norm_backward shared = backward;
    shared.sums_of_all = slot(gpu, 3);
    shared.pixels_of_all = 3 * PIXELS;
    check_bits(gpu, "stk_train_batch_norm_backward_sums", &shared);
    fill_sums(gpu);
    check_bits(gpu, "stk_train_batch_norm_backward", &shared);
    check_bits(gpu, "stk_train_bias_gradient",
               &(struct stk_train_bias_gradient){ slot(gpu, 0), PIXELS, CHANNELS, CHUNKS, f, sums,
                                                  tickets(gpu), 0 });
}

static void check_updates(struct gpu *gpu)
{
    for (uint32_t loop = 0; loop < STK_TRAIN_LOOPS; loop++) {
        struct stk_train_state *const state = slot(gpu, 10);
        *state = (struct stk_train_state){ .use = 1,
                                           .factors = { 0.5F, 0.01F, 0.1F, 0.9F, 0.1F, 0.99F, 0.01F,
                                                        0.5F, 1e-3F, 0.9F, 0.8F, 0.1F } };
        /* No roots of negative numbers, also of the first moment less the second's square: a NaN has other bits on a GPU. */
        for (int s = 5; s < 8; s++)
            for (size_t i = 0; i < SLOT_BYTES / sizeof(float); i++)
                ((float *)slot(gpu, s))[i] = fabsf(((float *)slot(gpu, s))[i]) + (s == 5 ? 8 : 1);
        check_bits(
            gpu, "stk_train_update",
            &(struct stk_train_update){ .loop = loop,
                                        .state = state,
                                        .parameters = slot(gpu, 4),
                                        .half_weights = slot(gpu, 1),
                                        .gradients = slot(gpu, 9),
                                        .moments = { slot(gpu, 5), slot(gpu, 6), slot(gpu, 7) },
                                        .ema = slot(gpu, 8),
                                        .count = COUNT });
    }
}

static float value_of(const struct gpu *gpu, const unsigned char *slots, size_t i)
{
    if (gpu->dtype == STOKER_DTYPE_FLOAT32)
        return ((const float *)slots)[i];
    const uint16_t bits = ((const uint16_t *)slots)[i];
    return gpu->dtype == STOKER_DTYPE_FLOAT16 ? float_of_float16(bits) : float_of_bfloat16(bits);
}

/* Gradients lie in slot 1, the metrics at the start of slot 10. */
static void check_near(struct gpu *gpu, const char *name, const void *arguments, size_t count)
{
    const struct stk_train_metrics *const wanted = slot(gpu, 10);
    const double precision = gpu->dtype == STOKER_DTYPE_FLOAT32   ? 1e-6
                             : gpu->dtype == STOKER_DTYPE_FLOAT16 ? 1.0 / 1024
                                                                  : 1.0 / 128;
    struct stk_train_metrics found;
    memset(slot(gpu, 10), 0, sizeof(found));
    run(gpu, stk_train_kernel_in(name, gpu->dtype), arguments);
    memcpy(&found, gpu->found + (size_t)10 * SLOT_BYTES, sizeof(found));
    CHECK(fabs(found.loss_sum - wanted->loss_sum) <= 1e-5 * fabs(wanted->loss_sum));
    CHECK(found.correct == wanted->correct && found.count == wanted->count);
    for (size_t i = 0; i < count; i++)
        CHECK(fabs((double)(value_of(gpu, gpu->found + SLOT_BYTES, i) -
                            value_of(gpu, slot(gpu, 1), i))) <= precision);
    fill(gpu);
}

static void check_losses(struct gpu *gpu)
{
    enum { ROWS = 301, CLASSES = 10 };
    int64_t *const labels = slot(gpu, 5);
    for (int i = 0; i < ROWS; i++)
        labels[i] = i * 7 % CLASSES;
    const struct stk_train_cross_entropy entropy = { .x = slot(gpu, 0),
                                                     .dx = slot(gpu, 1),
                                                     .labels = labels,
                                                     .rows = ROWS,
                                                     .classes = CLASSES,
                                                     .smoothing = 0.1F,
                                                     .gradient_factor = 1,
                                                     .metrics = slot(gpu, 10),
                                                     .partial_loss = slot(gpu, SLOTS - 1),
                                                     .partial_counts = slot(gpu, 9),
                                                     .ticket = tickets(gpu) };
    check_near(gpu, "stk_train_softmax_cross_entropy", &entropy, ROWS * CLASSES);
    const struct stk_train_mse mse = { .x = slot(gpu, 0),
                                       .dx = slot(gpu, 1),
                                       .targets = slot(gpu, 5),
                                       .rows = ROWS,
                                       .outputs = CLASSES,
                                       .gradient_factor = 1,
                                       .metrics = slot(gpu, 10),
                                       .partial_loss = slot(gpu, SLOTS - 1),
                                       .ticket = tickets(gpu) };
    check_near(gpu, "stk_train_mse", &mse, ROWS * CLASSES);
}

int main(void)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16 };
    static struct gpu gpu;
    size_t bytes;
    const char *const missing =
        stk_gpu_kernels_missing(&gpu.cuda, stk_train_fatbin(&bytes), &gpu.library);
    if (missing != NULL)
        return stk_gpu_skip(missing);
    gpu.host = aligned_alloc(256, BYTES);
    gpu.found = aligned_alloc(256, BYTES);
    CHECK(gpu.host != NULL && gpu.found != NULL);
    CHECK(gpu.cuda.cudaMalloc((void **)&gpu.device, BYTES) == cudaSuccess);
    for (int i = 0; i < 3; i++) {
        gpu.dtype = types[i];
        fill(&gpu);
        check_elementwise(&gpu);
        check_pools(&gpu);
        check_channels(&gpu);
        check_ranks(&gpu);
        check_updates(&gpu);
        check_losses(&gpu);
    }
    printf("%u launches in 3 types: as their host versions\n", gpu.kernels);
    free(gpu.host);
    free(gpu.found);
    return 0;
}
