/* bytes.c - "synth:bytes?count=N&shape=28x28&dtype=uint8&classes=10": rows that
 * identify their sample, at the speed of a store. See bytes.h for the bytes.
 */
#include "datasets/synth/bytes.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "datasets/parameters.h"
#include "datasets/synth/synth.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

#define ROW_BYTES_MAX ((uint64_t)1 << 30)

struct synth_bytes {
    uint64_t count;
    uint64_t classes;
    stoker_dtype dtype;
    struct stk_shape shape;
};

static void fill_row(uint64_t id, uint8_t *row, size_t row_bytes)
{
    uint64_t word = id;
    uint64_t next = stk_mix64(id);
    size_t at = 0;
    for (; at + 8 <= row_bytes; at += 8) {
        uint64_t stored = htole64(word);
        memcpy(row + at, &stored, 8);
        next += 0x9E3779B97F4A7C15U;
        word = next;
    }
    uint64_t stored = htole64(word);
    memcpy(row + at, &stored, row_bytes - at);
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    (void)scratch;
    (void)error;
    fill_row(in->sample, out->rows[0].data, out->rows[0].bytes_max);
    return STOKER_OK;
}

static const stoker_codec codec = { .struct_size = sizeof(stoker_codec),
                                    .name = "synth:bytes",
                                    .decode = decode };

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct synth_bytes *synth = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = synth->count,
                                  .dtype = synth->dtype,
                                  .rank = synth->shape.rank,
                                  .label_dtype = STOKER_DTYPE_INT64,
                                  .class_count = (uint32_t)synth->classes };
    memcpy(out->shape, synth->shape.lengths, sizeof(out->shape));
    out->is_image = synth->dtype == STOKER_DTYPE_UINT8 && out->rank == 3 && out->shape[2] <= 4;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self;
    (void)ids;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .codec = &codec };
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct synth_bytes *synth = self;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = (int64_t)(ids[i] % synth->classes);
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "synth:bytes",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .destroy = stk_free };

static int check_row(const struct synth_bytes *synth, stoker_error *error)
{
    uint64_t bytes = stoker_dtype_bytes(synth->dtype);
    for (uint32_t axis = 0; axis < synth->shape.rank; axis++) {
        if (__builtin_mul_overflow(bytes, synth->shape.lengths[axis], &bytes) ||
            bytes > ROW_BYTES_MAX) {
            return stk_refuse_spec(error, STOKER_ELIMIT,
                                   "synth:bytes: shape: a sample is longer than 1 GiB");
        }
    }
    return STOKER_OK;
}

static int read_parameters(struct synth_bytes *synth, const char *text, stoker_error *error)
{
    *synth = (struct synth_bytes){ .count = 60000,
                                   .classes = 10,
                                   .dtype = STOKER_DTYPE_UINT8,
                                   .shape = { .rank = 2, .lengths = { 28, 28 } } };
    const struct stk_parameter table[] = {
        { .key = "count",
          .number = &synth->count,
          .least = 1,
          .most = STK_SYNTH_COUNT_MAX,
          .is_size = true },
        { .key = "shape", .shape = &synth->shape },
        { .key = "dtype", .dtype = &synth->dtype },
        { .key = "classes", .number = &synth->classes, .least = 1, .most = 65536 },
    };
    int rc =
        stk_parameters_read(text, table, sizeof(table) / sizeof(table[0]), "synth:bytes", error);
    return rc == STOKER_OK ? check_row(synth, error) : rc;
}

int stk_synth_bytes_open(stoker_dataset **out, const char *parameters,
                         const stoker_dataset_options *options, stoker_error *error)
{
    if (options->split != NULL)
        return stk_refuse_spec(error, STOKER_EINVAL, "split \"%s\": synth:bytes has no splits",
                               options->split);
    struct synth_bytes *synth = stk_calloc(1, sizeof(*synth));
    if (synth == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, NULL, NULL);
    int rc = read_parameters(synth, parameters, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_create(out, &ops, synth, error);
    if (rc != STOKER_OK)
        stk_free(synth);
    return rc;
}
