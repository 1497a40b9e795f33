/* gradient_sum.c - see gradient_sum.h. */
#include "trainer/api/gradient_sum.h"

#include <assert.h>
#include <string.h>

static int begin_slice(struct stk_gradient_sum *sum)
{
    const struct stk_slice *const slice = &sum->slices.slices[sum->begun++];
    return sum->peers->ops->all_reduce(sum->peers, sum->gradients + slice->first, slice->count,
                                       &sum->error);
}

/* Begins slices, as long as that does not wait. */
static void begin_complete(struct stk_gradient_sum *sum)
{
    const struct stk_peers_ops *const ops = sum->peers->ops;
    while (sum->rc == STOKER_OK && sum->begun < sum->complete &&
           (ops->has_room == NULL || ops->has_room(sum->peers)))
        sum->rc = begin_slice(sum);
}

static void ready(void *context, uint32_t slice)
{
    struct stk_gradient_sum *const sum = context;
    assert(slice == sum->complete);
    sum->complete = slice + 1;
    begin_complete(sum);
}

static void poll(void *context)
{
    struct stk_gradient_sum *const sum = context;
    if (sum->rc != STOKER_OK || sum->complete == 0)
        return;
    sum->rc = sum->peers->ops->poll(sum->peers, &sum->error);
    begin_complete(sum);
}

int stk_gradient_sum_open(struct stk_gradient_sum *sum, struct stk_peers *peers,
                          const struct stk_plan *plan, stoker_error *error)
{
    if (peers->world_size == 1)
        return STOKER_OK;
    const int rc =
        stk_slices_make(&sum->slices, plan, STK_SLICE_FLOATS_MIN, STK_SLICE_FLOATS_MAX, error);
    sum->peers = peers;
    sum->watch = (struct stk_pass_watch){
        .slices = &sum->slices, .ready = ready, .poll = poll, .context = sum
    };
    return rc;
}

void stk_gradient_sum_close(struct stk_gradient_sum *sum)
{
    stk_slices_free(&sum->slices);
}

static void restart(struct stk_gradient_sum *sum, float *gradients)
{
    sum->gradients = gradients;
    sum->complete = 0;
    sum->begun = 0;
    sum->rc = STOKER_OK;
}

const struct stk_pass_watch *stk_gradient_sum_watch(struct stk_gradient_sum *sum, float *gradients)
{
    restart(sum, gradients);
    return &sum->watch;
}

int stk_gradient_sum_finish(struct stk_gradient_sum *sum, float *gradients, stoker_error *error)
{
    if (sum->complete == 0)
        restart(sum, gradients);
    while (sum->rc == STOKER_OK && sum->begun < sum->slices.count)
        sum->rc = begin_slice(sum);
    if (sum->rc == STOKER_OK)
        sum->rc = sum->peers->ops->finish(sum->peers, &sum->error);
    const int rc = sum->rc;
    if (rc != STOKER_OK && error != NULL)
        *error = sum->error;
    restart(sum, NULL);
    return rc;
}
