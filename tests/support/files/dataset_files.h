/* dataset_files.h - small files for the data set tests: in memory, or in a directory of
 * their own that vanishes with the test; and a gzip writer that compresses nothing.
 */
#ifndef STK_TEST_DATASET_FILES_H
#define STK_TEST_DATASET_FILES_H

#ifdef STK_TEST_PLAIN
#include "support/plain_assert.h"
#else
#include <criterion/criterion.h>
#endif
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/bytes.h"

/* ---- bytes ---------------------------------------------------------------------- */

struct stk_bytes {
    size_t size;
    uint8_t at[4096];
};

static inline void stk_put(struct stk_bytes *to, const void *bytes, size_t size)
{
    cr_assert_leq(size, sizeof(to->at) - to->size);
    memcpy(to->at + to->size, bytes, size);
    to->size += size;
}

static inline void stk_put_be32(struct stk_bytes *to, uint32_t value)
{
    uint8_t bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (24 - 8 * i));
    stk_put(to, bytes, sizeof(bytes));
}

/* An IDX header: type code, then lengths up to the first 0. */
static inline void stk_put_idx_header(struct stk_bytes *to, uint8_t type, uint8_t rank,
                                      const uint32_t *lengths)
{
    const uint8_t magic[4] = { 0, 0, type, rank };
    stk_put(to, magic, sizeof(magic));
    for (uint8_t axis = 0; axis < rank; axis++)
        stk_put_be32(to, lengths[axis]);
}

static inline uint32_t stk_crc32(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
    }
    return ~crc;
}

/* Append one gzip member that stores its bytes (at most 65535) as they are. */
static inline void stk_put_gzip(struct stk_bytes *to, const uint8_t *bytes, size_t size)
{
    static const uint8_t header[10] = { 0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255 };
    const uint8_t block[5] = { 1, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size,
                               (uint8_t)(~size >> 8) };
    uint8_t trailer[8];
    stk_store_le32(trailer, stk_crc32(bytes, size));
    stk_store_le32(trailer + 4, (uint32_t)size);
    stk_put(to, header, sizeof(header));
    stk_put(to, block, sizeof(block));
    stk_put(to, bytes, size);
    stk_put(to, trailer, sizeof(trailer));
}

static inline uint64_t stk_fnv1a(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001B3U;
    return hash;
}
#define STK_FNV1A_START 0xCBF29CE484222325U

/* ---- files ---------------------------------------------------------------------- */

/* A file in memory; its path may be opened until fd is closed. */
struct stk_memory_file {
    int fd;
    char path[32];
};

static inline struct stk_memory_file stk_memory_file(const void *bytes, size_t size)
{
    struct stk_memory_file file = { .fd = memfd_create("stoker-test", MFD_CLOEXEC) };
    cr_assert_geq(file.fd, 0);
    cr_assert_eq(pwrite(file.fd, bytes, size, 0), (ssize_t)size);
    (void)snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    return file;
}

struct stk_directory {
    char path[256];
};

static inline struct stk_directory stk_directory_make(void)
{
    struct stk_directory directory;
    const char *parent = getenv("TMPDIR");
    (void)snprintf(directory.path, sizeof(directory.path), "%s/stoker-test-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    cr_assert_not_null(mkdtemp(directory.path));
    return directory;
}

static inline int stk_remove_one(const char *path, const struct stat *status, int kind,
                                 struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline void stk_directory_remove(const struct stk_directory *directory)
{
    cr_assert_eq(nftw(directory->path, stk_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* DIR/name, in a buffer of the caller. */
static inline const char *stk_path_in(char path[512], const struct stk_directory *directory,
                                      const char *name)
{
    (void)snprintf(path, 512, "%.200s/%s", directory->path, name);
    return path;
}

static inline void stk_file_write(const struct stk_directory *directory, const char *name,
                                  const void *bytes, size_t size)
{
    char path[512];
    int fd =
        open(stk_path_in(path, directory, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

#endif
