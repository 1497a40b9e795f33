/* scratch.h - a folder that belongs to this process, with files that an input says.
 *
 * Made at the first call and removed, with all in it, when the program ends. In memory where there
 * is /dev/shm: each input rewrites its files.
 */
#ifndef STK_FUZZ_SCRATCH_H
#define STK_FUZZ_SCRATCH_H

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

#include "dataset_input.h"

enum { STK_FUZZ_PATH_BYTES = 256 };

static char stk_fuzz_folder[STK_FUZZ_PATH_BYTES / 2]; /* "" = not made yet */

static inline int stk_fuzz_remove_one(const char *path, const struct stat *status, int type,
                                      struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void stk_fuzz_remove(void)
{
    (void)nftw(stk_fuzz_folder, stk_fuzz_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns true at the first call, which makes the folder: time to fill it. */
static inline bool stk_fuzz_begins(void)
{
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    if (stk_fuzz_folder[0] != '\0')
        return false;
    (void)snprintf(stk_fuzz_folder, sizeof(stk_fuzz_folder), "%.80s/stoker-fuzz-XXXXXX",
                   parent != NULL ? parent : "/tmp");
    STK_FUZZ_CHECK(mkdtemp(stk_fuzz_folder) != NULL);
    STK_FUZZ_CHECK(atexit(stk_fuzz_remove) == 0);
    return true;
}

static inline const char *stk_fuzz_path(char path[STK_FUZZ_PATH_BYTES], const char *name)
{
    (void)snprintf(path, STK_FUZZ_PATH_BYTES, "%s/%.100s", stk_fuzz_folder, name);
    return path;
}

static inline void stk_fuzz_mkdir(const char *name)
{
    char path[STK_FUZZ_PATH_BYTES];
    STK_FUZZ_CHECK(mkdir(stk_fuzz_path(path, name), 0700) == 0);
}

static inline void stk_fuzz_write(const char *name, const void *bytes, size_t size)
{
    char path[STK_FUZZ_PATH_BYTES];
    const int fd = open(stk_fuzz_path(path, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    STK_FUZZ_CHECK(fd >= 0);
    STK_FUZZ_CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

#endif
