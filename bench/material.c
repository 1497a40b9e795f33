/* material.c - lay out what the ceilings work on. */
#include "material.h"
#include "random_order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 1 << 24 }; /* of any size: bounds the tables */

static enum bench_origin origin_of(const stoker_sample *sample)
{
    if (sample->extent.memory != NULL)
        return sample->codec == NULL ? BENCH_FROM_MEMORY : BENCH_FROM_ENCODED;
    return sample->extent.bytes == 0 ? BENCH_FROM_NOWHERE : BENCH_FROM_FILE;
}

/* Offsets are kept only when every visited sample lies in file 0. */
static int locate_all(struct bench_material *material, stoker_error *error)
{
    material->offsets = calloc(material->count, sizeof(material->offsets[0]));
    material->bytes = calloc(material->count, sizeof(material->bytes[0]));
    if (material->offsets == NULL || material->bytes == NULL)
        return STOKER_ENOMEM;
    for (uint64_t index = 0; index < material->count; index++) {
        stoker_sample sample;
        int rc = stoker_dataset_locate(material->dataset, material->ids[index], &sample, error);
        if (rc != STOKER_OK)
            return rc;
        if (sample.extent.memory != NULL || sample.extent.file != 0 || sample.extent.bytes == 0) {
            free(material->offsets);
            material->offsets = NULL;
            return STOKER_OK;
        }
        material->offsets[index] = sample.extent.offset;
        material->bytes[index] = sample.extent.bytes;
        if (sample.extent.bytes > material->bytes_max)
            material->bytes_max = sample.extent.bytes;
    }
    return STOKER_OK;
}

int bench_material_create(struct bench_material *out, const stoker_dataset *dataset,
                          const struct bench_material_options *options, stoker_error *error)
{
    struct bench_material material = { .dataset = dataset,
                                       .shuffle = options->shuffle,
                                       .file.fd = -1 };
    uint64_t count = stoker_dataset_get_info(dataset)->count;
    material.row_bytes = stoker_dataset_row_bytes(dataset);

    uint64_t fits = options->rows_bytes_max / material.row_bytes;
    fits = fits < 1 ? 1 : fits > ROWS_MAX ? ROWS_MAX : fits;
    material.count = count < fits ? count : fits;
    material.bounded = material.count < count;

    stoker_sample first;
    int rc = stoker_dataset_locate(dataset, 0, &first, error);
    if (rc != STOKER_OK)
        return rc;
    material.origin = origin_of(&first);
    material.has_codec = first.codec != NULL;
    rc = bench_random_order(&material.ids, count, material.count, options->shuffle, options->seed);
    if (rc == STOKER_OK && material.origin == BENCH_FROM_FILE) {
        rc = locate_all(&material, error);
        bench_source_file_open(&material.file, dataset);
    }
    if (rc != STOKER_OK) {
        bench_material_destroy(&material);
        return rc;
    }
    *out = material;
    return STOKER_OK;
}

void bench_material_destroy(struct bench_material *material)
{
    bench_source_file_close(&material->file);
    bench_block_destroy(&material->rows);
    bench_block_destroy(&material->encoded);
    free(material->ids);
    free(material->offsets);
    free(material->bytes);
    free(material->order);
    free(material->samples);
    *material = (struct bench_material){ .file.fd = -1 };
}

/* ---- rows ------------------------------------------------------------------------ */

static int read_rows(struct bench_material *material, stoker_error *error)
{
    for (uint64_t row = 0; row < material->count; row++) {
        /* All of it: rows lie as in the data set, and the order jumps about. Only a part:
         * the numbers are drawn at random, so row k may as well be sample ids[k]. */
        uint64_t id = material->bounded ? material->ids[row] : row;
        char *at = (char *)material->rows.bytes + row * material->row_bytes;
        int rc = stoker_dataset_read(material->dataset, id, at, material->row_bytes, NULL, error);
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}

static int draw_row_order(struct bench_material *material)
{
    uint64_t padded = material->count + STOKER_BATCH_MAX + BENCH_AHEAD_MAX;
    material->order = calloc(padded, sizeof(material->order[0]));
    if (material->order == NULL)
        return STOKER_ENOMEM;
    uint64_t *jumps = NULL;
    if (material->bounded) {
        int rc = bench_random_order(&jumps, material->count, material->count, material->shuffle, 1);
        if (rc != STOKER_OK)
            return rc;
    }
    const uint64_t *rows = material->bounded ? jumps : material->ids;
    for (uint64_t index = 0; index < padded; index++)
        material->order[index] = (const char *)material->rows.bytes +
                                 rows[index % material->count] * material->row_bytes;
    free(jumps);
    return STOKER_OK;
}

int bench_material_need_rows(struct bench_material *material, stoker_error *error)
{
    if (material->order != NULL)
        return STOKER_OK;
    int rc = bench_block_create(&material->rows, material->count * material->row_bytes);
    if (rc == STOKER_OK)
        rc = read_rows(material, error);
    if (rc == STOKER_OK)
        rc = draw_row_order(material);
    if (rc != STOKER_OK) {
        bench_block_destroy(&material->rows);
        free(material->order);
        material->order = NULL;
    }
    return rc;
}

/* ---- encoded samples ------------------------------------------------------------- */

static int pread_all(int fd, void *to, size_t size, uint64_t offset)
{
    char *at = to;
    while (size > 0) {
        ssize_t got = pread(fd, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return STOKER_EIO;
        at += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return STOKER_OK;
}

static int copy_from_file(struct bench_material *material)
{
    size_t total = 0;
    for (uint64_t index = 0; index < material->count; index++)
        total += material->bytes[index];
    int rc = bench_block_create(&material->encoded, total);
    char *at = material->encoded.bytes;
    for (uint64_t index = 0; rc == STOKER_OK && index < material->count; index++) {
        rc = pread_all(material->file.fd, at, material->bytes[index], material->offsets[index]);
        material->samples[index].bytes = (const uint8_t *)at;
        material->samples[index].size = material->bytes[index];
        at += material->bytes[index];
    }
    return rc;
}

static int describe_samples(struct bench_material *material, stoker_error *error)
{
    for (uint64_t index = 0; index < material->count; index++) {
        stoker_sample sample;
        int rc = stoker_dataset_locate(material->dataset, material->ids[index], &sample, error);
        if (rc != STOKER_OK)
            return rc;
        if (sample.codec == NULL || (index > 0 && sample.codec != material->codec))
            return STOKER_ENOTSUP;
        material->codec = sample.codec;
        material->samples[index] = (stoker_encoded){ .bytes = sample.extent.memory,
                                                     .size = sample.extent.bytes,
                                                     .sample = material->ids[index] };
    }
    return STOKER_OK;
}

int bench_material_need_samples(struct bench_material *material, stoker_error *error)
{
    if (material->samples != NULL)
        return STOKER_OK;
    material->samples = calloc(material->count, sizeof(material->samples[0]));
    if (material->samples == NULL)
        return STOKER_ENOMEM;
    int rc = describe_samples(material, error);
    if (rc == STOKER_OK && material->origin == BENCH_FROM_FILE)
        rc = material->offsets != NULL && material->file.fd >= 0 ? copy_from_file(material)
                                                                 : STOKER_ENOTSUP;
    if (rc != STOKER_OK) {
        free(material->samples);
        material->samples = NULL;
        bench_block_destroy(&material->encoded);
    }
    return rc;
}
