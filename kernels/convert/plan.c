/* plan.c - makes a conversion plan: checks, factors, prefetch distance, variant.
 *
 * It depends on the options and the CPU alone.
 */
#include "kernels/convert/convert.h"
#include "kernels/convert/variants.h"
#include "kernels/float16.h"
#include "loader/base/cpu/cpu_features.h"
#include <assert.h>
#include <math.h>

enum {
    PERIOD_STEP = 16,            /* elements that the widest variant converts at a time */
    PREFETCH_BYTES_AHEAD = 3200, /* measured: four rows of MNIST, one of a photograph */
    PREFETCH_ROWS_MAX = 8,
};

bool stk_convert_runs_anywhere(void)
{
    return true;
}

#ifdef STK_KERNELS_X86
bool stk_convert_runs_on_avx2(void)
{
    return stk_cpu_has(STK_CPU_AVX2 | STK_CPU_FMA | STK_CPU_F16C);
}

bool stk_convert_runs_on_avx512(void)
{
    return stk_convert_runs_on_avx2() &&
           stk_cpu_has(STK_CPU_AVX512F | STK_CPU_AVX512BW | STK_CPU_AVX512VL);
}
#endif

const struct stk_convert_variant stk_convert_variants[STK_CONVERT_VARIANTS_MAX + 1] = {
#ifdef STK_KERNELS_X86
    { "avx512", stk_convert_runs_on_avx512, stk_convert_choose_avx512 },
    { "avx2", stk_convert_runs_on_avx2, stk_convert_choose_avx2 },
#endif
#ifdef STK_KERNELS_NEON
    { "neon", stk_convert_runs_anywhere, stk_convert_choose_neon },
#endif
    { "baseline", stk_convert_runs_anywhere, stk_convert_choose_baseline },
    { NULL, NULL, NULL },
};

/* Not stoker_dtype_bytes(): that is in libstoker, which links this library. */
static size_t element_bytes(stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_UINT8:
    case STOKER_DTYPE_INT8:
    case STOKER_DTYPE_BOOL:
        return 1;
    case STOKER_DTYPE_UINT16:
    case STOKER_DTYPE_INT16:
    case STOKER_DTYPE_FLOAT16:
    case STOKER_DTYPE_BFLOAT16:
        return 2;
    case STOKER_DTYPE_UINT32:
    case STOKER_DTYPE_INT32:
    case STOKER_DTYPE_FLOAT32:
        return 4;
    case STOKER_DTYPE_UINT64:
    case STOKER_DTYPE_INT64:
    case STOKER_DTYPE_FLOAT64:
        return 8;
    case STOKER_DTYPE_NONE:
        break;
    }
    return 0;
}

static bool is_target(stoker_dtype dtype)
{
    return dtype == STOKER_DTYPE_FLOAT32 || dtype == STOKER_DTYPE_FLOAT16 ||
           dtype == STOKER_DTYPE_BFLOAT16;
}

static bool is_integer(stoker_dtype dtype)
{
    return !is_target(dtype) && dtype != STOKER_DTYPE_FLOAT64;
}

static bool uses_channels(const struct stk_convert_options *options)
{
    return options->mean_count > 1 || options->layout == STOKER_LAYOUT_NCHW;
}

static int check_sizes(const struct stk_convert_options *options)
{
    if (options->layout != STOKER_LAYOUT_NHWC && options->layout != STOKER_LAYOUT_NCHW)
        return STOKER_EINVAL;
    if (options->elements < 1 || options->elements > PTRDIFF_MAX / sizeof(double))
        return STOKER_EINVAL;
    if (options->mean_count > 1 && options->mean_count != options->channels)
        return STOKER_EINVAL;
    if (options->mean_count == 0 && (options->mean != NULL || options->std != NULL))
        return STOKER_EINVAL;
    if (!uses_channels(options))
        return STOKER_OK;
    if (options->channels < 1 || options->channels > STK_CHANNELS_MAX)
        return STOKER_EINVAL;
    return options->elements % options->channels == 0 ? STOKER_OK : STOKER_EINVAL;
}

/* Computes factor and bias of one channel. Returns false if they are not usable numbers. */
static bool scale_of_channel(const struct stk_convert_options *options, uint32_t channel,
                             float *factor, float *bias)
{
    uint32_t place = options->mean_count > 1 ? channel : 0;
    double mean = options->mean != NULL ? (double)options->mean[place] : 0.0;
    double std = options->std != NULL ? (double)options->std[place] : 1.0;
    if (!(std > 0.0))
        return false;
    *factor = (float)((double)options->scale / std);
    *bias = (float)(0.0 - mean / std); /* +0 without a mean */
    return isfinite(*factor) && isfinite(*bias) && *factor != 0.0F;
}

static int fill_factors(struct stk_convert_plan *plan, const struct stk_convert_options *options)
{
    uint32_t channels = uses_channels(options) ? options->channels : 1;
    for (uint32_t channel = 0; channel < channels; channel++)
        if (!scale_of_channel(options, channel, &plan->factor[channel], &plan->bias[channel]))
            return STOKER_EINVAL;

    bool planes = plan->layout == STOKER_LAYOUT_NCHW && channels > 1;
    plan->period = planes ? channels : channels * PERIOD_STEP;
    for (uint32_t i = channels; i < plan->period; i++) {
        plan->factor[i] = plan->factor[i - channels];
        plan->bias[i] = plan->bias[i - channels];
    }
    return STOKER_OK;
}

static bool changes_nothing(const struct stk_convert_plan *plan)
{
    for (uint32_t i = 0; i < plan->period; i++)
        if (plan->factor[i] != 1.0F || plan->bias[i] != 0.0F)
            return false;
    return true;
}

/* Equal types are copied, unless a float type is scaled. */
static int check_types(struct stk_convert_plan *plan)
{
    if (plan->from != plan->to && !is_target(plan->to)) {
        /* Values stay as they are: no scale, no mean, no planes. */
        plan->widen = is_integer(plan->to) && plan->layout == STOKER_LAYOUT_NHWC
                          ? stk_elements_choose(plan->from, plan->to)
                          : NULL;
        return plan->widen != NULL ? STOKER_OK : STOKER_ETYPE;
    }
    if (plan->from != plan->to)
        return STOKER_OK;
    bool is_float = is_target(plan->to) || plan->to == STOKER_DTYPE_FLOAT64;
    plan->copies = !is_float || changes_nothing(plan);
    return plan->copies || is_target(plan->to) ? STOKER_OK : STOKER_ETYPE;
}

/* All 256 results per channel, for CPUs without a fused multiply-add. */
static void fill_table(struct stk_convert_plan *plan, uint32_t channels)
{
    if (plan->from != STOKER_DTYPE_UINT8 || plan->copies || channels > STK_TABLE_CHANNELS_MAX)
        return;
    plan->table_channels = channels;
    for (uint32_t channel = 0; channel < channels; channel++) {
        for (uint32_t x = 0; x < 256; x++) {
            float y = fmaf((float)x, plan->factor[channel], plan->bias[channel]);
            plan->table[channel][x] = plan->to == STOKER_DTYPE_FLOAT32   ? bits_of_float(y)
                                      : plan->to == STOKER_DTYPE_FLOAT16 ? float16_of_float(y)
                                                                         : bfloat16_of_float(y);
        }
    }
}

static uint32_t prefetch_distance(size_t row_bytes)
{
    size_t rows = PREFETCH_BYTES_AHEAD / row_bytes;
    return rows < 1 ? 1 : rows > PREFETCH_ROWS_MAX ? PREFETCH_ROWS_MAX : (uint32_t)rows;
}

/* Integers to wider ones: so little work that rows are not prefetched. */
static void widen_rows(const struct stk_convert_plan *plan, const void *const *rows, uint32_t count,
                       uint32_t ahead, void *out)
{
    (void)ahead;
    for (uint32_t row = 0; row < count; row++)
        plan->widen(rows[row], (unsigned char *)out + row * plan->to_bytes, plan->elements);
}

static stk_convert_rows_fn *choose_variant(const struct stk_convert_plan *plan)
{
    const struct stk_convert_variant *variant = stk_convert_variants;
    while (!variant->runs_here())
        variant++;
    assert(variant->name != NULL);
    return variant->choose(plan);
}

int stk_convert_plan_init(struct stk_convert_plan *plan, const struct stk_convert_options *options)
{
    if (plan == NULL || options == NULL)
        return STOKER_EINVAL;
    size_t from_bytes = element_bytes(options->from), to_bytes = element_bytes(options->to);
    if (from_bytes == 0 || to_bytes == 0)
        return STOKER_ETYPE;
    int rc = check_sizes(options);
    if (rc < 0)
        return rc;

    struct stk_convert_plan made = {
        .elements = options->elements,
        .from_bytes = options->elements * from_bytes,
        .to_bytes = options->elements * to_bytes,
        .channels = options->channels,
        .prefetch_rows = prefetch_distance(options->elements * from_bytes),
        .from = options->from,
        .to = options->to,
        .layout = options->layout,
    };
    rc = fill_factors(&made, options);
    if (rc == STOKER_OK)
        rc = check_types(&made);
    if (rc < 0)
        return rc;
    fill_table(&made, uses_channels(options) ? options->channels : 1);
    made.rows = made.widen != NULL ? widen_rows : choose_variant(&made);
    *plan = made;
    return STOKER_OK;
}
