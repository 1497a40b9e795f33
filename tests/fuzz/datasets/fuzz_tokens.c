/* fuzz_tokens.c - any bytes as a file of tokens of llm.c, raw or NumPy's, with its documents. */
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const parameters[] = {
        "length=4&fields=inputs,targets&dtype=int64",
        "length=3&stride=1&eos=7&bos=8&fields=tokens,document_ids,cu_seqlens&documents_max=2",
        "length=5&stored=uint16&eos=7&fields=tokens,positions&test=0.5&split=test",
        "length=5&layout=llmc",
    };
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        char spec[192];
        (void)snprintf(spec, sizeof(spec), "tokens:%s?%s", file.path, parameters[i]);
        stk_fuzz_open(spec, stk_fuzz_fields);
    }
    close(file.fd);
    return 0;
}
