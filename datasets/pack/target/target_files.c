/* target_files.c - pack into files: of one archive, or of folders. Their names are in members.h.
 *
 * An archive is begun again, or only compared if it exists. In a folder, files that have the right
 * bytes are kept.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/pack/encode/npy.h"
#include "datasets/pack/members.h"
#include "datasets/pack/target/archive.h"
#include "datasets/pack/target/folder_files.h"
#include "datasets/pack/target/key_set.h"

enum { DEPTH_MAX = 32 };

struct files {
    const struct pack_plan *plan;
    struct pack_archive archive;
    struct pack_folder folder;
    struct pack_key_set keys;    /* an archive has no key twice */
    char before[PACK_KEY_BYTES]; /* key of the sample before, for folders; "" = none */
    struct pack_piece word;      /* the file of a field without a part */
    bool classes_named;          /* folders of classes have the classes' names */
    bool asked;                  /* next_file_range() has handed out the samples */
    struct pack_tally tally;
};

static const char *target_of(const struct files *files)
{
    return files->plan->arguments->target;
}

static bool wrong_sample(const struct files *files, const struct pack_item *item, const char *key,
                         const char *what, struct pack_failure *failure)
{
    return pack_fail(failure, files->plan->arguments->source, 0,
                     "sample %" PRIu64 ": %s: \"%.100s\"", item->id, what, key);
}

static struct files *make_files(const struct pack_plan *plan, struct pack_failure *failure)
{
    struct files *files = calloc(1, sizeof(*files));
    if (files == NULL) {
        (void)pack_fail(failure, plan->arguments->target, ENOMEM, "opening");
        return NULL;
    }
    files->plan = plan;
    files->folder.fd = -1;
    return files;
}

static void close_files(void *self)
{
    struct files *files = self;
    if (files == NULL)
        return;
    pack_archive_close(&files->archive);
    pack_folder_close(&files->folder);
    pack_key_set_free(&files->keys);
    pack_room_free(&files->word.room);
    free(files);
}

/* All samples at once. */
static bool next_file_range(void *self, struct pack_range *range, struct pack_failure *failure)
{
    struct files *files = self;
    (void)failure;
    *range = (struct pack_range){ .count = files->asked ? 0 : files->plan->info->count };
    files->asked = true;
    return true;
}

/* Returns the piece of a field's file; NULL: out of memory. */
static const struct pack_piece *piece_of(struct files *files, const struct pack_item *item,
                                         uint32_t number)
{
    const struct stk_shard_field *field = &files->plan->fields[number];
    struct pack_piece *word = &files->word;
    if (field->part != STOKER_NO_PART)
        return &item->pieces[field->part];
    word->room.used = 0;
    word->bytes = item->rows[number].data;
    word->size = (size_t)stk_shard_value_bytes(field);
    if (files->plan->arguments->form == PACK_FOLDER || !pack_members_is_class(field))
        return pack_npy(field, 0, word) == NULL ? word : NULL;
    char text[24];
    int64_t class = 0;
    memcpy(&class, word->bytes, sizeof(class));
    word->size = (size_t)snprintf(text, sizeof(text), "%" PRId64, class);
    if (!pack_room_add(&word->room, text, word->size))
        return NULL;
    word->bytes = word->room.at;
    return word;
}

/* ---- an archive ----------------------------------------------------------------- */

static bool open_tar(void **self, const struct pack_plan *plan, struct pack_failure *failure)
{
    struct files *files = *self = make_files(plan, failure);
    return files != NULL && pack_archive_open(&files->archive, plan->arguments->target, failure);
}

static bool add_to_tar(void *self, const struct pack_item *item, struct pack_failure *failure)
{
    struct files *files = self;
    char key[PACK_KEY_BYTES];
    files->tally.bad_samples += item->bad ? 1 : 0;
    if (item->bad)
        return true;
    const char *what = pack_members_key(files->plan, item, key);
    bool twice = false;
    if (what == NULL && !pack_key_set_add(&files->keys, key, &twice))
        return pack_fail(failure, target_of(files), ENOMEM, "the keys");
    if (twice)
        what = "its key is that of another sample";
    if (what != NULL)
        return wrong_sample(files, item, key, what, failure);
    for (uint32_t i = 0; i < files->plan->info->field_count; i++) {
        char name[PACK_KEY_BYTES + 2 * STOKER_FIELD_NAME_BYTES];
        char extension[2 * STOKER_FIELD_NAME_BYTES];
        if (pack_members_is_key(files->plan, i))
            continue;
        const struct pack_piece *piece = piece_of(files, item, i);
        if (piece == NULL)
            return pack_fail(failure, target_of(files), ENOMEM, "a label");
        pack_members_extension(files->plan, item, i, extension, sizeof(extension));
        (void)snprintf(name, sizeof(name), "%s.%s", key, extension);
        if (!pack_archive_add(&files->archive, name, piece->bytes, piece->size, failure))
            return false;
    }
    files->tally.samples++;
    return true;
}

static bool finish_tar(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct files *files = self;
    if (files->tally.samples == 0)
        return pack_fail(failure, target_of(files), 0, "all samples are bad");
    if (pack_archive_existed(&files->archive))
        files->tally.kept_samples = files->tally.samples;
    if (!pack_archive_finish(&files->archive, failure))
        return false;
    files->tally.bytes = files->archive.at;
    files->tally.files = 1;
    *tally = files->tally;
    return true;
}

const struct pack_target pack_target_tar = { .open = open_tar,
                                             .next = next_file_range,
                                             .add = add_to_tar,
                                             .finish = finish_tar,
                                             .close = close_files };

/* ---- folders -------------------------------------------------------------------- */

static bool is_file_name(const char *name)
{
    const size_t length = name == NULL ? 0 : strlen(name);
    return length > 0 && length < NAME_MAX && name[0] != '.' && strchr(name, '/') == NULL;
}

/* folder: numbers classes in the order of their names: only ascending names can be kept. */
static bool can_name_classes(const struct pack_plan *plan)
{
    const uint32_t label = (uint32_t)stoker_dataset_find_field(plan->source, "label");
    for (uint32_t i = 0; i < plan->info->class_count; i++) {
        const char *name = stoker_dataset_class_name(plan->source, label, i);
        if (!is_file_name(name) ||
            (i > 0 && strcmp(stoker_dataset_class_name(plan->source, label, i - 1), name) >= 0))
            return false;
    }
    return true;
}

/* Write the path of folder `number`: of a class, or of the field of that number. */
static void folder_path(const struct files *files, uint32_t number, char path[PACK_PATH_BYTES])
{
    const struct pack_plan *plan = files->plan;
    const uint32_t label = (uint32_t)stoker_dataset_find_field(plan->source, "label");
    const char *name = !pack_members_by_class(plan)   ? plan->fields[number].name
                       : plan->info->class_count == 0 ? "all"
                       : files->classes_named
                           ? stoker_dataset_class_name(plan->source, label, number)
                           : NULL;
    if (name != NULL)
        (void)snprintf(path, PACK_PATH_BYTES, "%s/%s", target_of(files), name);
    else
        (void)snprintf(path, PACK_PATH_BYTES, "%s/%07" PRIu32, target_of(files), number);
}

/* Folders in the target: of classes, empty ones too, since they are numbered; or of fields. */
static uint64_t folder_count(const struct files *files)
{
    const uint32_t count = files->plan->info->field_count;
    const uint32_t classes = files->plan->info->class_count;
    if (pack_members_by_class(files->plan))
        return classes == 0 ? 1 : classes;
    for (uint32_t i = 0; i < count; i++)
        if (pack_members_is_key(files->plan, i))
            return count - 1;
    return count;
}

/* Make a folder and those above it, behind the first `from` bytes of its path. */
static bool make_folders(char *path, size_t from, struct pack_failure *failure)
{
    for (char *at = path + from; at != NULL;) {
        at = strchr(at, '/');
        if (at != NULL)
            *at = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return pack_fail(failure, path, errno, "it could not be made");
        if (at != NULL)
            *at++ = '/';
    }
    return true;
}

static bool open_folder(void **self, const struct pack_plan *plan, struct pack_failure *failure)
{
    char path[PACK_PATH_BYTES];
    const char *target = plan->arguments->target;
    if (strlen(target) > PACK_PATH_BYTES - PACK_KEY_BYTES - 4 * STOKER_FIELD_NAME_BYTES)
        return pack_fail(failure, target, 0, "too long a path");
    struct files *files = *self = make_files(plan, failure);
    if (files == NULL || !pack_folder_open(&files->folder, plan, failure))
        return false;
    files->classes_named = can_name_classes(plan);
    for (uint32_t i = 0; !files->folder.whole && i < folder_count(files); i++) {
        if (!pack_members_by_class(plan))
            break;
        folder_path(files, i, path);
        if (!make_folders(path, strlen(target) + 1, failure))
            return false;
    }
    return true;
}

/* Write field `number` of a sample as FIELD/KEY.EXTENSION or CLASS/KEY.EXTENSION. */
static bool add_file(struct files *files, const struct pack_item *item, uint32_t number,
                     const char *key, bool *kept, struct pack_failure *failure)
{
    char directory[PACK_PATH_BYTES];
    char name[PACK_KEY_BYTES + STOKER_FIELD_NAME_BYTES];
    char type[STOKER_FIELD_NAME_BYTES];
    const char *slash = strrchr(key, '/');
    const int above = slash == NULL ? 0 : (int)(slash - key) + 1; /* bytes of the key's folders */
    const struct pack_piece *piece = piece_of(files, item, number);
    int64_t class = 0;
    if (piece == NULL)
        return pack_fail(failure, target_of(files), ENOMEM, "a label");
    if (pack_members_by_class(files->plan) && files->plan->info->class_count > 0)
        memcpy(&class, item->rows[1].data, sizeof(class));
    folder_path(files, pack_members_by_class(files->plan) ? (uint32_t) class : number, directory);
    pack_members_extension(files->plan, item, number, type, sizeof(type));
    (void)snprintf(name, sizeof(name), "%s.%s", key + above, type);
    const size_t used = strlen(directory);
    if (above > 0)
        (void)snprintf(directory + used, sizeof(directory) - used, "/%.*s", above - 1, key);
    if (!files->folder.whole && (above > 0 || files->before[0] == '\0') &&
        !make_folders(directory, strlen(target_of(files)) + 1, failure))
        return false;
    files->tally.files++;
    files->tally.bytes += piece->size;
    return pack_folder_add(&files->folder, directory, name, piece->bytes, piece->size, kept,
                           failure);
}

/* folder: sorts by key, so keys must ascend; then none is there twice either. */
static bool add_to_folder(void *self, const struct pack_item *item, struct pack_failure *failure)
{
    struct files *files = self;
    const struct pack_plan *plan = files->plan;
    const uint32_t field_count = pack_members_by_class(plan) ? 1 : plan->info->field_count;
    char key[PACK_KEY_BYTES];
    bool all_kept = true;
    files->tally.bad_samples += item->bad ? 1 : 0;
    if (item->bad)
        return true;
    const char *what = pack_members_key(plan, item, key);
    if (what == NULL && strcmp(files->before, key) >= 0)
        what = "its key is not behind the one before, and folders are read in the order of keys; "
               "pack into tar:FILE";
    if (what != NULL)
        return wrong_sample(files, item, key, what, failure);
    for (uint32_t i = 0; i < field_count; i++) {
        bool kept = true;
        if (!pack_members_is_key(plan, i) && !add_file(files, item, i, key, &kept, failure))
            return false;
        all_kept = all_kept && kept;
    }
    (void)snprintf(files->before, sizeof(files->before), "%s", key);
    files->tally.samples++;
    files->tally.kept_samples += all_kept ? 1 : 0;
    return true;
}

/* Count what lies in a folder and beneath it, but for the files that folder: ignores. The path has
 * room for longer ones. */
static bool count_entries(char path[PACK_PATH_BYTES], int depth, uint64_t *folders, uint64_t *files,
                          struct pack_failure *failure)
{
    DIR *stream = depth > DEPTH_MAX ? NULL : opendir(path);
    const size_t used = strlen(path);
    const struct dirent *entry;
    bool good = true;
    if (stream == NULL)
        return pack_fail(failure, path, depth > DEPTH_MAX ? 0 : errno, "listing");
    while (good && (entry = readdir(stream)) != NULL) {
        struct stat status;
        if (entry->d_name[0] == '.')
            continue;
        good = snprintf(path + used, PACK_PATH_BYTES - used, "/%s", entry->d_name) <
                   (int)(PACK_PATH_BYTES - used) &&
               lstat(path, &status) == 0;
        if (!good)
            (void)pack_fail(failure, path, errno, "listing");
        else if (S_ISDIR(status.st_mode))
            good = count_entries(path, depth + 1, folders, files, failure);
        else
            (*files)++;
        *folders += good && depth == 0 && S_ISDIR(status.st_mode) ? 1 : 0;
    }
    path[used] = '\0';
    closedir(stream);
    return good;
}

/* All files of ours were seen, so there are as many, or some are not ours. */
static bool finish_folder(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct files *files = self;
    char path[PACK_PATH_BYTES];
    uint64_t folders_found = 0;
    uint64_t files_found = 0;
    if (files->tally.samples == 0)
        return pack_fail(failure, target_of(files), 0, "all samples are bad");
    (void)snprintf(path, sizeof(path), "%s", target_of(files));
    if (!count_entries(path, 0, &folders_found, &files_found, failure))
        return false;
    if (folders_found != folder_count(files) || files_found != files->tally.files)
        return pack_fail(failure, target_of(files), 0,
                         "%" PRIu64 " folders with %" PRIu64 " files, of which %" PRIu64
                         " with %" PRIu64
                         " are of this packing; remove the others, or pack elsewhere",
                         folders_found, files_found, folder_count(files), files->tally.files);
    if (!pack_folder_finish(&files->folder, failure))
        return false;
    *tally = files->tally;
    return true;
}

const struct pack_target pack_target_folder = { .open = open_folder,
                                                .next = next_file_range,
                                                .add = add_to_folder,
                                                .finish = finish_folder,
                                                .close = close_files };
