/* unpack.c - the records of shards: raw rows copied and LZ4 blocks unpacked, from all over
 * memory, then converted. No checksum, which the loader does verify. */
#include "bench/ceiling/share.h"

#include <stdlib.h>
#include <string.h>

#if defined(STOKER_HAVE_LZ4)
#include <lz4.h>

static bool unpack_lz4(const stoker_encoded *record, void *row, size_t row_bytes)
{
    return LZ4_decompress_safe((const char *)record->bytes, row, (int)record->size,
                               (int)row_bytes) == (int)row_bytes;
}
#else
static bool unpack_lz4(const stoker_encoded *record, void *row, size_t row_bytes)
{
    (void)record;
    (void)row;
    (void)row_bytes;
    return false;
}
#endif

struct unpacker {
    struct bench_share share;
    void *row; /* unpacked, before conversion */
};

static void teardown(void *state)
{
    struct unpacker *unpacker = state;
    bench_share_destroy(&unpacker->share);
    free(unpacker->row);
    free(unpacker);
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    const struct bench_work *work = context;
    struct unpacker *unpacker = calloc(1, sizeof(*unpacker));
    if (unpacker == NULL)
        return STOKER_ENOMEM;
    int rc = bench_share_create(&unpacker->share, work, thread, threads);
    unpacker->row = malloc(work->plan->from_bytes);
    if (rc == STOKER_OK && unpacker->row == NULL)
        rc = STOKER_ENOMEM;
    if (rc != STOKER_OK) {
        teardown(unpacker);
        return rc;
    }
    *state = unpacker;
    return STOKER_OK;
}

/* Makes a row from a record without verifying its checksum. False: damaged, or LZ4 in a build without it. */
static bool unpack(const stoker_encoded *record, void *row, size_t row_bytes)
{
    if (record->size != row_bytes)
        return unpack_lz4(record, row, row_bytes);
    memcpy(row, record->bytes, row_bytes);
    return true;
}

static int64_t step(void *state)
{
    struct unpacker *unpacker = state;
    const struct bench_work *work = unpacker->share.work;
    const struct stk_convert_plan *plan = work->plan;
    const bool direct = bench_keeps_rows(plan);
    uint64_t start = 0;
    uint32_t count = bench_share_take(&unpacker->share, unpacker->share.piece, &start);
    for (uint32_t index = 0; index < count; index++) {
        void *out = bench_share_room(&unpacker->share, 1);
        if (!unpack(&work->material->samples[start + index], direct ? out : unpacker->row,
                    plan->from_bytes))
            return STOKER_ECORRUPT;
        if (!direct)
            plan->rows(plan, (const void *const *)&unpacker->row, 1, 0, out);
    }
    return count;
}

/* Tries some samples and compares them with the data set's own rows. */
static bool unpacks(const struct bench_material *material)
{
    enum { TRIED = 16 };
    char *rows = malloc(2 * material->row_bytes);
    bool same = rows != NULL;
    for (uint64_t index = 0; same && index < material->count && index < TRIED; index++) {
        const stoker_encoded *sample = &material->samples[index];
        same = unpack(sample, rows, material->row_bytes) &&
               stoker_dataset_read(material->dataset, sample->sample, rows + material->row_bytes,
                                   material->row_bytes, NULL, NULL) == STOKER_OK &&
               memcmp(rows, rows + material->row_bytes, material->row_bytes) == 0;
    }
    free(rows);
    return same;
}

bool bench_ceiling_unpack_fits(struct bench_material *material)
{
    return strcmp(stoker_dataset_name(material->dataset), "shards") == 0 &&
           bench_material_need_samples(material, NULL) == STOKER_OK && unpacks(material);
}

const struct bench_steps bench_steps_unpack = { setup, step, teardown };
