/* fuzz_tar.c - any bytes as a tar archive, whole or cut. Images in it may be bad, but must say so. */
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void open_with(const struct stk_fuzz_file *file, const char *parameters)
{
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "tar:%s%s", file->path, parameters);
    stk_fuzz_open(spec, stk_fuzz_rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    open_with(&file, "");
    open_with(&file, "?truncated=keep&height=4&width=4&channels=3&max_entries=1000");
    close(file.fd);
    return 0;
}
