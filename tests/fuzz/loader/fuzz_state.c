/* fuzz_state.c - any bytes as the state of a loader over a mix: refused with a reason and nothing
 * written, or read, and the same again when written.
 *
 *   input  [how:1] [differs:1] [state]
 *          how      bit 0: magic, version, size and check are put right, which no fuzzer would find
 *          differs  what the loader expects otherwise: bit 0 seed, 1 shuffle, 2 count, 3 row bytes,
 *                   4 form, 5 content, 6 order
 */
#include "fuzz/dataset_input.h"
#include "loader/api/state.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"
#include "loader/base/state_layout.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { SOURCES = 2, SIZE_MAX_HERE = 2048 };

static void seal(uint8_t *state, size_t size)
{
    static const struct stk_mix no_mix;
    uint8_t good[STOKER_STATE_BYTES];
    uint64_t check = 0;
    if (size < STOKER_STATE_BYTES || size % 8 != 0)
        return;
    stk_state_write(good, &(struct stk_resume){ .count = 1 }, &no_mix);
    memcpy(state, good, STK_STATE_SIZE_AT); /* magic and version */
    stk_store_le32(state + STK_STATE_SIZE_AT, (uint32_t)size);
    for (size_t at = 0; at + STK_STATE_CHECK_BYTES < size; at += 8)
        check = stk_mix64(check ^ stk_load_le64(state + at));
    stk_store_le64(state + size - STK_STATE_CHECK_BYTES, check);
}

/* What a loader expects to which the state fits, except for what `differs` names. */
static struct stk_resume expected_of(const uint8_t *state, uint32_t differs)
{
    const uint32_t flags = stk_load_le32(state + STK_STATE_FLAGS_AT);
    return (struct stk_resume){
        .seed = stk_load_le64(state + STK_STATE_SEED_AT) ^ (differs & 1),
        .count = stk_load_le64(state + STK_STATE_COUNT_AT) ^ (differs >> 2 & 1),
        .shuffle = (flags & 1) != (differs >> 1 & 1),
        .order_hash = flags >> 8 ^ (differs >> 6 & 1),
        .row_bytes = stk_load_le32(state + STK_STATE_ROW_BYTES_AT) ^ (differs >> 3 & 1),
        .fingerprint = { stk_load_le32(state + STK_STATE_FORM_AT) ^ (differs >> 4 & 1),
                         stk_load_le32(state + STK_STATE_CONTENT_AT) ^ (differs >> 5 & 1) },
    };
}

static void check_read(const struct stk_resume *resume, const struct stk_mix *mix,
                       const uint8_t *state, size_t size)
{
    uint8_t again[SIZE_MAX_HERE];
    STK_FUZZ_CHECK(resume->position <= resume->count);
    STK_FUZZ_CHECK(stk_state_size(mix) == size);
    stk_state_write(again, resume, mix);
    STK_FUZZ_CHECK(memcmp(again, state, size) == 0);
}

static void read_state(struct stk_mix *mix, const uint8_t *state, size_t size, bool sealed,
                       uint32_t differs)
{
    struct stk_resume resume, untouched;
    stoker_error error = { .message = "" };
    memset(&untouched, 0xA5, sizeof(untouched));
    memcpy(&resume, &untouched, sizeof(resume));
    int rc = stk_state_check(state, size, "resume", &error);
    const bool whole = rc == STOKER_OK;
    if (whole) {
        const struct stk_resume expected = expected_of(state, differs);
        rc = stk_state_read(&resume, mix, state, size, &expected, &error);
    }
    STK_FUZZ_CHECK(rc == STOKER_OK || (rc == STOKER_ESTATE && error.message[0] != '\0'));
    if (rc == STOKER_OK)
        check_read(&resume, mix, state, size);
    else
        STK_FUZZ_CHECK(memcmp(&resume, &untouched, sizeof(resume)) == 0);
    STK_FUZZ_CHECK(rc != STOKER_OK || differs == 0);
    STK_FUZZ_CHECK(whole || !sealed || size < STOKER_STATE_BYTES || size % 8 != 0);
    if (whole && differs == 0 && size == STOKER_STATE_BYTES)
        STK_FUZZ_CHECK((rc == STOKER_OK) == ((state[STK_STATE_FLAGS_AT] & 0xFE) == 0 &&
                                             stk_load_le64(state + STK_STATE_POSITION_AT) <=
                                                 stk_load_le64(state + STK_STATE_COUNT_AT)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint64_t ends[SOURCES] = { 10, 30 };
    static const double weights[SOURCES] = { 0.7, 0.3 };
    struct stk_mix_plan plan = { .source_count = SOURCES, .length = 30, .id_ends = ends };
    struct stk_mix mix;
    uint8_t state[SIZE_MAX_HERE] = { 0 };
    if (size < 2 || size - 2 > SIZE_MAX_HERE)
        return 0;
    const bool sealed = (bytes[0] & 1) != 0;
    memcpy(state, bytes + 2, size - 2);
    if (sealed)
        seal(state, size - 2);
    stk_course_init(&plan.course, SOURCES);
    STK_FUZZ_CHECK(stk_course_add(&plan.course, 0, weights) == 0);
    STK_FUZZ_CHECK(stk_mix_make(&mix, &plan, 1, true) == 0);
    read_state(&mix, state, size - 2, sealed, bytes[1] & 0x7F);
    stk_mix_free(&mix);
    stk_course_free(&plan.course);
    return 0;
}
