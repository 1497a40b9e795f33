/* fuzz_shard_fields.c - any bytes as the one shard of version 2 in a folder: as they are, and with the checksums of header
 * and index made right, so that what lies behind them is reached.
 */
#include "fuzz/dataset_input.h"

#include <fcntl.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/crc32c.h"

enum { HEADER_BYTES = 4096, INPUT_BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void open_shard(const char *folder, const char *path, const uint8_t *bytes, size_t size)
{
    char spec[128];
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    STK_FUZZ_CHECK(fd >= 0);
    STK_FUZZ_CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    (void)snprintf(spec, sizeof(spec), "shards:%s?partial=1", folder);
    stk_fuzz_open(spec, stk_fuzz_fields);
}

/* The version and the file's length, too. */
static void seal(uint8_t *bytes, size_t size)
{
    stk_store_le32(bytes + 8, 2);
    stk_store_le64(bytes + 32, size);
    const uint64_t index_at = stk_load_le64(bytes + 40);
    if (index_at < size)
        stk_store_le32(bytes + 68, stk_crc32c(0, bytes + index_at, size - index_at));
    stk_store_le32(bytes + 4092, stk_crc32c(0, bytes, 4092));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char folder[] = "/dev/shm/stoker-fuzz-XXXXXX";
    char path[64];
    if (size > INPUT_BYTES_MAX)
        return 0;
    STK_FUZZ_CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/a.stk", folder);
    open_shard(folder, path, bytes, size);
    if (size >= HEADER_BYTES) {
        uint8_t *sealed = malloc(size);
        STK_FUZZ_CHECK(sealed != NULL);
        memcpy(sealed, bytes, size);
        seal(sealed, size);
        open_shard(folder, path, sealed, size);
        free(sealed);
    }
    STK_FUZZ_CHECK(unlink(path) == 0);
    STK_FUZZ_CHECK(rmdir(folder) == 0);
    return 0;
}
