/* device_convert.c - see device_convert.h. */
#include "loader/pipeline/device_convert.h"

#include <stdio.h>
#include <string.h>

bool stk_device_convert_fits(const struct stk_convert_plan *plan, bool transforms)
{
    const bool changes =
        transforms || !plan->copies || (plan->layout == STOKER_LAYOUT_NCHW && plan->channels > 1);
    return changes && plan->from == STOKER_DTYPE_UINT8 && plan->channels <= STK_LAUNCH_CHANNELS_MAX;
}

/* Add a kernel to the launches. All take the same arguments, of which each reads its first members. */
static int add_kernel(struct stk_device_convert *convert, const struct stk_kernel *kernel,
                      char why[STK_DEVICE_WHY_BYTES])
{
    size_t bytes;
    const void *image = stk_kernels_fatbin(&bytes);
    if (image == NULL) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "libstoker was built without nvcc: no kernels");
        return STOKER_ENOTSUP;
    }
    struct stk_device_launch *launch = &convert->launches[convert->launch_count];
    *launch = (struct stk_device_launch){ .block_threads = STK_LAUNCH_THREADS,
                                          .arguments = &convert->launch };
    convert->kernels[convert->launch_count++] = kernel;
    return convert->device->ops->load(convert->device, image, kernel->name, &launch->kernel, why);
}

static int add_resizing(struct stk_device_convert *convert, uint32_t batch_size,
                        char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_launch_batch *batch = &convert->launch.batch;
    size_t taps_bytes, resized_bytes;
    if (!stk_launch_resizes(batch))
        return 0;
    int rc = add_kernel(convert, stk_kernel_named("stk_taps"), why);
    if (rc == 0)
        rc = add_kernel(convert, stk_kernel_named("stk_resize"), why);
    if (rc < 0)
        return rc;
    stk_launch_scratch_bytes(batch, batch_size, &taps_bytes, &resized_bytes);
    taps_bytes = (taps_bytes + 255) / 256 * 256;
    convert->scratch_bytes = taps_bytes + resized_bytes;
    convert->scratch = convert->device->ops->alloc(convert->device, convert->scratch_bytes, why);
    if (convert->scratch == NULL)
        return STOKER_EDEVICE;
    batch->taps = convert->scratch;
    batch->resized = (uint8_t *)convert->scratch + taps_bytes;
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
    stk_launch_of(&out->launch, &out->transform, options->height, options->width);
    rc = add_resizing(out, options->batch_size, why);
    if (rc == 0)
        rc = add_kernel(out, stk_kernel_crop(&out->transform), why);
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

void stk_device_convert_rows(struct stk_device_convert *convert, const struct stk_device_rows *rows)
{
    struct stk_crop_launch *launch = &convert->launch;
    launch->batch.images = rows->images;
    launch->batch.gather = rows->gather;
    launch->batch.ids = rows->ids;
    launch->batch.count = rows->count;
    launch->batch.epoch = rows->epoch;
    launch->out = rows->out;
    for (uint32_t i = 0; i < convert->launch_count; i++) {
        const struct stk_launch_grid grid = convert->kernels[i]->grid(launch);
        convert->launches[i].grid_x = grid.x;
        convert->launches[i].grid_y = grid.y;
    }
}
