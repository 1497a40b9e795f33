/* list.c - see list.h. */
#include "trainer/backend/cuda/device/list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stoker/error.h>

#include "loader/base/cuda/cuda_card.h"

enum { WHY_BYTES = 192 };

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Text that grows up to its limit. */
struct lines {
    char *text;
    size_t bytes, length;
};

__attribute__((format(printf, 2, 3))) static void add(struct lines *lines, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(lines->text + lines->length, lines->bytes - lines->length, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    lines->length += (size_t)length;
    if (lines->length >= lines->bytes)
        lines->length = lines->bytes - 1;
}

/* Not its free memory: to ask for that takes a context on each GPU, hundreds of MB that stay. */
static void add_device(struct lines *lines, const struct stk_cuda_runtime *cuda, int device)
{
    struct stk_cuda_card card;
    const cudaError_t code = stk_cuda_card_read(cuda, device, &card);
    if (code != cudaSuccess) {
        add(lines, "cuda:%-3d %s\n", device, cuda->cudaGetErrorString(code));
        return;
    }
    add(lines, "cuda:%-3d %s, compute capability %d.%d, %.1f GiB of memory\n", device, card.name,
        card.major, card.minor, (double)card.memory_bytes / GIB);
}

/* 13020 is printed as "13.2"; a missing driver has version 0. */
static void add_versions(struct lines *lines, const struct stk_cuda_runtime *cuda)
{
    int driver = 0;
    int runtime = 0;
    if (cuda->cudaRuntimeGetVersion(&runtime) == cudaSuccess)
        add(lines, "%-8s CUDA runtime %d.%d, ", "", runtime / 1000, runtime % 1000 / 10);
    if (cuda->cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0)
        add(lines, "driver for CUDA %d.%d\n", driver / 1000, driver % 1000 / 10);
    else
        add(lines, "no driver\n");
}

size_t stk_cuda_list_devices(char *text, size_t bytes)
{
    struct lines lines = { .text = text, .bytes = bytes };
    struct stk_cuda_runtime cuda;
    const char *why = NULL;
    int count = 0;
    text[0] = '\0';
    if (stk_cuda_runtime_load(&cuda, &why) != 0) {
        add(&lines, "%-8s none: %s\n", "cuda", why);
        return lines.length;
    }
    char no_gpu[WHY_BYTES];
    if (stk_cuda_count(&cuda, &count, no_gpu, sizeof(no_gpu)) != STOKER_OK)
        add(&lines, "%-8s none: %s\n", "cuda", no_gpu);
    for (int device = 0; device < count; device++)
        add_device(&lines, &cuda, device);
    add_versions(&lines, &cuda);
    (void)cuda.cudaGetLastError(); /* errors of this function are in its text */
    return lines.length;
}

uint32_t stk_cuda_count_devices(void)
{
    struct stk_cuda_runtime cuda;
    const char *why = NULL;
    int count = 0;
    if (stk_cuda_runtime_load(&cuda, &why) != 0)
        return 0;
    if (cuda.cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cuda.cudaGetLastError();
        return 0;
    }
    return (uint32_t)count;
}
