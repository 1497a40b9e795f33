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
    out->image_bytes = stoker_dataset_field_bytes(dataset, 0);
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

int bench_transform_decode(const struct stk_transform_plan *plan, const stoker_codec *codec,
                           void *scratch, const stoker_encoded *in, uint64_t epoch, void *pixels,
                           size_t pixels_bytes, struct stk_image *image)
{
    stoker_image_header header = { 0 };
    stoker_region wanted = { 0 }, got;
    stoker_row row = { .data = pixels, .bytes_max = pixels_bytes };
    const bool in_part = plan != NULL && codec->probe != NULL;
    const stoker_decoded out = { .struct_size = sizeof(out),
                                 .rows = &row,
                                 .field_count = 1,
                                 .sample_count = 1,
                                 .wanted = in_part ? &wanted : NULL,
                                 .got = &got };
    int rc = in_part ? codec->probe(codec->self, in, false, &header, NULL) : STOKER_OK;
    if (rc != STOKER_OK)
        return rc;
    if (in_part)
        stk_transform_region(plan, header.height, header.width, epoch, in->sample, &wanted);
    rc = codec->decode(codec->self, scratch, in, &out, NULL);
    if (rc != STOKER_OK)
        return rc;
    *image = (struct stk_image){
        .pixels = pixels, .height = got.height, .width = got.width, .slack = true
    };
    if (in_part) {
        image->whole_height = header.height;
        image->whole_width = header.width;
        image->y = got.y;
        image->x = got.x;
        image->eighths = got.eighths;
    }
    return STOKER_OK;
}

/* The whole image in its own size or, if a smaller one will do, what the loader decodes of it. */
static int decode_own_size(struct bench_transform *transform, const stoker_part *sample,
                           uint64_t epoch, uint64_t id, struct stk_image *image)
{
    const stoker_codec *codec = sample->codec;
    stoker_encoded in = { .bytes = transform->encoded, .sample = id, .tag = sample->tag };
    void *scratch = NULL;
    int rc = stoker_dataset_read_stored(transform->dataset, id, 0, transform->encoded,
                                        transform->encoded_bytes, &in.size, NULL);
    if (rc == STOKER_OK && codec->open != NULL)
        rc = codec->open(codec->self, true, &scratch);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_transform_plan *plan =
        transform->plan.framing.scales != 0 ? &transform->plan : NULL;
    rc = bench_transform_decode(plan, codec, scratch, &in, epoch, transform->image,
                                transform->image_bytes, image);
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
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = NULL } };
    if (transform->any_size && sample.codec != NULL &&
        (sample.codec->flags & STOKER_CODEC_ANY_SIZE) != 0)
        rc = decode_own_size(transform, &sample, epoch, id, &image);
    else
        rows[0] = (stoker_row){ .data = transform->image, .bytes_max = transform->image_bytes };
    if (rc != STOKER_OK)
        return rc;
    const int32_t field = stoker_dataset_find_field(dataset, "label");
    if (field >= 0)
        rows[field] = (stoker_row){ .data = label, .bytes_max = sizeof(*label) };
    rc = stoker_dataset_read(dataset, id, rows, NULL);
    if (rc != STOKER_OK)
        return rc;
    return stk_transform_row_reference(&transform->plan, &image, epoch, id, row) ? STOKER_OK
                                                                                 : STOKER_ENOMEM;
}
