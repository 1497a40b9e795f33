/* order.c - see order.h.
 *
 *   weights of the options, or of the data set ──▶ alias table
 *   the caller's callback                      ──▶ itself
 *   all alike                                  ──▶ nothing: a draw needs only their number
 *   blocks, declared or equal                  ──▶ a window, of the data set or of each source
 */
#include "loader/api/choose/order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "loader/api/loader.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/base/struct_size.h"
#include "loader/sampler/mix.h"
#include "loader/sampler/sampler.h"
#include "loader/sampler/window.h"

enum { CHUNK = 256, HASH_BITS = 24 };
enum { BLOCK_BYTES = 4 << 20, SAMPLES_MEASURED = 1024 }; /* block_samples AUTO */

/* options->order, of an older and shorter struct with the defaults of what it lacks; without one,
 * the default order. */
static stoker_order order_of(const stoker_loader_options *options)
{
    stoker_order order = STOKER_ORDER_INIT;
    if (options->order != NULL)
        stk_struct_read(&order, sizeof(order), options->order, options->order->struct_size);
    return order;
}

/* ---- checks --------------------------------------------------------------------------- */

#define REFUSE(error, code, ...)                                                                   \
    stk_error_set(error, code, STOKER_STAGE_OPTIONS, &(struct stk_place)STK_NOWHERE, __VA_ARGS__)

static int check_weights(const stoker_order *order, const stoker_dataset *dataset,
                         stoker_error *error)
{
    if (order->weights == NULL && dataset->weights == NULL)
        return REFUSE(
            error, STOKER_EINVAL,
            "order.kind is WEIGHTED, but neither order.weights nor the data set has weights");
    if (order->weights != NULL && order->weight_count != dataset->info.count)
        return REFUSE(error, STOKER_EINVAL,
                      "order.weight_count %" PRIu64 " is not the %" PRIu64 " samples",
                      order->weight_count, dataset->info.count);
    for (uint64_t i = 0; order->weights != NULL && i < order->weight_count; i++)
        if (!isfinite(order->weights[i]) || order->weights[i] < 0.0)
            return REFUSE(error, STOKER_EINVAL,
                          "order.weights[%" PRIu64 "] is %g, but must be finite and at least 0", i,
                          order->weights[i]);
    return 0;
}

/* Members that another kind would use are mistakes. */
static int check_kind(const stoker_order *order, const stoker_dataset *dataset, stoker_error *error)
{
    if ((unsigned)order->kind > STOKER_ORDER_WINDOW)
        return REFUSE(error, STOKER_EINVAL,
                      "order.kind %d is not DEFAULT, WEIGHTED, OWN, UNIFORM or WINDOW",
                      (int)order->kind);
    if ((order->ids != NULL) != (order->kind == STOKER_ORDER_OWN))
        return REFUSE(error, STOKER_EINVAL,
                      "order.ids must be set if order.kind is OWN, and only then");
    if (order->kind != STOKER_ORDER_WEIGHTED && (order->weights != NULL || order->weight_count > 0))
        return REFUSE(error, STOKER_EINVAL, "order.weights needs order.kind WEIGHTED");
    return order->kind == STOKER_ORDER_WEIGHTED ? check_weights(order, dataset, error) : 0;
}

/* A program that does without STOKER_ORDER_INIT leaves members 0 that its kind ignores. */
static int check_window(const stoker_order *order, const stoker_dataset *dataset,
                        stoker_error *error)
{
    const stoker_order standard = STOKER_ORDER_INIT;
    const bool cuts = order->block_samples != STOKER_LENGTH_AUTO;
    if (order->kind != STOKER_ORDER_WINDOW && order->kind != STOKER_ORDER_DEFAULT) {
        const bool set =
            (order->window_blocks > 0 && order->window_blocks != standard.window_blocks) ||
            (order->lanes > 0 && order->lanes != standard.lanes) ||
            (order->block_samples > 0 && cuts);
        return set ? REFUSE(error, STOKER_EINVAL,
                            "order.window_blocks, lanes and block_samples need order.kind WINDOW")
                   : 0;
    }
    if (order->window_blocks == 0)
        return REFUSE(error, STOKER_EINVAL, "order.window_blocks 0 is not at least 1");
    if (order->lanes == 0 || order->lanes > STK_WINDOW_LANES_MAX)
        return REFUSE(error, STOKER_EINVAL, "order.lanes %" PRIu32 " is not in 1..%d", order->lanes,
                      STK_WINDOW_LANES_MAX);
    if (cuts && (order->block_samples == 0 || order->block_samples > STK_SAMPLER_COUNT_MAX))
        return REFUSE(error, STOKER_EINVAL,
                      "order.block_samples %" PRIu64
                      " is neither in 1..2^62 nor STOKER_LENGTH_AUTO",
                      order->block_samples);
    if (cuts && order->kind != STOKER_ORDER_WINDOW)
        return REFUSE(error, STOKER_EINVAL, "order.block_samples needs order.kind WINDOW");
    if (cuts && dataset->mix == NULL && dataset->info.block_count > 0)
        return REFUSE(error, STOKER_EINVAL,
                      "order.block_samples %" PRIu64 ", but the data set declares its %" PRIu64
                      " blocks itself",
                      order->block_samples, dataset->info.block_count);
    return 0;
}

int stk_order_check(const stoker_loader_options *options, const stoker_dataset *dataset,
                    stoker_error *error)
{
    if (options->order == NULL)
        return 0;
    if (!stk_struct_fits(options->order, STK_SIZE_UP_TO(stoker_order, fingerprint),
                         sizeof(stoker_order)))
        return REFUSE(error, STOKER_EINVAL, STK_STRUCT_REFUSAL, "order",
                      options->order->struct_size, sizeof(stoker_order), "STOKER_ORDER_INIT");
    const stoker_order given = order_of(options);
    const stoker_order *order = &given;
    const int rc = check_kind(order, dataset, error);
    if (rc < 0)
        return rc;
    if (order->length == STOKER_LENGTH_AUTO)
        return check_window(order, dataset, error);
    if (order->length == 0)
        return REFUSE(error, STOKER_EINVAL,
                      "order.length 0 is neither in 1..2^62 nor STOKER_LENGTH_AUTO: begin with "
                      "STOKER_ORDER_INIT");
    if (order->length > STK_SAMPLER_COUNT_MAX)
        return REFUSE(error, STOKER_ELIMIT, "order.length %" PRIu64 " exceeds 2^62", order->length);
    if (!stk_order_draws(options, dataset))
        return REFUSE(error, STOKER_EINVAL,
                      "order.length %" PRIu64
                      " needs weights or an order of your own: an epoch of a "
                      "permutation has every sample once",
                      order->length);
    return check_window(order, dataset, error);
}

bool stk_order_shuffles(const stoker_loader_options *options)
{
    return options->shuffle || order_of(options).kind == STOKER_ORDER_WINDOW;
}

static bool is_weighted(const stoker_loader_options *options, const stoker_dataset *dataset)
{
    const stoker_order_kind kind = order_of(options).kind;
    return kind == STOKER_ORDER_WEIGHTED ||
           (kind == STOKER_ORDER_DEFAULT && options->shuffle && dataset->weights != NULL);
}

bool stk_order_draws(const stoker_loader_options *options, const stoker_dataset *dataset)
{
    const stoker_order_kind kind = order_of(options).kind;
    return is_weighted(options, dataset) || kind == STOKER_ORDER_OWN ||
           kind == STOKER_ORDER_UNIFORM;
}

bool stk_order_mixes(const stoker_loader_options *options, const stoker_dataset *dataset)
{
    const stoker_order_kind kind = order_of(options).kind;
    return dataset->mix != NULL && (kind == STOKER_ORDER_DEFAULT || kind == STOKER_ORDER_WINDOW);
}

uint64_t stk_order_length(const stoker_loader_options *options, const stoker_dataset *dataset)
{
    const uint64_t length = order_of(options).length;
    if (stk_order_mixes(options, dataset))
        return dataset->mix->length;
    return length != STOKER_LENGTH_AUTO ? length : dataset->info.count;
}

/* ---- the order -------------------------------------------------------------------------- */

static uint64_t mix(uint64_t sum, uint64_t word)
{
    return stk_mix64(sum ^ word) + word;
}

static uint64_t mix_bytes(uint64_t sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    sum = mix(sum, size);
    for (size_t i = 0; i < size; i++)
        sum = mix(sum, at[i]);
    return sum;
}

/* `windows` is their hash, 0 without one. The data set's own weights are in its fingerprint. A
 * length that is left open counts as 0, as it did before 1.0. */
static uint32_t hash_of(const stoker_order *order, uint64_t windows)
{
    const uint64_t length = order->length == STOKER_LENGTH_AUTO ? 0 : order->length;
    if (windows != 0)
        return (uint32_t)(windows >> (64 - HASH_BITS)) | 1;
    if (order->kind == STOKER_ORDER_WINDOW || (order->kind == STOKER_ORDER_DEFAULT && length == 0))
        return 0;
    uint64_t sum = mix(mix(1, (uint64_t)order->kind), length);
    for (uint64_t i = 0; order->weights != NULL && i < order->weight_count; i++) {
        uint64_t bits;
        memcpy(&bits, &order->weights[i], sizeof(bits));
        sum = mix(sum, bits);
    }
    if (order->kind == STOKER_ORDER_OWN) {
        sum = mix_bytes(sum, order->name, order->name == NULL ? 0 : strlen(order->name));
        sum = mix(sum, order->fingerprint);
    }
    const uint32_t hash = (uint32_t)(sum >> (64 - HASH_BITS));
    return hash == 0 ? 1 : hash;
}

/* All weights of a data set that has some. */
static int read_weights(const stoker_dataset *dataset, double *weights, stoker_error *error)
{
    const uint64_t count = dataset->info.count;
    uint64_t ids[CHUNK];
    for (uint64_t first = 0; first < count; first += CHUNK) {
        const uint32_t n = count - first < CHUNK ? (uint32_t)(count - first) : CHUNK;
        for (uint32_t i = 0; i < n; i++)
            ids[i] = first + i;
        const int rc = dataset->weights(dataset->self, ids, n, weights + first);
        if (rc < 0)
            return REFUSE(error, rc, "the weights of the data set from sample %" PRIu64 " on",
                          first);
    }
    return 0;
}

static int make_table(struct stk_alias *alias, const double *weights, uint64_t count,
                      stoker_error *error)
{
    const int rc = stk_alias_make(alias, weights, count);
    if (rc == STOKER_EINVAL)
        return REFUSE(error, rc, "all %" PRIu64 " weights are 0", count);
    return rc < 0 ? REFUSE(error, rc, "the table of %" PRIu64 " weights", count) : 0;
}

static int make_weighted(struct stk_draws *draws, const stoker_order *order,
                         const stoker_dataset *dataset, stoker_error *error)
{
    const uint64_t count = dataset->info.count;
    if (order->weights != NULL)
        return make_table(&draws->alias, order->weights, count, error);
    double *weights =
        count <= SIZE_MAX / sizeof(*weights) ? stk_calloc((size_t)count, sizeof(*weights)) : NULL;
    if (weights == NULL)
        return REFUSE(error, STOKER_ENOMEM, "%" PRIu64 " weights", count);
    int rc = read_weights(dataset, weights, error);
    if (rc == 0)
        rc = make_table(&draws->alias, weights, count, error);
    stk_free(weights);
    return rc;
}

static int make_draws(struct stk_draws *draws, const stoker_order *order,
                      const stoker_loader_options *options, const stoker_dataset *dataset,
                      stoker_error *error)
{
    if (is_weighted(options, dataset))
        return make_weighted(draws, order, dataset, error);
    if (order->kind == STOKER_ORDER_OWN) {
        draws->own = order->ids;
        draws->self = order->self;
    }
    return 0;
}

/* ---- windows ------------------------------------------------------------------------------ */

/* Bytes of a sample: as stored or, if it has none, of its rows. */
static uint64_t bytes_of(const stoker_dataset *dataset, uint64_t id)
{
    stoker_part parts[STOKER_FIELDS_MAX] = { 0 };
    stoker_error unused;
    uint64_t bytes = 0;
    if (dataset->info.part_count > 0 &&
        dataset->ops->locate(dataset->self, &id, 1, parts, &unused) == STOKER_OK)
        for (uint32_t i = 0; i < dataset->info.part_count; i++)
            bytes += parts[i].extent.bytes;
    for (uint32_t i = 0; bytes == 0 && i < dataset->info.field_count; i++)
        bytes = dataset->fields[i].bytes;
    return bytes > 0 ? bytes : 1;
}

/* Samples that take about BLOCK_BYTES, of `count` of them from `first` on. */
static uint64_t block_samples(const stoker_dataset *dataset, uint64_t first, uint64_t count)
{
    const uint64_t looks = count < SAMPLES_MEASURED ? count : SAMPLES_MEASURED;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < looks; i++)
        bytes += bytes_of(dataset, first + i * (count / looks));
    const uint64_t samples = bytes > 0 ? BLOCK_BYTES * looks / bytes : 0;
    return samples > 0 ? samples : 1;
}

/* The samples of one sampler: all, or those of a source. */
struct share {
    const stoker_dataset *dataset;
    uint64_t first_id;
    struct stk_blocks blocks; /* declared; block_count 0 = none */
};

/* Make the window of a sampler, if it has one, and fold its hash into *sum. */
static int make_window(struct stk_sampler *sampler, const stoker_order *order, struct share share,
                       uint64_t *sum, stoker_error *error)
{
    struct stk_blocks *blocks = &share.blocks;
    if (blocks->block_count == 0 && order->kind != STOKER_ORDER_WINDOW)
        return 0;
    if (blocks->block_count == 0) {
        blocks->block_samples = order->block_samples != STOKER_LENGTH_AUTO
                                    ? order->block_samples
                                    : block_samples(share.dataset, share.first_id, blocks->count);
        blocks->block_count = (blocks->count - 1) / blocks->block_samples + 1;
        blocks->first = NULL;
    }
    const int rc = stk_window_make(&sampler->window, blocks, order->window_blocks, order->lanes,
                                   sampler->seed);
    if (rc == STOKER_ELIMIT)
        return REFUSE(error, rc,
                      "%" PRIu64 " blocks of unequal size, at most 2^26 have an order of windows",
                      blocks->block_count);
    if (sampler->window != NULL)
        *sum = mix(*sum ^ share.first_id, stk_window_hash(sampler->window)) | 1;
    return rc;
}

static int make_mix(stoker_loader *loader, const stoker_order *order, uint64_t *sum,
                    stoker_error *error)
{
    const stoker_loader_options *options = &loader->options;
    const stoker_dataset *dataset = loader->pipeline.dataset;
    struct stk_mix *made = &loader->mix;
    int rc = stk_mix_make(made, dataset->mix, options->seed, options->shuffle);
    for (uint32_t i = 0; rc == 0 && made->shuffle && i < made->source_count; i++) {
        struct stk_mix_source *source = &made->sources[i];
        const struct share share = { dataset, source->first_id, dataset->mix->blocks[i] };
        rc = make_window(&source->sampler, order, share, sum, error);
    }
    loader->pipeline.sampler.mix = made;
    return rc;
}

int stk_order_make(stoker_loader *loader, stoker_error *error)
{
    const stoker_loader_options *options = &loader->options;
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const stoker_order order = order_of(options);
    const bool mixes = stk_order_mixes(options, dataset);
    const bool draws = stk_order_draws(options, dataset);
    struct stk_sampler *sampler = &loader->pipeline.sampler;
    uint64_t windows = 0;
    int rc = 0;
    stk_sampler_init(sampler, dataset->info.count, options->seed,
                     options->shuffle && !mixes && !draws);
    sampler->length = stk_order_length(options, dataset);
    if (mixes) {
        rc = make_mix(loader, &order, &windows, error);
    } else if (draws) {
        sampler->draws = &loader->draws;
        rc = make_draws(&loader->draws, &order, options, dataset, error);
    } else if (options->shuffle) {
        const struct stk_blocks blocks = { .count = dataset->info.count,
                                           .block_count = dataset->info.block_count,
                                           .first = dataset->ops->block_first,
                                           .self = dataset->self };
        rc = make_window(sampler, &order, (struct share){ dataset, 0, blocks }, &windows, error);
    }
    loader->order_hash = hash_of(&order, windows);
    return rc;
}
