/* view.c - see view.h. */
#include "datasets/views/view.h"

#include <assert.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/dataset/dataset.h"

int stk_view_refuse(const struct stk_view_making *making, int code, const char *format, ...)
{
    char what[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return stk_refuse_spec(making->error, code, "%s: %s", making->name, what);
}

uint64_t stk_view_mix(uint64_t key, uint64_t word)
{
    return stk_mix64(key ^ word) + word;
}

/* ---- forwarded callbacks ---------------------------------------------------------- */

static int describe(const void *self, stoker_dataset_info *out)
{
    *out = ((const struct stk_view *)self)->info;
    return STOKER_OK;
}

/* Renumber what the sample of a source names. The innermost data set's id is the codec's. */
static void adopt(const struct stk_view_source *source, uint64_t id, stoker_part *sample)
{
    stoker_extent *extent = &sample->extent;
    if (sample->codec_id == 0)
        sample->codec_id = id + 1;
    if (extent->memory != NULL || extent->bytes == 0)
        return;
    if (extent->path != NULL && source->directory != STK_VIEW_NO_DIRECTORY)
        extent->file = source->directory;
    else
        extent->file += source->first_file;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    const struct stk_view *view = self;
    const uint32_t part_count = view->info.part_count;
    uint64_t mapped[STK_VIEW_RUN_MAX];
    while (count > 0) {
        const struct stk_view_source *source;
        const uint32_t taken = view->take_run(view, ids, count, mapped, &source);
        const stoker_dataset *inner = source->dataset;
        const int rc = inner->ops->locate(inner->self, mapped, taken, out, error);
        if (rc != STOKER_OK)
            return rc;
        for (uint32_t i = 0; i < taken * part_count; i++)
            adopt(source, mapped[i / part_count], &out[i]);
        ids += taken;
        out += taken * part_count;
        count -= taken;
    }
    return STOKER_OK;
}

/* All wrapped data sets have the same fields; those of a concat are made from all of them. */
static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct stk_view *view = self;
    *out = view->fields != NULL ? view->fields[field]
                                : *stoker_dataset_field(view->sources[0].dataset, field);
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct stk_view *view = self;
    const size_t bytes = stoker_dataset_field_bytes(view->sources[0].dataset, field);
    uint64_t mapped[STK_VIEW_RUN_MAX];
    uint8_t *to = out;
    while (count > 0) {
        const struct stk_view_source *source;
        const uint32_t taken = view->take_run(view, ids, count, mapped, &source);
        const stoker_dataset *inner = source->dataset;
        const int rc = inner->ops->values(inner->self, field, mapped, taken, to);
        if (rc != STOKER_OK)
            return rc;
        ids += taken;
        to += taken * bytes;
        count -= taken;
    }
    return STOKER_OK;
}

static int lengths(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                   uint64_t *out)
{
    const struct stk_view *view = self;
    uint64_t mapped[STK_VIEW_RUN_MAX];
    int rc = STOKER_OK;
    while (rc == STOKER_OK && count > 0) {
        const struct stk_view_source *source;
        const uint32_t taken = view->take_run(view, ids, count, mapped, &source);
        rc = stoker_dataset_lengths(source->dataset, field, mapped, taken, out, NULL);
        ids += taken;
        out += taken;
        count -= taken;
    }
    return rc;
}

/* The generator stays keyed by the view's id: a sample that comes twice in a view may be made in
 * two ways. */
static int make_view_row(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                         stoker_error *error)
{
    const struct stk_view *view = self;
    uint64_t mapped[STK_VIEW_RUN_MAX];
    const struct stk_view_source *source;
    (void)view->take_run(view, &id, 1, mapped, &source);
    const stoker_dataset *inner = source->dataset;
    return inner->ops->make != NULL ? inner->ops->make(inner->self, mapped[0], rows, rng, error)
                                    : stoker_dataset_read(inner, mapped[0], rows, error);
}

/* The source that a file of the view belongs to. */
static const struct stk_view_source *source_of_file(const struct stk_view *view, uint32_t file)
{
    const struct stk_view_source *source = view->sources;
    for (uint32_t i = 1; i < view->source_count && view->sources[i].first_file <= file; i++)
        source = &view->sources[i];
    return source;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct stk_view *view = self;
    const struct stk_view_source *source = source_of_file(view, file);
    const stoker_dataset *inner = source->dataset;
    if (file == source->directory) {
        *out = (stoker_file){ .path = inner->ops->name, .fd = inner->info.directory };
        return STOKER_OK;
    }
    if (file >= view->info.file_count || file - source->first_file >= inner->info.file_count)
        return STOKER_EINVAL;
    return inner->ops->file(inner->self, file - source->first_file, out);
}

static const char *class_name(const void *self, uint32_t field, uint32_t index)
{
    const struct stk_view *view = self;
    const char *name = NULL;
    for (uint32_t i = 0; i < view->source_count && name == NULL; i++)
        name = stoker_dataset_class_name(view->sources[i].dataset, field, index);
    return name;
}

static const char *stored_as(const void *self, uint64_t id)
{
    const struct stk_view *view = self;
    uint64_t mapped[STK_VIEW_RUN_MAX];
    const struct stk_view_source *source;
    (void)view->take_run(view, &id, 1, mapped, &source);
    return stoker_dataset_stored_as(source->dataset, mapped[0]);
}

static void destroy(void *self)
{
    stk_view_free(self);
}

/* Weights by class, of at most STK_VIEW_RUN_MAX samples. */
static int class_weights(const struct stk_view *view, const uint64_t *ids, uint32_t count,
                         double *out)
{
    int64_t classes[STK_VIEW_RUN_MAX];
    stoker_error unwanted;
    const int rc = stk_view_class_labels(view->sources[0].dataset, ids, count, classes, &unwanted);
    for (uint32_t i = 0; rc == STOKER_OK && i < count; i++)
        out[i] = view->class_weights[classes[i]];
    return rc;
}

static int weights(const void *self, const uint64_t *ids, uint32_t count, double *out)
{
    const struct stk_view *view = self;
    uint64_t mapped[STK_VIEW_RUN_MAX];
    int rc = STOKER_OK;
    while (rc == STOKER_OK && count > 0) {
        const struct stk_view_source *source;
        const uint32_t taken = view->take_run(view, ids, count, mapped, &source);
        const stoker_dataset *inner = source->dataset;
        if (view->class_weights != NULL)
            rc = class_weights(view, ids, taken, out);
        else if (inner->weights != NULL)
            rc = inner->weights(inner->self, mapped, taken, out);
        else
            for (uint32_t i = 0; i < taken; i++)
                out[i] = 1.0;
        ids += taken;
        out += taken;
        count -= taken;
    }
    return rc;
}

/* ---- labels, to count classes ------------------------------------------------------- */

int stk_view_class_labels(const stoker_dataset *dataset, const uint64_t *ids, uint32_t count,
                          int64_t *labels_out, stoker_error *error)
{
    if (dataset->ops->values == NULL ||
        dataset->fields[dataset->label].info.part != STOKER_NO_PART) {
        (void)stk_refuse_spec(error, STOKER_ENOTSUP,
                              "classes are counted from labels that the data set has in memory; "
                              "those of %s are read or made sample by sample",
                              dataset->ops->name);
        return STOKER_ENOTSUP;
    }
    const int rc =
        dataset->ops->values(dataset->self, (uint32_t)dataset->label, ids, count, labels_out);
    return rc > 0 ? STOKER_EINVAL : rc;
}

/* ---- life ----------------------------------------------------------------------------- */

/* The depth of a data set: 0, or of a view one more than what it wraps. */
static uint32_t depth_of(const stoker_dataset *dataset)
{
    uint32_t deepest = 0;
    if (dataset->ops->describe != describe)
        return 0;
    const struct stk_view *view = dataset->self;
    for (uint32_t i = 0; i < view->source_count; i++) {
        const uint32_t depth = depth_of(view->sources[i].dataset);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static void set_ops(struct stk_view *view, const char *name)
{
    view->ops = (stoker_dataset_ops){
        .struct_size = sizeof(stoker_dataset_ops),
        .name = name,
        .describe = describe,
        .field = field_of,
        .locate = locate,
        .values = values,
        .make = view->makes ? make_view_row : NULL,
        .file = file_of,
        .destroy = destroy,
        .class_name = class_name,
        .stored_as = stored_as,
        .lengths = lengths,
    };
}

int stk_view_make(struct stk_view **out, const struct stk_view_making *making,
                  stoker_dataset *const *datasets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (datasets[i] == NULL)
            return stk_view_refuse(making, STOKER_EINVAL, "data set %u is NULL", i);
        if (datasets[i]->mix != NULL)
            return stk_view_refuse(making, STOKER_ENOTSUP,
                                   "data set %u is a mix, of which no view is made: mix views "
                                   "instead",
                                   i);
        if (depth_of(datasets[i]) >= STOKER_VIEW_DEPTH_MAX)
            return stk_view_refuse(making, STOKER_ELIMIT, "views of views are at most %d deep",
                                   STOKER_VIEW_DEPTH_MAX);
    }
    struct stk_view *view = stk_calloc(1, sizeof(*view) + count * sizeof(view->sources[0]));
    if (view == NULL)
        return stk_view_refuse(making, STOKER_ENOMEM, "the view");
    for (uint32_t i = 0; i < count; i++) {
        view->makes = view->makes || datasets[i]->ops->make != NULL;
        view->reads = view->reads || datasets[i]->ops->make == NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        view->sources[i] = (struct stk_view_source){ .dataset = stoker_dataset_share(datasets[i]),
                                                     .directory = STK_VIEW_NO_DIRECTORY };
    view->source_count = count;
    view->info = datasets[0]->info;
    view->info.dense = false;
    view->info.rows = NULL;
    view->info.block_count = 0; /* join() adds them again: other maps of ids break them up */
    view->info.part_count = view->makes ? 0 : view->info.part_count;
    set_ops(view, making->name);
    *out = view;
    return STOKER_OK;
}

static void free_mix(struct stk_mix_plan *mix)
{
    if (mix == NULL)
        return;
    stk_course_free(&mix->course);
    stk_free((void *)mix->id_ends);
    stk_free((void *)mix->blocks);
    stk_free(mix);
}

void stk_view_free(struct stk_view *view)
{
    for (uint32_t i = 0; i < view->source_count; i++)
        stoker_dataset_close(&view->sources[i].dataset);
    stk_free(view->ids);
    stk_free((void *)view->class_weights);
    free_mix(view->mix);
    stk_free(view->description);
    stk_free(view->fields);
    stk_free(view);
}

/* Computed on demand: the fingerprint of a source looks at up to 65,536 samples. */
static uint64_t find_fingerprint(const void *self)
{
    const struct stk_view *view = self;
    uint64_t key = view->info.fingerprint;
    for (uint32_t i = 0; i < view->source_count; i++)
        key = stk_view_mix(key, stoker_dataset_fingerprint(view->sources[i].dataset));
    return key;
}

/* A file that changed between the opening of its data set and of the view has changed for the view,
 * too. */
static void keep_stamps(stoker_dataset *dataset, const struct stk_view *view)
{
    for (uint32_t i = 0; i < view->source_count; i++) {
        const struct stk_stamps *stamps = &view->sources[i].dataset->stamps;
        for (uint32_t file = 0; file < stamps->count; file++)
            dataset->stamps.each[view->sources[i].first_file + file] = stamps->each[file];
    }
}

int stk_view_finish(stoker_dataset **out, const struct stk_view_making *making,
                    struct stk_view *view, uint64_t key)
{
    bool weighted = view->class_weights != NULL;
    bool cheap = true;
    bool recalls = false;
    for (uint32_t i = 0; i < view->source_count; i++) {
        weighted = weighted || view->sources[i].dataset->weights != NULL;
        cheap = cheap && view->sources[i].dataset->cheap_rows;
        recalls = recalls || view->sources[i].dataset->recalls;
    }
    view->info.fingerprint = key;
    stoker_dataset *made = NULL;
    const int rc = stoker_dataset_create(&made, &view->ops, view, making->error);
    if (rc != STOKER_OK) {
        stk_view_free(view);
        return rc;
    }
    made->weights = weighted ? weights : NULL;
    made->cheap_rows = cheap;
    made->recalls = recalls;
    made->mix = view->mix;
    made->find_fingerprint = find_fingerprint;
    keep_stamps(made, view);
    *out = made;
    return STOKER_OK;
}
