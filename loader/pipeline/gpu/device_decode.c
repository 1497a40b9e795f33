/* device_decode.c - see device_decode.h. */
#include "loader/pipeline/gpu/device_decode.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/memory/memory.h"
#include "loader/pipeline/gpu/device_kernel.h"

/* Limits of a lane's memory. */
enum {
    PIXEL_BYTES = 64 << 20, /* decoded images: about a hundred photographs of 500 x 375 */
    SCRATCH_BYTES = 16 << 20,
    FILE_BYTES = 16 << 20, /* files that wait, without the last one: 64 of 256 KB */
};

/* What is done to an image: nothing, if there are no transforms. */
static int plan_rows(struct stk_device_decode *decode,
                     const struct stk_device_decode_options *options)
{
    const stoker_transform nothing = { .flip = false };
    const stoker_size size = options->one_size;
    const uint32_t height = options->any_size ? STOKER_SOURCE_SIDE_MAX : size.height;
    const uint32_t width = options->any_size ? STOKER_SOURCE_SIDE_MAX : size.width;
    char unused[STK_TRANSFORM_WHY_BYTES];
    struct stk_framing framing;
    if (options->framing != NULL)
        framing = *options->framing;
    else if (stk_framing_init(&framing, &nothing, 0, size.height, size.width, false, unused) < 0)
        return STOKER_EINVAL;
    return stk_transform_plan_init(&decode->plan->transform, &framing, options->fill,
                                   &decode->plan->convert, options->channels, height, width);
}

static int load_kernels(struct stk_device_decode *decode, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_launch_steps steps;
    const uint32_t side = decode->side_max;
    stk_launch_steps_init(&steps, &decode->plan->transform, side, side,
                          STK_BATCH_DECODER_IMAGES_MAX);
    const size_t most = steps.scratch_bytes < SCRATCH_BYTES ? steps.scratch_bytes : SCRATCH_BYTES;
    stk_launch_steps_init(&steps, &decode->plan->transform, side, side, 1);
    decode->scratch_bytes = steps.scratch_bytes > most ? steps.scratch_bytes : most;
    for (uint32_t i = 0; i < steps.count; i++) {
        void *loaded = stk_device_decode_kernel(decode, steps.kernels[i]);
        if (loaded != NULL)
            continue;
        const int rc = stk_device_kernel_load(decode->device, steps.kernels[i]->name, &loaded, why);
        if (rc < 0)
            return rc;
        assert(decode->kernel_count < STK_LAUNCH_STEPS_MAX);
        decode->kernels[decode->kernel_count].kernel = steps.kernels[i];
        decode->kernels[decode->kernel_count++].loaded = loaded;
    }
    return 0;
}

void *stk_device_decode_kernel(const struct stk_device_decode *decode,
                               const struct stk_kernel *kernel)
{
    for (uint32_t i = 0; i < decode->kernel_count; i++)
        if (decode->kernels[i].kernel == kernel)
            return decode->kernels[i].loaded;
    return NULL;
}

/* Room in each lane. */
static void choose_sizes(struct stk_device_decode *decode,
                         const struct stk_device_decode_options *options)
{
    const stoker_size size = options->one_size;
    const uint64_t pixels =
        options->any_size ? options->pixels_max : (uint64_t)size.height * size.width;
    const uint64_t bytes = pixels * options->channels * STK_BATCH_DECODER_IMAGES_MAX;
    const uint32_t longer = size.height > size.width ? size.height : size.width;
    decode->pixel_bytes = bytes < PIXEL_BYTES ? (size_t)bytes : PIXEL_BYTES;
    decode->file_bytes_max = options->file_bytes_max;
    decode->file_bytes = options->file_bytes_max < FILE_BYTES / STK_BATCH_DECODER_IMAGES_MAX
                             ? options->file_bytes_max * STK_BATCH_DECODER_IMAGES_MAX
                             : FILE_BYTES + options->file_bytes_max;
    decode->side_max = options->any_size ? STOKER_SOURCE_SIDE_MAX : longer;
}

int stk_device_decode_init(struct stk_device_decode *out,
                           const struct stk_device_decode_options *options,
                           char why[STK_DEVICE_WHY_BYTES])
{
    memset(out, 0, sizeof(*out));
    out->device = options->device;
    out->plan = stk_calloc(1, sizeof(*out->plan));
    if (out->plan == NULL)
        return STOKER_ENOMEM;
    out->plan->convert = *options->convert;
    out->channels = options->channels;
    out->any_size = options->any_size;
    out->one_size = options->one_size;
    choose_sizes(out, options);
    int rc = plan_rows(out, options);
    if (rc < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "no kernel makes rows of this kind");
        rc = STOKER_ENOTSUP;
    }
    if (rc == 0)
        rc = load_kernels(out, why);
    if (rc == 0)
        rc = stk_decoding_library_open(&out->library, why);
    out->on = rc == 0;
    if (rc < 0) {
        stk_free(out->plan);
        memset(out, 0, sizeof(*out));
    }
    return rc;
}

int stk_device_decode_make_rows(struct stk_device_decode *decode, const struct stk_slots *slots,
                                char why[STK_DEVICE_WHY_BYTES])
{
    const size_t count = (size_t)slots->slot_count * slots->batch_size;
    decode->batch_size = slots->batch_size;
    decode->slot_count = slots->slot_count;
    decode->row_bytes = decode->plan->convert.to_bytes;
    decode->pins = slots->pin_memory != STOKER_SWITCH_OFF;
    decode->places = stk_calloc(count, sizeof(decode->places[0]));
    if (decode->places == NULL)
        return STOKER_ENOMEM;
    decode->rows = decode->device->ops->alloc(decode->device, count * decode->row_bytes, why);
    return decode->rows == NULL ? STOKER_EDEVICE : 0;
}

void stk_device_decode_destroy(struct stk_device_decode *decode)
{
    if (decode->rows != NULL)
        decode->device->ops->free(decode->device, decode->rows);
    stk_free(decode->places);
    stk_free(decode->plan);
    stk_decoding_library_close(&decode->library);
    memset(decode, 0, sizeof(*decode));
}
