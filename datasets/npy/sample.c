/* sample.c - see sample.h. */
#include "datasets/npy/sample.h"

#include <stdio.h>
#include <string.h>

static bool same_kind(const struct stk_npy_shape *shape, const struct stk_npy_header *header)
{
    bool same = shape->dtype == stk_npy_dtype(header) && shape->rank == header->rank;
    for (uint32_t axis = 1; same && axis < header->rank; axis++)
        same = shape->lengths[axis] == header->lengths[axis];
    return same;
}

bool stk_npy_shape_add(struct stk_npy_shape *shape, const struct stk_npy_header *header)
{
    const uint64_t entries = header->rank == 0 ? 1 : header->lengths[0];
    if (!shape->seen) {
        *shape = (struct stk_npy_shape){ .seen = true,
                                         .dtype = stk_npy_dtype(header),
                                         .rank = header->rank,
                                         .row_bytes = header->row_bytes,
                                         .shortest = entries };
        memcpy(shape->lengths, header->lengths, sizeof(shape->lengths));
    }
    if (!same_kind(shape, header))
        return false;
    shape->lengths[0] = entries > shape->lengths[0] ? entries : shape->lengths[0];
    shape->shortest = entries < shape->shortest ? entries : shape->shortest;
    return true;
}

void stk_npy_shape_describe(const struct stk_npy_shape *shape, stoker_field_info *out)
{
    out->dtype = shape->dtype;
    out->rank = shape->rank;
    memcpy(out->shape, shape->lengths, sizeof(out->shape));
    if (shape->rank == 0) {
        out->shape[0] = 0;
        return;
    }
    out->varies = shape->shortest != shape->lengths[0] || shape->lengths[0] == 0;
    if (out->shape[0] == 0)
        out->shape[0] = 1; /* no sample has an entry */
}

/* ---- the codec ------------------------------------------------------------------ */

static int refuse(stoker_error *error, int code, const char *what)
{
    if (error != NULL)
        (void)snprintf(error->message, sizeof(error->message), "%s", what);
    return code;
}

static int decode_fields(const void *self, void *scratch, const stoker_encoded *in,
                         stoker_row *rows, uint32_t count, stoker_error *error)
{
    (void)scratch;
    (void)count;
    const struct stk_npy_shape *shape = self;
    struct stk_npy_header header = { 0 };
    stoker_error said = { .message = "" };
    const int rc = stk_npy_parse_sample(&header, in->bytes, in->size, in->size, NULL, &said);
    if (rc != STOKER_OK)
        return refuse(error, rc, said.message);
    const uint64_t entries = header.rank == 0 ? 1 : header.lengths[0];
    const size_t bytes = in->size - header.header_bytes;
    if (!same_kind(shape, &header) || header.big_endian || bytes > rows[0].bytes_max)
        return refuse(error, STOKER_EFORMAT,
                      "the array has another type or shape than those found at open");
    if (bytes > 0)
        memcpy(rows[0].data, in->bytes + header.header_bytes, bytes);
    rows[0].length = entries;
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error)
{
    const struct stk_npy_shape *shape = self;
    stoker_row whole = { .data = row, .bytes_max = row_bytes };
    const int rc = decode_fields(self, scratch, in, &whole, 1, error);
    if (rc == STOKER_OK && shape->rank > 0 && whole.length != shape->lengths[0])
        return refuse(error, STOKER_EFORMAT,
                      "the array has another length than those found at open");
    return rc;
}

stoker_codec stk_npy_sample_codec(const struct stk_npy_shape *shape)
{
    return (stoker_codec){ .struct_size = sizeof(stoker_codec),
                           .name = "npy",
                           .self = shape,
                           .decode = decode,
                           .decode_fields = decode_fields };
}
