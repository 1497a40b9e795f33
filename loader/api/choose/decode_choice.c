/* decode_choice.c - see decode_choice.h. */
#include "loader/api/choose/decode_choice.h"

#include <stdio.h>
#include <string.h>

#include "loader/api/choose/blend.h"
#include "loader/base/error.h"
#include "loader/pipeline/rows/codecs.h"

/* Report that it is impossible, unless the CPU may do it. */
static int refuse(stoker_loader *loader, int rc, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    if (loader->options.decode == STOKER_DECODE_AUTO && rc != STOKER_ENOMEM)
        return 0;
    return rc == STOKER_ENOMEM ? rc
                               : stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere,
                                               "decode DEVICE: %s", loader->decode_reason);
}

/* Sample 0 represents all; those that are no files are decoded by the CPU. */
static bool has_files_of_images(const stoker_loader *loader)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const uint32_t part = dataset->fields[0].info.part;
    stoker_part parts[STOKER_FIELDS_MAX];
    return dataset->ops->make == NULL && part != STOKER_NO_PART &&
           stoker_dataset_locate(dataset, 0, parts, NULL) == STOKER_OK &&
           stk_codec_is_file(parts[part].codec);
}

static bool is_row_for_kernels(const struct stk_convert_plan *convert)
{
    return convert->from == STOKER_DTYPE_UINT8 &&
           (convert->to == STOKER_DTYPE_UINT8 || convert->to == STOKER_DTYPE_FLOAT32 ||
            convert->to == STOKER_DTYPE_FLOAT16 || convert->to == STOKER_DTYPE_BFLOAT16);
}

/* Returns NULL, or why the GPU cannot decode. */
static const char *obstacle(const stoker_loader *loader, int *code)
{
    const stoker_loader_options *options = &loader->options;
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    const stoker_dataset_info *set = &dataset->info;
    const uint32_t part = dataset->fields[0].info.part;
    *code = STOKER_EDEVICE;
    if (!loader->on_device)
        return "batches stay in host memory";
    *code = STOKER_ENOTSUP;
    if (options->row_hook != NULL || options->batch_hook != NULL)
        return "hooks work on finished rows, on the host";
    if (!set->is_image || (set->shape[2] != 1 && set->shape[2] != 3) ||
        !is_row_for_kernels(&pipeline->convert))
        return "rows must be uint8 images with 1 or 3 channels, delivered as bytes or floats";
    if (!has_files_of_images(loader))
        return "the data set has no files of images that the GPU could decode";
    if (dataset->part_fields[part].count > 1)
        return "the image shares its part with other fields";
    if (options->transform.decode_scale != STOKER_DECODE_SCALE_EXACT)
        return "decode_scale FAST decodes smaller images, which only the CPU does";
    if (options->cache == STOKER_CACHE_DECODED)
        return "cache DECODED holds images in host memory: use ENCODED, NONE or DEVICE";
    if (stk_blend_wanted(&options->blend) && !loader->device_convert.on)
        return "blend takes images in host memory, unless the GPU converts them";
    return NULL;
}

int stk_decode_choice_make(stoker_loader *loader, const struct stk_framing *framing,
                           stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const stoker_dataset_info *set = &pipeline->dataset->info;
    int rc = 0;
    if (loader->options.decode == STOKER_DECODE_CPU)
        return 0;
    const char *why = obstacle(loader, &rc);
    if (why != NULL) {
        (void)snprintf(loader->decode_reason, sizeof(loader->decode_reason), "%s", why);
        return refuse(loader, rc, error);
    }
    const struct stk_device_decode_options options = {
        .device = loader->device,
        .framing = loader->facts.transforms ? framing : NULL,
        .fill = loader->options.transform.fill,
        .convert = &pipeline->convert,
        .channels = (uint32_t)set->shape[2],
        .any_size = loader->facts.any_size,
        .one_size = { (uint32_t)set->shape[0], (uint32_t)set->shape[1] },
        .pixels_max = set->pixels_max,
        .file_bytes_max = pipeline->encoded_bytes_max,
    };
    rc = stk_device_decode_init(&pipeline->decode, &options, loader->decode_reason);
    return rc < 0 ? refuse(loader, rc, error) : 0;
}

static int open_lanes(stoker_loader *loader)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    int rc =
        stk_device_decode_make_rows(&pipeline->decode, &pipeline->slots, loader->decode_reason);
    for (uint32_t i = 0; i < loader->worker_count && rc == 0; i++)
        rc = stk_decode_lane_open(&loader->workers[i].maker.lane, &pipeline->decode,
                                  loader->decode_reason);
    return rc;
}

int stk_decode_choice_open(stoker_loader *loader, stoker_error *error)
{
    if (!loader->pipeline.decode.on)
        return 0;
    const int rc = open_lanes(loader);
    const char *failure = stk_device_failure(loader->device);
    if (rc == 0)
        return 0;
    for (uint32_t i = 0; i < loader->worker_count; i++)
        stk_decode_lane_close(&loader->workers[i].maker.lane);
    stk_device_decode_destroy(&loader->pipeline.decode);
    if (failure == NULL)
        return refuse(loader, rc, error);
    const struct stk_place nowhere = STK_NOWHERE; /* nothing works on this device any more */
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPTIONS, &nowhere, "%s", failure);
}
