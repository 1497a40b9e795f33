/* jpeg.h - decodes a JPEG file as libjpeg does by default, for the stand-in. */
#ifndef STK_TESTS_STANDIN_NVIMGCODEC_JPEG_H
#define STK_TESTS_STANDIN_NVIMGCODEC_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write height x width x channels bytes to pixels. Returns false if the file is damaged or has
 * another size. */
bool standin_jpeg_decode(const uint8_t *bytes, size_t size, uint32_t height, uint32_t width,
                         uint32_t channels, uint8_t *pixels);

#endif
