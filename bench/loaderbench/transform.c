/* transform.c - see transform.h. */
#include "bench/loaderbench/transform.h"

#include <stdlib.h>
#include <string.h>

static int make_plans(struct bench_transform *transform, const stoker_loader_options *options,
                      char why[STK_TRANSFORM_WHY_BYTES])
{
    const stoker_dataset_info *info = stoker_dataset_get_info(transform->dataset);
    struct stk_framing framing;
    if (!info->is_image || info->dtype != STOKER_DTYPE_UINT8 ||
        info->shape[2] > STOKER_TRANSFORM_CHANNELS_MAX)
        return STOKER_ETYPE;
    transform->any_size = info->pixels_max > 0 && stk_transform_resizes(&options->transform);
    const uint32_t height = (uint32_t)info->shape[0], width = (uint32_t)info->shape[1];
    int rc = stk_framing_init(&framing, &options->transform, options->seed, height, width,
                              transform->any_size, why);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_convert_options convert = {
        .from = STOKER_DTYPE_UINT8,
        .to = options->dtype == STOKER_DTYPE_NONE ? STOKER_DTYPE_UINT8 : options->dtype,
        .layout = options->layout,
        .elements = (size_t)framing.out_height * framing.out_width * (size_t)info->shape[2],
        .channels = (uint32_t)info->shape[2],
        .scale = 1.0f / 255.0f,
        .mean = options->mean,
        .std = options->std,
        .mean_count = options->mean_count,
    };
    rc = stk_convert_plan_init(&transform->convert, &convert);
    return rc != STOKER_OK
               ? rc
               : stk_transform_plan_init(&transform->plan, &framing, options->transform.fill,
                                         &transform->convert, convert.channels,
                                         transform->any_size ? STOKER_SOURCE_SIDE_MAX : height,
                                         transform->any_size ? STOKER_SOURCE_SIDE_MAX : width);
}

int bench_transform_create(struct bench_transform *out, const stoker_dataset *dataset,
                           const stoker_loader_options *options, char why[STK_TRANSFORM_WHY_BYTES])
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    *out = (struct bench_transform){ .dataset = dataset };
    int rc = make_plans(out, options, why);
    if (rc != STOKER_OK)
        return rc;
    out->image_bytes = stoker_dataset_row_bytes(dataset);
    if (out->any_size && info->pixels_max * info->shape[2] > out->image_bytes)
        out->image_bytes = (size_t)(info->pixels_max * info->shape[2]);
    out->encoded_bytes = (size_t)info->encoded_bytes_max + 1;
    out->image = malloc(out->image_bytes);
    out->encoded = malloc(out->encoded_bytes);
    if (out->image != NULL && out->encoded != NULL)
        return STOKER_OK;
    bench_transform_destroy(out);
    return STOKER_ENOMEM;
}

void bench_transform_destroy(struct bench_transform *transform)
{
    free(transform->image);
    free(transform->encoded);
    transform->image = NULL;
    transform->encoded = NULL;
}

static int decode_whole(const stoker_codec *codec, void *scratch, const stoker_encoded *in,
                        void *pixels, size_t pixels_bytes, struct stk_image *image)
{
    stoker_size size = { 0, 0 };
    const int rc = codec->decode_any(codec->self, scratch, in, pixels, pixels_bytes, &size, NULL);
    *image = (struct stk_image){
        .pixels = pixels, .height = size.height, .width = size.width, .slack = true
    };
    return rc;
}

int bench_transform_decode(const struct stk_transform_plan *plan, const stoker_codec *codec,
                           void *scratch, const stoker_encoded *in, uint64_t epoch, void *pixels,
                           size_t pixels_bytes, struct stk_image *image)
{
    stoker_size size = { 0, 0 };
    stoker_region wanted, got;
    if (codec->decode_region == NULL)
        return decode_whole(codec, scratch, in, pixels, pixels_bytes, image);
    int rc = codec->measure(codec->self, scratch, in, &size, NULL);
    if (rc != STOKER_OK)
        return rc;
    stk_transform_region(plan, size.height, size.width, epoch, in->sample, &wanted);
    rc = codec->decode_region(codec->self, scratch, in, &wanted, pixels, pixels_bytes, &got, NULL);
    *image = (struct stk_image){ .pixels = pixels,
                                 .height = got.height,
                                 .width = got.width,
                                 .slack = true,
                                 .whole_height = size.height,
                                 .whole_width = size.width,
                                 .y = got.y,
                                 .x = got.x,
                                 .eighths = got.eighths };
    return rc;
}

/* The whole image in its own size or, if a smaller one will do, what the loader decodes of it. */
static int decode_any(struct bench_transform *transform, const stoker_part *sample, uint64_t epoch,
                      uint64_t id, struct stk_image *image)
{
    const stoker_codec *codec = sample->codec;
    stoker_encoded in = { .bytes = transform->encoded, .sample = id, .tag = sample->tag };
    void *scratch = NULL;
    int rc = stoker_dataset_read_stored(transform->dataset, id, transform->encoded,
                                        transform->encoded_bytes, &in.size, NULL);
    if (rc == STOKER_OK && codec->open_any != NULL)
        rc = codec->open_any(codec->self, &scratch);
    if (rc != STOKER_OK)
        return rc;
    if (transform->plan.framing.scales != 0)
        rc = bench_transform_decode(&transform->plan, codec, scratch, &in, epoch, transform->image,
                                    transform->image_bytes, image);
    else
        rc = decode_whole(codec, scratch, &in, transform->image, transform->image_bytes, image);
    if (codec->close != NULL)
        codec->close(codec->self, scratch);
    return rc;
}

int bench_transform_expect(struct bench_transform *transform, uint64_t epoch, uint64_t id,
                           void *row, stoker_label *label)
{
    const stoker_dataset *dataset = transform->dataset;
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    struct stk_image image = { .pixels = transform->image,
                               .height = (uint32_t)info->shape[0],
                               .width = (uint32_t)info->shape[1] };
    stoker_part sample;
    int rc = stoker_dataset_locate(dataset, id, &sample, NULL);
    if (rc != STOKER_OK)
        return rc;
    if (transform->any_size && sample.codec != NULL && sample.codec->decode_any != NULL)
        rc = decode_any(transform, &sample, epoch, id, &image);
    else
        rc = stoker_dataset_read(dataset, id, transform->image, transform->image_bytes, NULL, NULL);
    if (rc != STOKER_OK)
        return rc;
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = NULL } };
    const int32_t field = stoker_dataset_find_field(dataset, "label");
    if (field >= 0)
        rows[field] = (stoker_row){ .data = label, .bytes_max = sizeof(*label) };
    rc = stoker_dataset_read_fields(dataset, id, rows, NULL);
    if (rc != STOKER_OK)
        return rc;
    return stk_transform_row_reference(&transform->plan, &image, epoch, id, row) ? STOKER_OK
                                                                                 : STOKER_ENOMEM;
}
