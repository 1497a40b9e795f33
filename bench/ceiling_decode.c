/* ceiling_decode.c - the codec over samples in memory, and the conversion behind it. */
#include "share.h"

#include <stdlib.h>

struct decoder {
    struct bench_share share;
    const stoker_codec *codec;
    void *scratch;
    void *row; /* decoded, before conversion */
};

static void teardown(void *state)
{
    struct decoder *decoder = state;
    if (decoder->codec != NULL && decoder->codec->close != NULL)
        decoder->codec->close(decoder->codec->self, decoder->scratch);
    bench_share_destroy(&decoder->share);
    free(decoder->row);
    free(decoder);
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    const struct bench_work *work = context;
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    if (decoder == NULL)
        return STOKER_ENOMEM;
    int rc = bench_share_create(&decoder->share, work, thread, threads);
    decoder->row = malloc(work->plan->from_bytes);
    if (rc == STOKER_OK && decoder->row == NULL)
        rc = STOKER_ENOMEM;
    const stoker_codec *codec = work->material->codec;
    if (rc == STOKER_OK && codec->open != NULL)
        rc = codec->open(codec->self, &decoder->scratch);
    if (rc != STOKER_OK) {
        teardown(decoder);
        return rc;
    }
    decoder->codec = codec;
    *state = decoder;
    return STOKER_OK;
}

static int decode_one(struct decoder *decoder, const stoker_encoded *sample, void *out)
{
    const struct stk_convert_plan *plan = decoder->share.work->plan;
    bool direct = plan->from == plan->to;
    void *row = direct ? out : decoder->row;
    int rc = decoder->codec->decode(decoder->codec->self, decoder->scratch, sample, row,
                                    plan->from_bytes, NULL);
    if (rc == STOKER_OK && !direct)
        plan->rows(plan, (const void *const *)&decoder->row, 1, 0, out);
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
