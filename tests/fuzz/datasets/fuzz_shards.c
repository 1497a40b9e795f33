/* fuzz_shards.c - any bytes as the one shard of a folder: as they are, and with length and
 * checksums made right, so that what lies behind them is reached. Read from the file and from its
 * mapping.
 */
#include <fcntl.h>
#include <string.h>

#include "fuzz/dataset_input.h"
#include "loader/base/bytes.h"
#include "loader/base/crc32c/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { HEADER_BYTES = 4096, SHARD_BYTES_MAX = 1 << 16 };

static void write_shard(const char *path, const uint8_t *bytes, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    STK_FUZZ_CHECK(fd >= 0);
    STK_FUZZ_CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

static void seal(uint8_t *bytes, size_t size)
{
    stk_store_le64(bytes + 32, size);
    const uint64_t index_at = stk_load_le64(bytes + 40);
    if (index_at < size)
        stk_store_le32(bytes + 48, stk_crc32c(0, bytes + index_at, size - index_at));
    stk_store_le32(bytes + 4092, stk_crc32c(0, bytes, 4092));
}

/* The second time from the mapping. */
static void read_twice(const stoker_dataset *dataset)
{
    stk_fuzz_fields(dataset);
    stk_fuzz_fields(dataset);
}

static void open_folder(const char *folder)
{
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "shards:%s?partial=1", folder);
    stk_fuzz_open(spec, stk_fuzz_fields);
    (void)snprintf(spec, sizeof(spec), "shards:%s?partial=1&map=1&verify=once", folder);
    stk_fuzz_open(spec, read_twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char folder[] = "/dev/shm/stoker-fuzz-XXXXXX";
    char path[64];
    if (size > SHARD_BYTES_MAX)
        return 0;
    STK_FUZZ_CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/a.stk", folder);
    write_shard(path, bytes, size);
    open_folder(folder);
    if (size >= HEADER_BYTES) {
        uint8_t *sealed = malloc(size);
        STK_FUZZ_CHECK(sealed != NULL);
        memcpy(sealed, bytes, size);
        seal(sealed, size);
        write_shard(path, sealed, size);
        free(sealed);
        open_folder(folder);
    }
    STK_FUZZ_CHECK(unlink(path) == 0);
    STK_FUZZ_CHECK(rmdir(folder) == 0);
    return 0;
}
