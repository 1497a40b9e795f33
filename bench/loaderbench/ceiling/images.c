/* images.c - samples in memory become rows in a ring: decoded, then converted; or cropped, flipped,
 * resized and converted, from decoded images or from encoded samples. */
#include "bench/loaderbench/ceiling/share.h"

#include <stdlib.h>

#include "kernels/transform/transform.h"

enum { DECODERS_MAX = 8 }; /* codecs of one data set */

struct maker {
    struct bench_share share;
    /* Decoding: one scratch per codec that was met, and the last image. */
    struct {
        const stoker_codec *codec;
        void *scratch;
    } decoders[DECODERS_MAX];
    uint32_t decoder_count;
    bool any_size; /* images are decoded in their own size, if the codec can */
    struct bench_block pixels;
    size_t pixels_bytes;
    struct stk_image image;
    /* Transforms. */
    struct bench_block scratch;
    uint64_t *samples; /* numbers of a piece's images */
    uint64_t epoch;
};

static void teardown_maker(void *state)
{
    struct maker *maker = state;
    for (uint32_t i = 0; i < maker->decoder_count; i++)
        if (maker->decoders[i].codec->close != NULL)
            maker->decoders[i].codec->close(maker->decoders[i].codec->self,
                                            maker->decoders[i].scratch);
    bench_block_destroy(&maker->pixels);
    bench_block_destroy(&maker->scratch);
    bench_share_destroy(&maker->share);
    free(maker->samples);
    free(maker);
}

static int make_room(struct maker *maker, const struct bench_work *work)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(work->material->dataset);
    const struct bench_transform *transform = work->transform;
    maker->any_size = transform != NULL && transform->any_size;
    maker->image = (struct stk_image){ .height = (uint32_t)info->shape[0],
                                       .width = (uint32_t)info->shape[1],
                                       .slack = true };
    maker->pixels_bytes = work->material->row_bytes;
    if (maker->any_size && transform->image_bytes > maker->pixels_bytes)
        maker->pixels_bytes = transform->image_bytes;
    int rc = bench_block_create(&maker->pixels, maker->pixels_bytes + STK_IMAGE_SLACK_BYTES);
    maker->image.pixels = maker->pixels.bytes;
    if (rc == STOKER_OK && transform != NULL)
        rc = bench_block_create(&maker->scratch, stk_transform_scratch_bytes(&transform->plan));
    if (rc != STOKER_OK)
        return rc;
    maker->samples = calloc(maker->share.piece, sizeof(maker->samples[0]));
    return maker->samples == NULL ? STOKER_ENOMEM : STOKER_OK;
}

static int setup_maker(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    struct maker *maker = calloc(1, sizeof(*maker));
    if (maker == NULL)
        return STOKER_ENOMEM;
    int rc = bench_share_create(&maker->share, context, thread, threads);
    if (rc == STOKER_OK)
        rc = make_room(maker, context);
    if (rc == STOKER_OK)
        *state = maker;
    else
        teardown_maker(maker);
    return rc;
}

/* The codec's scratch, opened when the codec is met first. */
static int find_scratch(struct maker *maker, const stoker_codec *codec, bool any_size, void **out)
{
    for (uint32_t i = 0; i < maker->decoder_count; i++)
        if (maker->decoders[i].codec == codec) {
            *out = maker->decoders[i].scratch;
            return STOKER_OK;
        }
    if (maker->decoder_count == DECODERS_MAX)
        return STOKER_ENOTSUP;
    *out = NULL;
    const int rc = codec->open != NULL ? codec->open(codec->self, any_size, out) : STOKER_OK;
    if (rc != STOKER_OK)
        return rc;
    maker->decoders[maker->decoder_count].codec = codec;
    maker->decoders[maker->decoder_count++].scratch = *out;
    return STOKER_OK;
}

/* Decodes sample `index` to `row`, or an image in its own size to maker->image. */
static int decode(struct maker *maker, uint64_t index, void *row)
{
    const struct bench_work *work = maker->share.work;
    const stoker_codec *codec = work->material->codecs[index];
    const stoker_encoded *sample = &work->material->samples[index];
    const bool any_size = maker->any_size && (codec->flags & STOKER_CODEC_ANY_SIZE) != 0;
    void *scratch = NULL;
    const int rc = find_scratch(maker, codec, any_size, &scratch);
    if (rc != STOKER_OK)
        return rc;
    stoker_row place = { .data = row, .bytes_max = work->material->row_bytes };
    const stoker_decoded decoded = {
        .struct_size = sizeof(decoded), .rows = &place, .field_count = 1, .sample_count = 1
    };
    if (!any_size)
        return codec->decode(codec->self, scratch, sample, &decoded, NULL);
    return bench_transform_decode(&work->transform->plan, codec, scratch, sample, maker->epoch,
                                  maker->pixels.bytes, maker->pixels_bytes, &maker->image);
}

/* Rows delivered as stored are decoded in place. */
static int64_t step_decode(void *state)
{
    struct maker *maker = state;
    const struct stk_convert_plan *plan = maker->share.work->plan;
    const bool direct = !maker->any_size && bench_keeps_rows(plan);
    const void *const pixels = maker->pixels.bytes;
    uint64_t start = 0;
    const uint32_t count = bench_share_take(&maker->share, maker->share.piece, &start);
    for (uint32_t index = 0; index < count; index++) {
        void *out = bench_share_room(&maker->share, 1);
        const int rc = decode(maker, start + index, direct ? out : maker->pixels.bytes);
        if (rc != STOKER_OK)
            return rc;
        if (!direct && !maker->any_size)
            plan->rows(plan, &pixels, 1, 0, out);
    }
    return count;
}

/* Each pass over the samples is an epoch, with new random draws. */
static uint32_t take_images(struct maker *maker, uint64_t *start)
{
    const uint32_t count = bench_share_take(&maker->share, maker->share.piece, start);
    maker->epoch += *start == maker->share.first;
    return count;
}

static int64_t step_transform(void *state)
{
    struct maker *maker = state;
    const struct bench_work *work = maker->share.work;
    uint64_t start = 0;
    const uint32_t count = take_images(maker, &start);
    for (uint32_t index = 0; index < count; index++)
        maker->samples[index] = work->material->ids[start + index];
    if (count > 0)
        stk_transform_rows(&work->transform->plan, maker->scratch.bytes,
                           work->material->order + start, maker->image.height, maker->image.width,
                           count, work->plan->prefetch_rows, maker->epoch, maker->samples,
                           bench_share_room(&maker->share, count));
    return count;
}

static int64_t step_decode_transform(void *state)
{
    struct maker *maker = state;
    const struct bench_work *work = maker->share.work;
    uint64_t start = 0;
    const uint32_t count = take_images(maker, &start);
    for (uint32_t index = 0; index < count; index++) {
        const int rc = decode(maker, start + index, maker->pixels.bytes);
        if (rc != STOKER_OK)
            return rc;
        stk_transform_row(&work->transform->plan, maker->scratch.bytes, &maker->image, maker->epoch,
                          work->material->samples[start + index].sample, NULL,
                          bench_share_room(&maker->share, 1));
    }
    return count;
}

const struct bench_steps bench_steps_decode = { setup_maker, step_decode, teardown_maker };
const struct bench_steps bench_steps_transform = { setup_maker, step_transform, teardown_maker };
const struct bench_steps bench_steps_decode_transform = { setup_maker, step_decode_transform,
                                                          teardown_maker };
