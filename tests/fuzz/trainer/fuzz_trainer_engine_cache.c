/* fuzz_trainer_engine_cache.c - any bytes as a cache of engines: read whole, or refused and empty. */
#include "fuzz/dataset_input.h"
#include "loader/base/crc32c.h"
#include "trainer/backend/common/engine_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The lines are given a checksum that agrees, which no fuzzer would find. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_engine_cache *cache = NULL;
    char *const text = malloc(size + 17);
    STK_FUZZ_CHECK(text != NULL);
    STK_FUZZ_CHECK(stk_engine_cache_create(&cache, NULL) == STOKER_OK);
    if (size > 0)
        memcpy(text, bytes, size);
    (void)snprintf(text + size, 17, "crc32c %08" PRIx32 "\n", stk_crc32c(0, text, size));
    const int rc = stk_engine_cache_parse(cache, text, size + 16, "input", NULL);
    STK_FUZZ_CHECK(rc == STOKER_OK || stk_engine_cache_entries(cache) == 0);
    stk_engine_cache_destroy(&cache);
    free(text);
    return 0;
}
