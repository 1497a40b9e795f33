/* folder_files.c - see folder_files.h. */
#include "datasets/pack/target/folder_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "datasets/pack/output.h"
#include "datasets/pack/target/existing.h"

#define MARK ".stoker-pack" /* in an unfinished folder: holds the set_id */

static bool is_empty(const char *path)
{
    DIR *stream = opendir(path);
    bool empty = stream != NULL;
    const struct dirent *entry;
    while (empty && (entry = readdir(stream)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                strcmp(entry->d_name, "." MARK ".tmp") == 0;
    if (stream != NULL)
        closedir(stream);
    return empty;
}

static bool take_folder(struct pack_folder *folder, struct pack_failure *failure)
{
    const char *path = folder->plan->arguments->target;
    char due[17];
    char found[17] = "";
    (void)snprintf(due, sizeof(due), "%016" PRIx64, folder->plan->set_id);
    const int fd = openat(folder->fd, MARK, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t got = read(fd, found, sizeof(found) - 1);
        close(fd);
        return (got == 16 && strcmp(due, found) == 0) ||
               pack_fail(failure, path, 0, "something else was being packed there");
    }
    folder->whole = !is_empty(path);
    if (folder->whole)
        return true;
    struct pack_output mark = { .file = NULL };
    const bool made = pack_output_begin(&mark, path, MARK, failure) &&
                      pack_output_write(&mark, due, 16, failure) &&
                      pack_output_commit(&mark, true, failure);
    pack_output_drop(&mark);
    return made;
}

bool pack_folder_open(struct pack_folder *folder, const struct pack_plan *plan,
                      struct pack_failure *failure)
{
    *folder = (struct pack_folder){ .plan = plan };
    folder->fd = pack_folder_make(plan->arguments->target, failure);
    return folder->fd >= 0 && pack_lock(folder->fd, plan->arguments->target, failure) &&
           take_folder(folder, failure);
}

bool pack_folder_add(struct pack_folder *folder, const char *directory, const char *name,
                     const void *bytes, size_t size, bool *kept, struct pack_failure *failure)
{
    char whole[2 * PACK_PATH_BYTES];
    struct pack_output output = { .file = NULL };
    (void)snprintf(whole, sizeof(whole), "%s/%s", directory, name);
    *kept = pack_existing_is(whole, bytes, size);
    if (*kept)
        return true;
    if (folder->whole)
        return pack_fail(
            failure, folder->plan->arguments->target, 0,
            "there is something in it already, which is not this packing: %.60s/%s %s; "
            "remove it, or pack elsewhere",
            strrchr(directory, '/') + 1, name,
            access(whole, F_OK) == 0 ? "has other bytes" : "is missing");
    const bool written = pack_output_begin(&output, directory, name, failure) &&
                         pack_output_write(&output, bytes, size, failure) &&
                         pack_output_commit(&output, false, failure);
    pack_output_drop(&output);
    return written;
}

bool pack_folder_finish(struct pack_folder *folder, struct pack_failure *failure)
{
    return folder->whole ||
           (syncfs(folder->fd) == 0 && unlinkat(folder->fd, MARK, 0) == 0 &&
            fsync(folder->fd) == 0) ||
           pack_fail(failure, folder->plan->arguments->target, errno, "waiting for the disk");
}

void pack_folder_close(struct pack_folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    folder->fd = -1;
}
