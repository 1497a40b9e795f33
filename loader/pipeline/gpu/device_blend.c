/* device_blend.c - see device_blend.h. */
#include "loader/pipeline/gpu/device_blend.h"

#include <assert.h>

#include "kernels/transform/gpu/launch.h"
#include "loader/base/memory/memory.h"
#include "loader/pipeline/gpu/device_kernel.h"

static int take_arrays(struct stk_device_blend *mixing, const struct stk_blend_plan *plan)
{
    mixing->mixed = stk_calloc(plan->array_count, sizeof(mixing->mixed[0]));
    if (mixing->mixed == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < plan->array_count; i++)
        if (plan->arrays[i].on_device)
            mixing->mixed[mixing->mixed_count++].array = &plan->arrays[i];
    return 0;
}

/* Mixup is for images alone, which are the first array. */
static int load_kernels(struct stk_device_blend *mixing, struct stk_device *device,
                        char why[STK_DEVICE_WHY_BYTES])
{
    const stoker_blend *options = &mixing->plan->options;
    int rc = 0;
    if (options->mixup_alpha > 0.0F)
        rc = stk_device_kernel_load(device, stk_mixup_kernel_name(mixing->mixed[0].array->type),
                                    &mixing->mixup, why);
    if (rc == 0 && options->cutmix_alpha > 0.0F)
        rc = stk_device_kernel_load(device, "stk_cutmix", &mixing->cutmix, why);
    return rc;
}

int stk_device_blend_init(struct stk_device_blend *mixing, const struct stk_blend_plan *plan,
                          struct stk_device *device, char why[STK_DEVICE_WHY_BYTES])
{
    *mixing = (struct stk_device_blend){ .plan = NULL };
    if (!plan->on)
        return 0;
    int rc = take_arrays(mixing, plan);
    if (rc < 0 || mixing->mixed_count == 0)
        return rc;
    mixing->plan = plan;
    return load_kernels(mixing, device, why);
}

void stk_device_blend_destroy(struct stk_device_blend *mixing)
{
    stk_free(mixing->mixed);
    *mixing = (struct stk_device_blend){ .plan = NULL };
}

void stk_device_blend_place(struct stk_device_blend *mixing, uint32_t field, size_t at,
                            size_t stride_bytes)
{
    for (uint32_t i = 0; i < mixing->mixed_count; i++)
        if (mixing->mixed[i].array->field == field) {
            mixing->mixed[i].at = at;
            mixing->mixed[i].stride_bytes = stride_bytes;
        }
}

static struct stk_device_launch launch_of(void *kernel, const char *name, const void *arguments)
{
    const struct stk_launch_grid grid = stk_kernel_named(name)->grid(arguments);
    assert(kernel != NULL);
    return (struct stk_device_launch){ .kernel = kernel,
                                       .grid_x = grid.x,
                                       .grid_y = grid.y,
                                       .block_threads = STK_LAUNCH_THREADS,
                                       .arguments = arguments };
}

uint32_t stk_device_blend_launch(struct stk_device_blend *mixing, uint8_t *memory,
                                 const struct stk_batch_place *place, uint32_t rows,
                                 struct stk_device_launch *launches)
{
    struct stk_mix_draw draw;
    if (mixing->plan == NULL)
        return 0;
    stk_blend_draw(mixing->plan, place->epoch, place->position, rows, &draw);
    for (uint32_t i = 0; i < mixing->mixed_count && draw.how != STK_MIXED_NOT; i++) {
        struct stk_device_mixed *mixed = &mixing->mixed[i];
        const struct stk_mix_rows all = { .at = memory + mixed->at,
                                          .stride_bytes = mixed->stride_bytes,
                                          .count = rows };
        if (draw.how == STK_MIXED_UP) {
            stk_mixup_launch_of(&mixed->mixup, &all, mixed->array->elements, draw.steps);
            launches[i] =
                launch_of(mixing->mixup, stk_mixup_kernel_name(mixed->array->type), &mixed->mixup);
        } else {
            const struct stk_mix_box box = stk_blend_box(mixed->array, &draw);
            stk_cutmix_launch_of(&mixed->cutmix, &all, &box);
            launches[i] = launch_of(mixing->cutmix, "stk_cutmix", &mixed->cutmix);
        }
    }
    return draw.how != STK_MIXED_NOT ? mixing->mixed_count : 0;
}
