/* ids.c - the samples at positions of an epoch, by whichever order a sampler has: see sampler.h. */
#include <stddef.h>

#include "loader/base/error.h"
#include "loader/sampler/draws.h"
#include "loader/sampler/mix.h"
#include "loader/sampler/sampler.h"
#include "loader/sampler/window.h"

int stk_sampler_open(const struct stk_sampler *sampler, struct stk_sampler_order *order)
{
    if (sampler->mix == NULL)
        return STOKER_OK;
    order->cursor = stk_mix_cursor_make(sampler->mix);
    return order->cursor != NULL ? STOKER_OK : STOKER_ENOMEM;
}

int stk_sampler_enter(const struct stk_sampler *sampler, uint64_t epoch,
                      struct stk_sampler_order *order, stoker_error *error)
{
    stk_sampler_begin(sampler, epoch, order);
    if (sampler->window == NULL ||
        stk_window_begin(sampler->window, epoch, &order->line) == STOKER_OK)
        return STOKER_OK;
    return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_LOCATE, NULL,
                         "out of memory for the blocks of epoch %llu", (unsigned long long)epoch);
}

void stk_sampler_close(const struct stk_sampler *sampler, struct stk_sampler_order *order)
{
    stk_mix_cursor_free(order->cursor);
    order->cursor = NULL;
    if (sampler->window != NULL)
        stk_window_leave(sampler->window, &order->line);
}

/* Every position must be < length. */
static int ids_before_end(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                          uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids,
                          stoker_error *error)
{
    if (sampler->window != NULL) {
        for (uint32_t i = 0; i < n; i++)
            ids[i] = stk_window_id(sampler->window, order->line, first + i * stride);
        return 0;
    }
    if (sampler->shuffle) {
        stk_sampler_shuffled(sampler, order, first, stride, n, ids);
        return 0;
    }
    if (sampler->mix != NULL)
        return stk_mix_ids(sampler->mix, order->cursor, order->epoch, first, stride, n, ids, error);
    if (sampler->draws != NULL)
        return stk_draws_ids(sampler->draws, sampler->count, sampler->seed, order->epoch, first,
                             stride, n, ids, error);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = first + i * stride;
    return 0;
}

int stk_sampler_ids(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                    uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids, stoker_error *error)
{
    int rc = 0;
    while (rc == 0 && n > 0 && first + (n - 1) * stride >= sampler->length) { /* padding: rare */
        first %= sampler->length;
        const uint64_t left = (sampler->length - 1 - first) / stride + 1;
        const uint32_t part = left < n ? (uint32_t)left : n;
        rc = ids_before_end(sampler, order, first, stride, part, ids, error);
        first += part * stride;
        ids += part;
        n -= part;
    }
    return rc == 0 && n > 0 ? ids_before_end(sampler, order, first, stride, n, ids, error) : rc;
}
