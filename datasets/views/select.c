/* select.c - a view of chosen samples. */
#include <string.h>

#include "datasets/views/view.h"
#include "loader/base/memory/memory.h"

static uint32_t take_selected(const struct stk_view *view, const uint64_t *ids, uint32_t count,
                              uint64_t *mapped, const struct stk_view_source **source)
{
    const uint32_t taken = count < STK_VIEW_RUN_MAX ? count : STK_VIEW_RUN_MAX;
    for (uint32_t i = 0; i < taken; i++)
        mapped[i] = view->ids[ids[i]];
    *source = view->sources;
    return taken;
}

void stk_view_use_ids(struct stk_view *view, uint64_t *ids, uint64_t count)
{
    view->ids = ids;
    view->info.count = count;
    view->take_run = take_selected;
}

/* Check and copy the ids; *key becomes their hash. */
static int copy_ids(struct stk_view *view, const struct stk_view_making *making,
                    const uint64_t *ids, uint64_t count, uint64_t *key)
{
    const uint64_t inner_count = view->info.count;
    for (uint64_t i = 0; i < count; i++) {
        if (ids[i] >= inner_count)
            return stk_view_refuse(
                making, STOKER_EINVAL, "ids[%llu] is %llu, but the data set has %llu samples",
                (unsigned long long)i, (unsigned long long)ids[i], (unsigned long long)inner_count);
        *key = stk_view_mix(*key, ids[i]);
    }
    uint64_t *copy =
        count <= SIZE_MAX / sizeof(*ids) ? stk_calloc((size_t)count, sizeof(*ids)) : NULL;
    if (copy == NULL)
        return stk_view_refuse(making, STOKER_ENOMEM, "%llu ids", (unsigned long long)count);
    memcpy(copy, ids, (size_t)count * sizeof(*ids));
    stk_view_use_ids(view, copy, count);
    return STOKER_OK;
}

int stoker_dataset_select(stoker_dataset **out, stoker_dataset *dataset, const uint64_t *ids,
                          uint64_t count, stoker_error *error)
{
    const struct stk_view_making making = { .name = "select", .error = error };
    struct stk_view *view = NULL;
    uint64_t key = stk_view_mix(1, count);
    if (out == NULL || dataset == NULL || ids == NULL || count == 0)
        return stk_view_refuse(&making, STOKER_EINVAL,
                               "out, data set or ids is NULL, or there are no ids");
    int rc = stk_view_make(&view, &making, &dataset, 1);
    if (rc != STOKER_OK)
        return rc;
    rc = copy_ids(view, &making, ids, count, &key);
    if (rc != STOKER_OK) {
        stk_view_free(view);
        return rc;
    }
    return stk_view_finish(out, &making, view, key);
}
