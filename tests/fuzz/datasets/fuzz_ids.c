/* fuzz_ids.c - any file as sample ids: read, or refused with a reason and nothing left behind. */
#include "datasets/views/spec.h"
#include "fuzz/dataset_input.h"
#include "loader/base/memory/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    uint64_t *ids = NULL, count = 0;
    stoker_error error = { .message = "" };
    const int rc = stk_id_file_read(&ids, &count, &stk_storage_local, file.path,
                                    STK_FUZZ_MEMORY_BYTES, &error);
    STK_FUZZ_CHECK(rc == STOKER_OK ? count > 0 : error.code == rc && error.message[0] != '\0');
    stk_free(ids);
    close(file.fd);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
