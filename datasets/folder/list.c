/* list.c - see list.h. */
#include "datasets/folder/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/source.h"
#include "loader/base/clock.h"
#include "loader/base/io/open_beneath.h"

/* ---- bytes that grow ------------------------------------------------------------ */

/* Append; NULL bytes append zeros. 0 or STOKER_ENOMEM. */
static int append_bytes(struct stk_folder_buffer *buffer, const void *bytes, size_t count)
{
    uint8_t *base = stk_array_grow(buffer->base, 1, buffer->used, &buffer->capacity, count);
    if (base == NULL)
        return STOKER_ENOMEM;
    buffer->base = base;
    if (bytes != NULL)
        memcpy(buffer->base + buffer->used, bytes, count);
    buffer->used += count;
    return STOKER_OK;
}

void stk_folder_release(struct stk_folder_buffer *buffer)
{
    stk_free(buffer->base);
    *buffer = (struct stk_folder_buffer){ 0 };
}

void stk_folder_listing_free(struct stk_folder_listing *listing)
{
    stk_free(listing->path);
    stk_folder_release(&listing->names);
    stk_folder_release(&listing->entries);
    stk_folder_release(&listing->folders);
    *listing = (struct stk_folder_listing){ 0 };
}

/* ---- what an entry is ----------------------------------------------------------- */

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool is_extension(const char *name, const char *extension, size_t bytes)
{
    if (strlen(name) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (lower(name[i]) != extension[i])
            return false;
    return true;
}

/* What follows the last dot, if it is among the extensions; else NULL. */
static const char *sample_extension(const struct stk_folder_wish *wish, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL)
        return NULL;
    for (const char *at = wish->extensions; *at != '\0';) {
        const size_t bytes = strcspn(at, ",");
        if (is_extension(dot + 1, at, bytes))
            return dot + 1;
        at += bytes + (at[bytes] == ',');
    }
    return NULL;
}

static void stamp_of(const struct stat *status, struct stk_folder_directory *out)
{
    out->inode = status->st_ino;
    out->modified_ns = stk_timespec_ns(status->st_mtim);
    out->changed_ns = stk_timespec_ns(status->st_ctim);
}

int stk_folder_stamp(int root, const char *path, struct stk_folder_directory *out)
{
    struct stat status;
    if (fstatat(root, path, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    if (!S_ISDIR(status.st_mode))
        return ENOTDIR;
    stamp_of(&status, out);
    return 0;
}

/* What a link leads to, if that lies in the tree. 0 or an errno. */
static int follow(const struct stk_folder_wish *wish, const char *folder, const char *name,
                  struct stat *out)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX)
        return ENAMETOOLONG;
    const int fd = stk_open_beneath(wish->directory, path, O_PATH);
    if (fd < 0)
        return -fd;
    const int os_errno = fstat(fd, out) != 0 ? errno : 0;
    close(fd);
    return os_errno;
}

/* ---- the folder ----------------------------------------------------------------- */

struct visit {
    struct stk_folder_listing *listing;
    const struct stk_folder_wish *wish;
    int fd;
};

static int add_sample(const struct visit *visit, const char *name, const char *extension,
                      uint64_t bytes)
{
    const struct stk_folder_entry entry = {
        .name = visit->listing->names.used,
        .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
        .raw = is_extension(extension, "raw", 3) ? STK_FOLDER_RAW : 0
    };
    int rc = append_bytes(&visit->listing->names, name, strlen(name) + 1);
    return rc == STOKER_OK ? append_bytes(&visit->listing->entries, &entry, sizeof(entry)) : rc;
}

/* An entry that has vanished since it was read is none. Returns 0 or STOKER_ENOMEM. */
static int visit_entry(const struct visit *visit, const struct dirent *entry)
{
    const char *name = entry->d_name;
    const char *extension = sample_extension(visit->wish, name);
    const bool is_folder = entry->d_type == DT_DIR;
    struct stat status = { .st_mode = 0 };
    if (name[0] == '.' || (extension == NULL && !is_folder && entry->d_type != DT_UNKNOWN))
        return STOKER_OK;
    if (!is_folder && fstatat(visit->fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return STOKER_OK;
    if (is_folder || S_ISDIR(status.st_mode))
        return append_bytes(&visit->listing->folders, name, strlen(name) + 1);
    if (extension == NULL)
        return STOKER_OK;
    if (S_ISLNK(status.st_mode) && follow(visit->wish, visit->listing->path, name, &status) != 0)
        status.st_mode = 0;
    if (S_ISREG(status.st_mode))
        return add_sample(visit, name, extension, (uint64_t)status.st_size);
    visit->listing->passed_over++;
    return STOKER_OK;
}

static int compare(const void *a, const void *b, void *names)
{
    const struct stk_folder_entry *left = a;
    const struct stk_folder_entry *right = b;
    return strcmp((const char *)names + left->name, (const char *)names + right->name);
}

static int fail_folder(const struct stk_folder_wish *wish, const char *path, int os_errno,
                       stoker_error *error)
{
    char whole[PATH_MAX + 8];
    (void)snprintf(whole, sizeof(whole), "%s/%s", wish->path, path);
    struct stk_place place = stk_at(whole, STOKER_NO_OFFSET);
    place.os_errno = os_errno;
    const int code = os_errno == ENAMETOOLONG ? STOKER_ELIMIT : stk_error_from_errno(os_errno);
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "folder");
}

/* Takes ownership of `fd`. Returns 0 or STOKER_ENOMEM; other failures set *os_errno. */
static int read_entries(const struct visit *visit, int *os_errno)
{
    DIR *stream = fdopendir(visit->fd);
    if (stream == NULL) {
        *os_errno = errno;
        close(visit->fd);
        return STOKER_OK;
    }
    int rc = STOKER_OK;
    for (const struct dirent *entry = NULL; rc == STOKER_OK;) {
        errno = 0;
        entry = readdir(stream);
        if (entry == NULL)
            break;
        rc = visit_entry(visit, entry);
    }
    *os_errno = rc == STOKER_OK ? errno : 0;
    closedir(stream);
    return rc;
}

int stk_folder_list(struct stk_folder_listing *listing, const struct stk_folder_wish *wish,
                    stoker_error *error)
{
    struct stat status;
    const int fd = stk_open_beneath(wish->directory, listing->path,
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return fail_folder(wish, listing->path, -fd, error);
    /* Before the names are read: what changes meanwhile makes the stamp an old one. */
    int os_errno = fstat(fd, &status) != 0 ? errno : 0;
    if (os_errno != 0) {
        close(fd);
        return fail_folder(wish, listing->path, os_errno, error);
    }
    stamp_of(&status, &listing->stamp);
    const struct visit visit = { .listing = listing, .wish = wish, .fd = fd };
    int rc = read_entries(&visit, &os_errno);
    if (rc == STOKER_OK && os_errno != 0)
        return fail_folder(wish, listing->path, os_errno, error);
    if (rc != STOKER_OK)
        return fail_folder(wish, listing->path, ENOMEM, error);
    if (listing->entries.used > 0)
        qsort_r(listing->entries.base, listing->entries.used / sizeof(struct stk_folder_entry),
                sizeof(struct stk_folder_entry), compare, listing->names.base);
    return STOKER_OK;
}
