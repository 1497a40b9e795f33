/* launch_mix.c - the host versions of the mixing kernels, their grids and arguments (launch_mix.h). */
#include "kernels/transform/launch_mix.h"

#include "kernels/float16.h"

static inline float stk_load_f16(const uint16_t *at)
{
    return float_of_float16(*at);
}

static inline float stk_load_bf16(const uint16_t *at)
{
    return float_of_bfloat16(*at);
}

static inline void stk_store_f16(uint16_t *at, float value)
{
    *at = float16_of_float(value);
}

static inline void stk_store_bf16(uint16_t *at, float value)
{
    *at = bfloat16_of_float(value);
}

#include "kernels/transform/launch_mix_body.h"

#define DEFINE_HOST_KERNEL(name, type)                                                             \
    void name##_on_host(const void *arguments)                                                     \
    {                                                                                              \
        const struct stk_mixup_launch *launch = arguments;                                         \
        for (uint64_t i = 0; i < launch->elements; i++)                                            \
            stk_mixup_thread(launch, i, type);                                                     \
    }
STK_MIXUP_KERNELS(DEFINE_HOST_KERNEL)

void stk_cutmix_on_host(const void *arguments)
{
    const struct stk_cutmix_launch *launch = arguments;
    for (uint64_t i = 0; i < stk_cutmix_units(launch); i++)
        stk_cutmix_thread(launch, i);
}

/* At least one block: an empty box has no thread with work. */
static struct stk_launch_grid grid_of(uint64_t threads)
{
    const uint64_t blocks = (threads + STK_LAUNCH_THREADS - 1) / STK_LAUNCH_THREADS;
    return (struct stk_launch_grid){ .x = blocks > 0 ? (uint32_t)blocks : 1, .y = 1 };
}

struct stk_launch_grid stk_mixup_grid(const void *arguments)
{
    return grid_of(((const struct stk_mixup_launch *)arguments)->elements);
}

struct stk_launch_grid stk_cutmix_grid(const void *arguments)
{
    return grid_of(stk_cutmix_units(arguments));
}

const char *stk_mixup_kernel_name(enum stk_mix_type type)
{
#define NAME_OF(name, type) #name,
    static const char *const names[STK_MIX_TYPES] = { STK_MIXUP_KERNELS(NAME_OF) };
#undef NAME_OF
    return names[type];
}

void stk_mixup_launch_of(struct stk_mixup_launch *launch, const struct stk_mix_rows *on_device,
                         size_t elements, uint32_t steps)
{
    *launch = (struct stk_mixup_launch){ .rows = on_device->at,
                                         .stride_bytes = on_device->stride_bytes,
                                         .elements = elements,
                                         .count = on_device->count,
                                         .steps = steps };
}

void stk_cutmix_launch_of(struct stk_cutmix_launch *launch, const struct stk_mix_rows *on_device,
                          const struct stk_mix_box *box)
{
    const size_t all = (size_t)(uintptr_t)on_device->at | on_device->stride_bytes |
                       box->first_bytes | box->line_bytes | box->plane_bytes | box->run_bytes;
    *launch = (struct stk_cutmix_launch){ .rows = on_device->at,
                                          .stride_bytes = on_device->stride_bytes,
                                          .box = *box,
                                          .count = on_device->count,
                                          .unit_bytes = all % 4 == 0   ? 4
                                                        : all % 2 == 0 ? 2
                                                                       : 1 };
}
