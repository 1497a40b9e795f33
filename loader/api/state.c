/* state.c - see state.h. */
#include "loader/api/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/error.h"
#include "loader/base/rng.h"
#include "loader/base/state_layout.h"

enum { VERSION = 2, SHUFFLE = 1, FLAGS_UNKNOWN = 0xFC };

static const uint8_t MAGIC[4] = { 'S', 'T', 'K', 'S' };

static uint64_t check_word(const stoker_state *state)
{
    uint64_t check = 0;
    for (int at = 0; at < STK_STATE_CHECK_AT; at += 8)
        check = stk_mix64(check ^ stk_load_le64(state->bytes + at));
    return check;
}

void stk_state_pack(stoker_state *state, const struct stk_resume *resume)
{
    memset(state, 0, sizeof(*state));
    memcpy(state->bytes, MAGIC, sizeof(MAGIC));
    stk_store_le32(state->bytes + STK_STATE_VERSION_AT, VERSION);
    stk_store_le64(state->bytes + STK_STATE_SEED_AT, resume->seed);
    stk_store_le64(state->bytes + STK_STATE_EPOCH_AT, resume->epoch);
    stk_store_le64(state->bytes + STK_STATE_POSITION_AT, resume->position);
    stk_store_le64(state->bytes + STK_STATE_COUNT_AT, resume->count);
    stk_store_le32(state->bytes + STK_STATE_FLAGS_AT,
                   (resume->shuffle ? SHUFFLE : 0) | (resume->changed ? STK_STATE_CHANGED : 0) |
                       resume->order_hash << 8);
    stk_store_le32(state->bytes + STK_STATE_ROW_BYTES_AT, (uint32_t)resume->row_bytes);
    stk_store_le32(state->bytes + STK_STATE_FORM_AT, resume->fingerprint.form);
    stk_store_le32(state->bytes + STK_STATE_CONTENT_AT, resume->fingerprint.content);
    stk_store_le64(state->bytes + STK_STATE_CHECK_AT, check_word(state));
}

struct stk_resume stk_state_start(const stoker_dataset *dataset,
                                  const stoker_loader_options *options)
{
    return (struct stk_resume){
        .option = options->resume_bytes != NULL ? "resume_bytes" : "resume",
        .seed = options->seed,
        .count = dataset->info.count,
        .row_bytes = dataset->row_bytes,
        .fingerprint = stk_fingerprint_of(dataset),
        .shuffle = options->shuffle,
    };
}

/* `option` names where the state comes from. */
__attribute__((format(printf, 3, 4))) static int refuse(stoker_error *error, const char *option,
                                                        const char *format, ...)
{
    const struct stk_place nowhere = STK_NOWHERE;
    char why[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    return stk_error_set(error, STOKER_ESTATE, STOKER_STAGE_OPTIONS, &nowhere, "%s: %s", option,
                         why);
}

/* Differences between two data sets, the most obvious first. */
static int check_dataset(const struct stk_resume *found, const struct stk_resume *expected,
                         stoker_error *error)
{
    if (found->count != expected->count)
        return refuse(error, expected->option,
                      "the token is of a data set of %" PRIu64 " samples, this has %" PRIu64,
                      found->count, expected->count);
    if (found->row_bytes != (uint32_t)expected->row_bytes)
        return refuse(error, expected->option,
                      "the token is of a data set with rows of %" PRIu64 " bytes, this has rows of "
                      "%" PRIu64 " bytes",
                      found->row_bytes, expected->row_bytes);
    if (found->fingerprint.form != expected->fingerprint.form)
        return refuse(error, expected->option,
                      "the token is of a data set of another format, element type, shape or "
                      "number of classes");
    if (found->fingerprint.content != expected->fingerprint.content)
        return refuse(error, expected->option,
                      "the token is of another data set of the same shape: names, sizes, "
                      "labels or checksums differ");
    return 0;
}

/* Checks all that does not depend on the data set. */
static int check_token(const stoker_state *state, const char *option, stoker_error *error)
{
    const uint8_t *bytes = state->bytes;
    const uint32_t version = stk_load_le32(bytes + STK_STATE_VERSION_AT);
    if (memcmp(bytes, MAGIC, sizeof(MAGIC)) != 0 ||
        stk_load_le64(bytes + STK_STATE_CHECK_AT) != check_word(state))
        return refuse(error, option, "not a token of stoker_loader_state(), or damaged");
    if (version != VERSION)
        return refuse(error, option,
                      "the token has version %" PRIu32
                      ", this library takes version %d: resume with the "
                      "library that made it, or start without it",
                      version, VERSION);
    return 0;
}

int stoker_state_seek(stoker_state *state, uint64_t epoch, uint64_t position, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    if (state == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere, "state is NULL");
    const int rc = check_token(state, "state", error);
    if (rc < 0)
        return rc;
    stk_store_le64(state->bytes + STK_STATE_EPOCH_AT, epoch);
    stk_store_le64(state->bytes + STK_STATE_POSITION_AT, position);
    stk_store_le64(state->bytes + STK_STATE_CHECK_AT, check_word(state));
    return STOKER_OK;
}

int stk_state_unpack(struct stk_resume *resume, const stoker_state *state,
                     const struct stk_resume *expected, stoker_error *error)
{
    const uint8_t *bytes = state->bytes;
    int rc = check_token(state, expected->option, error);
    if (rc < 0)
        return rc;

    const uint32_t flags = stk_load_le32(bytes + STK_STATE_FLAGS_AT);
    if ((flags & FLAGS_UNKNOWN) != 0)
        return refuse(error, expected->option,
                      "the token has flags that this library does not know");
    const struct stk_resume found = {
        .seed = stk_load_le64(bytes + STK_STATE_SEED_AT),
        .epoch = stk_load_le64(bytes + STK_STATE_EPOCH_AT),
        .position = stk_load_le64(bytes + STK_STATE_POSITION_AT),
        .count = stk_load_le64(bytes + STK_STATE_COUNT_AT),
        .length = expected->length,
        .order_hash = flags >> 8,
        .shuffle = (flags & SHUFFLE) != 0,
        .changed = (flags & STK_STATE_CHANGED) != 0,
        .row_bytes = stk_load_le32(bytes + STK_STATE_ROW_BYTES_AT),
        .fingerprint = { stk_load_le32(bytes + STK_STATE_FORM_AT),
                         stk_load_le32(bytes + STK_STATE_CONTENT_AT) },
    };
    rc = check_dataset(&found, expected, error);
    if (rc < 0)
        return rc;
    if (found.changed != expected->changed)
        return refuse(error, expected->option,
                      found.changed
                          ? "the weights of the mix changed while it ran: resume_bytes takes "
                            "what stoker_loader_state_write() writes"
                          : "resume_bytes has more than the 64 bytes of a token without "
                            "changes");
    if (found.order_hash != expected->order_hash)
        return refuse(error, expected->option,
                      "made with another options.order (kind, length, weights, name or "
                      "fingerprint), or with other batches by length (batch_values_max, "
                      "batch_window, batch_size, or the field's form)");
    const uint64_t length = expected->length > 0 ? expected->length : found.count;
    if (found.position > length)
        return refuse(error, expected->option, "position %" PRIu64 " of %" PRIu64 " is impossible",
                      found.position, length);
    if (found.seed != expected->seed || found.shuffle != expected->shuffle)
        return refuse(error, expected->option,
                      "made with seed %" PRIu64 ", shuffle %d; asked for seed %" PRIu64
                      ", shuffle %d",
                      found.seed, found.shuffle, expected->seed, expected->shuffle);
    *resume = found;
    return 0;
}
