/* wide_eight.h - the block of crop_blocks.h by eight pixels, for variants without a wider one. The including file
 * includes its block_*.h first.
 */
#ifndef STK_KERNELS_TRANSFORM_WIDE_EIGHT_H
#define STK_KERNELS_TRANSFORM_WIDE_EIGHT_H

enum { WIDE_PIXELS = BLOCK_PIXELS };

struct wide {
    struct block block;
};

static ALWAYS_INLINE void wide_init(struct wide *wide, const struct stk_transform_plan *plan,
                                    bool flip, uint32_t channels, bool planes, size_t element_bytes,
                                    size_t plane_bytes)
{
    block_init(&wide->block, plan, plan->shuffles[flip][STK_SIDE_LOW][0], channels, planes,
               element_bytes, plane_bytes);
}

static ALWAYS_INLINE void wide_put(const struct wide *wide, const unsigned char *in,
                                   unsigned char *out, store_eight_fn *store, struct pair pair)
{
    (void)pair; /* it stores sixteen */
    block_put(&wide->block, in, out, store);
}

/* Converts `blocks` adjacent blocks; step: bytes between two of them in the output. */
static ALWAYS_INLINE void wide_put_line(const struct wide *wide, const unsigned char *in,
                                        size_t blocks, unsigned char *out, ptrdiff_t step,
                                        store_eight_fn *store, struct pair pair)
{
    const size_t in_step = WIDE_PIXELS * wide->block.channels;
    for (size_t i = 0; i < blocks; i++, out += step)
        wide_put(wide, in + i * in_step, out, store, pair);
}

#endif
