/* big_endian.c - see big_endian.h.
 *
 * The loops load and store with memcpy because rows are unaligned; compilers turn them into vector
 * byte shuffles.
 */
#include "loader/codec/big_endian.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "loader/codec/refuse.h"

#define CONVERT(BITS)                                                                              \
    for (size_t at = 0; at < size; at += sizeof(uint##BITS##_t)) {                                 \
        uint##BITS##_t element;                                                                    \
        memcpy(&element, from + at, sizeof(element));                                              \
        element = be##BITS##toh(element);                                                          \
        memcpy((uint8_t *)to + at, &element, sizeof(element));                                     \
    }

void stk_big_endian_read(void *to, const uint8_t *from, size_t size, size_t element_bytes)
{
    assert(size % element_bytes == 0);
    if (element_bytes == 2) {
        CONVERT(16)
    } else if (element_bytes == 4) {
        CONVERT(32)
    } else {
        assert(element_bytes == 8);
        CONVERT(64)
    }
}

static const size_t two = 2, four = 4, eight = 8;

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    const size_t element_bytes = *(const size_t *)self;
    const stoker_row *row = &out->rows[0];
    (void)scratch;
    if (in->size != row->bytes_max || in->size % element_bytes != 0)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes of %zu-byte elements for a row of %zu",
                          in->size, element_bytes, row->bytes_max);
    stk_big_endian_read(row->data, in->bytes, in->size, element_bytes);
    return STOKER_OK;
}

#define CODEC(width, title)                                                                        \
    {                                                                                              \
        .struct_size = sizeof(stoker_codec), .name = (title), .self = &(width), .decode = decode   \
    }

const stoker_codec stk_codec_be16 = CODEC(two, "be16");
const stoker_codec stk_codec_be32 = CODEC(four, "be32");
const stoker_codec stk_codec_be64 = CODEC(eight, "be64");

const stoker_codec *stk_codec_big_endian(size_t element_bytes)
{
    switch (element_bytes) {
    case 2:
        return &stk_codec_be16;
    case 4:
        return &stk_codec_be32;
    case 8:
        return &stk_codec_be64;
    default:
        assert(element_bytes == 1);
        return NULL;
    }
}
