/* balance.c - a view of all samples of a data set, in its order, of which a loader draws all classes equally often. */
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

/* Give every class the same weight, which its samples share. */
static int weigh_classes(struct stk_view *view, const struct stk_view_making *making)
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

int stoker_dataset_balance(stoker_dataset **out, stoker_dataset *dataset, stoker_error *error)
{
    const struct stk_view_making making = { .name = "balance", .error = error };
    struct stk_view *view = NULL;
    if (out == NULL || dataset == NULL)
        return stk_view_refuse(&making, STOKER_EINVAL, "out or data set is NULL");
    int rc = stk_view_make(&view, &making, &dataset, 1);
    if (rc != STOKER_OK)
        return rc;
    /* The ids are the data set's own, so its hints hold. */
    view->info = *stoker_dataset_get_info(dataset);
    view->take_run = take_alike;
    rc = weigh_classes(view, &making);
    if (rc != STOKER_OK) {
        stk_view_free(view);
        return rc;
    }
    return stk_view_finish(out, &making, view, stk_view_mix(5, 1));
}
