/* read.c - the tokens of a row.
 *
 * Of a document in a raw part just the bytes of the row are read. One that must be decoded, or is
 * made, is read as a whole into memory of its own.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "datasets/views/packed/packed.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/dataset/dataset.h"

/* What a row takes of one document. */
struct slice {
    uint64_t document;
    uint64_t first; /* element of the document */
    uint64_t count; /* elements */
};

static int changed_length(const struct slice *slice, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.sample = slice->document;
    return stk_error_set(error, STOKER_ECHANGED, STOKER_STAGE_DECODE, &place,
                         "packed: the document is shorter than when it was packed");
}

/* ---- a document as a whole ---------------------------------------------------------------- */

static int read_whole(const struct stk_packed *packed, const struct slice *slice, void *to,
                      stoker_error *error)
{
    const size_t bytes = stoker_dataset_field_bytes(packed->documents, packed->source);
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = NULL } };
    struct stk_place place = STK_NOWHERE;
    place.sample = slice->document;
    uint8_t *whole = stk_calloc(bytes, 1);
    if (whole == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_DECODE, &place,
                             "packed: %zu bytes for a document", bytes);
    rows[packed->source] = (stoker_row){ .data = whole, .bytes_max = bytes };
    int rc = stoker_dataset_read(packed->documents, slice->document, rows, error);
    if (rc == STOKER_OK && slice->first + slice->count > rows[packed->source].length)
        rc = changed_length(slice, error);
    if (rc == STOKER_OK)
        memcpy(to, whole + slice->first * packed->stored_bytes,
               slice->count * packed->stored_bytes);
    stk_free(whole);
    return rc;
}

/* ---- a slice of a raw part ------------------------------------------------------------------ */

static int read_from_file(const struct stk_packed *packed, const struct slice *slice,
                          const stoker_extent *extent, void *to, stoker_error *error)
{
    const stoker_dataset *documents = packed->documents;
    struct stk_place place = STK_NOWHERE;
    place.sample = slice->document;
    place.offset = extent->offset + slice->first * packed->stored_bytes;
    return stk_dataset_read_file(documents, extent->file, to, slice->count * packed->stored_bytes,
                                 true, &place, error);
}

static int read_slice(const struct stk_packed *packed, const struct slice *slice, void *to,
                      stoker_error *error)
{
    const stoker_dataset *documents = packed->documents;
    const uint32_t own = documents->fields[packed->source].info.part;
    stoker_part parts[STOKER_FIELDS_MAX] = { { .tag = 0 } };
    if (own == STOKER_NO_PART)
        return read_whole(packed, slice, to, error);
    const int rc = stoker_dataset_locate(documents, slice->document, parts, error);
    if (rc != STOKER_OK)
        return rc;
    const stoker_extent *extent = &parts[own].extent;
    if (parts[own].codec != NULL || (extent->memory == NULL && extent->path != NULL))
        return read_whole(packed, slice, to, error);
    if ((slice->first + slice->count) * packed->stored_bytes > extent->bytes)
        return changed_length(slice, error);
    if (extent->memory == NULL && extent->file < documents->info.file_count)
        return read_from_file(packed, slice, extent, to, error);
    if (extent->memory == NULL)
        return read_whole(packed, slice, to, error);
    memcpy(to, (const uint8_t *)extent->memory + slice->first * packed->stored_bytes,
           slice->count * packed->stored_bytes);
    return STOKER_OK;
}

/* ---- a row ---------------------------------------------------------------------------------- */

/* The slice of a document that item number `item` is. */
static int slice_of(const struct stk_packed *packed, uint64_t item, struct slice *out,
                    stoker_error *error)
{
    const struct stk_packed_rows *rows = &packed->rows;
    const uint64_t row_length = packed->packing.length;
    uint64_t length = 0;
    *out = (struct slice){ .document = rows->document[item] };
    out->first = rows->piece == NULL ? 0 : rows->piece[item] * row_length;
    const int rc = stoker_dataset_lengths(packed->documents, packed->source, &out->document, 1,
                                          &length, error);
    if (rc != STOKER_OK)
        return rc;
    if (length <= out->first)
        return changed_length(out, error);
    out->count = length - out->first < row_length ? length - out->first : row_length;
    return STOKER_OK;
}

int stk_packed_read(const struct stk_packed *packed, uint64_t row, void *tokens, int32_t *starts,
                    stoker_error *error)
{
    const struct stk_packed_rows *rows = &packed->rows;
    const uint64_t begin = rows->first[row];
    const uint64_t end = rows->first[row + 1];
    uint64_t at = 0;
    starts[0] = 0;
    for (uint64_t item = begin; item < end; item++) {
        struct slice slice;
        int rc = slice_of(packed, item, &slice, error);
        if (rc == STOKER_OK && slice.count > packed->packing.length - at)
            rc = changed_length(&slice, error);
        if (rc == STOKER_OK)
            rc = read_slice(packed, &slice, (uint8_t *)tokens + at * packed->stored_bytes, error);
        if (rc != STOKER_OK)
            return rc;
        at += slice.count;
        starts[item - begin + 1] = (int32_t)at;
    }
    return STOKER_OK;
}
