/* shard_input.h - any bytes as the one shard of a folder: as they are, and with its checksums made right, so that what
 * lies behind them is reached.
 */
#ifndef STK_FUZZ_SHARD_INPUT_H
#define STK_FUZZ_SHARD_INPUT_H

#include <fcntl.h>
#include <string.h>

#include "fuzz/dataset_input.h"
#include "loader/base/bytes.h"
#include "loader/base/crc32c.h"

enum { STK_FUZZ_SHARD_HEADER_BYTES = 4096, STK_FUZZ_SHARD_BYTES_MAX = 1 << 16 };

static inline void stk_fuzz_shard_write(const char *path, const uint8_t *bytes, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    STK_FUZZ_CHECK(fd >= 0);
    STK_FUZZ_CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/* Set the file's length and the checksums of index and header; index_sum_at: where the header has the former. */
static inline void stk_fuzz_shard_seal(uint8_t *bytes, size_t size, size_t index_sum_at)
{
    stk_store_le64(bytes + 32, size);
    const uint64_t index_at = stk_load_le64(bytes + 40);
    if (index_at < size)
        stk_store_le32(bytes + index_sum_at, stk_crc32c(0, bytes + index_at, size - index_at));
    stk_store_le32(bytes + 4092, stk_crc32c(0, bytes, 4092));
}

/* Open the folder with the bytes as its shard, then with those that seal() has made right. */
static inline int stk_fuzz_shard(const uint8_t *bytes, size_t size,
                                 void (*seal)(uint8_t *bytes, size_t size),
                                 void (*open_folder)(const char *folder))
{
    char folder[] = "/dev/shm/stoker-fuzz-XXXXXX";
    char path[64];
    if (size > STK_FUZZ_SHARD_BYTES_MAX)
        return 0;
    STK_FUZZ_CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/a.stk", folder);
    stk_fuzz_shard_write(path, bytes, size);
    open_folder(folder);
    if (size >= STK_FUZZ_SHARD_HEADER_BYTES) {
        uint8_t *sealed = malloc(size);
        STK_FUZZ_CHECK(sealed != NULL);
        memcpy(sealed, bytes, size);
        seal(sealed, size);
        stk_fuzz_shard_write(path, sealed, size);
        free(sealed);
        open_folder(folder);
    }
    STK_FUZZ_CHECK(unlink(path) == 0);
    STK_FUZZ_CHECK(rmdir(folder) == 0);
    return 0;
}

#endif
