/* test_verify_into.c - a codec that verifies what it copies is asked for bytes in memory that are
 * delivered as they are, and for no others.
 *
 * Method: rows of zeros; verify() writes ones to its copy, so the batch shows whether it had one.
 */
#include <stoker/stoker.h>

#include "support/leaks.h"

enum { SAMPLES = 10, ROW = 48, BAD = 3 };

struct set {
    stoker_codec codec;
    bool is_bad; /* sample BAD is */
};

static const uint8_t zeros[ROW];

static int verify(const void *self, const stoker_encoded *in, void *copy, stoker_error *error)
{
    const struct set *set = self;
    (void)error;
    cr_assert_eq(in->size, ROW);
    cr_assert_eq(in->bytes, zeros);
    if (copy != NULL)
        memset(copy, 1, in->size);
    return set->is_bad && in->sample == BAD ? STOKER_ECORRUPT : STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self;
    (void)scratch;
    (void)error;
    memcpy(row, in->bytes, row_bytes);
    return STOKER_OK;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    out->count = SAMPLES;
    out->dtype = STOKER_DTYPE_UINT8;
    out->rank = 1;
    out->shape[0] = ROW;
    out->label_dtype = STOKER_DTYPE_NONE;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)ids;
    (void)error;
    const struct set *set = self;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .codec = &set->codec, .extent = { .memory = zeros, .bytes = ROW } };
    return STOKER_OK;
}

static const stoker_dataset_ops ops = {
    .struct_size = sizeof(ops), .name = "zeros", .describe = describe, .locate = locate
};

static struct set sound(void)
{
    return (struct set){ .codec = { .struct_size = sizeof(stoker_codec),
                                    .name = "zeros",
                                    .flags = STOKER_CODEC_ROW,
                                    .decode = decode,
                                    .verify = verify } };
}

/* The first bytes of all rows, added; < 0: how the loader ended. */
static int run(struct set *set, stoker_dtype dtype)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_default_options(.batch_size = 4, .num_workers = 0, .epochs = 1,
                            .cache = STOKER_CACHE_NONE, .dtype = dtype);
    stoker_batch batch = STOKER_BATCH_INIT;
    int total = 0;
    set->codec.self = set;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, set, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        for (uint32_t row = 0; row < batch.count; row++)
            total += dtype == STOKER_DTYPE_UINT8
                         ? ((const uint8_t *)batch.images.data)[row * ROW]
                         : (int)((const float *)batch.images.data)[row * ROW];
        stoker_batch_release(&batch);
    }
    if (rc < 0)
        cr_assert_eq(stoker_loader_error(loader)->sample, BAD);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc < 0 ? rc : total;
}

CleanTest(verify_into, copies_rows_that_are_delivered_as_stored)
{
    struct set set = sound();
    cr_assert_eq(run(&set, STOKER_DTYPE_UINT8), SAMPLES);
    set.is_bad = true;
    cr_assert_eq(run(&set, STOKER_DTYPE_UINT8), STOKER_ECORRUPT);
}

CleanTest(verify_into, is_not_asked_for_rows_that_are_converted)
{
    struct set set = sound();
    cr_assert_eq(run(&set, STOKER_DTYPE_FLOAT32), 0);
    set.is_bad = true;
    cr_assert_eq(run(&set, STOKER_DTYPE_FLOAT32), STOKER_ECORRUPT);
}

/* Not the row's bytes; nothing that verifies. */
CleanTest(verify_into, needs_a_codec_that_has_it)
{
    struct set set = sound();
    set.codec.flags = 0;
    cr_assert_eq(run(&set, STOKER_DTYPE_UINT8), 0);
    set = sound();
    set.codec.verify = NULL;
    cr_assert_eq(run(&set, STOKER_DTYPE_UINT8), 0);
}
