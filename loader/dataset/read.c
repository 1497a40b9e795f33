/* read.c - one sample, read and decoded in the calling thread.
 *
 *   id ─▶ locate ─▶ bytes of each part ─▶ its fields
 */
#include <inttypes.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/io/pread.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/codec/raw.h"
#include "loader/dataset/dataset.h"
#include "loader/dataset/part.h"
#include "loader/dataset/recall.h"
#include "loader/storage/storage.h"

int stoker_dataset_locate(const stoker_dataset *dataset, uint64_t id, stoker_part *parts,
                          stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    if (dataset == NULL || parts == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, &place,
                             "dataset or parts is NULL");
    place.sample = id;
    if (id >= dataset->info.count)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, &place,
                             "the last sample is %llu",
                             (unsigned long long)dataset->info.count - 1);
    if (dataset->info.part_count == 0)
        return STOKER_OK;
    memset(parts, 0, dataset->info.part_count * sizeof(parts[0]));
    return stk_parts_locate(dataset, &id, 1, parts, error);
}

/* ---- one sample, now ------------------------------------------------------------ */

/* Verify and decode, with a scratch made for this one call. */
static int decode_once(const stoker_dataset *dataset, uint32_t part, const stoker_codec *codec,
                       const stoker_encoded *in, stoker_row *rows, const struct stk_place *place,
                       stoker_error *error)
{
    void *scratch = NULL;
    stoker_error reason = { 0 };
    int rc = codec == NULL || codec->open == NULL ? STOKER_OK
                                                  : codec->open(codec->self, false, &scratch);
    if (rc == STOKER_OK) {
        rc = codec == NULL || codec->verify == NULL ? STOKER_OK
                                                    : codec->verify(codec->self, in, NULL, &reason);
        if (rc == STOKER_OK)
            rc = stk_part_decode(dataset, part, codec, scratch, in, rows, &reason);
        if (codec != NULL && codec->close != NULL)
            codec->close(codec->self, scratch);
    }
    if (rc == STOKER_OK)
        return STOKER_OK;
    rc = stk_callback_code(rc, "open() or verify()", &reason); /* others were checked */
    const char *name = codec == NULL ? "raw" : codec->name;
    if (reason.message[0] == '\0')
        return stk_error_set(error, rc, STOKER_STAGE_DECODE, place, "codec %s: %s", name,
                             stoker_strerror(rc));
    return stk_error_set(error, rc, STOKER_STAGE_DECODE, place, "codec %s: %s", name,
                         reason.message);
}

static const stoker_codec *codec_of(const stoker_part *part)
{
    return part->codec == NULL ? &stk_codec_raw : part->codec;
}

/* Read the file's own bytes. */
static int read_stored_bytes(const stoker_file *file, uint32_t number, void *to, size_t bytes,
                             struct stk_place *place, stoker_error *error)
{
    if (file->fd >= 0)
        return stk_pread_all(file->fd, to, bytes, *place, error);
    if (file->storage != NULL)
        return stk_storage_read(file->storage, file->path, file->version, to, bytes, place, error);
    return stk_error_set(error, STOKER_ENOTSUP, STOKER_STAGE_READ, place,
                         "file %u has no descriptor: only a loader with options.reader reads it",
                         number);
}

int stk_dataset_read_file(const stoker_dataset *dataset, uint32_t number, void *to, size_t bytes,
                          bool unverified, struct stk_place *place, stoker_error *error)
{
    stoker_file file = { 0 };
    stoker_error said;
    int rc = dataset->ops->file(dataset->self, number, &file);
    if (rc != STOKER_OK)
        return stk_error_set(error, stk_callback_failed(rc, "file()", &said), STOKER_STAGE_READ,
                             place, "file %u: %s", number, said.message);
    place->path = file.path;
    rc = file.blocks != NULL ? stk_kept_blocks_read(dataset->kept_blocks, &file, number, to, bytes,
                                                    read_stored_bytes, place, error)
                             : read_stored_bytes(&file, number, to, bytes, place, error);
    if (rc == STOKER_OK && unverified && !stk_stamp_holds(&dataset->stamps, number))
        rc = stk_stamps_refuse(&dataset->stamps, number, *place, error);
    return rc;
}

/* Read the sample from one of the data set's open files. A verified sample needs no check for a
 * changed file. */
static int bytes_from_file(const stoker_dataset *dataset, const stoker_part *part, void *to,
                           struct stk_place *place, stoker_error *error)
{
    const stoker_extent *extent = &part->extent;
    const bool verifies = part->codec != NULL && part->codec->verify != NULL;
    if (extent->file >= dataset->info.file_count)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, place,
                             "the extent names file %u of %u", extent->file,
                             dataset->info.file_count);
    place->offset = extent->offset;
    return stk_dataset_read_file(dataset, extent->file, to, (size_t)extent->bytes, !verifies, place,
                                 error);
}

/* The folder that an extent's path starts from; without descriptor and storage if there is none. */
static stoker_file folder_of(const stoker_dataset *dataset, const stoker_extent *extent)
{
    stoker_file file = { .fd = -1 };
    if (dataset->info.directory != STOKER_DIRECTORY_OF_FILE)
        file.fd = dataset->info.directory;
    else if (extent->file < dataset->info.file_count &&
             dataset->ops->file(dataset->self, extent->file, &file) != STOKER_OK)
        file = (stoker_file){ .fd = -1 };
    return file;
}

/* Read a file that holds just this sample; `to` has room for one more byte. */
static int bytes_from_path(const stoker_dataset *dataset, const stoker_part *part, void *to,
                           struct stk_place *place, stoker_error *error)
{
    const stoker_extent *extent = &part->extent;
    const bool range = stk_part_is_range(part);
    place->path = extent->path;
    place->offset = range ? extent->offset : STOKER_NO_OFFSET;
    if (!dataset->info.has_paths)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, place,
                             "the data set said that it has no paths");
    const stoker_file folder = folder_of(dataset, extent);
    if (folder.fd == -1 && folder.storage == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, place,
                             "the extent names file %u as its directory, which is none",
                             extent->file);
    const ssize_t got = stk_storage_read_beneath(&folder, extent->path, part->version, to,
                                                 (size_t)extent->bytes + (range ? 0 : 1),
                                                 range ? extent->offset : 0, place, error);
    if (got < 0)
        return (int)got;
    if ((uint64_t)got != extent->bytes && range)
        return stk_error_set(error, STOKER_ETRUNCATED, STOKER_STAGE_READ, place,
                             "%lld of %llu bytes read", (long long)got,
                             (unsigned long long)extent->bytes);
    if ((uint64_t)got != extent->bytes)
        return stk_error_set(error, STOKER_ECHANGED, STOKER_STAGE_READ, place,
                             "the file is %s than the %llu bytes it had",
                             (uint64_t)got > extent->bytes ? "longer" : "shorter",
                             (unsigned long long)extent->bytes);
    return STOKER_OK;
}

/* Check before memory is allocated for them. */
static int check_announced(const stoker_dataset *dataset, const stoker_extent *extent,
                           struct stk_place *place, stoker_error *error)
{
    if (extent->bytes <= dataset->info.encoded_bytes_max)
        return STOKER_OK;
    place->path = extent->path;
    return stk_error_set(error, STOKER_ELIMIT, STOKER_STAGE_READ, place, "%llu bytes, at most %llu",
                         (unsigned long long)extent->bytes,
                         (unsigned long long)dataset->info.encoded_bytes_max);
}

/* `to` has room for one byte more. */
static int bytes_from_storage(const stoker_dataset *dataset, const stoker_part *part, void *to,
                              struct stk_place *place, stoker_error *error)
{
    return part->extent.path != NULL ? bytes_from_path(dataset, part, to, place, error)
                                     : bytes_from_file(dataset, part, to, place, error);
}

/* Read a part from its file and decode it. */
static int part_from_storage(const stoker_dataset *dataset, uint32_t number,
                             const stoker_part *part, uint64_t id, stoker_row *rows,
                             stoker_error *error)
{
    const stoker_extent *extent = &part->extent;
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    int rc = check_announced(dataset, extent, &place, error);
    if (rc != STOKER_OK)
        return rc;
    uint8_t *encoded = stk_calloc((size_t)extent->bytes + 1, 1);
    if (encoded == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, &place, "%llu bytes",
                             (unsigned long long)extent->bytes);
    rc = bytes_from_storage(dataset, part, encoded, &place, error);
    if (rc == STOKER_OK) {
        stoker_encoded in = { .bytes = encoded,
                              .size = extent->bytes,
                              .sample = stk_codec_id(part, id),
                              .tag = part->tag };
        rc = decode_once(dataset, number, part->codec, &in, rows, &place, error);
    }
    stk_free(encoded);
    return rc;
}

static bool is_wanted(const stoker_dataset *dataset, uint32_t part, const stoker_row *rows)
{
    const struct stk_part_fields own = dataset->part_fields[part];
    for (uint32_t i = own.first; i < own.first + own.count; i++)
        if (rows[i].data != NULL)
            return true;
    return false;
}

static int read_part(const stoker_dataset *dataset, uint32_t number, const stoker_part *part,
                     uint64_t id, stoker_row *rows, stoker_error *error)
{
    const stoker_extent *extent = &part->extent;
    if (extent->memory == NULL && extent->bytes > 0)
        return part_from_storage(dataset, number, part, id, rows, error);
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    place.path = extent->memory == NULL ? extent->path : NULL;
    stoker_encoded in = { .bytes = extent->memory,
                          .size = extent->bytes,
                          .sample = stk_codec_id(part, id),
                          .tag = part->tag };
    return decode_once(dataset, number, part->codec, &in, rows, &place, error);
}

/* Give fields that are not wanted, but decoded with one that is, memory of their own. */
static int add_spares(const stoker_dataset *dataset, stoker_row *rows, void **spares)
{
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        const struct stk_field *field = &dataset->fields[i];
        if (rows[i].data != NULL || field->info.part == STOKER_NO_PART ||
            !is_wanted(dataset, field->info.part, rows))
            continue;
        rows[i].data = spares[i] = stk_calloc(1, field->bytes);
        if (spares[i] == NULL)
            return STOKER_ENOMEM;
    }
    return STOKER_OK;
}

static int read_parts(const stoker_dataset *dataset, uint64_t id, stoker_row *rows,
                      stoker_error *error)
{
    stoker_part parts[STOKER_FIELDS_MAX] = { 0 };
    void *spares[STOKER_FIELDS_MAX] = { NULL };
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    int rc = add_spares(dataset, rows, spares);
    if (rc != STOKER_OK)
        (void)stk_error_set(error, rc, STOKER_STAGE_READ, &place, NULL);
    const uint32_t turn = stk_recall_enter(dataset);
    if (rc == STOKER_OK)
        rc = stoker_dataset_locate(dataset, id, parts, error);
    for (uint32_t i = 0; rc == STOKER_OK && i < dataset->info.part_count; i++)
        if (is_wanted(dataset, i, rows))
            rc = read_part(dataset, i, &parts[i], id, rows, error);
    stk_recall_leave(dataset, turn);
    for (uint32_t i = 0; i < dataset->info.field_count; i++)
        stk_free(spares[i]);
    return rc;
}

/* Fields without a part. */
static int read_values(const stoker_dataset *dataset, uint64_t id, stoker_row *rows,
                       stoker_error *error)
{
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        if (dataset->fields[i].info.part != STOKER_NO_PART || rows[i].data == NULL)
            continue;
        const int rc = stk_parts_values(dataset, i, &id, 1, rows[i].data, error);
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}

/* make() fills every field, so those that are not wanted get memory of their own. */
static int make_sample(const stoker_dataset *dataset, uint64_t id, stoker_row *rows,
                       stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    stoker_row all[STOKER_FIELDS_MAX] = { 0 };
    void *spare[STOKER_FIELDS_MAX] = { NULL };
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        all[i] = rows[i];
        all[i].bytes_max = dataset->fields[i].bytes;
        if (rows[i].data == NULL)
            all[i].data = spare[i] = stk_calloc(1, dataset->fields[i].bytes);
        if (all[i].data == NULL)
            rc = STOKER_ENOMEM;
    }
    stoker_rng rng;
    stoker_error said;
    stk_error_clear(&said);
    stoker_rng_init(&rng, 0, 0, id, STK_RNG_OWN(STK_RNG_MAKE));
    const uint32_t turn = stk_recall_enter(dataset);
    if (rc == STOKER_OK)
        rc = dataset->ops->make(dataset->self, id, all, &rng, &said);
    stk_recall_leave(dataset, turn);
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        rows[i].length = all[i].length;
        stk_free(spare[i]);
    }
    if (rc == STOKER_OK)
        return rc;
    rc = rc == STOKER_INTERRUPTED ? STOKER_EINVAL : stk_callback_code(rc, "it", &said);
    return stk_error_set(error, rc, STOKER_STAGE_DECODE, &place, "make(): %s",
                         said.message[0] == '\0' ? stoker_strerror(rc) : said.message);
}

int stoker_dataset_read(const stoker_dataset *dataset, uint64_t id, stoker_row *rows,
                        stoker_error *error)
{
    if (dataset == NULL || rows == NULL || id >= dataset->info.count)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "dataset or rows is NULL, or there is no such sample");
    for (uint32_t i = 0; i < dataset->info.field_count; i++)
        if (rows[i].data != NULL && rows[i].bytes_max < dataset->fields[i].bytes)
            return stk_refuse_option(
                error, STOKER_EINVAL, "field \"%s\" has room for %zu bytes, and needs %zu",
                dataset->fields[i].info.name, rows[i].bytes_max, dataset->fields[i].bytes);
    if (dataset->ops->make != NULL)
        return make_sample(dataset, id, rows, error);
    stoker_row exact[STOKER_FIELDS_MAX] = { { .data = NULL } };
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        exact[i] = rows[i];
        exact[i].bytes_max = dataset->fields[i].bytes;
    }
    int rc = read_parts(dataset, id, exact, error);
    if (rc == STOKER_OK)
        rc = read_values(dataset, id, exact, error);
    for (uint32_t i = 0; rc == STOKER_OK && i < dataset->info.field_count; i++)
        rows[i].length = exact[i].length;
    return rc;
}

/* ---- bytes as stored ------------------------------------------------------------ */

const char *stoker_dataset_stored_as(const stoker_dataset *dataset, uint64_t id)
{
    stoker_part parts[STOKER_FIELDS_MAX] = { 0 };
    if (dataset == NULL || id >= dataset->info.count || dataset->info.part_count == 0)
        return NULL;
    if (dataset->ops->stored_as != NULL)
        return dataset->ops->stored_as(dataset->self, id);
    if (stoker_dataset_locate(dataset, id, parts, NULL) != STOKER_OK)
        return NULL;
    return codec_of(&parts[0])->name;
}

static int read_stored(const stoker_dataset *dataset, uint64_t id, uint32_t part, void *bytes,
                       size_t bytes_max, size_t *size, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    stoker_part parts[STOKER_FIELDS_MAX] = { 0 };
    int rc = stoker_dataset_locate(dataset, id, parts, error);
    if (rc != STOKER_OK)
        return rc;
    const stoker_extent *extent = &parts[part].extent;
    place.sample = id;
    if (bytes_max <= extent->bytes)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "bytes_max is %zu, for %llu bytes and one more", bytes_max,
                             (unsigned long long)extent->bytes);
    if (extent->memory != NULL) {
        memcpy(bytes, extent->memory, extent->bytes);
    } else if (extent->bytes > 0) {
        rc = check_announced(dataset, extent, &place, error);
        if (rc == STOKER_OK)
            rc = bytes_from_storage(dataset, &parts[part], bytes, &place, error);
    }
    if (rc == STOKER_OK)
        *size = extent->bytes;
    return rc;
}

int stoker_dataset_read_stored(const stoker_dataset *dataset, uint64_t id, uint32_t part,
                               void *bytes, size_t bytes_max, size_t *size, stoker_error *error)
{
    const struct stk_place place = STK_NOWHERE;
    if (dataset == NULL || bytes == NULL || size == NULL || part >= dataset->info.part_count)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "dataset, bytes or size is NULL, or there is no such part");
    const uint32_t turn = stk_recall_enter(dataset);
    const int rc = read_stored(dataset, id, part, bytes, bytes_max, size, error);
    stk_recall_leave(dataset, turn);
    return rc;
}
