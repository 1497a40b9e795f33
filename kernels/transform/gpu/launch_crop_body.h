/* launch_crop_body.h - the work of the crops on a GPU, for nvcc, and in C for their grids.
 *
 *   sample k ─▶ view: what the output shows of it           one thread draws it for a block's part of the sample
 *   pack i of adjacent pixels of a line ─▶ bytes ─▶ converted ─▶ 32-bit words ─▶ chunks of 4, 8 or 16 bytes, stored at once
 *
 * A pack has as many pixels as make 16 bytes of output, or four if a pixel has three channels or
 * the channels are planes; four or one if that does not divide the output's width. It lies in one
 * line, and all its chunks are aligned.
 */
#ifndef STK_KERNELS_TRANSFORM_LAUNCH_CROP_BODY_H
#define STK_KERNELS_TRANSFORM_LAUNCH_CROP_BODY_H

#include "kernels/transform/gpu/launch_body.h"

enum stk_store_type { STK_STORE_F32, STK_STORE_F16, STK_STORE_BF16, STK_STORE_U8 };

enum {
    STK_CROP_PACK_MAX = 16,    /* pixels */
    STK_CROP_WORDS_MAX = 16,   /* 32-bit words of a pack's output */
    STK_CROP_SAMPLES_SHIFT = 3 /* a block has up to 2^3 samples */
};

#ifdef __CUDACC__
typedef uint32_t stk_crop_word;
#else
typedef uint32_t __attribute__((may_alias)) stk_crop_word;
#endif

/* What the output shows of a sample. Output pixel y, x is at source + first + y x line_bytes + x x
 * step if it is inside [top, bottom) x [left, right) and not in the cutout; else it is fill. */
struct stk_crop_view {
    const uint8_t *source;
    int64_t first; /* bytes; < 0 if the output begins beside the source */
    int32_t line_bytes, step;
    uint32_t top, bottom, left, right;
    uint32_t cut_top, cut_bottom, cut_left, cut_right;
};

STK_RNG uint32_t stk_crop_element_bytes(const int type)
{
    return type == STK_STORE_F32 ? 4 : type == STK_STORE_U8 ? 1 : 2;
}

/* ---- packs ---------------------------------------------------------------------- */

/* Pixels of the largest pack. */
STK_RNG uint32_t stk_crop_pack_most(const int type, const int planes, const uint32_t channels)
{
    const uint32_t whole = 16 / stk_crop_element_bytes(type);
    return channels == 1 ? whole : planes || channels == 3 ? 4 : whole >> channels / 2;
}

/* Pixels of a pack of this launch; 0 = a thread makes one pixel and stores its elements one by
 * one. */
STK_RNG uint32_t stk_crop_pack(const struct stk_crop_launch *launch, const int type,
                               const int planes)
{
    const uint32_t width = launch->batch.framing.out_width;
    const uint32_t most = stk_crop_pack_most(type, planes, launch->batch.channels);
    return (width & (most - 1)) == 0 ? most : most > 4 && width % 4 == 0 ? 4 : 0;
}

/* Packs of a sample. */
STK_RNG uint32_t stk_crop_packs(const struct stk_crop_launch *launch, uint32_t pack)
{
    const uint32_t pixels = launch->batch.framing.out_height * launch->batch.framing.out_width;
    const uint32_t shift = pack == 16 ? 4 : pack == 8 ? 3 : pack == 4 ? 2 : pack == 2 ? 1 : 0;
    return pixels >> shift;
}

/* Returns log2 of the samples that a block makes, each with at least 32 threads: several if a
 * sample has few packs. */
STK_RNG uint32_t stk_crop_samples_shift(uint32_t packs)
{
    return packs <= STK_LAUNCH_THREADS / 8   ? 3
           : packs <= STK_LAUNCH_THREADS / 4 ? 2
           : packs <= STK_LAUNCH_THREADS / 2 ? 1
                                             : 0;
}

/* ---- views ---------------------------------------------------------------------- */

STK_RNG void stk_crop_view_of(const struct stk_launch_batch *batch, const struct stk_frame *frame,
                              uint32_t k, struct stk_crop_view *crop)
{
    const struct stk_view view = stk_view_of(&batch->framing, frame);
    const int32_t out_width = (int32_t)batch->framing.out_width;
    const int32_t channels = (int32_t)batch->channels;
    const uint32_t left = (uint32_t)(view.left - frame->x);
    const uint32_t right = left + (uint32_t)view.width;
    int64_t y = frame->y - view.top, x = frame->x - view.left, width = out_width;
    if (batch->taps == 0) {
        y = (int64_t)frame->top + frame->y;
        x = (int64_t)frame->left + frame->x;
        width = stk_launch_width(batch, k);
        crop->source = stk_launch_image(batch, k);
    } else {
        crop->source = stk_launch_resized(batch, k);
    }
    const bool flip = frame->flip != 0;
    crop->first = (y * width + x + (flip ? out_width - 1 : 0)) * channels;
    crop->line_bytes = (int32_t)width * channels;
    crop->step = flip ? -channels : channels;
    crop->top = (uint32_t)(view.top - frame->y);
    crop->bottom = crop->top + (uint32_t)view.height;
    crop->left = flip ? (uint32_t)out_width - right : left;
    crop->right = flip ? (uint32_t)out_width - left : right;
    crop->cut_top = frame->cut_top;
    crop->cut_bottom = frame->cut_bottom;
    crop->cut_left = frame->cut_left;
    crop->cut_right = frame->cut_right;
}

STK_RNG void stk_crop_draw(const struct stk_launch_batch *batch, uint32_t k,
                           struct stk_crop_view *crop)
{
    struct stk_frame frame;
    stk_launch_draw(batch, k, &frame);
    stk_crop_view_of(batch, &frame, k, crop);
}

/* ---- a pack --------------------------------------------------------------------- */

STK_RNG uint32_t stk_crop_half(const int type, float value)
{
    uint16_t half;
    if (type == STK_STORE_F16)
        stk_store_f16(&half, value);
    else
        stk_store_bf16(&half, value);
    return half;
}

/* Converts a byte; returns the element's bits. */
STK_RNG uint32_t stk_crop_element(const struct stk_crop_launch *launch, const int type,
                                  const uint32_t channel, uint32_t byte)
{
    if (type == STK_STORE_U8)
        return byte;
    const float value = fmaf((float)byte, launch->factor[channel], launch->bias[channel]);
    return type == STK_STORE_F32 ? stk_float_bits(value) : stk_crop_half(type, value);
}

/* Converts byte `channel` of pixel `number` of a pack and puts it into the words, which begin as
 * zeros. */
STK_RNG void stk_crop_put(const struct stk_crop_launch *launch, const int type, const int planes,
                          const uint32_t channels, const uint32_t pack, const uint32_t number,
                          const uint32_t channel, uint32_t byte, uint32_t *words)
{
    const uint32_t at = planes ? channel * pack + number : number * channels + channel;
    const uint32_t bit = 8 * at * stk_crop_element_bytes(type);
    words[bit / 32] |= stk_crop_element(launch, type, channel, byte) << bit % 32;
}

/* All pixels of the pack are shown, lie side by side, and begin at a multiple of four bytes. */
STK_RNG void stk_crop_take_words(const struct stk_crop_launch *launch, const uint8_t *from,
                                 const int type, const int planes, const uint32_t channels,
                                 const uint32_t pack, uint32_t *words)
{
    STK_UNROLL
    for (uint32_t i = 0; i < pack * channels / 4; i++) {
        const uint32_t word = ((const stk_crop_word *)(const void *)from)[i];
        STK_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            stk_crop_put(launch, type, planes, channels, pack, (4 * i + k) / channels,
                         (4 * i + k) % channels, word >> 8 * k & 255, words);
    }
}

STK_RNG void stk_crop_take_bytes(const struct stk_crop_launch *launch,
                                 const struct stk_crop_view *view, const uint8_t *from,
                                 const bool line_is_shown, const bool line_is_cut, uint32_t x,
                                 const int type, const int planes, const uint32_t channels,
                                 const uint32_t pack, uint32_t *words)
{
    STK_UNROLL
    for (uint32_t number = 0; number < pack; number++, x++, from += view->step) {
        const bool is_cut = line_is_cut && x >= view->cut_left && x < view->cut_right;
        const bool is_shown = line_is_shown && x >= view->left && x < view->right && !is_cut;
        STK_UNROLL
        for (uint32_t channel = 0; channel < channels; channel++)
            stk_crop_put(launch, type, planes, channels, pack, number, channel,
                         is_shown ? from[channel] : launch->fill[channel], words);
    }
}

/* Makes a pack: `pack` pixels of line y from x on, in words, which have pack x channels
 * elements. */
STK_RNG void stk_crop_make(const struct stk_crop_launch *launch, const struct stk_crop_view *view,
                           uint32_t y, uint32_t x, const int type, const int planes,
                           const uint32_t channels, const uint32_t pack, uint32_t *words)
{
    const bool line_is_shown = y >= view->top && y < view->bottom;
    const bool line_is_cut = y >= view->cut_top && y < view->cut_bottom;
    const uint8_t *from =
        view->source + (view->first + (int64_t)y * view->line_bytes + (int64_t)x * view->step);
    STK_UNROLL
    for (uint32_t i = 0; i < (pack * channels * stk_crop_element_bytes(type) + 3) / 4; i++)
        words[i] = 0;
    const bool is_whole = line_is_shown && x >= view->left && x + pack <= view->right &&
                          !(line_is_cut && x < view->cut_right && x + pack > view->cut_left);
    if (pack * channels % 4 == 0 && is_whole && view->step == (int32_t)channels &&
        (uintptr_t)from % 4 == 0)
        stk_crop_take_words(launch, from, type, planes, channels, pack, words);
    else
        stk_crop_take_bytes(launch, view, from, line_is_shown, line_is_cut, x, type, planes,
                            channels, pack, words);
}

/* ---- storing -------------------------------------------------------------------- */

/* The row of sample k. */
STK_RNG uint64_t stk_crop_row(const struct stk_crop_launch *launch, uint32_t k)
{
    return launch->places != 0 ? launch->places[k] : k;
}

/* Bytes of a chunk: what a pack has of a plane; without planes up to 16 bytes, which divide the
 * pack. */
STK_RNG uint32_t stk_crop_chunk_bytes(const int type, const int planes, const uint32_t channels,
                                      const uint32_t pack)
{
    const uint32_t bytes = pack * (planes ? 1 : channels) * stk_crop_element_bytes(type);
    return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : 4;
}

/* Stores the pack that begins at `pixel` of sample k. */
STK_RNG void stk_crop_store_pack(const struct stk_crop_launch *launch, uint32_t k, uint32_t pixel,
                                 const int type, const int planes, const uint32_t channels,
                                 const uint32_t pack, const uint32_t *words)
{
    const uint32_t bytes = stk_crop_chunk_bytes(type, planes, channels, pack);
    const uint64_t pixels =
        (uint64_t)launch->batch.framing.out_height * launch->batch.framing.out_width;
    const uint64_t element =
        stk_crop_row(launch, k) * pixels * channels + (uint64_t)pixel * (planes ? 1 : channels);
    const uint64_t chunks = pack * channels * stk_crop_element_bytes(type) / bytes;
    const uint64_t step = planes ? pixels * stk_crop_element_bytes(type) : bytes;
    uint8_t *to = (uint8_t *)launch->out + element * stk_crop_element_bytes(type);
    STK_UNROLL
    for (uint32_t chunk = 0; chunk < chunks; chunk++, to += step)
        stk_store_chunk(to, words + chunk * bytes / 4, bytes);
}

/* Makes and stores one pixel of sample k, element by element. */
STK_RNG void stk_crop_pixel(const struct stk_crop_launch *launch, const struct stk_crop_view *view,
                            uint32_t k, uint32_t pixel, const int type, const int planes)
{
    const uint32_t y = stk_crop_line(launch, pixel);
    const uint32_t x = pixel - y * launch->batch.framing.out_width;
    const uint32_t channels = launch->batch.channels;
    const uint64_t pixels =
        (uint64_t)launch->batch.framing.out_height * launch->batch.framing.out_width;
    const bool is_cut =
        y >= view->cut_top && y < view->cut_bottom && x >= view->cut_left && x < view->cut_right;
    const bool is_shown =
        y >= view->top && y < view->bottom && x >= view->left && x < view->right && !is_cut;
    const uint8_t *from =
        view->source + (view->first + (int64_t)y * view->line_bytes + (int64_t)x * view->step);
    for (uint32_t channel = 0; channel < channels; channel++) {
        const uint64_t at =
            stk_crop_row(launch, k) * pixels * channels +
            (planes ? channel * pixels + pixel : (uint64_t)pixel * channels + channel);
        const uint32_t element = stk_crop_element(launch, type, channel,
                                                  is_shown ? from[channel] : launch->fill[channel]);
        stk_store_chunk((uint8_t *)launch->out + at * stk_crop_element_bytes(type), &element,
                        stk_crop_element_bytes(type));
    }
}

#endif
