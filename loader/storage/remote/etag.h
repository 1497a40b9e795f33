/* etag.h - the version of an object from its ETag, the same from a header and from a list. */
#ifndef STK_REMOTE_ETAG_H
#define STK_REMOTE_ETAG_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/rng.h"

/* A hash of the tag without its quotes, which not all lists have. 0 = no version is known: the tag
 * is empty, or weak. */
static inline uint64_t stk_etag_version(const char *tag, size_t bytes)
{
    if (bytes >= 2 && tag[0] == '"' && tag[bytes - 1] == '"') {
        tag++;
        bytes -= 2;
    } else if (bytes >= 2 && tag[0] == 'W' && tag[1] == '/') {
        return 0;
    }
    uint64_t value = bytes;
    for (size_t i = 0; i < bytes; i++)
        value = stk_mix64(value ^ (uint8_t)tag[i]);
    return bytes == 0 ? 0 : value == 0 ? 1 : value;
}

#endif
