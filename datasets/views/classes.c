/* classes.c - count the samples of each class: see classes.h; and the view that draws all classes
 * equally often. */
#include "datasets/views/classes.h"

#include <string.h>

#include "loader/base/memory/memory.h"

int stk_view_classes_visit(const struct stk_view_making *making, const stoker_dataset *dataset,
                           int (*visit)(void *context, uint64_t first, const int64_t *labels,
                                        uint32_t count),
                           void *context)
{
    const uint64_t all = stoker_dataset_get_info(dataset)->count;
    stoker_error why = { .code = STOKER_OK };
    uint64_t ids[STK_VIEW_RUN_MAX];
    int64_t labels[STK_VIEW_RUN_MAX];
    int rc = STOKER_OK;
    for (uint64_t first = 0; rc == STOKER_OK && first < all; first += STK_VIEW_RUN_MAX) {
        const uint32_t count =
            all - first < STK_VIEW_RUN_MAX ? (uint32_t)(all - first) : STK_VIEW_RUN_MAX;
        for (uint32_t i = 0; i < count; i++)
            ids[i] = first + i;
        rc = stk_view_class_labels(dataset, ids, count, labels, &why);
        if (rc != STOKER_OK)
            return stk_view_refuse(making, rc, "labels from sample %llu on: %.200s",
                                   (unsigned long long)first, why.message);
        rc = visit(context, first, labels, count);
    }
    return rc;
}

/* The largest label so far, and the first one that is no class. */
struct survey {
    int64_t most;
    uint64_t bad; /* sample id; STOKER_NO_SAMPLE = none */
    int64_t bad_label;
};

static int survey_labels(void *context, uint64_t first, const int64_t *labels, uint32_t count)
{
    struct survey *survey = context;
    for (uint32_t i = 0; i < count; i++) {
        survey->most = labels[i] > survey->most ? labels[i] : survey->most;
        if (survey->bad == STOKER_NO_SAMPLE &&
            (labels[i] < 0 || labels[i] >= STK_VIEW_CLASSES_MAX)) {
            survey->bad = first + i;
            survey->bad_label = labels[i];
        }
    }
    return STOKER_OK;
}

static int count_labels(void *context, uint64_t first, const int64_t *labels, uint32_t count)
{
    (void)first;
    uint64_t *counts = context;
    for (uint32_t i = 0; i < count; i++)
        counts[labels[i]]++;
    return STOKER_OK;
}

int stk_view_classes_count(struct stk_view_classes *classes, const struct stk_view_making *making,
                           const stoker_dataset *dataset)
{
    *classes = (struct stk_view_classes){ .counts = NULL };
    if (stoker_dataset_get_info(dataset)->label_dtype != STOKER_DTYPE_INT64)
        return stk_view_refuse(making, STOKER_EINVAL, "%s: the data set has no class labels",
                               stoker_dataset_name(dataset));
    struct survey survey = { .bad = STOKER_NO_SAMPLE };
    int rc = stk_view_classes_visit(making, dataset, survey_labels, &survey);
    if (rc == STOKER_OK && survey.bad != STOKER_NO_SAMPLE)
        rc = stk_view_refuse(making, survey.bad_label < 0 ? STOKER_EINVAL : STOKER_ELIMIT,
                             "sample %llu has label %lld; classes are 0 to %d",
                             (unsigned long long)survey.bad, (long long)survey.bad_label,
                             STK_VIEW_CLASSES_MAX - 1);
    if (rc != STOKER_OK)
        return rc;
    classes->count = (uint64_t)survey.most + 1;
    classes->counts = stk_calloc((size_t)classes->count, sizeof(classes->counts[0]));
    if (classes->counts == NULL)
        return stk_view_refuse(making, STOKER_ENOMEM, "%llu classes",
                               (unsigned long long)classes->count);
    rc = stk_view_classes_visit(making, dataset, count_labels, classes->counts);
    if (rc != STOKER_OK)
        stk_view_classes_free(classes);
    return rc;
}

void stk_view_classes_free(struct stk_view_classes *classes)
{
    stk_free(classes->counts);
    *classes = (struct stk_view_classes){ .counts = NULL };
}

/* ---- balance ------------------------------------------------------------------------- */

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
