/* fields_files.c - pack samples of several fields into files: of one archive, or of a folder per field. See fields_target.h
 * and, for the names, fields_members.h.
 *
 * An archive is begun again, or only compared if it exists. In a folder, files that have the right bytes are kept.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/pack/archive.h"
#include "datasets/pack/fields_members.h"
#include "datasets/pack/fields_target.h"
#include "datasets/pack/folder_files.h"
#include "datasets/pack/key_set.h"
#include "datasets/pack/npy.h"

enum { DEPTH_MAX = 32 };

struct files {
    const struct pack_fields *fields;
    struct pack_archive archive;
    struct pack_folder folder;
    struct pack_key_set keys;    /* an archive has no key twice */
    char before[PACK_KEY_BYTES]; /* key of the sample before, for folders; "" = none */
    struct pack_piece label;
    struct pack_tally tally;
};

static const char *target_of(const struct files *files)
{
    return files->fields->plan->arguments->target;
}

static bool wrong_sample(const struct files *files, const struct pack_item *item, const char *key,
                         const char *what, struct pack_failure *failure)
{
    return pack_fail(failure, files->fields->plan->arguments->source, 0,
                     "sample %" PRIu64 ": %s: \"%.100s\"", item->id, what, key);
}

static bool make_files(void **self, struct files **out, const struct pack_fields *fields,
                       struct pack_failure *failure)
{
    struct files *files = calloc(1, sizeof(*files));
    if (files == NULL)
        return pack_fail(failure, fields->plan->arguments->target, ENOMEM, "opening");
    files->fields = fields;
    files->archive.lock = -1;
    files->folder.fd = -1;
    *self = *out = files;
    return true;
}

static void close_files(void *self)
{
    struct files *files = self;
    if (files == NULL)
        return;
    pack_archive_close(&files->archive);
    pack_folder_close(&files->folder);
    pack_key_set_free(&files->keys);
    pack_room_free(&files->label.room);
    free(files);
}

/* The bytes of a field's file; the label has no piece of its own. False: out of memory. */
static bool bytes_of(struct files *files, const struct pack_item *item, uint32_t number,
                     const struct pack_piece **out)
{
    const struct stk_fields_field *field = &files->fields->at[number];
    struct pack_piece *label = &files->label;
    *out = field->part == STOKER_NO_PART ? label : &item->pieces[field->part];
    if (*out != label)
        return true;
    label->room.used = 0;
    label->bytes = (const uint8_t *)&item->label;
    label->size = (size_t)stk_fields_bytes(field);
    if (files->fields->plan->arguments->form == PACK_FOLDER || field->dtype != STOKER_DTYPE_INT64)
        return pack_npy(field, 0, label) == NULL;
    if (!pack_room_for(&label->room, 24))
        return false;
    label->bytes = label->room.at;
    label->size = (size_t)snprintf((char *)label->room.at, 24, "%" PRId64, item->label.index);
    return true;
}

/* ---- an archive ----------------------------------------------------------------- */

static bool open_tar(void **self, const struct pack_fields *fields, struct pack_fields_start *start,
                     struct pack_failure *failure)
{
    struct files *files = NULL;
    (void)start; /* an archive cannot be resumed */
    return make_files(self, &files, fields, failure) &&
           pack_archive_open(&files->archive, fields->plan->arguments->target, failure);
}

static bool add_to_tar(void *self, const struct pack_item *item, struct pack_failure *failure)
{
    struct files *files = self;
    char key[PACK_KEY_BYTES];
    if (item->bad)
        return true;
    const char *what = pack_members_key(files->fields, item, key);
    bool twice = false;
    if (what == NULL && !pack_key_set_add(&files->keys, key, &twice))
        return pack_fail(failure, target_of(files), ENOMEM, "the keys");
    if (twice)
        what = "its key is that of another sample";
    if (what != NULL)
        return wrong_sample(files, item, key, what, failure);
    for (uint32_t i = 0; i < files->fields->count; i++) {
        char name[PACK_KEY_BYTES + 2 * STOKER_FIELD_NAME_BYTES];
        char extension[2 * STOKER_FIELD_NAME_BYTES];
        const struct pack_piece *piece = NULL;
        if (pack_members_is_key(files->fields, i))
            continue;
        if (!bytes_of(files, item, i, &piece))
            return pack_fail(failure, target_of(files), ENOMEM, "a label");
        pack_members_extension(files->fields, item, i, extension, sizeof(extension));
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

const struct pack_fields_target pack_fields_tar = {
    .open = open_tar, .add = add_to_tar, .finish = finish_tar, .close = close_files
};

/* ---- folders -------------------------------------------------------------------- */

static bool open_folder(void **self, const struct pack_fields *fields,
                        struct pack_fields_start *start, struct pack_failure *failure)
{
    struct files *files = NULL;
    const char *path = fields->plan->arguments->target;
    (void)start; /* all samples are read again; right files are kept */
    if (strlen(path) > PACK_PATH_BYTES - PACK_KEY_BYTES - 4 * STOKER_FIELD_NAME_BYTES)
        return pack_fail(failure, path, 0, "too long a path");
    return make_files(self, &files, fields, failure) &&
           pack_folder_open(&files->folder, fields->plan, failure);
}

/* Make the folders of a path behind its first `from` bytes. */
static bool make_folders(char *path, size_t from, struct pack_failure *failure)
{
    for (char *at = path + from; *at != '\0'; at++) {
        const bool last = at[1] == '\0';
        if (*at != '/' && !last)
            continue;
        if (!last)
            *at = '\0';
        const bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        const int os_errno = errno;
        if (!made)
            return pack_fail(failure, path, os_errno, "it could not be made");
        if (!last)
            *at = '/';
    }
    return true;
}

/* Write field `number` of a sample as FIELD/KEY.EXTENSION. */
static bool add_file(struct files *files, const struct pack_item *item, uint32_t number,
                     const char *key, bool *kept, struct pack_failure *failure)
{
    char directory[PACK_PATH_BYTES];
    char name[PACK_KEY_BYTES + STOKER_FIELD_NAME_BYTES];
    char type[STOKER_FIELD_NAME_BYTES];
    const struct pack_piece *piece = NULL;
    const char *slash = strrchr(key, '/');
    const size_t folders = slash == NULL ? 0 : (size_t)(slash - key) + 1;
    if (!bytes_of(files, item, number, &piece))
        return pack_fail(failure, target_of(files), ENOMEM, "a label");
    pack_members_extension(files->fields, item, number, type, sizeof(type));
    (void)snprintf(name, sizeof(name), "%s.%s", key + folders, type);
    (void)snprintf(directory, sizeof(directory), "%s/%s%s%.*s", target_of(files),
                   files->fields->at[number].name, folders == 0 ? "" : "/",
                   folders == 0 ? 0 : (int)folders - 1, key);
    if (!files->folder.whole && (folders > 0 || files->before[0] == '\0') &&
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
    char key[PACK_KEY_BYTES];
    bool all_kept = true;
    if (item->bad)
        return true;
    const char *what = pack_members_key(files->fields, item, key);
    if (what == NULL && strcmp(files->before, key) >= 0)
        what = "its key is not behind the one before, and folders are read in the order of keys; "
               "pack into tar:FILE";
    if (what != NULL)
        return wrong_sample(files, item, key, what, failure);
    for (uint32_t i = 0; i < files->fields->count; i++) {
        bool kept = true;
        if (!pack_members_is_key(files->fields, i) &&
            !add_file(files, item, i, key, &kept, failure))
            return false;
        all_kept = all_kept && kept;
    }
    (void)snprintf(files->before, sizeof(files->before), "%s", key);
    files->tally.samples++;
    files->tally.kept_samples += all_kept ? 1 : 0;
    return true;
}

/* Add the files beneath a path, which has room for longer ones, to *count. */
static bool count_files(char path[PACK_PATH_BYTES], int depth, uint64_t *count,
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
        if (entry->d_name[0] == '.') /* folder: ignores it, too */
            continue;
        good = snprintf(path + used, PACK_PATH_BYTES - used, "/%s", entry->d_name) <
                   (int)(PACK_PATH_BYTES - used) &&
               lstat(path, &status) == 0;
        if (!good)
            (void)pack_fail(failure, path, errno, "listing");
        else if (S_ISDIR(status.st_mode))
            good = count_files(path, depth + 1, count, failure);
        else
            (*count)++;
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
    uint64_t found = 0;
    if (files->tally.samples == 0)
        return pack_fail(failure, target_of(files), 0, "all samples are bad");
    (void)snprintf(path, sizeof(path), "%s", target_of(files));
    if (!count_files(path, 0, &found, failure))
        return false;
    if (found != files->tally.files)
        return pack_fail(failure, target_of(files), 0,
                         "%" PRIu64 " files, of which %" PRIu64
                         " are of this packing; remove the others, or pack elsewhere",
                         found, files->tally.files);
    if (!pack_folder_finish(&files->folder, failure))
        return false;
    *tally = files->tally;
    return true;
}

const struct pack_fields_target pack_fields_folder = {
    .open = open_folder, .add = add_to_folder, .finish = finish_folder, .close = close_files
};
