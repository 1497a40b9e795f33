/* fuzz_npz.c - any bytes as an archive of NPY files. */
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "npz:%s", file.path);
    stk_fuzz_open(spec, stk_fuzz_fields);
    (void)snprintf(spec, sizeof(spec), "npz:%s?fields=x,label=y", file.path);
    stk_fuzz_open(spec, stk_fuzz_fields);
    close(file.fd);
    return 0;
}
