/* gzip.h - unpack a gzip file into memory. */
#ifndef STK_DATASETS_GZIP_H
#define STK_DATASETS_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "datasets/source.h"
#include "loader/base/memory/memory.h"

/* Returns true if the bytes start like a gzip file. */
static inline bool stk_gzip_magic(const uint8_t *bytes, size_t size)
{
    return size >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

/* Unpack all members of the file into *out, which the caller unmaps; the first *out_bytes are the
 * contents, at most max_bytes (STOKER_ELIMIT). On failure *out is untouched.
 * Errors: STOKER_ETRUNCATED, STOKER_ECORRUPT with the offset of the member;
 * STOKER_ENOTSUP in a build without libdeflate. */
int stk_gzip_unpack(const struct stk_source *source, uint64_t max_bytes, struct stk_region *out,
                    size_t *out_bytes, stoker_error *error);

#endif
