/* fuzz_state.c - any 64 bytes as a resume token: refused with a reason and nothing written, or
 * taken whole and the same again when packed.
 *
 *   input  [token:64] [how:1] [differs:1]
 *          how      bit 0: magic, version and check are put right, which no fuzzer would find
 *          differs  what the loader expects otherwise: bit 0 seed, 1 shuffle, 2 count, 3 row bytes,
 *                   4 form, 5 content, 6 order
 */
#include "fuzz/dataset_input.h"
#include "loader/api/state.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { TOKEN_BYTES = sizeof(((stoker_state *)0)->bytes), CHECK_AT = TOKEN_BYTES - 8 };

/* Magic and version as of a token of this library, and a check that agrees. */
static void mend(stoker_state *state)
{
    stoker_state good;
    uint64_t check = 0;
    stk_state_pack(&good, &(struct stk_resume){ .count = 1 });
    memcpy(state->bytes, good.bytes, 8);
    for (int at = 0; at < CHECK_AT; at += 8)
        check = stk_mix64(check ^ stk_load_le64(state->bytes + at));
    stk_store_le64(state->bytes + CHECK_AT, check);
}

/* What a loader expects to which the token fits, except for what `differs` names. */
static struct stk_resume expected_of(const stoker_state *state, uint32_t differs)
{
    const uint8_t *bytes = state->bytes;
    return (struct stk_resume){
        .option = "resume",
        .seed = stk_load_le64(bytes + 8) ^ (differs & 1),
        .count = stk_load_le64(bytes + 32) ^ (differs >> 2 & 1),
        .shuffle = (stk_load_le32(bytes + 40) & 1) != (differs >> 1 & 1),
        .order_hash = (stk_load_le32(bytes + 40) >> 8) ^ (differs >> 6 & 1),
        .row_bytes = stk_load_le32(bytes + 44) ^ (differs >> 3 & 1),
        .fingerprint = { stk_load_le32(bytes + 48) ^ (differs >> 4 & 1),
                         stk_load_le32(bytes + 52) ^ (differs >> 5 & 1) },
    };
}

static void check_taken(const struct stk_resume *resume, const struct stk_resume *expected)
{
    stoker_state again;
    struct stk_resume twice = { 0 };
    STK_FUZZ_CHECK(resume->position <= resume->count && resume->count == expected->count);
    STK_FUZZ_CHECK(resume->seed == expected->seed && resume->shuffle == expected->shuffle &&
                   resume->order_hash == expected->order_hash);
    stk_state_pack(&again, resume);
    STK_FUZZ_CHECK(stk_state_unpack(&twice, &again, expected, NULL) == STOKER_OK);
    STK_FUZZ_CHECK(twice.epoch == resume->epoch && twice.position == resume->position);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    stoker_state state;
    if (size < TOKEN_BYTES + 2)
        return 0;
    const bool mended = (bytes[TOKEN_BYTES] & 1) != 0;
    const uint32_t differs = bytes[TOKEN_BYTES + 1] & 0x7F;
    memcpy(state.bytes, bytes, TOKEN_BYTES);
    if (mended)
        mend(&state);
    const struct stk_resume expected = expected_of(&state, differs);
    struct stk_resume untouched;
    memset(&untouched, 0xA5, sizeof(untouched));
    struct stk_resume resume;
    memcpy(&resume, &untouched, sizeof(resume));
    stoker_error error = { .message = "" };
    const int rc = stk_state_unpack(&resume, &state, &expected, &error);
    STK_FUZZ_CHECK(rc == STOKER_OK || rc == STOKER_ESTATE);
    if (rc == STOKER_OK) {
        STK_FUZZ_CHECK(differs == 0);
        check_taken(&resume, &expected);
    } else {
        STK_FUZZ_CHECK(error.message[0] != '\0' &&
                       memcmp(&resume, &untouched, sizeof(resume)) == 0);
    }
    const bool known = (stk_load_le32(state.bytes + 40) & 0xFE) == 0; /* flags */
    if (mended && differs == 0)
        STK_FUZZ_CHECK((rc == STOKER_OK) ==
                       (known && stk_load_le64(state.bytes + 24) <= expected.count));
    return 0;
}
