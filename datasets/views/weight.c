/* weight.c - a view of all samples of a data set, in its order, with weights by which a loader draws them. */
#include <math.h>
#include <string.h>

#include "datasets/views/classes.h"
#include "loader/base/memory.h"

static uint32_t take_alike(const struct stk_view *view, const uint64_t *ids, uint32_t count,
                           uint64_t *mapped, const struct stk_view_source **source)
{
    const uint32_t taken = count < STK_VIEW_RUN_MAX ? count : STK_VIEW_RUN_MAX;
    memcpy(mapped, ids, taken * sizeof(ids[0]));
    *source = view->sources;
    return taken;
}

static int check_weights(const struct stk_view_making *making, const double *weights,
                         uint64_t count)
{
    bool all_zero = true;
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0.0)
            return stk_view_refuse(making, STOKER_EINVAL,
                                   "weights[%llu] is %g, but must be finite and at least 0",
                                   (unsigned long long)i, weights[i]);
        all_zero = all_zero && weights[i] == 0.0;
    }
    return all_zero ? stk_view_refuse(making, STOKER_EINVAL, "all weights are 0") : STOKER_OK;
}

static int copy_weights(struct stk_view *view, const struct stk_view_making *making,
                        const double *weights, uint64_t count, uint64_t *key)
{
    if (count != view->info.count)
        return stk_view_refuse(making, STOKER_EINVAL, "%llu weights for %llu samples",
                               (unsigned long long)count, (unsigned long long)view->info.count);
    int rc = check_weights(making, weights, count);
    if (rc != STOKER_OK)
        return rc;
    double *copy = stk_calloc((size_t)count, sizeof(*copy));
    if (copy == NULL)
        return stk_view_refuse(making, STOKER_ENOMEM, "%llu weights", (unsigned long long)count);
    memcpy(copy, weights, (size_t)count * sizeof(*copy));
    view->weights = copy;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &weights[i], sizeof(bits));
        *key = stk_view_mix(*key, bits);
    }
    return STOKER_OK;
}

/* Every class has the same weight, which its samples share. */
static int balance(struct stk_view *view, const struct stk_view_making *making)
{
    struct stk_view_classes classes;
    int rc = stk_view_classes_count(&classes, making, view->sources[0].dataset);
    if (rc != STOKER_OK)
        return rc;
    double *weights = stk_calloc((size_t)classes.count, sizeof(*weights));
    for (uint64_t i = 0; weights != NULL && i < classes.count; i++)
        weights[i] = classes.counts[i] > 0 ? 1.0 / (double)classes.counts[i] : 0.0;
    if (weights == NULL)
        rc = stk_view_refuse(making, STOKER_ENOMEM, "%llu classes",
                             (unsigned long long)classes.count);
    view->class_weights = weights;
    stk_view_classes_free(&classes);
    return rc;
}

int stoker_dataset_weight(stoker_dataset **out, stoker_dataset *dataset, const double *weights,
                          uint64_t count, stoker_error *error)
{
    const struct stk_view_making making = { .name = "weight", .error = error };
    struct stk_view *view = NULL;
    uint64_t key = stk_view_mix(5, weights == NULL);
    if (out == NULL || dataset == NULL || (weights == NULL && count != 0))
        return stk_view_refuse(&making, STOKER_EINVAL,
                               "out or data set is NULL, or weights is NULL and count is not 0");
    int rc = stk_view_make(&view, &making, &dataset, 1);
    if (rc != STOKER_OK)
        return rc;
    /* The ids are the data set's own, so its hints hold. */
    view->info = *stoker_dataset_get_info(dataset);
    view->take_run = take_alike;
    rc = weights == NULL ? balance(view, &making)
                         : copy_weights(view, &making, weights, count, &key);
    if (rc != STOKER_OK) {
        stk_view_free(view);
        return rc;
    }
    return stk_view_finish(out, &making, view, key);
}
