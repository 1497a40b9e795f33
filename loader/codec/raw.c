/* raw.c - see raw.h. */
#include "loader/codec/raw.h"

#include <string.h>

#include "loader/codec/refuse.h"

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    (void)scratch;
    const stoker_row *row = &out->rows[0];
    if (in->size != row->bytes_max)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes for a row of %zu", in->size,
                          row->bytes_max);
    memcpy(row->data, in->bytes, in->size);
    return STOKER_OK;
}

const stoker_codec stk_codec_raw = {
    .struct_size = sizeof(stoker_codec), .name = "raw", .flags = STOKER_CODEC_ROW, .decode = decode
};
