/* picture.c - see picture.h. */
#include "bench/ceiling/picture.h"

#include "bench/transform.h"

int bench_picture_create(struct bench_picture *out, const struct bench_work *work)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(work->material->dataset);
    const stoker_codec *codec = work->material->codec;
    const bool any_size =
        work->transform != NULL && work->transform->any_size && codec->decode_any != NULL;
    *out = (struct bench_picture){ .any_size = any_size };
    if (any_size)
        out->transform = &work->transform->plan;
    out->image = (struct stk_image){ .height = (uint32_t)info->shape[0],
                                     .width = (uint32_t)info->shape[1],
                                     .slack = true };
    out->pixels_bytes = work->material->row_bytes;
    if (any_size && work->transform->image_bytes > out->pixels_bytes)
        out->pixels_bytes = work->transform->image_bytes;
    int rc = bench_block_create(&out->pixels, out->pixels_bytes + STK_IMAGE_SLACK_BYTES);
    if (rc != STOKER_OK)
        return rc;
    out->image.pixels = out->pixels.bytes;
    if (any_size && codec->open_any != NULL)
        rc = codec->open_any(codec->self, &out->scratch);
    else if (!any_size && codec->open != NULL)
        rc = codec->open(codec->self, &out->scratch);
    if (rc == STOKER_OK)
        out->codec = codec;
    return rc;
}

void bench_picture_destroy(struct bench_picture *picture)
{
    if (picture->codec != NULL && picture->codec->close != NULL)
        picture->codec->close(picture->codec->self, picture->scratch);
    bench_block_destroy(&picture->pixels);
    picture->codec = NULL;
}

int bench_picture_decode(struct bench_picture *picture, const stoker_encoded *sample,
                         uint64_t epoch)
{
    const stoker_codec *codec = picture->codec;
    if (!picture->any_size)
        return codec->decode(codec->self, picture->scratch, sample, picture->pixels.bytes,
                             picture->pixels_bytes, NULL);
    return bench_transform_decode(picture->transform, codec, picture->scratch, sample, epoch,
                                  picture->pixels.bytes, picture->pixels_bytes, &picture->image);
}
