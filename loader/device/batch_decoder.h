/* batch_decoder.h - decodes JPEG files, several at once, by nvImageCodec: to the memory of a GPU,
 * or, by the library's CPU back ends, to host memory.
 *
 *   files in host memory ──▶ code streams ──┐
 *   places for pixels ─────▶ images ────────┴─▶ decode ─▶ wait for the host's part ─▶ a status per image
 *                                                  └─▶ the GPU's part, before what comes next on the stream
 *
 * Decoders of one library may be used by different threads at the same time, a decoder by one.
 */
#ifndef STK_DEVICE_BATCH_DECODER_H
#define STK_DEVICE_BATCH_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/device/nvimgcodec.h"

enum { STK_BATCH_DECODER_IMAGES_MAX = 64, STK_BATCH_DECODER_WHY_BYTES = 192 };

/* The library, and its instance, which all decoders share. */
struct stk_decoding_library {
    struct stk_nvimgcodec calls;
    stk_nvimgcodec_instance instance; /* NULL = not made */
};

/* Load the library and make its instance. Returns 0, or STOKER_EDEVICE with the reason in `why` and
 * nothing to close. */
int stk_decoding_library_open(struct stk_decoding_library *library,
                              char why[STK_BATCH_DECODER_WHY_BYTES]);
void stk_decoding_library_close(struct stk_decoding_library *library); /* all zero is allowed */

/* One file, and where its pixels go: height x width x channels bytes, densely, on the side of the
 * decoder. */
struct stk_batch_file {
    const uint8_t *bytes; /* until the pixels are there */
    size_t size;
    void *pixels;
    uint32_t height, width; /* the file's own size */
    uint32_t channels;      /* 1 = gray, 3 = RGB */
    bool decoded; /* out: false: the library did not decode it, its pixels are undefined */
};

struct stk_batch_decoder {
    const struct stk_decoding_library *library;
    stk_nvimgcodec_decoder decoder;                              /* NULL = not made */
    void *stream;                                                /* the GPU's; NULL = host memory */
    stk_nvimgcodec_stream streams[STK_BATCH_DECODER_IMAGES_MAX]; /* used again and again */
    stk_nvimgcodec_image images[STK_BATCH_DECODER_IMAGES_MAX];
    uint32_t status[STK_BATCH_DECODER_IMAGES_MAX];
};

/* Make a decoder for GPU `device`, which is current in this thread, whose pixels are there for what
 * comes next on `stream`; device < 0 = by the CPU back ends, to host memory. Returns 0, or
 * STOKER_EDEVICE with the reason in `why` and nothing to close. The library must outlive it. */
int stk_batch_decoder_open(struct stk_batch_decoder *decoder,
                           const struct stk_decoding_library *library, int device, void *stream,
                           char why[STK_BATCH_DECODER_WHY_BYTES]);

/* Nothing that it decodes is in progress. All zero is allowed. */
void stk_batch_decoder_close(struct stk_batch_decoder *decoder);

/* Decode files[0..count), 1..STK_BATCH_DECODER_IMAGES_MAX. Returns 0 after the host's part, with
 * files[i].decoded set; or STOKER_EDEVICE with the reason in `why`: a call failed, and the decoder
 * can only be closed. Files must begin as JPEG files do: one of an unknown kind may leave the
 * others undecoded, too. Damage within coded data need not be noticed. */
int stk_batch_decoder_run(struct stk_batch_decoder *decoder, struct stk_batch_file *files,
                          uint32_t count, char why[STK_BATCH_DECODER_WHY_BYTES]);

#endif
