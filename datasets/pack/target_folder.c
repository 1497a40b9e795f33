/* target_folder.c - pack into image files, one folder per class.
 *
 * "folder:" numbers classes in the order of their names. So the source's class names are kept only if
 * they are sorted and valid file names; otherwise folders are named by class numbers.
 */
#include "datasets/pack/folder_files.h"
#include "datasets/pack/names.h"
#include "datasets/pack/output.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CLASS_BYTES = 256, CLASSES_MAX = 1 << 20 };

struct folder {
    const struct pack_plan *plan;
    struct pack_folder files;
    bool named; /* classes keep their names */
    struct pack_tally tally;
};

/* ---- classes -------------------------------------------------------------------- */

static bool is_file_name(const char *name)
{
    const size_t length = name == NULL ? 0 : strlen(name);
    return length > 0 && length < CLASS_BYTES - 1 && name[0] != '.' && strchr(name, '/') == NULL;
}

static bool names_will_do(const struct pack_plan *plan)
{
    for (uint32_t i = 0; i < plan->info->class_count; i++) {
        const char *name = stoker_dataset_class_name(plan->source, i);
        if (!is_file_name(name))
            return false;
        if (i > 0 && strcmp(stoker_dataset_class_name(plan->source, i - 1), name) >= 0)
            return false;
    }
    return true;
}

static void class_path(const struct folder *folder, uint32_t class, char path[PACK_PATH_BYTES])
{
    const struct pack_plan *plan = folder->plan;
    const char *root = plan->arguments->target;
    if (plan->info->class_count == 0)
        (void)snprintf(path, PACK_PATH_BYTES, "%s/all", root);
    else if (folder->named)
        (void)snprintf(path, PACK_PATH_BYTES, "%s/%s", root,
                       stoker_dataset_class_name(plan->source, class));
    else
        (void)snprintf(path, PACK_PATH_BYTES, "%s/%07" PRIu32, root, class);
}

static uint32_t class_folders(const struct folder *folder)
{
    const uint32_t count = folder->plan->info->class_count;
    return count == 0 ? 1 : count;
}

/* Empty classes too, since they are numbered. */
static bool make_classes(const struct folder *folder, struct pack_failure *failure)
{
    for (uint32_t i = 0; i < class_folders(folder); i++) {
        char path[PACK_PATH_BYTES];
        class_path(folder, i, path);
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return pack_fail(failure, path, errno, "it could not be made");
    }
    return true;
}

/* ---- open ----------------------------------------------------------------------- */

static void close_folder(void *self)
{
    struct folder *folder = self;
    pack_folder_close(&folder->files);
    free(folder);
}

static bool open_folder(void **self, const struct pack_plan *plan, struct pack_start *start,
                        struct pack_failure *failure)
{
    const char *path = plan->arguments->target;
    const stoker_dataset_info *info = plan->info;
    (void)start; /* all samples are read again; right files are kept */
    if (info->label_dtype == STOKER_DTYPE_FLOAT32 ||
        (info->label_dtype == STOKER_DTYPE_INT64 && info->class_count == 0))
        return pack_fail(failure, path, 0, "labels that are no classes do not fit in folders");
    if (info->class_count > CLASSES_MAX || strlen(path) > PACK_PATH_BYTES - 2 * CLASS_BYTES)
        return pack_fail(failure, path, 0, "too many classes, or too long a path");
    struct folder *folder = calloc(1, sizeof(*folder));
    if (folder == NULL)
        return pack_fail(failure, path, ENOMEM, "opening");
    folder->plan = plan;
    folder->named = names_will_do(plan);
    if (!pack_folder_open(&folder->files, plan, failure) ||
        (!folder->files.whole && !make_classes(folder, failure))) {
        close_folder(folder);
        return false;
    }
    *self = folder;
    return true;
}

/* ---- samples -------------------------------------------------------------------- */

static bool add_sample(struct folder *folder, const struct pack_sample *sample,
                       struct pack_failure *failure)
{
    char path[PACK_PATH_BYTES];
    char name[64];
    bool kept = false;
    const uint32_t class = folder->plan->info->class_count == 0 ? 0 : (uint32_t)sample->label.index;
    class_path(folder, class, path);
    pack_file_name(name, sizeof(name), sample);
    folder->tally.samples++;
    folder->tally.files++;
    folder->tally.bytes += sample->size;
    if (!pack_folder_add(&folder->files, path, name, sample->bytes, sample->size, &kept, failure))
        return false;
    folder->tally.kept_samples += kept ? 1 : 0;
    return true;
}

static bool add_batch(void *self, const struct pack_batch *batch, struct pack_failure *failure)
{
    struct folder *folder = self;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!add_sample(folder, &batch->samples[i], failure))
            return false;
    }
    return true;
}

/* ---- finish --------------------------------------------------------------------- */

static bool refuse_stranger(const char *path, const char *name, struct pack_failure *failure)
{
    return pack_fail(failure, path, 0,
                     "'%.200s' is not of this packing; remove it, or pack elsewhere", name);
}

/* Add the entries of one of our folders to *count; `files`: check that we name files like this. */
static bool count_entries(const char *path, bool files, uint64_t *count,
                          struct pack_failure *failure)
{
    DIR *stream = opendir(path);
    const struct dirent *entry;
    bool good = true;
    if (stream == NULL)
        return pack_fail(failure, path, errno, "listing");
    while (good && (entry = readdir(stream)) != NULL) {
        uint64_t number;
        if (entry->d_name[0] == '.') /* "folder:" ignores it, too */
            continue;
        good = !files || pack_file_number(entry->d_name, &number) ||
               refuse_stranger(path, entry->d_name, failure);
        (*count)++;
    }
    closedir(stream);
    return good;
}

/* Check for extra files: all of ours were seen, so the numbers must be equal. */
static bool is_ours_alone(const struct folder *folder, struct pack_failure *failure)
{
    const char *root = folder->plan->arguments->target;
    uint64_t classes = 0;
    uint64_t files = 0;
    bool good = count_entries(root, false, &classes, failure);
    for (uint32_t i = 0; good && i < class_folders(folder); i++) {
        char path[PACK_PATH_BYTES];
        class_path(folder, i, path);
        good = count_entries(path, true, &files, failure);
    }
    if (!good)
        return false;
    return (classes == class_folders(folder) && files == folder->tally.files) ||
           pack_fail(failure, root, 0,
                     "%" PRIu64 " folders with %" PRIu64 " files, of which %" PRIu32
                     " with %" PRIu64 " are of this packing; remove the others, or pack elsewhere",
                     classes, files, class_folders(folder), folder->tally.files);
}

/* Sync all files before the folder counts as finished. */
static bool finish(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct folder *folder = self;
    if (!is_ours_alone(folder, failure) || !pack_folder_finish(&folder->files, failure))
        return false;
    *tally = folder->tally;
    return true;
}

const struct pack_target pack_target_folder = {
    .open = open_folder, .add = add_batch, .finish = finish, .close = close_folder
};
