/* cifar.c - "cifar:DIR?labels=fine": CIFAR-10 and CIFAR-100 in their binary version.
 *
 *   DIR/data_batch_{1..5}.bin, test_batch.bin    | label | red 1024 | green 1024 | blue 1024 | ...
 *   DIR/train.bin, test.bin                      | coarse | fine | red | green | blue | ...
 *
 * A sample is the three planes of a record; a codec interleaves them, channels last. Opening reads
 * the files once for the labels, which it keeps in memory.
 */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "datasets/formats.h"
#include "datasets/opening.h"
#include "datasets/source.h"
#include "loader/base/memory/memory.h"
#include "loader/codec/refuse.h"

enum {
    SIDE = 32,
    PLANE_BYTES = SIDE * SIDE,
    CHANNELS = 3,
    PIXEL_BYTES = PLANE_BYTES * CHANNELS,
    FILES_MAX = 5,
    RECORDS_AT_ONCE = 256,
    NAME_BYTES = 32,
    NAMES_TEXT_BYTES = 4096,
    CLASSES_MAX = 100
};

/* One of the sets, with one of its labels. */
struct kind {
    const char *labels; /* as the spec says it; NULL = the only ones */
    const char *train[FILES_MAX];
    const char *test;
    const char *names; /* the file with a class name on each line */
    uint32_t label_bytes;
    uint32_t label_at;
    uint32_t class_count;
};

static const struct kind kinds[] = {
    { .train = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                 "data_batch_5.bin" },
      .test = "test_batch.bin",
      .names = "batches.meta.txt",
      .label_bytes = 1,
      .class_count = 10 },
    { .labels = "fine",
      .train = { "train.bin" },
      .test = "test.bin",
      .names = "fine_label_names.txt",
      .label_bytes = 2,
      .label_at = 1,
      .class_count = 100 },
    { .labels = "coarse",
      .train = { "train.bin" },
      .test = "test.bin",
      .names = "coarse_label_names.txt",
      .label_bytes = 2,
      .class_count = 20 },
};
enum { CIFAR10, CIFAR100_FINE, CIFAR100_COARSE };

struct file {
    char *path;
    struct stk_source source;
    uint64_t first; /* number of its first sample */
};

struct cifar {
    const struct kind *kind;
    struct file files[FILES_MAX];
    uint32_t file_count;
    uint64_t count;           /* samples */
    struct stk_region labels; /* a byte each */
    char names[CLASSES_MAX][NAME_BYTES];
    bool has_names;
};

/* ---- codec ---------------------------------------------------------------------- */

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    (void)scratch;
    const stoker_row *row = &out->rows[0];
    if (in->size != PIXEL_BYTES || row->bytes_max != PIXEL_BYTES)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes for a row of %zu", in->size,
                          row->bytes_max);
    const uint8_t *restrict planes = in->bytes;
    uint8_t *restrict pixels = row->data;
    for (size_t i = 0; i < PLANE_BYTES; i++) {
        pixels[CHANNELS * i] = planes[i];
        pixels[CHANNELS * i + 1] = planes[PLANE_BYTES + i];
        pixels[CHANNELS * i + 2] = planes[2 * PLANE_BYTES + i];
    }
    return STOKER_OK;
}

static const stoker_codec planes_codec = { .struct_size = sizeof(stoker_codec),
                                           .name = "planes",
                                           .decode = decode };

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct cifar *cifar = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = cifar->count,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 3,
                                  .shape = { SIDE, SIDE, CHANNELS },
                                  .is_image = true,
                                  .label_dtype = STOKER_DTYPE_INT64,
                                  .class_count = cifar->kind->class_count,
                                  .file_count = cifar->file_count,
                                  .encoded_bytes_max = PIXEL_BYTES };
    return STOKER_OK;
}

static uint32_t file_of_sample(const struct cifar *cifar, uint64_t id)
{
    uint32_t file = cifar->file_count - 1;
    while (id < cifar->files[file].first)
        file--;
    return file;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)error;
    const struct cifar *cifar = self;
    const uint64_t record_bytes = cifar->kind->label_bytes + PIXEL_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < cifar->count);
        const uint32_t file = file_of_sample(cifar, ids[i]);
        const uint64_t record = ids[i] - cifar->files[file].first;
        out[i] = (stoker_part){
            .extent = { .offset = record * record_bytes + cifar->kind->label_bytes,
                        .bytes = PIXEL_BYTES,
                        .file = file },
            .codec = &planes_codec,
        };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct cifar *cifar = self;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = ((const uint8_t *)cifar->labels.base)[ids[i]];
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct cifar *cifar = self;
    if (file >= cifar->file_count)
        return STOKER_EINVAL;
    *out = stk_source_file(&cifar->files[file].source);
    return STOKER_OK;
}

/* Only the label has classes. */
static const char *class_name(const void *self, uint32_t field, uint32_t index)
{
    (void)field;
    const struct cifar *cifar = self;
    return cifar->has_names ? cifar->names[index] : NULL;
}

static void destroy(void *self)
{
    struct cifar *cifar = self;
    for (uint32_t i = 0; i < cifar->file_count; i++) {
        stk_source_close(&cifar->files[i].source);
        stk_free(cifar->files[i].path);
    }
    stk_region_unmap(&cifar->labels);
    stk_free(cifar);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "cifar",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of,
                                        .destroy = destroy,
                                        .class_name = class_name };

/* ---- files ---------------------------------------------------------------------- */

/* Whole records, and at least one. */
static int check_length(const struct stk_source *source, uint64_t record_bytes, stoker_error *error)
{
    if (source->size > 0 && source->size % record_bytes == 0)
        return STOKER_OK;
    return stk_refuse_file(error, STOKER_ETRUNCATED, source->path, source->size,
                           source->size == 0 ? "cifar: the file is empty"
                                             : "cifar: the last record has %llu bytes of %llu",
                           (unsigned long long)(source->size % record_bytes),
                           (unsigned long long)record_bytes);
}

static int open_file(struct cifar *cifar, const struct stk_opening *opening, const char *name)
{
    struct file *file = &cifar->files[cifar->file_count];
    const uint64_t record_bytes = cifar->kind->label_bytes + PIXEL_BYTES;
    const size_t bytes = strlen(opening->path) + 1 + strlen(name) + 1;
    file->path = stk_calloc(bytes, 1);
    if (file->path == NULL)
        return stk_opening_refuse(opening, STOKER_ENOMEM, "the path");
    (void)snprintf(file->path, bytes, "%s/%s", opening->path, name);
    file->first = cifar->count;
    cifar->file_count++;
    int rc = stk_source_open(&file->source, opening->storage, file->path, opening->error);
    if (rc == STOKER_OK)
        rc = check_length(&file->source, record_bytes, opening->error);
    if (rc == STOKER_OK)
        cifar->count += file->source.size / record_bytes;
    return rc;
}

/* Read the labels of a file. Whole records are read, though a byte of each is wanted: a disk does
 * that faster. */
static int read_labels(const struct cifar *cifar, const struct file *file, uint8_t *records,
                       stoker_error *error)
{
    const struct kind *kind = cifar->kind;
    const uint64_t record_bytes = kind->label_bytes + PIXEL_BYTES;
    uint8_t *to = (uint8_t *)cifar->labels.base + file->first;
    for (uint64_t at = 0; at < file->source.size;) {
        const uint64_t left = file->source.size - at;
        const uint64_t most = RECORDS_AT_ONCE * record_bytes;
        const uint64_t bytes = left < most ? left : most;
        const int rc = stk_source_read(&file->source, records, (size_t)bytes, at, error);
        if (rc != STOKER_OK)
            return rc;
        for (uint64_t i = kind->label_at; i < bytes; i += record_bytes) {
            if (records[i] >= kind->class_count)
                return stk_refuse_file(error, STOKER_EFORMAT, file->path, at + i,
                                       "cifar: label %u out of range (%u classes)", records[i],
                                       kind->class_count);
            *to++ = records[i];
        }
        at += bytes;
    }
    return STOKER_OK;
}

static int load_labels(struct cifar *cifar, const struct stk_opening *opening, uint64_t max_bytes)
{
    if (cifar->count > max_bytes)
        return stk_opening_refuse(opening, STOKER_ELIMIT,
                                  "the labels take more memory than max_bytes");
    uint8_t *records = stk_calloc(RECORDS_AT_ONCE, cifar->kind->label_bytes + PIXEL_BYTES);
    if (records == NULL)
        return stk_opening_refuse(opening, STOKER_ENOMEM, "the records");
    int rc = STOKER_OK;
    if (stk_region_map(&cifar->labels, (size_t)cifar->count) != STOKER_OK)
        rc = stk_opening_refuse(opening, STOKER_ENOMEM, "the labels");
    for (uint32_t i = 0; rc == STOKER_OK && i < cifar->file_count; i++)
        rc = read_labels(cifar, &cifar->files[i], records, opening->error);
    stk_free(records);
    return rc;
}

/* Read class names, one per line. They are optional, and come from a file with the right number of
 * names. */
static void load_names(struct cifar *cifar, const struct stk_opening *opening)
{
    char text[NAMES_TEXT_BYTES] = "";
    char path[PATH_MAX + NAME_BYTES];
    struct stk_source source;
    uint32_t count = 0;
    (void)snprintf(path, sizeof(path), "%s/%s", opening->path, cifar->kind->names);
    if (stk_source_open(&source, opening->storage, path, NULL) != STOKER_OK)
        return;
    bool good = source.size < sizeof(text) &&
                stk_source_read(&source, text, (size_t)source.size, 0, NULL) == STOKER_OK &&
                strlen(text) == source.size;
    stk_source_close(&source);
    for (const char *at = text; good && *at != '\0'; at += strspn(at, "\r\n")) {
        const size_t bytes = strcspn(at, "\r\n");
        good = bytes < NAME_BYTES && (bytes == 0 || count < cifar->kind->class_count);
        if (good && bytes > 0)
            memcpy(cifar->names[count++], at, bytes);
        at += bytes;
    }
    cifar->has_names = good && count == cifar->kind->class_count;
}

/* ---- the spec ------------------------------------------------------------------- */

/* Returns the bytes of a regular file, or -1. */
static int64_t bytes_of_file(const stoker_storage *storage, const char *directory, const char *name)
{
    char path[PATH_MAX + NAME_BYTES];
    stoker_object object;
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return stk_storage_look(storage, path, &object, NULL) == STOKER_OK &&
                   object.kind == STOKER_OBJECT_KIND_FILE
               ? (int64_t)object.size
               : -1;
}

static bool is_kind(const struct stk_opening *opening, const struct kind *kind)
{
    return bytes_of_file(opening->storage, opening->path, kind->train[0]) >= 0 ||
           bytes_of_file(opening->storage, opening->path, kind->test) >= 0;
}

static int choose_kind(struct cifar *cifar, const struct stk_opening *opening, const char *labels)
{
    const bool coarse = strcmp(labels, "coarse") == 0;
    const bool ten = is_kind(opening, &kinds[CIFAR10]);
    const bool hundred = is_kind(opening, &kinds[CIFAR100_FINE]);
    if (!coarse && labels[0] != '\0' && strcmp(labels, "fine") != 0)
        return stk_opening_refuse(opening, STOKER_ESPEC, "labels is fine or coarse");
    if (ten && hundred)
        return stk_opening_refuse(opening, STOKER_EMISMATCH,
                                  "the folder has files of both CIFAR-10 and CIFAR-100");
    if (!ten && !hundred)
        return stk_opening_refuse(opening, STOKER_ENOENT,
                                  "found neither data_batch_1.bin nor train.bin (binary version)");
    if (ten && labels[0] != '\0')
        return stk_opening_refuse(opening, STOKER_EINVAL, "labels: CIFAR-10 has only one kind");
    cifar->kind = &kinds[ten ? CIFAR10 : coarse ? CIFAR100_COARSE : CIFAR100_FINE];
    return STOKER_OK;
}

static int open_cifar(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                      stoker_error *error)
{
    struct stk_opening opening = STK_OPENING_INIT("cifar", options->storage, error);
    char labels[STK_PARAMETER_BYTES_MAX] = "";
    const struct stk_parameter table[] = { { .key = "labels", .text = labels } };
    const bool test = options->split != NULL && strcmp(options->split, "test") == 0;
    if (options->split != NULL && !test && strcmp(options->split, "train") != 0)
        return stk_refuse_spec(error, STOKER_EINVAL,
                               "split \"%s\": cifar has \"train\" and \"test\"", options->split);
    int rc = stk_opening_folder(&opening, rest, NULL);
    if (rc == STOKER_OK)
        rc = stk_parameters_read(opening.parameters, table, 1, "cifar", error);
    if (rc != STOKER_OK)
        return rc;
    struct cifar *cifar = stk_calloc(1, sizeof(*cifar));
    if (cifar == NULL)
        return stk_opening_refuse(&opening, STOKER_ENOMEM, "opening");
    rc = choose_kind(cifar, &opening, labels);
    if (rc == STOKER_OK && test)
        rc = open_file(cifar, &opening, cifar->kind->test);
    for (int i = 0; rc == STOKER_OK && !test && i < FILES_MAX && cifar->kind->train[i] != NULL; i++)
        rc = open_file(cifar, &opening, cifar->kind->train[i]);
    if (rc == STOKER_OK)
        rc = load_labels(cifar, &opening, options->max_bytes);
    if (rc == STOKER_OK)
        load_names(cifar, &opening);
    return stk_opening_finish(&opening, rc, out, &ops, cifar);
}

/* A directory with the files of one of them, as long as records are. */
static bool recognize_cifar(const stoker_storage *storage, const char *path)
{
    for (size_t i = CIFAR10; i <= CIFAR100_FINE; i++) {
        const int64_t record_bytes = kinds[i].label_bytes + PIXEL_BYTES;
        const int64_t train = bytes_of_file(storage, path, kinds[i].train[0]);
        const int64_t test = bytes_of_file(storage, path, kinds[i].test);
        if ((train > 0 && train % record_bytes == 0) || (test > 0 && test % record_bytes == 0))
            return true;
    }
    return false;
}

const struct stk_format stk_format_cifar = {
    .name = "cifar",
    .about = "cifar:DIR\tCIFAR-10 and CIFAR-100, the binary version",
    .open = open_cifar,
    .recognize = recognize_cifar
};
