/* kernel_case_on_gpu.h - runs cases (kernel_case.h) on a GPU, with the grid of the kernel and with
 * two blocks, and their source in order on the CPU.
 *
 *   case ──▶ copy for the host ──▶ source, in order ──────────────────────────────────────────┐
 *      └───▶ guard | buffer | guard | buffer | guard ──▶ GPU ──▶ kernel ──▶ read back ──────┴─▶ the same bits, or nearly
 *
 * What may differ: sums in another order, exp, log and pow. No guard may change. Programs take the
 * argument `quick`: of each kernel the first case, and few others. They exit 77 with the reason if
 * there is no GPU, runtime or fatbin. */
#ifndef STK_TEST_KERNEL_CASE_ON_GPU_H
#define STK_TEST_KERNEL_CASE_ON_GPU_H

#define STK_TEST_PLAIN
#include "support/gpu/kernel_case.h"

#include "first_gpu.h"

enum { ARENA_BYTES = 1 << 22, GUARD_BYTES = 256, GUARD = 0x5A };

/* The visitors of cases take no context. */
static struct {
    struct stk_cuda_runtime cuda;
    cudaLibrary_t library;
    unsigned char *host, *device; /* arenas of the same layout */
    bool quick;
    unsigned launches, failures;
} gpu;

/* ---- what may differ ------------------------------------------------------------------------- */

static void take_near(float *found, float wanted)
{
    const bool near = fabs((double)*found - (double)wanted) <= 1e-6 * fabs((double)wanted);
    if (near || (isnan(*found) && isnan(wanted)))
        *found = wanted;
}

/* Factors are powers: a GPU's differ in the last bit. */
static void settle_state(const struct kernel_buffer *b)
{
    struct stk_train_state found, wanted;
    memcpy(&found, b->by_kernel, sizeof(found));
    memcpy(&wanted, b->in_order, sizeof(wanted));
    take_near(&found.gradient_norm, wanted.gradient_norm);
    float *const factors = (float *)&found.factors;
    for (size_t i = 0; i < sizeof(found.factors) / sizeof(float); i++)
        take_near(&factors[i], ((const float *)&wanted.factors)[i]);
    memcpy(b->by_kernel, &found, sizeof(found));
}

static bool uses_powers(const struct kernel_case *c)
{
    return strstr(c->name, "prepare") != NULL || strstr(c->name, "_step_") != NULL;
}

static void allow_differences(struct kernel_case *c)
{
    for (int i = 0; i < c->count; i++) {
        struct kernel_buffer *b = &c->buffers[i];
        const bool state = b->name != NULL && strcmp(b->name, "state") == 0;
        if (b->alias >= 0 || b->role == ROLE_IN)
            continue;
        if (state && uses_powers(c))
            settle_state(b);
        else if (uses_powers(c) && b->number != NUMBER_BYTE)
            b->loose = b->number == NUMBER_F32 ? 1e-6 : 1e-2;
        else if (b->loose > 0 && !state)
            b->loose = fmax(4 * b->loose, 1e-5);
    }
}

/* ---- a case on the GPU ----------------------------------------------------------------------- */

static size_t buffer_bytes(const struct kernel_buffer *b)
{
    return b->alias >= 0 ? 0 : b->count * kernel_number_bytes(b->number);
}

/* The offset of the buffer behind one that lies at `at`. */
static size_t behind(size_t at, size_t bytes)
{
    return (at + bytes + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES + GUARD_BYTES;
}

/* Fills the host's arena and the holes; returns the arena's bytes. */
static size_t place(const struct kernel_case *c, unsigned char *arguments, size_t *offsets)
{
    size_t at = GUARD_BYTES;
    memcpy(arguments, c->arguments, c->arguments_bytes);
    memset(gpu.host, GUARD, GUARD_BYTES);
    for (int i = 0; i < c->count; i++) {
        const struct kernel_buffer *b = &c->buffers[i];
        offsets[i] = b->alias >= 0 ? offsets[b->alias] : at;
        const unsigned char *const pointer = gpu.device + offsets[i];
        memcpy(arguments + b->hole, &pointer, sizeof(pointer));
        if (b->alias >= 0)
            continue;
        at = behind(at, buffer_bytes(b));
        CHECK(at <= ARENA_BYTES);
        memset(gpu.host + offsets[i], GUARD, at - offsets[i]);
        memcpy(gpu.host + offsets[i], b->begin, buffer_bytes(b));
    }
    return at;
}

/* Takes what the kernel made, and leaves guards alone. */
static void take(struct kernel_case *c, const size_t *offsets)
{
    for (int i = 0; i < c->count; i++) {
        const struct kernel_buffer *b = &c->buffers[i];
        if (b->alias >= 0)
            continue;
        memcpy(b->by_kernel, gpu.host + offsets[i], buffer_bytes(b));
        memset(gpu.host + offsets[i], GUARD, buffer_bytes(b));
    }
}

/* Returns false if fewer blocks are the kernel's own grid. */
static bool launch(struct kernel_case *c, uint32_t blocks_max)
{
    _Alignas(16) unsigned char arguments[KERNEL_ARGUMENTS_MAX];
    size_t offsets[KERNEL_BUFFERS_MAX];
    const size_t bytes = place(c, arguments, offsets);
    const struct stk_launch_grid own = kernel_case_kernel(c)->grid(c->arguments);
    struct stk_launch_grid grid = own;
    kernel_case_reduce(c, blocks_max, &grid);
    if (blocks_max > 0 && grid.x == own.x && grid.y == own.y)
        return false;
    stk_gpu_copy(&gpu.cuda, gpu.device, gpu.host, bytes, cudaMemcpyHostToDevice);
    stk_gpu_launch(&gpu.cuda, gpu.library, c->name, arguments, grid);
    stk_gpu_copy(&gpu.cuda, gpu.host, gpu.device, bytes, cudaMemcpyDeviceToHost);
    take(c, offsets);
    for (size_t i = 0; i < bytes; i++)
        if (gpu.host[i] != GUARD) {
            printf("%s [%s] writes out of bounds\n", c->name, c->label);
            gpu.failures++;
            break;
        }
    return true;
}

static void check(struct kernel_case *c)
{
    _Alignas(16) unsigned char by_kernel[KERNEL_ARGUMENTS_MAX], in_order[KERNEL_ARGUMENTS_MAX];
    enum { SHARE = 48 };
    const unsigned cases = ++*kernel_cases_of(c->name);
    if (gpu.quick && cases > 1 && cases % SHARE != 0) {
        kernel_case_end(c);
        return;
    }
    kernel_case_place(c, true, by_kernel);
    kernel_case_place(c, false, in_order);
    run_kernel(kernel_case_kernel(c), in_order);
    for (uint32_t blocks_max = 0; blocks_max <= 2 && launch(c, blocks_max); blocks_max += 2) {
        struct kernel_differences found = { 0 };
        struct kernel_case turn = *c;
        gpu.launches++;
        allow_differences(&turn);
        kernel_case_compare(&found, &turn);
        if (found.count > 0) {
            printf("%s\n", found.first);
            gpu.failures++;
        }
    }
    kernel_case_release(c);
    kernel_case_end(c);
}

/* Returns 0, or what the program exits with. */
static int begin(const void *fatbin, int count, char **words)
{
    const char *const missing = stk_gpu_kernels_missing(&gpu.cuda, fatbin, &gpu.library);
    if (missing != NULL)
        return stk_gpu_skip(missing);
    gpu.quick = count > 1 && strcmp(words[1], "quick") == 0;
    gpu.host = malloc(ARENA_BYTES);
    CHECK(gpu.host != NULL);
    CHECK(gpu.cuda.cudaMalloc((void **)&gpu.device, ARENA_BYTES) == cudaSuccess);
    return 0;
}

/* Returns what the program exits with: 1 also if a kernel of the table has no case. */
static int end(const struct stk_kernel *kernels)
{
    for (const struct stk_kernel *k = kernels; k->name != NULL; k++)
        if (*kernel_cases_of(k->name) == 0) {
            printf("%s has no case\n", k->name);
            gpu.failures++;
        }
    printf("%u launches: %u not as on the CPU\n", gpu.launches, gpu.failures);
    CHECK(gpu.cuda.cudaFree(gpu.device) == cudaSuccess);
    free(gpu.host);
    return gpu.failures == 0 ? 0 : 1;
}

#endif
