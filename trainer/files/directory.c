/* directory.c - see directory.h. */
#include "trainer/files/directory.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "loader/base/error.h"
#include "loader/base/output_file.h"

#define SUFFIX   ".safetensors"
#define STATE    ".state"
#define AVERAGES ".ema"

enum { DIGITS_MAX = 18 };

static int system_failure(const struct stk_directory_files *files, int os_errno, const char *call,
                          stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = files->path;
    place.os_errno = os_errno;
    return stk_error_set(error, stk_error_from_errno(os_errno), STOKER_STAGE_OPEN, &place, "%s",
                         call);
}

/* ---- names ---------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t length, const char *end)
{
    const size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* Bytes before ".safetensors", or all. */
static size_t stem_length(const char *name)
{
    const size_t length = strlen(name);
    return ends_with(name, length, SUFFIX) ? length - strlen(SUFFIX) : length;
}

/* Offset of the digits of NAME.DIGITS.state[.safetensors]; 0 = another name. */
static size_t find_digits(const char *name, size_t *digits)
{
    size_t end = stem_length(name);
    if (!ends_with(name, end, STATE))
        return 0;
    end -= strlen(STATE);
    size_t begin = end;
    while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
        begin--;
    *digits = end - begin;
    if (*digits == 0 || *digits > DIGITS_MAX || begin < 2 || name[begin - 1] != '.')
        return 0;
    return begin;
}

bool stk_is_state_name(const char *name)
{
    size_t digits;
    return strchr(name, '/') == NULL && strlen(name) <= NAME_MAX && find_digits(name, &digits) > 0;
}

int stk_state_name(char out[NAME_MAX + 1], const char *base, uint64_t generation)
{
    const size_t stem = stem_length(base);
    const int length = snprintf(out, NAME_MAX + 1, "%.*s.%" PRIu64 STATE "%s", (int)stem, base,
                                generation, base + stem);
    if (length > 0 && length <= NAME_MAX)
        return STOKER_OK;
    out[0] = '\0';
    return STOKER_EINVAL;
}

int stk_averages_name(char out[NAME_MAX + 1], const char *base)
{
    const size_t stem = stem_length(base);
    const int length =
        snprintf(out, NAME_MAX + 1, "%.*s" AVERAGES "%s", (int)stem, base, base + stem);
    if (length > 0 && length <= NAME_MAX)
        return STOKER_OK;
    out[0] = '\0';
    return STOKER_EINVAL;
}

/* The generation of a state file of this base; 0 = another file. */
static uint64_t generation_in(const char *name, const char *base)
{
    size_t digits;
    char expected[NAME_MAX + 1];
    const size_t at = find_digits(name, &digits);
    if (at == 0)
        return 0;
    const uint64_t generation = strtoull(name + at, NULL, 10);
    if (stk_state_name(expected, base, generation) != STOKER_OK || strcmp(expected, name) != 0)
        return 0;
    return generation;
}

static bool is_temporary(const char *name, const char *base)
{
    char start[NAME_MAX + 16];
    const int length = snprintf(start, sizeof(start), ".%s.tmp-", base);
    return strncmp(name, start, (size_t)length) == 0;
}

int stk_path_beside(char out[STK_PATH_BYTES], const char *path, const char *name)
{
    char real[PATH_MAX];
    const char *from = realpath(path, real) != NULL && access(real, F_OK) == 0 ? real : path;
    if (strlen(from) >= STK_PATH_BYTES)
        return STOKER_EINVAL;
    memcpy(out, from, strlen(from) + 1);
    char *slash = strrchr(out, '/');
    const size_t directory = slash == NULL ? 0 : (size_t)(slash - out) + 1;
    if (directory + strlen(name) >= STK_PATH_BYTES)
        return STOKER_EINVAL;
    memcpy(out + directory, name, strlen(name) + 1);
    return STOKER_OK;
}

/* ---- the directory -------------------------------------------------------------- */

static int split(struct stk_directory_files *files, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = files->path;
    if (stk_output_is_in_place(files->path))
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place,
                             "not a regular file; a checkpoint is two files side by side");
    const int os_errno = stk_output_resolve(files->path, files->directory);
    if (os_errno == ENAMETOOLONG)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place, "too long");
    if (os_errno != 0)
        return system_failure(files, os_errno, "open", error);
    char *slash = strrchr(files->directory, '/');
    const char *base = slash == NULL ? files->directory : slash + 1;
    if (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0 ||
        strlen(base) > NAME_MAX || stk_is_state_name(base))
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place,
                             "not a name for a checkpoint");
    memcpy(files->base, base, strlen(base) + 1);
    if (slash == NULL)
        memcpy(files->directory, ".", 2);
    else
        slash[slash == files->directory ? 1 : 0] = '\0';
    return STOKER_OK;
}

int stk_directory_open(struct stk_directory_files *files, const char *path, stoker_error *error)
{
    memset(files, 0, sizeof(*files));
    files->path = path;
    files->fd = -1;
    int rc = split(files, error);
    if (rc != STOKER_OK)
        return rc;
    files->fd = open(files->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->fd < 0)
        return system_failure(files, errno, "open its directory", error);
    while (flock(files->fd, LOCK_EX) != 0 && errno == EINTR) {
    } /* no locks on this file system: see directory.h */
    return STOKER_OK;
}

void stk_directory_close(struct stk_directory_files *files)
{
    if (files->fd >= 0)
        close(files->fd);
    files->fd = -1;
}

int stk_directory_sync(const struct stk_directory_files *files, stoker_error *error)
{
    const int os_errno = stk_output_sync_folder(files->fd);
    return os_errno == 0 ? STOKER_OK
                         : system_failure(files, os_errno, "fsync of its directory", error);
}

void stk_directory_remove(const struct stk_directory_files *files, const char *name)
{
    (void)unlinkat(files->fd, name, 0);
}

static DIR *list(const struct stk_directory_files *files)
{
    return opendir(files->directory);
}

int stk_directory_last_generation(const struct stk_directory_files *files, uint64_t *out,
                                  stoker_error *error)
{
    DIR *names = list(files);
    if (names == NULL)
        return system_failure(files, errno, "list its directory", error);
    *out = 0;
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(names)) != NULL) {
        const uint64_t generation = generation_in(entry->d_name, files->base);
        if (generation > *out)
            *out = generation;
    }
    const int os_errno = errno; /* 0 = end of list; a state that was missed would be overwritten */
    closedir(names);
    return os_errno == 0 ? STOKER_OK : system_failure(files, os_errno, "list its directory", error);
}

void stk_directory_sweep(const struct stk_directory_files *files, const char *keep)
{
    DIR *names = list(files);
    if (names == NULL)
        return; /* the next save sweeps */
    for (struct dirent *entry = readdir(names); entry != NULL; entry = readdir(names)) {
        const char *name = entry->d_name;
        if (is_temporary(name, files->base) ||
            (generation_in(name, files->base) > 0 && strcmp(name, keep) != 0))
            stk_directory_remove(files, name);
    }
    closedir(names);
}

/* ---- temporaries ---------------------------------------------------------------- */

int stk_directory_begin(struct stk_directory_files *files, int *fd, stoker_error *error)
{
    *fd = stk_output_temporary(files->fd, files->base, files->temporary);
    return *fd >= 0 ? STOKER_OK : system_failure(files, -*fd, "a temporary file", error);
}

void stk_directory_abandon(struct stk_directory_files *files, int fd)
{
    if (fd < 0)
        return;
    close(fd);
    stk_directory_remove(files, files->temporary);
}

int stk_directory_place(struct stk_directory_files *files, int fd, const char *name,
                        stoker_error *error)
{
    assert(fd >= 0);
    int rc = STOKER_OK;
    stk_output_keep_mode(fd, files->fd, name);
    if (fsync(fd) != 0)
        rc = system_failure(files, errno, "fsync", error);
    if (close(fd) != 0 && rc == STOKER_OK && errno != EINTR)
        rc = system_failure(files, errno, "close", error);
    if (rc == STOKER_OK && renameat(files->fd, files->temporary, files->fd, name) != 0)
        rc = system_failure(files, errno, "rename", error);
    if (rc != STOKER_OK)
        stk_directory_remove(files, files->temporary);
    return rc;
}
