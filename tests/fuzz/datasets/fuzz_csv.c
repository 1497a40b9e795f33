/* fuzz_csv.c - any bytes as a CSV file. A first line "?label=..." is taken for the parameters. */
#include <string.h>

#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void open_with(const struct stk_fuzz_file *file, const char *parameters)
{
    char spec[256];
    (void)snprintf(spec, sizeof(spec), "csv:%s%s", file->path, parameters);
    stk_fuzz_dataset(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char parameters[128] = "";
    const uint8_t *line_end = size > 0 && bytes[0] == '?' ? memchr(bytes, '\n', size) : NULL;
    if (line_end != NULL && (size_t)(line_end - bytes) < sizeof(parameters)) {
        size_t used = (size_t)(line_end - bytes);
        memcpy(parameters, bytes, used);
        bytes += used + 1;
        size -= used + 1;
    }
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    open_with(&file, parameters);
    open_with(&file, "?label=1&label_type=int&test=0.3&split=test");
    close(file.fd);
    return 0;
}
