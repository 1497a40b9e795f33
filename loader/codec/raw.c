/* raw.c - see raw.h. */
#include "loader/codec/raw.h"

#include <stdio.h>
#include <string.h>

static int decode(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error)
{
    (void)self;
    (void)scratch;
    if (in->size != row_bytes) {
        if (error != NULL)
            (void)snprintf(error->message, sizeof(error->message), "%zu bytes for a row of %zu",
                           in->size, row_bytes);
        return STOKER_EFORMAT;
    }
    memcpy(row, in->bytes, row_bytes);
    return STOKER_OK;
}

const stoker_codec stk_codec_raw = { .struct_size = sizeof(stoker_codec),
                                     .name = "raw",
                                     .decode = decode };
