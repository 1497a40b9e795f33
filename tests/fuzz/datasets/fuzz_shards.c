/* fuzz_shards.c - any bytes as a shard of version 1, read from the file and from its mapping. */
#include "fuzz/shard_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The second time from the mapping. */
static void read_twice(const stoker_dataset *dataset)
{
    stk_fuzz_rows(dataset);
    stk_fuzz_rows(dataset);
}

static void open_folder(const char *folder)
{
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "shards:%s?partial=1", folder);
    stk_fuzz_open(spec, stk_fuzz_rows);
    (void)snprintf(spec, sizeof(spec), "shards:%s?partial=1&map=1&verify=once", folder);
    stk_fuzz_open(spec, read_twice);
}

static void seal(uint8_t *bytes, size_t size)
{
    stk_fuzz_shard_seal(bytes, size, 164);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return stk_fuzz_shard(bytes, size, seal, open_folder);
}
