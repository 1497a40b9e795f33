/* test_state.c - the resume token: its bytes for ever, and no damaged one is believed. */
#include <criterion/criterion.h>
#include <string.h>

#include "loader/api/state.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"
#include "support/leaks.h"

static const struct stk_resume resume = { .option = "resume",
                                          .seed = 0x1122334455667788,
                                          .epoch = 7,
                                          .position = 4096,
                                          .count = 60000,
                                          .row_bytes = 784,
                                          .fingerprint = { .form = 0xA1A2A3A4,
                                                           .content = 0xB1B2B3B4 },
                                          .shuffle = true };

/* The layout as state.h gives it, written by hand. */
CleanTest(state, bytes_are_the_same_on_every_machine)
{
    static const uint8_t expected[56] = {
        'S',  'T',  'K',  'S',  2,    0,    0,    0,    /* magic, version */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* seed */
        7,    0,    0,    0,    0,    0,    0,    0,    /* epoch */
        0,    0x10, 0,    0,    0,    0,    0,    0,    /* position */
        0x60, 0xEA, 0,    0,    0,    0,    0,    0,    /* samples */
        1,    0,    0,    0,    0x10, 0x03, 0,    0,    /* flags, bytes of a row */
        0xA4, 0xA3, 0xA2, 0xA1, 0xB4, 0xB3, 0xB2, 0xB1, /* fingerprint */
    };
    stoker_state state;
    stk_state_pack(&state, &resume);
    cr_assert_arr_eq(state.bytes, expected, sizeof(expected));
}

CleanTest(state, comes_back_as_it_was)
{
    stoker_state state;
    struct stk_resume found;
    stk_state_pack(&state, &resume);
    struct stk_resume expected = resume;
    expected.epoch = 0; /* these two are not looked at */
    expected.position = 0;
    cr_assert_eq(stk_state_unpack(&found, &state, &expected, NULL), 0);
    cr_assert_eq(found.seed, resume.seed);
    cr_assert_eq(found.epoch, resume.epoch);
    cr_assert_eq(found.position, resume.position);
    cr_assert_eq(found.count, resume.count);
    cr_assert_eq(found.row_bytes, resume.row_bytes);
    cr_assert(found.shuffle);
}

static void expect_refused(const stoker_state *state, const struct stk_resume *expected,
                           const char *word)
{
    struct stk_resume found = { .epoch = 99 };
    stoker_error error = { 0 };
    cr_assert_eq(stk_state_unpack(&found, state, expected, &error), STOKER_ESTATE);
    cr_assert_eq(error.code, STOKER_ESTATE);
    cr_assert_not_null(strstr(error.message, word), "%s", error.message);
    cr_assert_eq(found.epoch, 99); /* written on success only */
}

CleanTest(state, each_flipped_bit_is_found)
{
    stoker_state state;
    for (int bit = 0; bit < 512; bit++) {
        stk_state_pack(&state, &resume);
        state.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        expect_refused(&state, &resume, "damaged");
    }
    memset(&state, 0, sizeof(state));
    expect_refused(&state, &resume, "damaged");
    memset(&state, 0xFF, sizeof(state));
    expect_refused(&state, &resume, "damaged");
}

CleanTest(state, another_runs_is_refused_with_a_reason)
{
    stoker_state state;
    stk_state_pack(&state, &resume);
    struct stk_resume other = resume;
    other.count = 59999;
    expect_refused(&state, &other, "59999");
    other = resume;
    other.row_bytes = 785;
    expect_refused(&state, &other, "rows of 784 bytes, this has rows of 785");
    other = resume;
    other.fingerprint.form++;
    expect_refused(&state, &other, "another format, element type");
    other = resume;
    other.fingerprint.content++;
    expect_refused(&state, &other, "another data set of the same shape");
    other = resume;
    other.seed = 5;
    expect_refused(&state, &other, "seed 5");
    other = resume;
    other.shuffle = false;
    expect_refused(&state, &other, "shuffle 0");
}

/* As Stoker 0.1 wrote it: well-formed, but nobody knows which data set it is of. */
CleanTest(state, version_1_is_refused_with_a_reason)
{
    stoker_state state;
    stk_state_pack(&state, &resume);
    stk_store_le32(state.bytes + 4, 1);
    stk_store_le64(state.bytes + 48, 0);
    uint64_t check = 0;
    for (int at = 0; at < 56; at += 8)
        check = stk_mix64(check ^ stk_load_le64(state.bytes + at));
    stk_store_le64(state.bytes + 56, check);
    expect_refused(&state, &resume, "version 1, this library takes version 2");
}

/* Well-formed but impossible: made by hand with a right check word. */
CleanTest(state, a_position_past_the_end_is_refused)
{
    stoker_state state;
    struct stk_resume late = resume;
    late.position = late.count;
    stk_state_pack(&state, &late);
    cr_assert_eq(stk_state_unpack(&late, &state, &resume, NULL), 0);
    late.position = late.count + 1;
    stk_state_pack(&state, &late);
    expect_refused(&state, &resume, "resume");
}
