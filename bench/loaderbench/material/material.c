/* material.c - see material.h. */
#include "bench/loaderbench/material/material.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 1 << 24 }; /* bounds the tables */

/* splitmix64: good enough to defeat a prefetcher. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void permute(uint64_t *order, uint64_t count, uint64_t seed)
{
    for (uint64_t left = count; left > 1; left--) {
        uint64_t other = draw(&seed) % left;
        uint64_t held = order[left - 1];
        order[left - 1] = order[other];
        order[other] = held;
    }
}

/* The order in which ceilings visit samples: if wanted == count, all numbers below count, else some
 * of them, which may repeat; without shuffle in sequence from 0. The caller frees *out.
 * STOKER_ENOMEM. */
static int random_order(uint64_t **out, uint64_t count, uint64_t wanted, bool shuffle,
                        uint64_t seed)
{
    assert(wanted >= 1);
    assert(wanted <= count);
    uint64_t *order = calloc(wanted, sizeof(order[0]));
    if (order == NULL)
        return STOKER_ENOMEM;
    for (uint64_t index = 0; index < wanted; index++)
        order[index] = shuffle && wanted < count ? draw(&seed) % count : index;
    if (shuffle && wanted == count)
        permute(order, count, seed);
    *out = order;
    return STOKER_OK;
}

static enum bench_origin origin_of(const stoker_part *sample)
{
    if (sample->extent.memory != NULL)
        return sample->codec == NULL ? BENCH_FROM_MEMORY : BENCH_FROM_ENCODED;
    return sample->extent.bytes == 0 ? BENCH_FROM_NOWHERE : BENCH_FROM_FILE;
}

enum storage { IN_FILE_0, ITS_OWN_FILE, ELSEWHERE };

static enum storage storage_of(const stoker_part *sample)
{
    if (sample->extent.memory != NULL || sample->extent.bytes == 0)
        return ELSEWHERE;
    if (sample->extent.path != NULL)
        return ITS_OWN_FILE;
    return sample->extent.file == 0 ? IN_FILE_0 : ELSEWHERE;
}

/* Keeps offsets only if every visited sample lies in file 0, paths only if each is a file. */
static void keep_places(struct bench_material *material, const bool *found)
{
    if (found[ELSEWHERE] || found[ITS_OWN_FILE]) {
        free(material->offsets);
        material->offsets = NULL;
    }
    if (found[ELSEWHERE] || found[IN_FILE_0]) {
        free((void *)material->paths);
        material->paths = NULL;
    }
}

static int locate_all(struct bench_material *material, stoker_error *error)
{
    bool found[ELSEWHERE + 1] = { false };
    material->offsets = calloc(material->count, sizeof(material->offsets[0]));
    material->paths = calloc(material->count, sizeof(material->paths[0]));
    material->bytes = calloc(material->count, sizeof(material->bytes[0]));
    if (material->offsets == NULL || material->paths == NULL || material->bytes == NULL)
        return STOKER_ENOMEM;
    for (uint64_t index = 0; index < material->count; index++) {
        stoker_part sample;
        int rc = stoker_dataset_locate(material->dataset, material->ids[index], &sample, error);
        if (rc != STOKER_OK)
            return rc;
        found[storage_of(&sample)] = true;
        material->offsets[index] = sample.extent.offset;
        material->paths[index] = sample.extent.path;
        material->bytes[index] = (uint32_t)sample.extent.bytes; /* what a loader reads: < 4 GiB */
        if (material->bytes[index] > material->bytes_max)
            material->bytes_max = material->bytes[index];
    }
    keep_places(material, found);
    return STOKER_OK;
}

int bench_material_create(struct bench_material *out, const stoker_dataset *dataset,
                          const struct bench_material_options *options, stoker_error *error)
{
    struct bench_material material = { .dataset = dataset,
                                       .shuffle = options->shuffle,
                                       .directory = stoker_dataset_get_info(dataset)->directory,
                                       .file.fd = -1 };
    uint64_t count = stoker_dataset_get_info(dataset)->count;
    material.row_bytes = stoker_dataset_field_bytes(dataset, 0);

    uint64_t fits = options->rows_bytes_max / material.row_bytes;
    fits = fits < 1 ? 1 : fits > ROWS_MAX ? ROWS_MAX : fits;
    material.count = count < fits ? count : fits;
    material.bounded = material.count < count;

    stoker_part first;
    int rc = stoker_dataset_locate(dataset, 0, &first, error);
    if (rc != STOKER_OK)
        return rc;
    material.origin = origin_of(&first);
    material.has_codec = first.codec != NULL;
    rc = random_order(&material.ids, count, material.count, options->shuffle, options->seed);
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
    free((void *)material->paths);
    free(material->bytes);
    free(material->order);
    free(material->samples);
    free((void *)material->codecs);
    *material = (struct bench_material){ .file.fd = -1 };
}

bool bench_material_is_readable(const struct bench_material *material)
{
    return material->paths != NULL || (material->offsets != NULL && material->file.fd >= 0);
}

int bench_material_evict(const struct bench_material *material, double *resident_share)
{
    if (material->paths != NULL)
        return bench_evict_tree(material->directory, material->paths, material->count,
                                resident_share);
    return material->file.fd < 0
               ? STOKER_ENOTSUP
               : bench_evict_file(material->file.fd, material->file.size, resident_share);
}

/* ---- rows ------------------------------------------------------------------------ */

static int read_rows(struct bench_material *material, stoker_error *error)
{
    for (uint64_t row = 0; row < material->count; row++) {
        /* All of it: rows lie as in the data set, and the order jumps about. Only a part:
         * the numbers are drawn at random, so row k may as well be sample ids[k]. */
        uint64_t id = material->bounded ? material->ids[row] : row;
        char *at = (char *)material->rows.bytes + row * material->row_bytes;
        stoker_row rows[STOKER_FIELDS_MAX] = { { .data = at, .bytes_max = material->row_bytes } };
        int rc = stoker_dataset_read(material->dataset, id, rows, error);
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
        int rc = random_order(&jumps, material->count, material->count, material->shuffle, 1);
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

static int read_sample(const struct bench_material *material, uint64_t index, void *to)
{
    if (material->paths == NULL)
        return pread_all(material->file.fd, to, material->bytes[index], material->offsets[index]);
    int fd = openat(material->directory, material->paths[index], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return STOKER_EIO;
    int rc = pread_all(fd, to, material->bytes[index], 0);
    close(fd);
    return rc;
}

/* Lays samples out in the data set's order, so that visits jump about; a randomly drawn part in the
 * order of visits. */
static uint64_t *lay_out(const struct bench_material *material, size_t *total)
{
    uint64_t *places = calloc(material->count, sizeof(places[0]));
    *total = 0;
    if (places == NULL)
        return NULL;
    for (uint64_t index = 0; index < material->count; index++)
        places[material->bounded ? index : material->ids[index]] = material->bytes[index];
    for (uint64_t at = 0; at < material->count; at++) {
        uint64_t bytes = places[at];
        places[at] = *total;
        *total += bytes;
    }
    return places;
}

static int copy_from_file(struct bench_material *material)
{
    size_t total = 0;
    uint64_t *places = lay_out(material, &total);
    if (places == NULL)
        return STOKER_ENOMEM;
    int rc = bench_block_create(&material->encoded, total);
    for (uint64_t index = 0; rc == STOKER_OK && index < material->count; index++) {
        uint8_t *at = (uint8_t *)material->encoded.bytes +
                      places[material->bounded ? index : material->ids[index]];
        rc = read_sample(material, index, at);
        material->samples[index].bytes = at;
        material->samples[index].size = material->bytes[index];
    }
    free(places);
    return rc;
}

static int describe_samples(struct bench_material *material, stoker_error *error)
{
    for (uint64_t index = 0; index < material->count; index++) {
        stoker_part sample;
        int rc = stoker_dataset_locate(material->dataset, material->ids[index], &sample, error);
        if (rc != STOKER_OK)
            return rc;
        if (sample.codec == NULL)
            return STOKER_ENOTSUP;
        material->codecs[index] = sample.codec;
        material->samples[index] = (stoker_encoded){ .bytes = sample.extent.memory,
                                                     .size = sample.extent.bytes,
                                                     .sample = material->ids[index],
                                                     .tag = sample.tag };
    }
    return STOKER_OK;
}

int bench_material_need_samples(struct bench_material *material, stoker_error *error)
{
    if (material->samples != NULL)
        return STOKER_OK;
    material->samples = calloc(material->count, sizeof(material->samples[0]));
    material->codecs = calloc(material->count, sizeof(material->codecs[0]));
    int rc = material->samples == NULL || material->codecs == NULL
                 ? STOKER_ENOMEM
                 : describe_samples(material, error);
    if (rc == STOKER_OK && material->origin == BENCH_FROM_FILE)
        rc = bench_material_is_readable(material) ? copy_from_file(material) : STOKER_ENOTSUP;
    if (rc != STOKER_OK) {
        free(material->samples);
        free((void *)material->codecs);
        material->samples = NULL;
        material->codecs = NULL;
        bench_block_destroy(&material->encoded);
    }
    return rc;
}
