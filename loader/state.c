/* state.c - see state.h. */
#include "loader/state.h"

#include <inttypes.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/error.h"
#include "loader/base/rng.h"

enum { VERSION = 1, CHECKED_BYTES = 56 };

static const uint8_t MAGIC[4] = { 'S', 'T', 'K', 'S' };

static uint64_t check_word(const stoker_state *state)
{
    uint64_t check = 0;
    for (int at = 0; at < CHECKED_BYTES; at += 8)
        check = stk_mix64(check ^ stk_load_le64(state->bytes + at));
    return check;
}

void stk_state_pack(stoker_state *state, const struct stk_resume *resume)
{
    memset(state, 0, sizeof(*state));
    memcpy(state->bytes, MAGIC, sizeof(MAGIC));
    stk_store_le32(state->bytes + 4, VERSION);
    stk_store_le64(state->bytes + 8, resume->seed);
    stk_store_le64(state->bytes + 16, resume->epoch);
    stk_store_le64(state->bytes + 24, resume->position);
    stk_store_le64(state->bytes + 32, resume->count);
    stk_store_le32(state->bytes + 40, resume->shuffle ? 1 : 0);
    stk_store_le32(state->bytes + 44, (uint32_t)resume->row_bytes);
    stk_store_le64(state->bytes + CHECKED_BYTES, check_word(state));
}

int stk_state_unpack(struct stk_resume *resume, const stoker_state *state,
                     const struct stk_resume *expected, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const uint8_t *bytes = state->bytes;
    if (memcmp(bytes, MAGIC, sizeof(MAGIC)) != 0 || stk_load_le32(bytes + 4) != VERSION ||
        stk_load_le64(bytes + CHECKED_BYTES) != check_word(state))
        return stk_error_set(error, STOKER_ESTATE, STOKER_STAGE_OPTIONS, &nowhere,
                             "resume: not a state of this version, or damaged");

    const struct stk_resume found = {
        .seed = stk_load_le64(bytes + 8),
        .epoch = stk_load_le64(bytes + 16),
        .position = stk_load_le64(bytes + 24),
        .count = stk_load_le64(bytes + 32),
        .shuffle = stk_load_le32(bytes + 40) != 0,
        .row_bytes = stk_load_le32(bytes + 44),
    };
    if (found.count != expected->count || found.row_bytes != (uint32_t)expected->row_bytes ||
        found.position > found.count)
        return stk_error_set(error, STOKER_ESTATE, STOKER_STAGE_OPTIONS, &nowhere,
                             "resume: made with a data set of %" PRIu64
                             " samples, this has %" PRIu64,
                             found.count, expected->count);
    if (found.seed != expected->seed || found.shuffle != expected->shuffle)
        return stk_error_set(error, STOKER_ESTATE, STOKER_STAGE_OPTIONS, &nowhere,
                             "resume: made with seed %" PRIu64
                             ", shuffle %d; asked for seed %" PRIu64 ", shuffle %d",
                             found.seed, found.shuffle, expected->seed, expected->shuffle);
    *resume = found;
    return 0;
}
