/* fuzz_megatron.c - any bytes as Megatron's pair of files.
 *
 *   input   1 byte: tokens of X.bin, in bytes; the rest is X.idx
 */
#include "fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const parameters[] = {
        "length=4&fields=inputs,targets,document_ids",
        "length=3&stride=1&fields=tokens,positions,documents,max_seqlen",
        "length=4&eos=7&fields=tokens,document_ids",
    };
    static uint8_t tokens[256];
    char path[STK_FUZZ_PATH_BYTES];
    if (stk_fuzz_begins())
        for (size_t i = 0; i < sizeof(tokens); i++)
            tokens[i] = (uint8_t)(i % 11);
    if (size == 0)
        return 0;
    stk_fuzz_write("x.bin", tokens, bytes[0]);
    stk_fuzz_write("x.idx", bytes + 1, size - 1);
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        char spec[STK_FUZZ_PATH_BYTES + 128];
        (void)snprintf(spec, sizeof(spec), "tokens:%s?%s", stk_fuzz_path(path, "x.idx"),
                       parameters[i]);
        stk_fuzz_open(spec, stk_fuzz_fields);
    }
    return 0;
}
