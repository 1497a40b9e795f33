/* state.c - see state.h. */
#include "loader/api/state.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/base/state_layout.h"

enum { VERSION = 1, SHUFFLE = 1, FLAGS_UNKNOWN = 0xFE, MAGIC_BYTES = 3 };

static const uint8_t MAGIC[MAGIC_BYTES] = { 'S', 'T', 'K' };

_Static_assert(STK_STATE_CHANGES_AT + STK_STATE_CHECK_BYTES == STOKER_STATE_BYTES, "no changes");

static size_t change_bytes(const struct stk_mix *mix)
{
    return 8 + 8 * (size_t)mix->source_count;
}

/* Changes that the loader made itself: its course without the data set's. */
static uint32_t change_count(const struct stk_mix *mix)
{
    return mix->sources == NULL ? 0 : stk_course_leg_count(&mix->course) - mix->course.borrowed;
}

size_t stk_state_size(const struct stk_mix *mix)
{
    return STOKER_STATE_BYTES + change_count(mix) * change_bytes(mix);
}

static uint64_t check_word(const uint8_t *state, size_t size)
{
    uint64_t check = 0;
    for (size_t at = 0; at + STK_STATE_CHECK_BYTES < size; at += 8)
        check = stk_mix64(check ^ stk_load_le64(state + at));
    return check;
}

struct stk_resume stk_state_start(const stoker_dataset *dataset,
                                  const stoker_loader_options *options)
{
    return (struct stk_resume){
        .seed = options->seed,
        .count = dataset->info.count,
        .row_bytes = dataset->row_bytes,
        .fingerprint = stk_fingerprint_of(dataset),
        .shuffle = options->shuffle,
    };
}

void stk_state_write(uint8_t *state, const struct stk_resume *resume, const struct stk_mix *mix)
{
    const size_t size = stk_state_size(mix);
    uint8_t *at = state + STK_STATE_CHANGES_AT;
    memcpy(state, MAGIC, MAGIC_BYTES);
    state[MAGIC_BYTES] = VERSION;
    stk_store_le32(state + STK_STATE_SIZE_AT, (uint32_t)size);
    stk_store_le64(state + STK_STATE_SEED_AT, resume->seed);
    stk_store_le64(state + STK_STATE_EPOCH_AT, resume->epoch);
    stk_store_le64(state + STK_STATE_POSITION_AT, resume->position);
    stk_store_le64(state + STK_STATE_COUNT_AT, resume->count);
    stk_store_le32(state + STK_STATE_FLAGS_AT,
                   (resume->shuffle ? SHUFFLE : 0) | resume->order_hash << 8);
    stk_store_le32(state + STK_STATE_ROW_BYTES_AT, (uint32_t)resume->row_bytes);
    stk_store_le32(state + STK_STATE_FORM_AT, resume->fingerprint.form);
    stk_store_le32(state + STK_STATE_CONTENT_AT, resume->fingerprint.content);
    for (uint32_t i = 0; i < change_count(mix); i++) {
        const struct stk_course_leg *leg = stk_course_leg(&mix->course, mix->course.borrowed + i);
        stk_store_le64(at, leg->first);
        at += 8;
        for (uint32_t source = 0; source < mix->source_count; source++, at += 8) {
            uint64_t bits;
            memcpy(&bits, &leg->weights[source], sizeof(bits));
            stk_store_le64(at, bits);
        }
    }
    stk_store_le64(at, check_word(state, size));
}

/* ---- reading ------------------------------------------------------------------------------- */

int stk_state_check(const uint8_t *state, size_t size, const char *what, stoker_error *error)
{
    if (size < STOKER_STATE_BYTES || size % 8 != 0 || memcmp(state, MAGIC, MAGIC_BYTES) != 0)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "%s: not a state of a loader, or damaged: %zu bytes", what, size);
    const uint32_t whole = stk_load_le32(state + STK_STATE_SIZE_AT);
    if (size != whole)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "%s: damaged or cut: %zu bytes of a state of %" PRIu32, what, size,
                                 whole);
    if (stk_load_le64(state + size - STK_STATE_CHECK_BYTES) != check_word(state, size))
        return stk_refuse_option(error, STOKER_ESTATE, "%s: damaged: its check word is wrong",
                                 what);
    if (state[MAGIC_BYTES] != VERSION)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "%s: the state has version %u, this library reads version %d: "
                                 "resume with the library that made it, or start without it",
                                 what, (unsigned)state[MAGIC_BYTES], VERSION);
    return 0;
}

/* Differences between two data sets, the most obvious first. */
static int check_dataset(const struct stk_resume *found, const struct stk_resume *expected,
                         stoker_error *error)
{
    if (found->count != expected->count)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: the state is of a data set of %" PRIu64
                                 " samples, this has %" PRIu64,
                                 found->count, expected->count);
    if (found->row_bytes != (uint32_t)expected->row_bytes)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: the state is of a data set with rows of %" PRIu64
                                 " bytes, this has rows of %" PRIu64 " bytes",
                                 found->row_bytes, expected->row_bytes);
    if (found->fingerprint.form != expected->fingerprint.form)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: the state is of a data set of another format, element "
                                 "type, shape or number of classes");
    if (found->fingerprint.content != expected->fingerprint.content)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: the state is of another data set of the same shape: "
                                 "names, sizes, labels or checksums differ");
    return 0;
}

/* The same order, and a position in it. */
static int check_order(const struct stk_resume *found, const struct stk_resume *expected,
                       stoker_error *error)
{
    const uint64_t length = expected->length > 0 ? expected->length : found->count;
    if (found->order_hash != expected->order_hash)
        return stk_refuse_option(
            error, STOKER_ESTATE,
            "resume: made with another options.order (kind, length, weights, "
            "name, fingerprint, window or blocks), or with other batches by length "
            "(batch_values_max, batch_window, batch_size, or the field's "
            "form)");
    if (found->position > length)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: position %" PRIu64 " of %" PRIu64 " is impossible",
                                 found->position, length);
    if (found->seed != expected->seed || found->shuffle != expected->shuffle)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: made with seed %" PRIu64
                                 ", shuffle %d; asked for seed %" PRIu64 ", shuffle %d",
                                 found->seed, found->shuffle, expected->seed, expected->shuffle);
    return 0;
}

/* Add one change; `weights` has room for it. */
static int add_change(struct stk_mix *mix, const uint8_t *at, double *weights, stoker_error *error)
{
    const uint32_t legs = stk_course_leg_count(&mix->course);
    const uint64_t position = stk_load_le64(at);
    uint32_t wrong;
    for (uint32_t i = 0; i < mix->source_count; i++) {
        const uint64_t bits = stk_load_le64(at + 8 + 8 * (size_t)i);
        memcpy(&weights[i], &bits, sizeof(bits));
    }
    if (position <= stk_course_leg(&mix->course, legs - 1)->first ||
        position > STK_SAMPLER_COUNT_MAX ||
        stk_quota_check(weights, mix->source_count, &wrong) != STK_QUOTA_FINE)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: the change at position %" PRIu64 " is impossible",
                                 position);
    return stk_course_add(&mix->course, position, weights);
}

static int add_changes(struct stk_mix *mix, const uint8_t *at, size_t size, stoker_error *error)
{
    const uint32_t sources = mix->sources == NULL ? 0 : mix->source_count;
    if (size == 0)
        return 0;
    if (sources == 0 || size % change_bytes(mix) != 0)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: %zu bytes are no changes of a mix of %" PRIu32 " sources",
                                 size, sources);
    double *weights = stk_calloc(sources, sizeof(*weights));
    int rc = weights == NULL ? STOKER_ENOMEM : 0;
    for (const uint8_t *end = at + size; rc == 0 && at < end; at += change_bytes(mix))
        rc = add_change(mix, at, weights, error);
    stk_free(weights);
    return rc == STOKER_ENOMEM || rc == STOKER_ELIMIT
               ? stk_refuse_option(error, rc, "resume: %zu changes", size / change_bytes(mix))
               : rc;
}

int stk_state_read(struct stk_resume *resume, struct stk_mix *mix, const uint8_t *state,
                   size_t size, const struct stk_resume *expected, stoker_error *error)
{
    const uint32_t flags = stk_load_le32(state + STK_STATE_FLAGS_AT);
    const struct stk_resume found = {
        .seed = stk_load_le64(state + STK_STATE_SEED_AT),
        .epoch = stk_load_le64(state + STK_STATE_EPOCH_AT),
        .position = stk_load_le64(state + STK_STATE_POSITION_AT),
        .count = stk_load_le64(state + STK_STATE_COUNT_AT),
        .length = expected->length,
        .order_hash = flags >> 8,
        .shuffle = (flags & SHUFFLE) != 0,
        .row_bytes = stk_load_le32(state + STK_STATE_ROW_BYTES_AT),
        .fingerprint = { stk_load_le32(state + STK_STATE_FORM_AT),
                         stk_load_le32(state + STK_STATE_CONTENT_AT) },
    };
    assert(stk_state_check(state, size, "", NULL) == 0);
    if ((flags & FLAGS_UNKNOWN) != 0)
        return stk_refuse_option(error, STOKER_ESTATE,
                                 "resume: the state has flags that this library does not know");
    int rc = check_dataset(&found, expected, error);
    if (rc == 0)
        rc = check_order(&found, expected, error);
    if (rc == 0)
        rc = add_changes(mix, state + STK_STATE_CHANGES_AT, size - STOKER_STATE_BYTES, error);
    if (rc == 0)
        *resume = found;
    return rc;
}

/* ---- moving -------------------------------------------------------------------------------- */

int stoker_state_seek(void *state, size_t size, uint64_t epoch, uint64_t position,
                      stoker_error *error)
{
    uint8_t *bytes = state;
    if (state == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "state is NULL");
    const int rc = stk_state_check(bytes, size, "state", error);
    if (rc < 0)
        return rc;
    stk_store_le64(bytes + STK_STATE_EPOCH_AT, epoch);
    stk_store_le64(bytes + STK_STATE_POSITION_AT, position);
    stk_store_le64(bytes + size - STK_STATE_CHECK_BYTES, check_word(bytes, size));
    return STOKER_OK;
}
