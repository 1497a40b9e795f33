/* npy.c - see npy.h. Version 1.0 of the format: magic number, length of the text, a Python literal,
 * elements. */
#include "datasets/pack/encode/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BEGIN_BYTES = 10, TEXT_BYTES = 400, ALIGNMENT = 64 };

static const char *descr_of(stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_BOOL:
        return "|b1";
    case STOKER_DTYPE_UINT8:
        return "|u1";
    case STOKER_DTYPE_INT8:
        return "|i1";
    case STOKER_DTYPE_UINT16:
        return "<u2";
    case STOKER_DTYPE_INT16:
        return "<i2";
    case STOKER_DTYPE_UINT32:
        return "<u4";
    case STOKER_DTYPE_INT32:
        return "<i4";
    case STOKER_DTYPE_UINT64:
        return "<u8";
    case STOKER_DTYPE_INT64:
        return "<i8";
    case STOKER_DTYPE_FLOAT16:
        return "<f2";
    case STOKER_DTYPE_FLOAT32:
        return "<f4";
    case STOKER_DTYPE_FLOAT64:
        return "<f8";
    default:
        return NULL;
    }
}

bool pack_npy_has(stoker_dtype dtype)
{
    return descr_of(dtype) != NULL;
}

/* Write the literal, padded so that the elements are aligned. Returns its length. */
static size_t write_text(char text[TEXT_BYTES], const struct stk_shard_field *field,
                         uint64_t length)
{
    int used = snprintf(text, TEXT_BYTES, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                        descr_of(field->dtype));
    for (uint32_t axis = 0; axis < field->rank; axis++) {
        const uint64_t count = axis == 0 && field->varies ? length : field->shape[axis];
        const char *behind = axis + 1 < field->rank ? ", " : field->rank == 1 ? "," : "";
        used += snprintf(text + used, (size_t)(TEXT_BYTES - used), "%" PRIu64 "%s", count, behind);
    }
    used += snprintf(text + used, (size_t)(TEXT_BYTES - used), "), }");
    while ((BEGIN_BYTES + used + 1) % ALIGNMENT != 0)
        text[used++] = ' ';
    text[used++] = '\n';
    return (size_t)used;
}

const char *pack_npy(const struct stk_shard_field *field, uint64_t length, struct pack_piece *piece)
{
    char text[TEXT_BYTES];
    const size_t text_bytes = write_text(text, field, length);
    const uint8_t begin[BEGIN_BYTES] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)text_bytes, (uint8_t)(text_bytes >> 8)
    };
    struct pack_room *room = &piece->room;
    if (!pack_room_for(room, sizeof(begin) + text_bytes + piece->size))
        return "out of memory";
    memcpy(room->at, begin, sizeof(begin));
    memcpy(room->at + sizeof(begin), text, text_bytes);
    if (piece->size > 0)
        memcpy(room->at + sizeof(begin) + text_bytes, piece->bytes, piece->size);
    room->used = sizeof(begin) + text_bytes + piece->size;
    piece->bytes = room->at;
    piece->size = room->used;
    return NULL;
}
