/* concat.c - a view of several, one after the other.
 *
 *   ids     0 .. n0-1 | n0 .. n0+n1-1 | ...          sources[i].end
 *   files   of source 0, its directory if numbered, | of source 1, ...  sources[i].first_file
 *
 * Paths are relative to a directory. If the data sets have one and the same, it is the view's; if
 * they have several, each is a file of the view, which the paths' extents name:
 * STOKER_DIRECTORY_OF_FILE.
 */
#include "datasets/views/view.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/memory/memory.h"
#include "loader/dataset/dataset.h"

/* ---- ids ---------------------------------------------------------------------------- */

enum number { ID, BLOCK };

static const struct stk_view_source *source_of(const struct stk_view *view, enum number kind,
                                               uint64_t number)
{
    uint32_t low = 0;
    uint32_t high = view->source_count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct stk_view_source *source = &view->sources[middle];
        if (number < (kind == ID ? source->end : source->block_end))
            high = middle;
        else
            low = middle + 1;
    }
    return &view->sources[low];
}

static uint64_t begin_of(const struct stk_view *view, const struct stk_view_source *source)
{
    return source == view->sources ? 0 : source[-1].end;
}

static uint32_t take_of_one(const struct stk_view *view, const uint64_t *ids, uint32_t count,
                            uint64_t *mapped, const struct stk_view_source **source)
{
    const struct stk_view_source *const one = source_of(view, ID, ids[0]);
    const uint64_t begin = begin_of(view, one);
    const uint32_t most = count < STK_VIEW_RUN_MAX ? count : STK_VIEW_RUN_MAX;
    uint32_t taken = 0;
    for (; taken < most && ids[taken] >= begin && ids[taken] < one->end; taken++)
        mapped[taken] = ids[taken] - begin;
    *source = one;
    return taken;
}

/* ---- blocks --------------------------------------------------------------------------- */

static uint64_t block_first(const void *self, uint64_t block)
{
    const struct stk_view *view = self;
    const struct stk_view_source *source = source_of(view, BLOCK, block);
    const uint64_t before = source == view->sources ? 0 : source[-1].block_end;
    const stoker_dataset *inner = source->dataset;
    return begin_of(view, source) + inner->ops->block_first(inner->self, block - before);
}

/* A source without blocks leaves the view without them, too. */
static void join_blocks(struct stk_view *view)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < view->source_count; i++) {
        const uint64_t count = stoker_dataset_get_info(view->sources[i].dataset)->block_count;
        if (count == 0)
            return;
        end += count;
        view->sources[i].block_end = end;
    }
    view->info.block_count = end;
    view->ops.block_first = block_first;
}

/* ---- classes --------------------------------------------------------------------------- */

/* A class must have one name in all data sets that name it. */
static int check_class(const struct stk_view_making *making, const struct stk_view *view,
                       uint32_t index, uint32_t field, uint32_t number)
{
    const stoker_dataset *dataset = view->sources[index].dataset;
    const char *name = stoker_dataset_class_name(dataset, field, number);
    const char *other = NULL;
    uint32_t before = 0;
    for (; name != NULL && other == NULL && before < index; before++)
        other = stoker_dataset_class_name(view->sources[before].dataset, field, number);
    if (other == NULL || strcmp(name, other) == 0)
        return STOKER_OK; /* that one was compared with those before it */
    return stk_view_refuse(making, STOKER_EMISMATCH,
                           "%s: class %" PRIu32 " is \"%.64s\" in data set %" PRIu32
                           ", but \"%.64s\" in data set %" PRIu32,
                           stoker_dataset_field(dataset, field)->name, number, other, before, name,
                           index + 1);
}

static int check_classes(const struct stk_view_making *making, const struct stk_view *view,
                         uint32_t index)
{
    const stoker_dataset *dataset = view->sources[index].dataset;
    int rc = STOKER_OK;
    for (uint32_t field = 0; field < stoker_dataset_get_info(dataset)->field_count; field++) {
        const uint32_t classes = stoker_dataset_field(dataset, field)->class_count;
        for (uint32_t number = 0; rc == STOKER_OK && number < classes; number++)
            rc = check_class(making, view, index, field, number);
    }
    return rc;
}

/* ---- files ---------------------------------------------------------------------------- */

/* Returns true if paths need directories by number: the data sets have more than one. */
static bool needs_directories(const struct stk_view *view)
{
    const stoker_dataset_info *first = NULL;
    for (uint32_t i = 0; i < view->source_count; i++) {
        const stoker_dataset_info *info = stoker_dataset_get_info(view->sources[i].dataset);
        if (!info->has_paths)
            continue;
        if (info->directory == STOKER_DIRECTORY_OF_FILE ||
            (first != NULL && first->directory != info->directory))
            return true;
        first = info;
    }
    return false;
}

static int number_files(const struct stk_view_making *making, struct stk_view *view)
{
    const bool numbered = needs_directories(view);
    uint32_t files = 0;
    for (uint32_t i = 0; i < view->source_count; i++) {
        struct stk_view_source *source = &view->sources[i];
        const stoker_dataset_info *info = stoker_dataset_get_info(source->dataset);
        const bool own = numbered && info->has_paths && info->directory != STOKER_DIRECTORY_OF_FILE;
        if (own && info->directory == AT_FDCWD)
            return stk_view_refuse(making, STOKER_ENOTSUP,
                                   "data set %" PRIu32 " (%s) has paths relative to the working "
                                   "directory, another one has a directory of its own",
                                   i + 1, stoker_dataset_name(source->dataset));
        source->first_file = files;
        if (info->file_count > UINT32_MAX - 2 - files)
            return stk_view_refuse(making, STOKER_ELIMIT, "more than 2^32 files");
        files += info->file_count;
        source->directory = own ? files++ : STK_VIEW_NO_DIRECTORY;
        if (info->has_paths)
            view->info.directory = numbered ? STOKER_DIRECTORY_OF_FILE : info->directory;
    }
    view->info.file_count = files;
    return STOKER_OK;
}

/* ---- info ----------------------------------------------------------------------------- */

static void widen_info(stoker_dataset_info *all, const stoker_dataset_info *info)
{
    if (all->encoded_bytes_max < info->encoded_bytes_max)
        all->encoded_bytes_max = info->encoded_bytes_max;
    all->has_paths = all->has_paths || info->has_paths;
}

/* A view that makes its samples reads no paths itself. */
static void forget_paths(struct stk_view *view)
{
    view->info.has_paths = view->info.has_paths && !view->makes;
}

/* "A; B": what opening found in each. */
static int describe_all(const struct stk_view_making *making, struct stk_view *view)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < view->source_count; i++) {
        const char *text = stoker_dataset_get_info(view->sources[i].dataset)->description;
        bytes += text == NULL ? 0 : strlen(text) + 2;
    }
    view->info.description = NULL;
    if (bytes == 1)
        return STOKER_OK;
    view->description = stk_calloc(bytes, 1);
    if (view->description == NULL)
        return stk_view_refuse(making, STOKER_ENOMEM, "the description");
    for (uint32_t i = 0; i < view->source_count; i++) {
        const char *text = stoker_dataset_get_info(view->sources[i].dataset)->description;
        const size_t used = strlen(view->description);
        if (text != NULL)
            (void)snprintf(view->description + used, bytes - used, "%s%s", used == 0 ? "" : "; ",
                           text);
    }
    view->info.description = view->description;
    return STOKER_OK;
}

int stk_view_join(const struct stk_view_making *making, struct stk_view *view)
{
    uint64_t end = 0;
    int rc = stk_view_join_fields(view, making);
    for (uint32_t i = 0; rc == STOKER_OK && i < view->source_count; i++) {
        const stoker_dataset_info *info = stoker_dataset_get_info(view->sources[i].dataset);
        rc = check_classes(making, view, i);
        widen_info(&view->info, info);
        if (info->count > STK_SAMPLER_COUNT_MAX - end)
            return stk_view_refuse(making, STOKER_ELIMIT, "more than 2^62 samples");
        end += info->count;
        view->sources[i].end = end;
    }
    view->info.count = end;
    join_blocks(view);
    view->take_run = take_of_one;
    if (rc == STOKER_OK)
        rc = number_files(making, view);
    forget_paths(view);
    return rc == STOKER_OK ? describe_all(making, view) : rc;
}

int stoker_dataset_concat(stoker_dataset **out, stoker_dataset *const *datasets, uint32_t count,
                          stoker_error *error)
{
    const struct stk_view_making making = { .name = "concat", .error = error };
    struct stk_view *view = NULL;
    if (out == NULL || datasets == NULL || count == 0)
        return stk_view_refuse(&making, STOKER_EINVAL, "out or datasets is NULL, or count is 0");
    int rc = stk_view_make(&view, &making, datasets, count);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_view_join(&making, view);
    if (rc != STOKER_OK) {
        stk_view_free(view);
        return rc;
    }
    return stk_view_finish(out, &making, view, stk_view_mix(4, count));
}
