/* fuzz_inflate.c - any bytes as a zlib stream: we say what zlib says, and libdeflate agrees.
 *
 *   size:2, low byte first, of what it is to unpack to    the stream
 *
 * Once as it comes, and once with the sum put right that our own bytes have, or hardly anything
 * would be accepted.
 */
#include <stdio.h>

#include "fuzz/codec_input.h"
#include "support/deflate_writer.h"
#include "support/inflate_verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void judge(const uint8_t *in, size_t in_bytes, size_t out_bytes)
{
    bool accepted = false;
    uint8_t *out = NULL;
    const char *who = stk_inflate_judge(in, in_bytes, out_bytes, &accepted, &out);
    if (who != NULL)
        fprintf(stderr, "%s disagrees: we %s it\n", who, accepted ? "take" : "refuse");
    STK_FUZZ_MUST(who == NULL);
    free(out);
}

/* Give the stream a header and a sum that are right for what we make of it. */
static void mend(uint8_t *in, size_t in_bytes, size_t out_bytes)
{
    in[0] = 0x78;
    in[1] = 0x01;
    struct stk_inflate_try ours = stk_inflate_try_ours(in, in_bytes, out_bytes, false, 0);
    const uint32_t sum = stk_deflate_sum(ours.out, out_bytes);
    for (unsigned i = 0; i < 4; i++)
        in[in_bytes - 4 + i] = (uint8_t)(sum >> (24 - 8 * i));
    free(ours.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2)
        return 0;
    const size_t out_bytes = bytes[0] | (size_t)bytes[1] << 8;
    const size_t in_bytes = size - 2;
    judge(bytes + 2, in_bytes, out_bytes);
    if (in_bytes < 6)
        return 0;
    uint8_t *mended = malloc(in_bytes);
    STK_FUZZ_MUST(mended != NULL);
    memcpy(mended, bytes + 2, in_bytes);
    mend(mended, in_bytes, out_bytes);
    judge(mended, in_bytes, out_bytes);
    free(mended);
    return 0;
}
