/* device_convert.c - see device_convert.h. */
#include "loader/road/device_convert.h"

#include <stdio.h>
#include <string.h>

bool stk_device_convert_fits(const struct stk_convert_plan *plan, uint64_t height, uint64_t width)
{
    const bool changes = !plan->copies || (plan->layout == STOKER_NCHW && plan->channels > 1);
    return changes && plan->from == STOKER_UINT8 && plan->channels <= STK_LAUNCH_CHANNELS_MAX &&
           height <= STOKER_TRANSFORM_SIDE_MAX && width <= STOKER_TRANSFORM_SIDE_MAX;
}

int stk_device_convert_init(struct stk_device_convert *out, struct stk_device *device,
                            const struct stk_convert_plan *plan, uint32_t height, uint32_t width,
                            char why[STK_DEVICE_WHY_BYTES])
{
    static const uint8_t no_fill[STOKER_TRANSFORM_CHANNELS_MAX];
    const stoker_transform nothing = { .flip = false };
    char refused[STK_TRANSFORM_WHY_BYTES] = "the rows are of no size";
    struct stk_framing framing;
    memset(out, 0, sizeof(*out));
    out->convert = *plan;
    int rc = stk_framing_init(&framing, &nothing, 0, height, width, false, refused);
    if (rc == 0)
        rc = stk_transform_plan_init(&out->transform, &framing, no_fill, &out->convert,
                                     plan->channels, height, width);
    if (rc < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", refused);
        return STOKER_ENOTSUP;
    }
    stk_launch_of(&out->launch, &out->transform, height, width);
    const struct stk_kernel *kernel = stk_kernel_crop(&out->transform);
    size_t bytes;
    const void *image = stk_kernels_fatbin(&bytes);
    if (image == NULL) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "libstoker was built without nvcc: no kernels");
        return STOKER_ENOTSUP;
    }
    rc = device->ops->load(device, image, kernel->name, &out->kernel.kernel, why);
    out->on = rc == 0;
    return rc;
}

const struct stk_device_launch *stk_device_convert_rows(struct stk_device_convert *convert,
                                                        const void *images, const void *ids,
                                                        void *out, uint32_t count)
{
    struct stk_crop_launch *launch = &convert->launch;
    launch->batch.images = images;
    launch->batch.ids = ids;
    launch->batch.count = count;
    launch->out = out;
    const struct stk_launch_grid grid = stk_kernel_crop(&convert->transform)->grid(launch);
    convert->kernel.grid_x = grid.x;
    convert->kernel.grid_y = grid.y;
    convert->kernel.block_threads = STK_LAUNCH_THREADS;
    convert->kernel.arguments = launch;
    return &convert->kernel;
}
