/* sample.c - see sample.h. */
#include "datasets/npy/sample.h"

#include <string.h>

#include "loader/codec/big_endian.h"
#include "loader/codec/refuse.h"

static bool same_kind(const struct stk_npy_shape *a, const struct stk_npy_shape *b)
{
    bool same = a->dtype == b->dtype && a->big_endian == b->big_endian && a->rank == b->rank;
    for (uint32_t axis = 1; same && axis < a->rank; axis++)
        same = a->lengths[axis] == b->lengths[axis];
    return same;
}

/* The shape of one array. */
static struct stk_npy_shape shape_of(const struct stk_npy_header *header)
{
    struct stk_npy_shape shape = { .seen = true,
                                   .dtype = stk_npy_dtype(header),
                                   .big_endian = header->big_endian,
                                   .rank = header->rank,
                                   .row_bytes = header->row_bytes };
    memcpy(shape.lengths, header->lengths, sizeof(shape.lengths));
    if (header->rank == 0)
        shape.lengths[0] = 1;
    shape.shortest = shape.lengths[0];
    return shape;
}

bool stk_npy_shape_merge(struct stk_npy_shape *shape, const struct stk_npy_shape *more)
{
    if (!more->seen)
        return true;
    if (!shape->seen)
        *shape = *more;
    if (!same_kind(shape, more))
        return false;
    shape->lengths[0] = more->lengths[0] > shape->lengths[0] ? more->lengths[0] : shape->lengths[0];
    shape->shortest = more->shortest < shape->shortest ? more->shortest : shape->shortest;
    return true;
}

bool stk_npy_shape_add(struct stk_npy_shape *shape, const struct stk_npy_header *header)
{
    const struct stk_npy_shape one = shape_of(header);
    return stk_npy_shape_merge(shape, &one);
}

/* An array without axes has no length that could vary. */
static bool varies(const struct stk_npy_shape *shape)
{
    return shape->rank > 0 && (shape->shortest != shape->lengths[0] || shape->lengths[0] == 0);
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
    out->varies = varies(shape);
    if (out->shape[0] == 0)
        out->shape[0] = 1; /* no sample has an entry */
}

/* ---- the codec ------------------------------------------------------------------ */

/* Copy elements, in the machine's byte order. A field that does not vary has the length of all. */
static int take_elements(const struct stk_npy_shape *shape, const uint8_t *bytes, size_t size,
                         stoker_row *row, stoker_error *error)
{
    if (size > row->bytes_max || size % shape->row_bytes != 0)
        return stk_refuse(error, STOKER_EFORMAT, "the array is longer than those found at open");
    row->length = shape->rank == 0 ? 1 : size / shape->row_bytes;
    if (!varies(shape) && row->length != shape->lengths[0])
        return stk_refuse(error, STOKER_EFORMAT,
                          "the array has another length than those found at open");
    if (size == 0)
        return STOKER_OK;
    if (shape->big_endian)
        stk_big_endian_read(row->data, bytes, size, stoker_dtype_bytes(shape->dtype));
    else
        memcpy(row->data, bytes, size);
    return STOKER_OK;
}

static int decode_elements(const void *self, void *scratch, const stoker_encoded *in,
                           const stoker_decoded *out, stoker_error *error)
{
    (void)scratch;
    return take_elements(self, in->bytes, in->size, &out->rows[0], error);
}

static int decode_file(const void *self, void *scratch, const stoker_encoded *in,
                       const stoker_decoded *out, stoker_error *error)
{
    (void)scratch;
    const struct stk_npy_shape *shape = self;
    struct stk_npy_header header = { 0 };
    stoker_error said = { .message = "" };
    const int rc = stk_npy_parse_sample(&header, in->bytes, in->size, in->size, NULL, &said);
    if (rc != STOKER_OK)
        return stk_refuse(error, rc, "%s", said.message);
    const struct stk_npy_shape one = shape_of(&header);
    if (!same_kind(shape, &one))
        return stk_refuse(error, STOKER_EFORMAT,
                          "the array has another type or shape than those found at open");
    return take_elements(shape, in->bytes + header.header_bytes, in->size - header.header_bytes,
                         &out->rows[0], error);
}

stoker_codec stk_npy_sample_codec(const struct stk_npy_shape *shape)
{
    return (stoker_codec){ .struct_size = sizeof(stoker_codec),
                           .name = "npy",
                           .self = shape,
                           .flags = STOKER_CODEC_FIELDS,
                           .decode = decode_file };
}

stoker_codec stk_npy_elements_codec(const struct stk_npy_shape *shape)
{
    return (stoker_codec){ .struct_size = sizeof(stoker_codec),
                           .name = "big-endian",
                           .self = shape,
                           .flags = STOKER_CODEC_FIELDS,
                           .decode = decode_elements };
}
