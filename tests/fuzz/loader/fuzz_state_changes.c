/* fuzz_state_changes.c - any bytes as the state of a mix whose weights changed: refused with a
 * reason, or taken, and the same again when written.
 *
 *   input  [how:1] [what follows the token] how: bit 0: the check is put right, which no fuzzer
 *          would find
 */
#include "fuzz/dataset_input.h"
#include "loader/api/state_changes.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { SOURCES = 2, TOKEN_BYTES = 64, CHECK_BYTES = 8, SIZE_MAX_HERE = 2048 };

/* A check that agrees with the words before it. */
static void mend(uint8_t *state, size_t size)
{
    uint64_t check = 1;
    if (size < TOKEN_BYTES + CHECK_BYTES)
        return;
    for (size_t at = 0; at + CHECK_BYTES < size; at += 8)
        check = stk_mix64(check ^ stk_load_le64(state + at));
    stk_store_le64(state + size - CHECK_BYTES, check);
}

static void check_taken(const struct stk_mix *mix, const uint8_t *state, size_t size)
{
    uint8_t again[SIZE_MAX_HERE] = { 0 };
    STK_FUZZ_CHECK(stk_state_changes_size(mix) == size);
    stk_state_changes_write(mix, again);
    STK_FUZZ_CHECK(memcmp(again, state, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint64_t ends[SOURCES] = { 10, 30 };
    static const double weights[SOURCES] = { 0.7, 0.3 };
    struct stk_mix_plan plan = { .source_count = SOURCES, .length = 30, .id_ends = ends };
    struct stk_mix mix;
    uint8_t state[SIZE_MAX_HERE] = { 0 };
    stoker_error error = { .message = "" };
    if (size < 1 || size - 1 > SIZE_MAX_HERE - TOKEN_BYTES)
        return 0;
    memcpy(state + TOKEN_BYTES, bytes + 1, size - 1);
    size += TOKEN_BYTES - 1;
    if ((bytes[0] & 1) != 0)
        mend(state, size);
    stk_course_init(&plan.course, SOURCES);
    STK_FUZZ_CHECK(stk_course_add(&plan.course, 0, weights) == 0);
    STK_FUZZ_CHECK(stk_mix_make(&mix, &plan, 1, true) == 0);
    const int rc = stk_state_changes_read(&mix, state, size, &error);
    STK_FUZZ_CHECK(rc == STOKER_OK || (rc == STOKER_ESTATE && error.message[0] != '\0'));
    if (rc == STOKER_OK)
        check_taken(&mix, state, size);
    stk_mix_free(&mix);
    stk_course_free(&plan.course);
    return 0;
}
