/* span_body.h - converts adjacent elements, prefetches rows, and splits pixels into planes.
 *
 * Part of the bodies that each variant compiles (body.h, transform/crop/crop_body.h), with the
 * definitions that body.h requires.
 */
#ifndef STK_KERNELS_CONVERT_SPAN_BODY_H
#define STK_KERNELS_CONVERT_SPAN_BODY_H

#include "kernels/convert/convert.h"
#include <assert.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE      __attribute__((noinline))

enum {
    ELEMENT_BYTES_MAX = 8,
    LINE_BYTES = 64,
    PREFETCH_BYTES_MAX = 4096, /* the hardware prefetcher finds the rest */
};

typedef lanes load_lanes_fn(const unsigned char *at);
typedef void store_lanes_fn(unsigned char *at, lanes v, bool may_be_nan);

/* How one pair of types is loaded and stored. Always a compile-time constant. */
struct pair {
    load_lanes_fn *load;
    store_lanes_fn *store;
    size_t from_bytes, to_bytes; /* per element */
    bool may_be_nan;             /* false for integers */
};

/* Prefetches the line of every 64th byte from `at` on. */
static ALWAYS_INLINE void prefetch_lines(const unsigned char *at, size_t bytes)
{
    for (size_t line = 0; line < bytes; line += LINE_BYTES)
        __builtin_prefetch(at + line, 0, 3);
}

/* Prefetches a row: it may begin in the middle of a line and so end one line later. */
static ALWAYS_INLINE void prefetch_row(const unsigned char *row, size_t row_bytes)
{
    size_t bytes = row_bytes < PREFETCH_BYTES_MAX ? row_bytes : PREFETCH_BYTES_MAX;
    prefetch_lines(row, bytes);
    __builtin_prefetch(row + bytes - 1, 0, 3);
}

/* Converts the last count < LANES elements through buffers of full width: no byte beside the row is
 * touched. */
static ALWAYS_INLINE void convert_tail(const unsigned char *in, unsigned char *out, size_t count,
                                       lanes factor, lanes bias, struct pair pair)
{
    unsigned char tail_in[LANES * ELEMENT_BYTES_MAX] = { 0 };
    unsigned char tail_out[LANES * ELEMENT_BYTES_MAX];
    memcpy(tail_in, in, count * pair.from_bytes);
    pair.store(tail_out, lanes_fma(pair.load(tail_in), factor, bias), pair.may_be_nan);
    memcpy(out, tail_out, count * pair.to_bytes);
}

/* Converts count elements with one factor and bias. */
static ALWAYS_INLINE void convert_span(const unsigned char *in, unsigned char *out, size_t count,
                                       lanes factor, lanes bias, struct pair pair)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes x = pair.load(in + i * pair.from_bytes);
        pair.store(out + i * pair.to_bytes, lanes_fma(x, factor, bias), pair.may_be_nan);
    }
    if (i < count)
        convert_tail(in + i * pair.from_bytes, out + i * pair.to_bytes, count - i, factor, bias,
                     pair);
}

/* Splits `pixels` pixels: channel c goes to planes + c * plane_bytes. */
static ALWAYS_INLINE void split(unsigned char *planes, size_t plane_bytes, const unsigned char *in,
                                size_t pixels, size_t channels, size_t element_bytes)
{
    size_t done = 0;
#ifdef STK_SPLIT_BYTES
    if (element_bytes == 1 && channels == 3)
        for (; done + SPLIT_PIXELS <= pixels; done += SPLIT_PIXELS)
            split_3_bytes(planes + done, plane_bytes, in + done * 3);
    if (element_bytes == 1 && channels == 4)
        for (; done + SPLIT_PIXELS <= pixels; done += SPLIT_PIXELS)
            split_4_bytes(planes + done, plane_bytes, in + done * 4);
#endif
    for (size_t channel = 0; channel < channels; channel++) {
        const unsigned char *from = in + channel * element_bytes;
        unsigned char *to = planes + channel * plane_bytes;
        for (size_t pixel = done; pixel < pixels; pixel++)
            memcpy(to + pixel * element_bytes, from + pixel * channels * element_bytes,
                   element_bytes);
    }
}

/* Index of a float type in the function tables. */
static size_t to_index(stoker_dtype to)
{
    assert(to == STOKER_DTYPE_FLOAT32 || to == STOKER_DTYPE_FLOAT16 || to == STOKER_DTYPE_BFLOAT16);
    return to == STOKER_DTYPE_FLOAT32 ? 0 : to == STOKER_DTYPE_FLOAT16 ? 1 : 2;
}

#endif
