/* fuzz_idx.c - any bytes as an IDX file (plain or gzip), as samples and as labels. */
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "idx:%s", file.path);
    stk_fuzz_dataset(spec);
    (void)snprintf(spec, sizeof(spec), "idx:%s,%s", file.path, file.path);
    stk_fuzz_dataset(spec);
    close(file.fd);
    return 0;
}
