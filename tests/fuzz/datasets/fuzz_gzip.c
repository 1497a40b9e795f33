/* fuzz_gzip.c - any bytes as a gzip file: unpacked within the limit, or refused. */
#include "datasets/gzip.h"
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    struct stk_source source;
    struct stk_region out = { 0 };
    size_t out_bytes = 0;
    stoker_error error = { 0 };
    STK_FUZZ_CHECK(stk_source_open(&source, &stk_storage_local, file.path, &error) == STOKER_OK);
    int rc = stk_gzip_unpack(&source, STK_FUZZ_MEMORY_BYTES, &out, &out_bytes, &error);
    STK_FUZZ_CHECK((rc == STOKER_OK) == (out.base != NULL));
    STK_FUZZ_CHECK(rc == STOKER_OK || error.code == rc);
    STK_FUZZ_CHECK(out_bytes <= STK_FUZZ_MEMORY_BYTES);
    stk_region_unmap(&out);
    stk_source_close(&source);
    close(file.fd);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
