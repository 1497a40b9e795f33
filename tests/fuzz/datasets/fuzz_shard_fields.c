/* fuzz_shard_fields.c - any bytes as a shard of version 2, which has fields. */
#include "fuzz/shard_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void open_folder(const char *folder)
{
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "shards:%s?partial=1", folder);
    stk_fuzz_open(spec, stk_fuzz_fields);
}

static void seal(uint8_t *bytes, size_t size)
{
    stk_store_le32(bytes + 8, 2);
    stk_fuzz_shard_seal(bytes, size, 68);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return stk_fuzz_shard(bytes, size, seal, open_folder);
}
