/* options.c - see options.h. */
#include "loader/api/options.h"
#include "loader/api/choose/length_choice.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <stoker/ranks.h>
#include <stoker/trace.h>

#include "kernels/convert/convert.h"
#include "loader/api/choose/blend.h"
#include "loader/api/choose/order.h"
#include "loader/api/state.h"
#include "loader/base/error.h"
#include "loader/base/struct_size.h"
#include "loader/sampler/sampler.h"

#define WORLD_SIZE_MAX (1U << 20)

/* No address space holds more; a ring of such batches, converted, still has a size. */
#define BATCH_BYTES_MAX (SIZE_MAX >> 12)

/* One rule: if it is broken, return `code` with a line that names the option. */
__attribute__((format(printf, 4, 5))) static int require(bool holds, stoker_error *error, int code,
                                                         const char *format, ...)
{
    if (holds)
        return 0;
    char line[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    const struct stk_place nowhere = STK_NOWHERE;
    return stk_error_set(error, code, STOKER_STAGE_OPTIONS, &nowhere, "%s", line);
}

static int check_resume(const stoker_loader_options *options, stoker_error *error)
{
    if ((options->resume == NULL) != (options->resume_size == 0))
        return stk_refuse_option(error, STOKER_EINVAL, "resume is %sNULL, and resume_size is %zu",
                                 options->resume == NULL ? "" : "not ", options->resume_size);
    return options->resume == NULL
               ? 0
               : stk_state_check(options->resume, options->resume_size, "resume", error);
}

static int check_counts(const stoker_loader_options *options, stoker_error *error)
{
    int rc = require(options->batch_size >= 1 && options->batch_size <= STOKER_BATCH_MAX, error,
                     STOKER_EINVAL, "batch_size %" PRIu32 " is not in 1..%d", options->batch_size,
                     STOKER_BATCH_MAX);
    if (rc == 0)
        rc = require(options->num_workers >= STOKER_WORKERS_AUTO &&
                         options->num_workers <= STOKER_WORKERS_MAX,
                     error, STOKER_EINVAL, "num_workers %" PRId32 " is not in 0..%d or -1 (auto)",
                     options->num_workers, STOKER_WORKERS_MAX);
    if (rc == 0)
        rc = require(options->prefetch_batches == STOKER_PREFETCH_AUTO ||
                         (options->prefetch_batches >= 2 &&
                          options->prefetch_batches <= STOKER_PREFETCH_MAX),
                     error, STOKER_EINVAL,
                     "prefetch_batches %" PRIu32 " is not in 2..%d or STOKER_PREFETCH_AUTO",
                     options->prefetch_batches, STOKER_PREFETCH_MAX);
    if (rc == 0)
        rc = require(options->read_depth == STOKER_READ_DEPTH_AUTO ||
                         (options->read_depth >= 1 && options->read_depth <= STOKER_READ_DEPTH_MAX),
                     error, STOKER_EINVAL,
                     "read_depth %" PRIu32 " is not in 1..%d or STOKER_READ_DEPTH_AUTO",
                     options->read_depth, STOKER_READ_DEPTH_MAX);
    if (rc == 0)
        rc = require(options->batch_window >= 1 && options->batch_window <= STOKER_BATCH_WINDOW_MAX,
                     error, STOKER_EINVAL, "batch_window %" PRIu32 " is not in 1..%d",
                     options->batch_window, STOKER_BATCH_WINDOW_MAX);
    if (rc == 0)
        rc = require(options->epochs >= 1, error, STOKER_EINVAL,
                     "epochs 0 is neither a number of epochs nor STOKER_EPOCHS_ENDLESS");
    if (rc == 0)
        rc = require(options->trace_events <= STOKER_TRACE_EVENTS_MAX, error, STOKER_EINVAL,
                     "trace_events %" PRIu32 " is not in 0..%d", options->trace_events,
                     STOKER_TRACE_EVENTS_MAX);
    return rc;
}

static int check_choices(const stoker_loader_options *options, stoker_error *error)
{
    int rc = require((unsigned)options->device <= STOKER_DEVICE_CUDA_HOST, error, STOKER_EINVAL,
                     "device %d is not AUTO, CPU, CUDA or CUDA_HOST", (int)options->device);
    if (rc == 0)
        rc = require((unsigned)options->dtype <= STOKER_DTYPE_BOOL, error, STOKER_EINVAL,
                     "dtype %d is not NONE or one of UINT8 to BOOL", (int)options->dtype);
    if (rc == 0)
        rc = require(options->device_index < STOKER_DEVICE_INDEX_MAX, error, STOKER_EINVAL,
                     "device_index %" PRIu32 " is not below %d", options->device_index,
                     STOKER_DEVICE_INDEX_MAX);
    if (rc == 0)
        rc = require((unsigned)options->pin_memory <= STOKER_SWITCH_OFF, error, STOKER_EINVAL,
                     "pin_memory %d is not AUTO, ON or OFF", (int)options->pin_memory);
    if (rc == 0)
        rc =
            require((unsigned)options->convert_on_device <= STOKER_SWITCH_OFF, error, STOKER_EINVAL,
                    "convert_on_device %d is not AUTO, ON or OFF", (int)options->convert_on_device);
    if (rc == 0)
        rc = require((unsigned)options->cache <= STOKER_CACHE_DEVICE, error, STOKER_EINVAL,
                     "cache %d is not AUTO, NONE, ENCODED, DECODED or DEVICE", (int)options->cache);
    if (rc == 0)
        rc = require((unsigned)options->share_cache <= STOKER_SWITCH_OFF, error, STOKER_EINVAL,
                     "share_cache %d is not AUTO, ON or OFF", (int)options->share_cache);
    if (rc == 0)
        rc = require((unsigned)options->layout <= STOKER_LAYOUT_NCHW, error, STOKER_EINVAL,
                     "layout %d is not NHWC or NCHW", (int)options->layout);
    if (rc == 0)
        rc = require((unsigned)options->on_bad_sample <= STOKER_ON_BAD_SUBSTITUTE, error,
                     STOKER_EINVAL, "on_bad_sample %d is not FAIL, SKIP or SUBSTITUTE",
                     (int)options->on_bad_sample);
    if (rc == 0)
        rc = require((unsigned)options->last <= STOKER_LAST_EVEN, error, STOKER_EINVAL,
                     "last %d is not SHORT, DROP, PAD or EVEN", (int)options->last);
    if (rc == 0)
        rc = require((unsigned)options->deal <= STOKER_DEAL_BATCHES, error, STOKER_EINVAL,
                     "deal %d is not POSITIONS or BATCHES", (int)options->deal);
    if (rc == 0)
        rc = require((unsigned)options->decode <= STOKER_DECODE_AUTO, error, STOKER_EINVAL,
                     "decode %d is not CPU, DEVICE or AUTO", (int)options->decode);
    if (rc == 0)
        rc = require((unsigned)options->on_lent <= STOKER_ON_LENT_GROW, error, STOKER_EINVAL,
                     "on_lent %d is not AUTO, BUSY, WAIT or GROW", (int)options->on_lent);
    return rc;
}

static int take_rank(stoker_loader_options *options, stoker_error *error)
{
    stoker_ranks ranks = STOKER_RANKS_INIT;
    if (options->rank != STOKER_RANK_AUTO)
        return 0;
    int rc = stoker_ranks_from_environment(&ranks, error);
    if (rc == 0)
        rc = require(options->world_size == 1 || options->world_size == ranks.world_size, error,
                     STOKER_EINVAL,
                     "world_size %" PRIu32 " with STOKER_RANK_AUTO, but %s started %" PRIu32
                     " processes",
                     options->world_size, stoker_launcher_name(ranks.launcher), ranks.world_size);
    options->rank = ranks.rank;
    options->world_size = ranks.world_size;
    return rc;
}

/* Check this rank's share of an epoch. An epoch that is shorter than a batch is one short batch:
 * then batch_size becomes its length, so that no slot has rows that are never used. */
static int check_share(stoker_loader_options *options, const stoker_dataset *dataset,
                       stoker_error *error)
{
    const uint64_t count = stk_order_length(options, dataset);
    const bool is_capacity = options->batch_values_max > 0; /* batches may have fewer samples */
    const bool is_short = options->last == STOKER_LAST_SHORT || options->last == STOKER_LAST_EVEN;
    int rc = require(options->world_size >= 1 && options->world_size <= WORLD_SIZE_MAX, error,
                     STOKER_EINVAL, "world_size %" PRIu32 " is not in 1..%u", options->world_size,
                     WORLD_SIZE_MAX);
    if (rc == 0)
        rc = require(options->rank < options->world_size, error, STOKER_EINVAL,
                     "rank %" PRIu32 " is not below world_size %" PRIu32, options->rank,
                     options->world_size);
    if (rc == 0)
        rc = require(options->local_world_size <= WORLD_SIZE_MAX, error, STOKER_EINVAL,
                     "local_world_size %" PRIu32 " is not in 0..%u", options->local_world_size,
                     WORLD_SIZE_MAX);
    if (rc == 0)
        rc = require(options->local_rank == 0 || options->local_rank < options->local_world_size,
                     error, STOKER_EINVAL,
                     "local_rank %" PRIu32 " is not below local_world_size %" PRIu32,
                     options->local_rank, options->local_world_size);
    if (rc == 0)
        rc = require(dataset->info.count <= STK_SAMPLER_COUNT_MAX, error, STOKER_ELIMIT,
                     "%" PRIu64 " samples, at most 2^62 have an order", dataset->info.count);
    if (rc == 0 && is_short && options->batch_size > count)
        options->batch_size = (uint32_t)count;
    if (rc == 0)
        rc = require(dataset->row_bytes <= BATCH_BYTES_MAX / options->batch_size, error,
                     STOKER_ENOMEM, "batch_size %" PRIu32 " of rows of %zu bytes",
                     options->batch_size, dataset->row_bytes);
    if (rc == 0)
        rc = require(is_capacity || options->last != STOKER_LAST_DROP ||
                         (uint64_t)options->batch_size * options->world_size <= count,
                     error, STOKER_EBATCH,
                     "batch_size %" PRIu32 " x world_size %" PRIu32
                     ", with last DROP, is larger than the data set of %" PRIu64 " samples",
                     options->batch_size, options->world_size, count);
    return rc;
}

static int check_normalization(const stoker_loader_options *options, const stoker_dataset *dataset,
                               stoker_error *error)
{
    const stoker_dataset_info *set = &dataset->info;
    const bool is_list = set->rank == 0 || (set->rank == 1 && dataset->fields[0].info.varies);
    const uint64_t channels = is_list ? 1 : set->shape[set->rank - 1];
    const uint32_t given = options->mean_count;
    int rc = require(isfinite(options->scale) && options->scale != 0.0F, error, STOKER_EINVAL,
                     "scale %g is 0 or not finite", (double)options->scale);
    if (rc == 0)
        rc = require((options->mean == NULL && options->std == NULL) == (given == 0), error,
                     STOKER_EINVAL, "mean_count %" PRIu32 " does not fit mean and std", given);
    if (rc == 0)
        rc = require(
            given <= 1 || (given == channels && given <= STOKER_CHANNELS_MAX), error, STOKER_EINVAL,
            "mean_count %" PRIu32 " is neither 1 nor the %" PRIu64 " channels", given, channels);
    for (uint32_t i = 0; rc == 0 && i < given; i++) {
        rc = require(options->mean == NULL || isfinite(options->mean[i]), error, STOKER_EINVAL,
                     "mean[%" PRIu32 "] is not finite", i);
        if (rc == 0)
            rc = require(options->std == NULL ||
                             (isfinite(options->std[i]) && options->std[i] > 0.0F),
                         error, STOKER_EINVAL, "std[%" PRIu32 "] is not positive", i);
    }
    return rc;
}

static bool takes_scale(stoker_dtype dtype)
{
    return dtype == STOKER_DTYPE_FLOAT32 || dtype == STOKER_DTYPE_FLOAT16 ||
           dtype == STOKER_DTYPE_BFLOAT16;
}

/* Before AUTO has its value. */
static int check_scale(const stoker_loader_options *options, const stoker_dataset *dataset,
                       stoker_error *error)
{
    const stoker_dtype to =
        options->dtype != STOKER_DTYPE_NONE ? options->dtype : dataset->info.dtype;
    return require(takes_scale(to) || options->scale == STOKER_SCALE_AUTO || options->scale == 1.0F,
                   error, STOKER_EINVAL,
                   "scale needs a dtype of float32, float16 or bfloat16, not %s",
                   stoker_dtype_name(to));
}

static int check_types(const stoker_loader_options *options, const stoker_dataset *dataset,
                       stoker_error *error)
{
    const stoker_dtype to = options->dtype;
    int rc = require(to != STOKER_DTYPE_FLOAT64 || to == dataset->info.dtype, error, STOKER_ETYPE,
                     "dtype: %s cannot be converted to %s", stoker_dtype_name(dataset->info.dtype),
                     stoker_dtype_name(to));
    if (rc == 0)
        rc = require(stk_elements_choose(dataset->info.dtype, to) != NULL, error, STOKER_ETYPE,
                     "dtype: %s cannot be converted to %s", stoker_dtype_name(dataset->info.dtype),
                     stoker_dtype_name(to));
    if (rc == 0)
        rc = require(to == STOKER_DTYPE_FLOAT32 || to == STOKER_DTYPE_FLOAT16 ||
                         to == STOKER_DTYPE_BFLOAT16 || options->mean_count == 0,
                     error, STOKER_EINVAL,
                     "mean and std need a dtype of float32, float16 or bfloat16, not %s",
                     stoker_dtype_name(to));
    if (rc == 0)
        rc = require(options->layout == STOKER_LAYOUT_NHWC || to == dataset->info.dtype ||
                         to == STOKER_DTYPE_FLOAT32 || to == STOKER_DTYPE_FLOAT16 ||
                         to == STOKER_DTYPE_BFLOAT16,
                     error, STOKER_ETYPE, "dtype: %s cannot be converted to %s in layout NCHW",
                     stoker_dtype_name(dataset->info.dtype), stoker_dtype_name(to));
    if (rc == 0)
        rc = require(options->layout == STOKER_LAYOUT_NHWC || dataset->info.is_image, error,
                     STOKER_EINVAL, "layout NCHW needs images");
    if (rc == 0)
        rc = require(
            options->layout == STOKER_LAYOUT_NHWC || dataset->info.shape[2] <= STOKER_CHANNELS_MAX,
            error, STOKER_EINVAL, "layout NCHW takes at most %d channels", STOKER_CHANNELS_MAX);
    return rc;
}

int stk_options_framing(struct stk_framing *framing, const stoker_loader_options *options,
                        const stoker_dataset *dataset, stoker_error *error)
{
    const stoker_dataset_info *set = &dataset->info;
    const stoker_transform *transform = &options->transform;
    char why[STK_TRANSFORM_WHY_BYTES] = "";
    int rc = require(set->is_image && set->dtype == STOKER_DTYPE_UINT8 &&
                         set->shape[2] <= STOKER_TRANSFORM_CHANNELS_MAX,
                     error, STOKER_ETYPE, "transform needs uint8 images of 1..%d channels",
                     STOKER_TRANSFORM_CHANNELS_MAX);
    if (rc == 0)
        rc = require(takes_scale(options->dtype) || options->dtype == set->dtype, error,
                     STOKER_ETYPE, "transform: uint8 cannot be converted to %s",
                     stoker_dtype_name(options->dtype));
    if (rc == 0)
        rc = require(set->shape[0] <= STOKER_SOURCE_SIDE_MAX &&
                         set->shape[1] <= STOKER_SOURCE_SIDE_MAX,
                     error, STOKER_EINVAL, "transform needs images of at most %d pixels a side",
                     STOKER_SOURCE_SIDE_MAX);
    if (rc < 0)
        return rc;
    const bool any_size = set->pixels_max > 0 && stk_transform_resizes(transform);
    rc = stk_framing_init(framing, transform, options->seed, (uint32_t)set->shape[0],
                          (uint32_t)set->shape[1], any_size, why);
    return require(rc == 0, error, rc, "transform.%s", why);
}

/* Fields without effect on their own count, too: pad alone is a mistake. */
static bool transform_given(const stoker_transform *transform)
{
    return stk_transform_wanted(transform) || transform->pad != 0 ||
           stk_transform_has_ranges(transform) ||
           transform->decode_scale != STOKER_DECODE_SCALE_EXACT;
}

static int check_transform(const stoker_loader_options *options, const stoker_dataset *dataset,
                           stoker_error *error)
{
    const stoker_transform *transform = &options->transform;
    struct stk_framing framing;
    int rc = require(transform->decode_scale != STOKER_DECODE_SCALE_FAST ||
                         options->cache != STOKER_CACHE_DECODED || transform->resize.height != 0,
                     error, STOKER_EINVAL,
                     "transform.decode_scale FAST needs resize if cache is DECODED, which holds "
                     "whole images of their own size");
    for (size_t i = 0; rc == 0 && i < sizeof(transform->reserved) / sizeof(transform->reserved[0]);
         i++)
        rc = require(transform->reserved[i] == 0, error, STOKER_EINVAL,
                     "transform.reserved[%zu] is not 0: it asks for a step that this version lacks",
                     i);
    if (rc == 0 && transform_given(transform))
        rc = stk_options_framing(&framing, options, dataset, error);
    return rc;
}

static int check_hooks(const stoker_loader_options *options, stoker_error *error)
{
    const stoker_row_hook *row = options->row_hook;
    const stoker_batch_hook *batch = options->batch_hook;
    int rc = require(row == NULL ||
                         stk_struct_fits(row, STK_SIZE_UP_TO(stoker_row_hook, apply), sizeof(*row)),
                     error, STOKER_EINVAL, STK_STRUCT_REFUSAL, "row_hook",
                     row == NULL ? 0 : row->struct_size, sizeof(*row), "sizeof(stoker_row_hook)");
    if (rc == 0)
        rc = require(row == NULL || row->apply != NULL, error, STOKER_EINVAL,
                     "row_hook: apply is NULL");
    if (rc == 0)
        rc = require(
            batch == NULL ||
                stk_struct_fits(batch, STK_SIZE_UP_TO(stoker_batch_hook, apply), sizeof(*batch)),
            error, STOKER_EINVAL, STK_STRUCT_REFUSAL, "batch_hook",
            batch == NULL ? 0 : batch->struct_size, sizeof(*batch), "sizeof(stoker_batch_hook)");
    if (rc == 0)
        rc = require(batch == NULL || batch->apply != NULL, error, STOKER_EINVAL,
                     "batch_hook: apply is NULL");
    if (rc == 0)
        rc = require(batch == NULL || options->on_bad_sample != STOKER_ON_BAD_SKIP, error,
                     STOKER_EINVAL,
                     "batch_hook: on_bad_sample SKIP leaves gaps in its batches: use SUBSTITUTE");
    return rc;
}

static const stoker_loader_options defaults = STOKER_LOADER_OPTIONS_INIT;

#define OPTIONS_FIRST STK_SIZE_UP_TO(stoker_loader_options, row_hook)

/* Fields missing in an older, shorter struct keep their defaults. */
static int copy_given(stoker_loader_options *options, const stoker_loader_options *given,
                      stoker_error *error)
{
    *options = defaults;
    if (given == NULL)
        return 0;
    int rc = require(stk_struct_fits(given, OPTIONS_FIRST, sizeof(*given)), error, STOKER_EINVAL,
                     STK_STRUCT_REFUSAL, "stoker_loader_options", given->struct_size,
                     sizeof(*given), "STOKER_LOADER_OPTIONS_INIT");
    if (rc == 0)
        stk_struct_read(options, sizeof(*options), given, given->struct_size);
    return rc;
}

/* Give the choices that do not depend on the machine their values, and 0 to those that later parts
 * make. */
static void choose(stoker_loader_options *options, const stoker_dataset *dataset)
{
    if (options->dtype == STOKER_DTYPE_NONE)
        options->dtype = dataset->info.dtype;
    if (options->scale == STOKER_SCALE_AUTO)
        options->scale = dataset->info.dtype == STOKER_DTYPE_UINT8 ? 1.0F / 255.0F : 1.0F;
    if (options->prefetch_batches == STOKER_PREFETCH_AUTO)
        options->prefetch_batches = 0;
    if (options->read_depth == STOKER_READ_DEPTH_AUTO)
        options->read_depth = 0;
    if (options->epochs == STOKER_EPOCHS_ENDLESS)
        options->epochs = 0;
    options->shuffle = stk_order_shuffles(options);
}

int stk_options_resolve(stoker_loader_options *options, const stoker_loader_options *given,
                        const stoker_dataset *dataset, stoker_error *error)
{
    int rc = copy_given(options, given, error);
    if (rc < 0)
        return rc;
    options->struct_size = sizeof(*options);
    rc = take_rank(options, error);
    if (rc == 0)
        rc = check_counts(options, error);
    if (rc == 0)
        rc = check_resume(options, error);
    if (rc == 0)
        rc = check_choices(options, error);
    if (rc == 0)
        rc = stk_order_check(options, dataset, error);
    if (rc == 0)
        rc = check_share(options, dataset, error);
    if (rc == 0)
        rc = check_scale(options, dataset, error);
    if (rc == 0)
        choose(options, dataset);
    if (rc == 0)
        rc = check_types(options, dataset, error);
    if (rc == 0)
        rc = check_normalization(options, dataset, error);
    if (rc == 0)
        rc = check_transform(options, dataset, error);
    if (rc == 0)
        rc = stk_length_choice_check(options, dataset, error);
    if (rc == 0)
        rc = check_hooks(options, error);
    if (rc == 0)
        rc = stk_blend_check(&options->blend, error);
    return rc;
}
