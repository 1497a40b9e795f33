/* baseline.c - the converters in plain C, for any CPU.
 *
 * Without an FMA instruction fmaf() is slow; for bytes, the plan's table holds all 256 results.
 */
#include "kernels/convert/lanes_portable.h"

#include "kernels/convert/body.h"

#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)
enum { TABLE_IS_FASTER = 0 };
#else
enum { TABLE_IS_FASTER = 1 };
#endif

static ALWAYS_INLINE void store_bits(unsigned char *at, uint32_t bits, size_t bytes)
{
    uint16_t half = (uint16_t)bits;
    memcpy(at, bytes == sizeof(bits) ? (const void *)&bits : (const void *)&half, bytes);
}

/* Converts one channel of a row: every step-th byte of in to every step_out-th element of out. */
static ALWAYS_INLINE void look_up(const uint32_t *table, const unsigned char *in, size_t step,
                                  unsigned char *out, size_t step_out, size_t count,
                                  size_t to_bytes)
{
    for (size_t i = 0; i < count; i++)
        store_bits(out + i * step_out * to_bytes, table[in[i * step]], to_bytes);
}

static ALWAYS_INLINE void look_up_row(const struct stk_convert_plan *plan, const unsigned char *in,
                                      unsigned char *out, const unsigned char *later,
                                      size_t to_bytes)
{
    size_t channels = plan->table_channels, pixels = plan->elements / channels;
    bool planes = plan->layout == STOKER_LAYOUT_NCHW;
    prefetch_row(later, plan->from_bytes);
    for (size_t channel = 0; channel < channels; channel++) {
        size_t place = planes ? channel * pixels : channel;
        look_up(plan->table[channel], in + channel, channels, out + place * to_bytes,
                planes ? 1 : channels, pixels, to_bytes);
    }
}

static ALWAYS_INLINE void look_up_row_2(const struct stk_convert_plan *plan,
                                        const unsigned char *in, unsigned char *out,
                                        const unsigned char *later)
{
    look_up_row(plan, in, out, later, 2);
}

static ALWAYS_INLINE void look_up_row_4(const struct stk_convert_plan *plan,
                                        const unsigned char *in, unsigned char *out,
                                        const unsigned char *later)
{
    look_up_row(plan, in, out, later, 4);
}

static void look_up_rows_2(const struct stk_convert_plan *plan, const void *const *rows,
                           uint32_t count, uint32_t ahead, void *out)
{
    each_row(plan, rows, count, ahead, out, look_up_row_2);
}

static void look_up_rows_4(const struct stk_convert_plan *plan, const void *const *rows,
                           uint32_t count, uint32_t ahead, void *out)
{
    each_row(plan, rows, count, ahead, out, look_up_row_4);
}

stk_convert_rows_fn *stk_convert_choose_baseline(const struct stk_convert_plan *plan)
{
    if (TABLE_IS_FASTER && plan->table_channels > 0)
        return plan->to == STOKER_DTYPE_FLOAT32 ? look_up_rows_4 : look_up_rows_2;
    return choose_rows(plan);
}
