/* order.c - see order.h.
 *
 *   weights of the options, or of the data set ──▶ alias table
 *   the caller's callback                      ──▶ itself
 *   all alike                                  ──▶ nothing: a draw needs only their number
 */
#include "loader/api/choose/order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/base/struct_size.h"
#include "loader/sampler/mix.h"
#include "loader/sampler/sampler.h"

enum { CHUNK = 256, HASH_BITS = 24 };

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
    if ((unsigned)order->kind > STOKER_ORDER_UNIFORM)
        return REFUSE(error, STOKER_EINVAL,
                      "order.kind %d is not DEFAULT, WEIGHTED, OWN or UNIFORM", (int)order->kind);
    if ((order->ids != NULL) != (order->kind == STOKER_ORDER_OWN))
        return REFUSE(error, STOKER_EINVAL,
                      "order.ids must be set if order.kind is OWN, and only then");
    if (order->kind != STOKER_ORDER_WEIGHTED && (order->weights != NULL || order->weight_count > 0))
        return REFUSE(error, STOKER_EINVAL, "order.weights needs order.kind WEIGHTED");
    return order->kind == STOKER_ORDER_WEIGHTED ? check_weights(order, dataset, error) : 0;
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
        return 0;
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
    return 0;
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
    return dataset->mix != NULL && order_of(options).kind == STOKER_ORDER_DEFAULT;
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

/* The data set's own weights are in its fingerprint. A length that is left open counts as 0, as it
 * did before 1.0. */
static uint32_t hash_of(const stoker_order *order)
{
    const uint64_t length = order->length == STOKER_LENGTH_AUTO ? 0 : order->length;
    if (order->kind == STOKER_ORDER_DEFAULT && length == 0)
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

int stk_order_make(struct stk_draws *draws, uint32_t *hash, const stoker_loader_options *options,
                   const stoker_dataset *dataset, stoker_error *error)
{
    const stoker_order order = order_of(options);
    *draws = (struct stk_draws){ .own = NULL };
    *hash = hash_of(&order);
    if (is_weighted(options, dataset))
        return make_weighted(draws, &order, dataset, error);
    if (order.kind == STOKER_ORDER_OWN) {
        draws->own = order.ids;
        draws->self = order.self;
    }
    return 0;
}
