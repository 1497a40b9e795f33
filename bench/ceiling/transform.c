/* transform.c - crop, flip and resize: images in memory, decoded before or as part of it, become rows in
 * a ring. */
#include "bench/ceiling/picture.h"
#include "bench/ceiling/share.h"

#include <stdlib.h>

struct transformer {
    struct bench_share share;
    struct bench_picture picture; /* "decode + transform" */
    struct bench_block scratch;
    uint64_t *samples; /* numbers of a piece's images */
    uint64_t epoch;
};

static void teardown(void *state)
{
    struct transformer *transformer = state;
    bench_picture_destroy(&transformer->picture);
    bench_block_destroy(&transformer->scratch);
    bench_share_destroy(&transformer->share);
    free(transformer->samples);
    free(transformer);
}

static int prepare(struct transformer *transformer, const struct bench_work *work, uint32_t thread,
                   uint32_t threads)
{
    int rc = bench_share_create(&transformer->share, work, thread, threads);
    if (rc == STOKER_OK)
        rc = bench_block_create(&transformer->scratch,
                                stk_transform_scratch_bytes(&work->transform->plan));
    if (rc != STOKER_OK)
        return rc;
    transformer->samples = calloc(transformer->share.piece, sizeof(transformer->samples[0]));
    return transformer->samples == NULL ? STOKER_ENOMEM : STOKER_OK;
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    struct transformer *transformer = calloc(1, sizeof(*transformer));
    if (transformer == NULL)
        return STOKER_ENOMEM;
    int rc = prepare(transformer, context, thread, threads);
    if (rc != STOKER_OK) {
        teardown(transformer);
        return rc;
    }
    *state = transformer;
    return STOKER_OK;
}

/* Each pass over the samples is an epoch, with new random draws. */
static uint32_t take(struct transformer *transformer, uint64_t *start)
{
    const uint32_t count = bench_share_take(&transformer->share, transformer->share.piece, start);
    transformer->epoch += *start == transformer->share.first;
    return count;
}

static int64_t step(void *state)
{
    struct transformer *transformer = state;
    const struct bench_work *work = transformer->share.work;
    const struct stk_transform_plan *plan = &work->transform->plan;
    const stoker_dataset_info *info = stoker_dataset_get_info(work->material->dataset);
    uint64_t start = 0;
    const uint32_t count = take(transformer, &start);
    for (uint32_t index = 0; index < count; index++)
        transformer->samples[index] = work->material->ids[start + index];
    if (count > 0)
        stk_transform_rows(plan, transformer->scratch.bytes, work->material->order + start,
                           (uint32_t)info->shape[0], (uint32_t)info->shape[1], count,
                           work->plan->prefetch_rows, transformer->epoch, transformer->samples,
                           bench_share_room(&transformer->share, count));
    return count;
}

static int setup_decoding(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    int rc = setup(context, thread, threads, state);
    if (rc != STOKER_OK)
        return rc;
    struct transformer *transformer = *state;
    rc = bench_picture_create(&transformer->picture, context);
    if (rc != STOKER_OK) {
        teardown(transformer);
        *state = NULL;
    }
    return rc;
}

static int64_t step_decoding(void *state)
{
    struct transformer *transformer = state;
    const struct bench_work *work = transformer->share.work;
    uint64_t start = 0;
    const uint32_t count = take(transformer, &start);
    for (uint32_t index = 0; index < count; index++) {
        const stoker_encoded *sample = &work->material->samples[start + index];
        int rc = bench_picture_decode(&transformer->picture, sample, transformer->epoch);
        if (rc != STOKER_OK)
            return rc;
        stk_transform_row(&work->transform->plan, transformer->scratch.bytes,
                          &transformer->picture.image, transformer->epoch, sample->sample, NULL,
                          bench_share_room(&transformer->share, 1));
    }
    return count;
}

const struct bench_steps bench_steps_transform = { setup, step, teardown };
const struct bench_steps bench_steps_decode_transform = { setup_decoding, step_decoding, teardown };
