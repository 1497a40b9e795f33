/* fuzz_packed.c - any bytes as Megatron's pair of files, whose documents are packed into rows.
 *
 *   input   1 byte: tokens of X.bin, in bytes; the rest is X.idx
 *
 * A row's cu_seqlens rise from 0 to the tokens that it has, and max_seqlen is the longest step
 * between them.
 */
#include "fuzz/scratch.h"

enum { LENGTH = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The fields are tokens, cu_seqlens, max_seqlen. */
static void look_at_rows(const stoker_dataset *dataset)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    for (uint64_t id = 0; id < count && id < 64; id++) {
        uint8_t tokens[LENGTH * sizeof(int64_t)];
        int32_t ends[LENGTH + 1], longest = 0, found = 0;
        stoker_row rows[] = {
            { .data = tokens, .bytes_max = stoker_dataset_field_bytes(dataset, 0) },
            { .data = ends, .bytes_max = stoker_dataset_field_bytes(dataset, 1) },
            { .data = &longest, .bytes_max = sizeof(longest) },
        };
        stoker_error error = { 0 };
        STK_FUZZ_CHECK(rows[0].bytes_max <= sizeof(tokens) && rows[1].bytes_max <= sizeof(ends));
        const int rc = stoker_dataset_read(dataset, id, rows, &error);
        STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
        if (rc != STOKER_OK)
            continue;
        STK_FUZZ_CHECK(rows[1].length >= 2 && rows[1].length <= LENGTH + 1 && ends[0] == 0);
        for (uint64_t i = 1; i < rows[1].length; i++) {
            STK_FUZZ_CHECK(ends[i] > ends[i - 1] && ends[i] <= LENGTH);
            found = ends[i] - ends[i - 1] > found ? ends[i] - ends[i - 1] : found;
        }
        STK_FUZZ_CHECK(found == longest);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const parameters[] = { "", "?eos=7", "?eos=3&bos=5" };
    static const char *const packings[] = { "long=split&block=4", "long=crop&dtype=int64" };
    static uint8_t tokens[256];
    char path[STK_FUZZ_PATH_BYTES];
    if (stk_fuzz_begins())
        for (size_t i = 0; i < sizeof(tokens); i++)
            tokens[i] = (uint8_t)(i % 11);
    if (size == 0)
        return 0;
    stk_fuzz_write("x.bin", tokens, bytes[0]);
    stk_fuzz_write("x.idx", bytes + 1, size - 1);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++) {
            char spec[STK_FUZZ_PATH_BYTES + 192];
            (void)snprintf(spec, sizeof(spec), "packed:%d:(documents:%s%s)?%s&fields=%s", LENGTH,
                           stk_fuzz_path(path, "x.idx"), parameters[i], packings[j],
                           "tokens,cu_seqlens,max_seqlen");
            stk_fuzz_open(spec, look_at_rows);
        }
    return 0;
}
