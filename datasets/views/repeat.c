/* repeat.c - a view of a data set several times in a row. */
#include "datasets/views/view.h"

static uint32_t take_repeated(const struct stk_view *view, const uint64_t *ids, uint32_t count,
                              uint64_t *mapped, const struct stk_view_source **source)
{
    const uint32_t taken = count < STK_VIEW_RUN_MAX ? count : STK_VIEW_RUN_MAX;
    for (uint32_t i = 0; i < taken; i++)
        mapped[i] = ids[i] % view->sources[0].end;
    *source = view->sources;
    return taken;
}

int stoker_dataset_repeat(stoker_dataset **out, stoker_dataset *dataset, uint64_t times,
                          stoker_error *error)
{
    const struct stk_view_making making = { .name = "repeat", .error = error };
    struct stk_view *view = NULL;
    uint64_t count;
    if (out == NULL || dataset == NULL || times == 0)
        return stk_view_refuse(&making, STOKER_EINVAL, "out or data set is NULL, or times is 0");
    const int rc = stk_view_make(&view, &making, &dataset, 1);
    if (rc != STOKER_OK)
        return rc;
    view->sources[0].end = view->info.count;
    view->take_run = take_repeated;
    if (__builtin_mul_overflow(view->info.count, times, &count) || count > STK_SAMPLER_COUNT_MAX) {
        const unsigned long long inner_count = view->info.count;
        stk_view_free(view);
        return stk_view_refuse(&making, STOKER_ELIMIT, "%llu times %llu samples exceed 2^62",
                               (unsigned long long)times, inner_count);
    }
    view->info.count = count;
    return stk_view_finish(out, &making, view, stk_view_mix(2, times));
}
