/* decode.c - runs the codec on samples in memory, then converts. */
#include "bench/ceiling/picture.h"
#include "bench/ceiling/share.h"

#include <stdlib.h>

struct decoder {
    struct bench_share share;
    struct bench_picture picture; /* decoded, before conversion */
};

static void teardown(void *state)
{
    struct decoder *decoder = state;
    bench_picture_destroy(&decoder->picture);
    bench_share_destroy(&decoder->share);
    free(decoder);
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    const struct bench_work *work = context;
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    if (decoder == NULL)
        return STOKER_ENOMEM;
    int rc = bench_share_create(&decoder->share, work, thread, threads);
    if (rc == STOKER_OK)
        rc = bench_picture_create(&decoder->picture, work);
    if (rc != STOKER_OK) {
        teardown(decoder);
        return rc;
    }
    *state = decoder;
    return STOKER_OK;
}

/* Rows delivered as stored are decoded in place; images of several sizes have no place. */
static int decode_one(struct decoder *decoder, const stoker_encoded *sample, void *out)
{
    const struct stk_convert_plan *plan = decoder->share.work->plan;
    struct bench_picture *picture = &decoder->picture;
    if (!picture->any_size && bench_keeps_rows(plan))
        return picture->codec->decode(picture->codec->self, picture->scratch, sample, out,
                                      plan->from_bytes, NULL);
    int rc = bench_picture_decode(picture, sample, 0);
    const void *const row = picture->pixels.bytes;
    if (rc == STOKER_OK && !picture->any_size)
        plan->rows(plan, &row, 1, 0, out);
    return rc;
}

static int64_t step(void *state)
{
    struct decoder *decoder = state;
    const struct bench_work *work = decoder->share.work;
    uint64_t start = 0;
    uint32_t count = bench_share_take(&decoder->share, decoder->share.piece, &start);
    for (uint32_t index = 0; index < count; index++) {
        void *out = bench_share_room(&decoder->share, 1);
        int rc = decode_one(decoder, &work->material->samples[start + index], out);
        if (rc != STOKER_OK)
            return rc;
    }
    return count;
}

const struct bench_steps bench_steps_decode = { setup, step, teardown };
