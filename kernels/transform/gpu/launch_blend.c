/* launch_blend.c - the grids and arguments of the mixing kernels (launch_blend.h). */
#include "kernels/transform/gpu/launch_blend.h"

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
