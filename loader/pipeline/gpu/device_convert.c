/* device_convert.c - see device_convert.h. */
#include "loader/pipeline/gpu/device_convert.h"

#include <stdio.h>
#include <string.h>

#include "loader/pipeline/gpu/device_kernel.h"

bool stk_device_convert_fits(const struct stk_convert_plan *plan, bool transforms)
{
    const bool changes =
        transforms || !plan->copies || (plan->layout == STOKER_LAYOUT_NCHW && plan->channels > 1);
    return changes && plan->from == STOKER_DTYPE_UINT8 && plan->channels <= STK_LAUNCH_CHANNELS_MAX;
}

/* Load the kernels of all steps. */
static int load_kernels(struct stk_device_convert *convert, char why[STK_DEVICE_WHY_BYTES])
{
    int rc = 0;
    for (uint32_t i = 0; i < convert->steps.count && rc == 0; i++) {
        struct stk_device_launch *launch = &convert->launches[i];
        *launch = (struct stk_device_launch){ .block_threads = STK_LAUNCH_THREADS,
                                              .arguments = convert->steps.arguments[i] };
        rc = stk_device_kernel_load(convert->device, convert->steps.kernels[i]->name,
                                    &launch->kernel, why);
    }
    return rc;
}

static int add_scratch(struct stk_device_convert *convert, uint32_t batch_size,
                       char why[STK_DEVICE_WHY_BYTES])
{
    if (convert->steps.scratch_bytes == 0)
        return 0;
    convert->scratch =
        convert->device->ops->alloc(convert->device, convert->steps.scratch_bytes, why);
    if (convert->scratch == NULL)
        return STOKER_EDEVICE;
    stk_launch_steps_place(&convert->steps, convert->scratch, batch_size);
    return 0;
}

int stk_device_convert_init(struct stk_device_convert *out,
                            const struct stk_device_convert_options *options,
                            char why[STK_DEVICE_WHY_BYTES])
{
    memset(out, 0, sizeof(*out));
    out->device = options->device;
    out->convert = *options->convert;
    int rc =
        stk_transform_plan_init(&out->transform, options->framing, options->fill, &out->convert,
                                out->convert.channels, options->height, options->width);
    if (rc < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "no kernel has rows of this kind");
        memset(out, 0, sizeof(*out));
        return STOKER_ENOTSUP;
    }
    stk_launch_steps_init(&out->steps, &out->transform, options->height, options->width,
                          options->batch_size);
    rc = load_kernels(out, why);
    if (rc == 0)
        rc = add_scratch(out, options->batch_size, why);
    out->on = rc == 0;
    if (rc < 0)
        stk_device_convert_destroy(out);
    return rc;
}

void stk_device_convert_destroy(struct stk_device_convert *convert)
{
    if (convert->scratch != NULL)
        convert->device->ops->free(convert->device, convert->scratch);
    memset(convert, 0, sizeof(*convert));
}

void stk_device_convert_rows(struct stk_device_convert *convert, const struct stk_launch_rows *rows)
{
    stk_launch_steps_take(&convert->steps, rows);
    for (uint32_t i = 0; i < convert->steps.count; i++) {
        const struct stk_launch_grid grid =
            convert->steps.kernels[i]->grid(convert->steps.arguments[i]);
        convert->launches[i].grid_x = grid.x;
        convert->launches[i].grid_y = grid.y;
    }
}
