/* fuzz_spec.c - any text as the name of a data set. */
#include <string.h>

#include "dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *spec = malloc(size + 1);
    STK_FUZZ_CHECK(spec != NULL);
    memcpy(spec, bytes, size);
    spec[size] = '\0';
    stk_fuzz_dataset(spec);
    free(spec);
    return 0;
}
