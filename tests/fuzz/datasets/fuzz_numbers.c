/* fuzz_numbers.c - any file as sample ids or weights: read, or refused with a reason and nothing left behind.
 *
 *   input   1 byte: odd = weights; the file
 */
#include <math.h>

#include "datasets/views/numbers.h"
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    const enum stk_numbers_kind kind = (enum stk_numbers_kind)(bytes[0] & 1);
    const struct stk_fuzz_file file = stk_fuzz_file(bytes + 1, size - 1);
    struct stk_numbers numbers;
    stoker_error error = { .message = "" };
    const int rc = stk_numbers_read(&numbers, file.path, kind, STK_FUZZ_MEMORY_BYTES, &error);
    STK_FUZZ_CHECK(rc == STOKER_OK ? numbers.count > 0
                                   : error.code == rc && error.message[0] != '\0');
    for (uint64_t i = 0; rc == STOKER_OK && kind == STK_NUMBERS_WEIGHTS && i < numbers.count; i++)
        STK_FUZZ_CHECK(isfinite(numbers.weights[i]) && numbers.weights[i] >= 0.0);
    stk_numbers_free(&numbers);
    close(file.fd);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
