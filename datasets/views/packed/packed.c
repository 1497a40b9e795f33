/* packed.c - see packed.h. */
#include "datasets/views/packed/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "datasets/views/packed/fit.h"
#include "datasets/views/view.h"
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "loader/dataset/dataset.h"

/* ---- callbacks
 * -------------------------------------------------------------------------------- */

/* The files are named so that a loader notices when they change. */
static int describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_packed *packed = self;
    const stoker_packing *packing = &packed->packing;
    const stoker_dataset_info *inner = &packed->documents->info;
    uint64_t key = stk_view_mix(7, stoker_dataset_fingerprint(packed->documents));
    const uint64_t words[] = { packing->length,
                               packing->block,
                               packing->long_documents,
                               packing->fields,
                               packed->dtype,
                               (uint64_t)packing->padding,
                               (uint64_t)packing->ignored,
                               packed->source };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        key = stk_view_mix(key, words[i]);
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = packed->rows.row_count,
                                  .field_count = packed->field_count,
                                  .file_count = inner->file_count,
                                  .encoded_bytes_max = inner->encoded_bytes_max,
                                  .fingerprint = key,
                                  .description = packed->description };
    return STOKER_OK;
}

static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct stk_packed *packed = self;
    stk_packed_describe_field(packed, packed->bits[field], out);
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const stoker_dataset *documents = ((const struct stk_packed *)self)->documents;
    return documents->ops->file(documents->self, file, out);
}

static int lengths(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                   uint64_t *out)
{
    const struct stk_packed_rows *rows = &((const struct stk_packed *)self)->rows;
    (void)field; /* cu_seqlens alone varies */
    for (uint32_t i = 0; i < count; i++)
        out[i] = rows->first[ids[i] + 1] - rows->first[ids[i]] + 1;
    return STOKER_OK;
}

static int make_packed_row(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                           stoker_error *error)
{
    (void)rng;
    const struct stk_packed *packed = self;
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    const uint64_t length = packed->packing.length;
    const uint32_t count = (uint32_t)(packed->rows.first[id + 1] - packed->rows.first[id]);
    const size_t start_bytes = (count + UINT64_C(1)) * sizeof(int32_t);
    uint8_t *scratch = stk_calloc(1, length * packed->stored_bytes + start_bytes + sizeof(int64_t));
    if (scratch == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_DECODE, &place, "packed: a row");
    /* The tokens come first: they may have 8 bytes. */
    const size_t starts_at = (length * packed->stored_bytes + 7) / 8 * 8;
    int32_t *starts = (int32_t *)(void *)(scratch + starts_at);
    int rc = stk_packed_read(packed, id, scratch, starts, error);
    if (rc == STOKER_OK) {
        stk_packed_pad(packed, scratch, (uint64_t)starts[count]);
        rc = stk_packed_fill(packed, scratch, starts, count, rows, error);
    }
    stk_free(scratch);
    return rc;
}

static void destroy(void *self)
{
    struct stk_packed *packed = self;
    stk_packed_rows_free(&packed->rows);
    stoker_dataset_close(&packed->documents);
    stk_free(packed);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "packed",
                                        .describe = describe,
                                        .field = field_of,
                                        .make = make_packed_row,
                                        .file = file_of,
                                        .destroy = destroy,
                                        .lengths = lengths };

/* ---- checks
 * ----------------------------------------------------------------------------------- */

static int find_source(struct stk_packed *packed, const struct stk_view_making *making)
{
    const char *wanted = packed->packing.field;
    int32_t found =
        stoker_dataset_find_field(packed->documents, wanted == NULL ? "tokens" : wanted);
    if (found < 0 && wanted != NULL)
        return stk_view_refuse(making, STOKER_EINVAL, "the data set has no field \"%.63s\"",
                               wanted);
    packed->source = found < 0 ? 0 : (uint32_t)found;
    const stoker_field_info *field = stoker_dataset_field(packed->documents, packed->source);
    packed->stored = field->dtype;
    packed->stored_bytes = stoker_dtype_bytes(field->dtype);
    if (field->rank != 1 || !field->varies || !stk_packed_is_token(field->dtype))
        return stk_view_refuse(making, STOKER_ETYPE,
                               "field \"%s\" is not integers on one axis that varies, as "
                               "documents are",
                               field->name);
    return STOKER_OK;
}

static int check_values(const struct stk_packed *packed, const struct stk_view_making *making)
{
    const stoker_packing *packing = &packed->packing;
    const bool widened =
        packing->dtype == STOKER_DTYPE_INT32 || packing->dtype == STOKER_DTYPE_INT64;
    if (packing->dtype != STOKER_DTYPE_NONE && packing->dtype != packed->stored && !widened)
        return stk_view_refuse(making, STOKER_ETYPE, "tokens become int32 or int64, not %s",
                               stoker_dtype_name(packing->dtype));
    if (!stk_packed_fits(packed->dtype, packing->padding) ||
        !stk_packed_fits(packed->stored, packing->padding))
        return stk_view_refuse(
            making, STOKER_EINVAL, "padding %" PRId64 " does not fit %s, stored as %s",
            packing->padding, stoker_dtype_name(packed->dtype), stoker_dtype_name(packed->stored));
    if ((packing->fields & STOKER_PACKED_TARGETS) != 0 &&
        !stk_packed_fits(packed->dtype, packing->ignored))
        return stk_view_refuse(making, STOKER_EINVAL,
                               "targets are %s, which has no %" PRId64
                               " for what is ignored: use int32 or int64 (dtype=int32)",
                               stoker_dtype_name(packed->dtype), packing->ignored);
    return STOKER_OK;
}

static int check_packing(const stoker_packing *packing, const struct stk_view_making *making)
{
    const uint32_t known = (1U << STK_PACKED_FIELDS) - 1;
    const uint32_t needed = STOKER_PACKED_TOKENS | STOKER_PACKED_INPUTS;
    if (packing->length < 1 || packing->length > STK_FIT_LENGTH_MAX)
        return stk_view_refuse(making, STOKER_EINVAL, "length is %" PRIu64 ", but must be 1..%u",
                               packing->length, STK_FIT_LENGTH_MAX);
    if (packing->block > STK_PACKED_DOCUMENTS_MAX)
        return stk_view_refuse(making, STOKER_EINVAL,
                               "block is %" PRIu64 ", but must be 0..2^32 - 1", packing->block);
    if ((unsigned)packing->long_documents > STOKER_PACKING_LONG_CROP)
        return stk_view_refuse(making, STOKER_EINVAL,
                               "long_documents %d is not REFUSE, SPLIT or CROP",
                               (int)packing->long_documents);
    if ((packing->fields & needed) == 0 || (packing->fields & ~known) != 0)
        return stk_view_refuse(making, STOKER_EINVAL,
                               "fields 0x%x: needed are tokens or inputs, known is 0x%x",
                               packing->fields, known);
    return STOKER_OK;
}

/* ---- life
 * --------------------------------------------------------------------------------------- */

static const char *long_text(stoker_long_documents how)
{
    return how == STOKER_PACKING_LONG_CROP ? "cropped" : "split";
}

/* "1000000 documents packed into 312345 rows of 2048, 0.42 % padding, 17 longer ones split" */
static void write_description(struct stk_packed *packed)
{
    const struct stk_packed_rows *rows = &packed->rows;
    const double room = (double)rows->row_count * (double)packed->packing.length;
    const double padding = 100.0 * (1.0 - (double)rows->tokens / room);
    int used = snprintf(
        packed->description, sizeof(packed->description),
        "%" PRIu64 " documents packed into %" PRIu64 " rows of %" PRIu64 ", %.2f %% padding",
        packed->documents->info.count, rows->row_count, packed->packing.length, padding);
    if (rows->long_count > 0)
        used += snprintf(packed->description + used, sizeof(packed->description) - (size_t)used,
                         ", %" PRIu64 " longer ones %s", rows->long_count,
                         long_text(packed->packing.long_documents));
    if (rows->empty_count > 0)
        (void)snprintf(packed->description + used, sizeof(packed->description) - (size_t)used,
                       ", %" PRIu64 " empty", rows->empty_count);
}

static void list_fields(struct stk_packed *packed)
{
    for (uint32_t bit = 1; bit < 1U << STK_PACKED_FIELDS; bit <<= 1)
        if ((packed->packing.fields & bit) != 0)
            packed->bits[packed->field_count++] = bit;
}

static int pack(struct stk_packed *packed, const struct stk_view_making *making)
{
    stoker_packing *packing = &packed->packing;
    const uint64_t count = packed->documents->info.count;
    int rc = check_packing(packing, making);
    if (rc == STOKER_OK && packed->documents->mix != NULL)
        rc = stk_view_refuse(making, STOKER_ENOTSUP,
                             "the data set is a mix, whose shares packing would not keep: mix "
                             "packed rows instead");
    if (rc == STOKER_OK)
        rc = find_source(packed, making);
    if (rc != STOKER_OK)
        return rc;
    packed->dtype = packing->dtype == STOKER_DTYPE_NONE ? packed->stored : packing->dtype;
    rc = check_values(packed, making);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_packed_task task = {
        .documents = packed->documents,
        .field = packed->source,
        .row_length = (uint32_t)packing->length,
        .block = packing->block == 0 || packing->block > count ? count : packing->block,
        .long_documents = packing->long_documents,
    };
    packing->block = task.block;
    packing->field = NULL; /* the caller may free it */
    rc = stk_packed_rows_make(&packed->rows, &task, making->error);
    for (uint64_t row = 0; rc == STOKER_OK && row < packed->rows.row_count; row++) {
        const uint64_t documents = packed->rows.first[row + 1] - packed->rows.first[row];
        if (documents > packed->row_documents_max)
            packed->row_documents_max = (uint32_t)documents;
    }
    list_fields(packed);
    return rc;
}

/* What changed between the opening of the documents and now has changed for the rows, too. */
static void keep_stamps(stoker_dataset *dataset, const struct stk_packed *packed)
{
    const struct stk_stamps *stamps = &packed->documents->stamps;
    for (uint32_t file = 0; file < stamps->count; file++)
        dataset->stamps.each[file] = stamps->each[file];
}

int stoker_dataset_pack(stoker_dataset **out, stoker_dataset *documents,
                        const stoker_packing *given, stoker_error *error)
{
    const struct stk_view_making making = { .name = "packed", .error = error };
    if (out == NULL || documents == NULL || given == NULL)
        return stk_view_refuse(&making, STOKER_EINVAL, "out, documents or packing is NULL");
    if (!stk_struct_fits(given, STK_SIZE_UP_TO(stoker_packing, field), sizeof(*given)))
        return stk_view_refuse(&making, STOKER_EINVAL, STK_STRUCT_REFUSAL, "stoker_packing",
                               given->struct_size, sizeof(*given), "STOKER_PACKING_INIT");
    struct stk_packed *packed = stk_calloc(1, sizeof(*packed));
    if (packed == NULL)
        return stk_view_refuse(&making, STOKER_ENOMEM, "the view");
    stk_struct_read(&packed->packing, sizeof(packed->packing), given, given->struct_size);
    packed->documents = stoker_dataset_share(documents);
    stoker_dataset *made = NULL;
    int rc = pack(packed, &making);
    if (rc == STOKER_OK) {
        write_description(packed);
        rc = stoker_dataset_create(&made, &ops, packed, error);
    }
    if (rc != STOKER_OK) {
        destroy(packed);
        return rc;
    }
    made->cheap_rows = packed->documents->cheap_rows;
    made->recalls = packed->documents->recalls;
    keep_stamps(made, packed);
    *out = made;
    return STOKER_OK;
}
