/* fuzz_tar.c - any bytes as a tar archive, whole or cut. Images in it may be bad, but must say so. */
#include "dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { ROW_BYTES_MAX = 1 << 20, READS = 4 };

static void read_some(const stoker_dataset *dataset)
{
    const size_t row_bytes = stoker_dataset_row_bytes(dataset);
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    uint8_t *row = row_bytes <= ROW_BYTES_MAX ? malloc(row_bytes) : NULL;
    for (uint64_t id = 0; row != NULL && id < count && id < READS; id++) {
        stoker_error error = { 0 };
        const int rc = stoker_dataset_read(dataset, id, row, row_bytes, NULL, &error);
        STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    }
    free(row);
}

static void open_with(const struct stk_fuzz_file *file, const char *parameters)
{
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    const stoker_dataset_options options = { .max_bytes = STK_FUZZ_MEMORY_BYTES, .error = &error };
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "tar:%s%s", file->path, parameters);
    const int rc = stoker_dataset_open(&dataset, spec, &options);
    STK_FUZZ_CHECK((rc == STOKER_OK) == (dataset != NULL));
    STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    if (dataset != NULL)
        read_some(dataset);
    stoker_dataset_close(&dataset);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    open_with(&file, "");
    open_with(&file, "?truncated=keep&height=4&width=4&channels=3&max_entries=1000");
    close(file.fd);
    return 0;
}
