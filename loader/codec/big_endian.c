/* big_endian.c - see big_endian.h.
 *
 * The loops load and store with memcpy because rows are unaligned; compilers turn them into vector
 * byte shuffles.
 */
#include "loader/codec/big_endian.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

static int check_size(const stoker_encoded *in, size_t row_bytes, size_t element_bytes,
                      stoker_error *error)
{
    if (in->size == row_bytes && row_bytes % element_bytes == 0)
        return STOKER_OK;
    if (error != NULL)
        (void)snprintf(error->message, sizeof(error->message),
                       "%zu bytes of %zu-byte elements for a row of %zu", in->size, element_bytes,
                       row_bytes);
    return STOKER_EFORMAT;
}

/* One decode function per element size; BITS is 16, 32 or 64. */
#define DEFINE_DECODE(BITS)                                                                        \
    static int decode_##BITS(const void *self, void *scratch, const stoker_encoded *in, void *row, \
                             size_t row_bytes, stoker_error *error)                                \
    {                                                                                              \
        (void)self;                                                                                \
        (void)scratch;                                                                             \
        const size_t step = sizeof(uint##BITS##_t);                                                \
        int rc = check_size(in, row_bytes, step, error);                                           \
        if (rc != STOKER_OK)                                                                       \
            return rc;                                                                             \
        for (size_t at = 0; at < row_bytes; at += step) {                                          \
            uint##BITS##_t element;                                                                \
            memcpy(&element, in->bytes + at, step);                                                \
            element = be##BITS##toh(element);                                                      \
            memcpy((uint8_t *)row + at, &element, step);                                           \
        }                                                                                          \
        return STOKER_OK;                                                                          \
    }                                                                                              \
    const stoker_codec stk_codec_be##BITS = { .struct_size = sizeof(stoker_codec),                 \
                                              .name = "be" #BITS,                                  \
                                              .decode = decode_##BITS };

DEFINE_DECODE(16)
DEFINE_DECODE(32)
DEFINE_DECODE(64)

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
