/* test_state.c - the state of a loader: its bytes for ever, and no damaged one is believed. */
#include <stddef.h>

#include "loader/api/state.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"
#include "support/leaks.h"

static const struct stk_resume resume = { .seed = 0x1122334455667788,
                                          .epoch = 7,
                                          .position = 4096,
                                          .count = 60000,
                                          .row_bytes = 784,
                                          .fingerprint = { .form = 0xA1A2A3A4,
                                                           .content = 0xB1B2B3B4 },
                                          .shuffle = true };
static struct stk_mix no_mix;
static uint8_t state[STOKER_STATE_BYTES];

static int parse(struct stk_resume *found, size_t size, const struct stk_resume *expected,
                 stoker_error *error)
{
    const int rc = stk_state_check(state, size, "resume", error);
    return rc == 0 ? stk_state_read(found, &no_mix, state, size, expected, error) : rc;
}

static void expect_refused(size_t size, const struct stk_resume *expected, const char *word)
{
    struct stk_resume found = { .epoch = 99 };
    stoker_error error = { 0 };
    cr_assert_eq(parse(&found, size, expected, &error), STOKER_ESTATE);
    cr_assert_eq(error.code, STOKER_ESTATE);
    cr_assert_eq(strncmp(error.message, "resume: ", 8), 0, "%s", error.message);
    cr_assert_not_null(strstr(error.message, word), "%s", error.message);
    cr_assert_eq(found.epoch, 99); /* written on success only */
}

/* The layout of state_layout.h, written by hand. */
CleanTest(state, bytes_are_the_same_on_every_machine)
{
    static const uint8_t expected[56] = {
        'S',  'T',  'K',  1,    64,   0,    0,    0,    /* magic, version, size */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* seed */
        7,    0,    0,    0,    0,    0,    0,    0,    /* epoch */
        0,    0x10, 0,    0,    0,    0,    0,    0,    /* position */
        0x60, 0xEA, 0,    0,    0,    0,    0,    0,    /* samples */
        1,    0,    0,    0,    0x10, 0x03, 0,    0,    /* flags, bytes of a row */
        0xA4, 0xA3, 0xA2, 0xA1, 0xB4, 0xB3, 0xB2, 0xB1, /* fingerprint */
    };
    cr_assert_eq(stk_state_size(&no_mix), sizeof(state));
    stk_state_write(state, &resume, &no_mix);
    cr_assert_arr_eq(state, expected, sizeof(expected));
}

CleanTest(state, comes_back_as_it_was)
{
    struct stk_resume given = resume, expected = resume, found;
    expected.epoch = expected.position = 0; /* these two are ignored */
    for (given.position = 0; given.position <= given.count; given.position += given.count / 2) {
        stk_state_write(state, &given, &no_mix);
        memset(&found, 0, sizeof(found));
        cr_assert_eq(parse(&found, sizeof(state), &expected, NULL), 0);
        cr_assert_eq(found.seed, resume.seed);
        cr_assert_eq(found.epoch, resume.epoch);
        cr_assert_eq(found.position, given.position);
        cr_assert_eq(found.count, resume.count);
        cr_assert_eq(found.row_bytes, resume.row_bytes);
        cr_assert(found.shuffle);
    }
}

CleanTest(state, each_flipped_bit_and_each_prefix_is_found)
{
    stk_state_write(state, &resume, &no_mix);
    for (size_t bit = 0; bit < 8 * sizeof(state); bit++) {
        state[bit / 8] ^= (uint8_t)(1U << bit % 8);
        expect_refused(sizeof(state), &resume, "damaged");
        state[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t size = 0; size < sizeof(state); size++)
        expect_refused(size, &resume, "damaged");
    for (int byte = 0; byte <= 0xFF; byte += 0xFF) {
        memset(state, byte, sizeof(state));
        expect_refused(sizeof(state), &resume, "damaged");
    }
}

CleanTest(state, another_runs_is_refused_with_a_reason)
{
    static const struct {
        size_t differs; /* in its lowest bit */
        const char *word;
    } cases[] = {
        { offsetof(struct stk_resume, count), "60000 samples, this has 60001" },
        { offsetof(struct stk_resume, row_bytes), "rows of 784 bytes, this has rows of 785" },
        { offsetof(struct stk_resume, fingerprint.form), "another format, element type" },
        { offsetof(struct stk_resume, fingerprint.content), "another data set of the same shape" },
        { offsetof(struct stk_resume, order_hash), "another options.order" },
        { offsetof(struct stk_resume, seed), "asked for seed 1234605616436508553, shuffle 1" },
        { offsetof(struct stk_resume, shuffle), "shuffle 0" },
    };
    stk_state_write(state, &resume, &no_mix);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_resume other = resume;
        *((uint8_t *)&other + cases[i].differs) ^= 1;
        expect_refused(sizeof(state), &other, cases[i].word);
    }
}

/* Well-formed but impossible: made by hand with a right check word. */
CleanTest(state, no_loader_of_this_version_writes_is_refused_with_a_reason)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *word;
    } cases[] = {
        { 3, 2, "version 2, this library reads version 1" },
        { 40, 3, "flags" },
        { 26, 16, "position 1052672 of 60000 is impossible" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t check = 0;
        stk_state_write(state, &resume, &no_mix);
        state[cases[i].at] = cases[i].value;
        for (size_t at = 0; at < 56; at += 8)
            check = stk_mix64(check ^ stk_load_le64(state + at));
        stk_store_le64(state + 56, check);
        expect_refused(sizeof(state), &resume, cases[i].word);
    }
}
