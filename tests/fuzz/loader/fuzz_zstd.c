/* fuzz_zstd.c - any bytes as a Zstandard frame; the first two say how long the row is. */
#include "fuzz/codec_input.h"
#include "loader/base/bytes.h"
#include "loader/codec/zstd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2 || !stk_zstd_present())
        return 0;
    const size_t row_bytes = 1U + stk_load_be16(bytes);
    struct stk_fuzz_decoder decoder = stk_fuzz_open(&stk_codec_zstd, row_bytes);
    if (stk_fuzz_decode(&decoder, bytes + 2, size - 2) == STOKER_OK) {
        /* what unpacks packs again, to something that unpacks to the same */
        const size_t room = stk_zstd_bound(row_bytes);
        uint8_t *frame = malloc(room);
        uint8_t *row = malloc(row_bytes);
        STK_FUZZ_MUST(frame != NULL && row != NULL);
        memcpy(row, decoder.row, row_bytes);
        const size_t packed = stk_zstd_pack(row, row_bytes, 1, frame, room);
        STK_FUZZ_MUST(packed > 0);
        STK_FUZZ_MUST(stk_fuzz_decode(&decoder, frame, packed) == STOKER_OK);
        STK_FUZZ_MUST(memcmp(row, decoder.row, row_bytes) == 0);
        free(frame);
        free(row);
    }
    stk_fuzz_close(&decoder);
    return 0;
}
