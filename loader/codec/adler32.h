/* adler32.h - the checksum of a zlib stream (RFC 1950). */
#ifndef STK_CODEC_ADLER32_H
#define STK_CODEC_ADLER32_H

#include <stddef.h>
#include <stdint.h>

/* Of all bytes; 1 if there are none. */
uint32_t stk_adler32(const uint8_t *bytes, size_t size);

#endif
