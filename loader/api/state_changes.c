/* state_changes.c - see state_changes.h. */
#include "loader/api/state_changes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"

enum { TOKEN_BYTES = 64, HEADER_BYTES = 80, VERSION = 1, CHECK_BYTES = 8 };

static const uint8_t MAGIC[4] = { 'S', 'T', 'K', 'C' };

static size_t change_bytes(uint32_t source_count)
{
    return 8 + 8 * (size_t)source_count;
}

/* Changes that the course of the loader has beyond its data set's. */
static uint32_t change_count(const struct stk_mix *mix)
{
    return mix->sources == NULL ? 0 : stk_course_leg_count(&mix->course) - mix->course.borrowed;
}

size_t stk_state_changes_size(const struct stk_mix *mix)
{
    const uint32_t changes = change_count(mix);
    return changes == 0 ? TOKEN_BYTES
                        : HEADER_BYTES + changes * change_bytes(mix->source_count) + CHECK_BYTES;
}

static uint64_t check_word(const uint8_t *bytes, size_t size)
{
    uint64_t check = 1;
    for (size_t at = 0; at + CHECK_BYTES < size; at += 8)
        check = stk_mix64(check ^ stk_load_le64(bytes + at));
    return check;
}

void stk_state_changes_write(const struct stk_mix *mix, uint8_t *bytes)
{
    const uint32_t changes = change_count(mix);
    const size_t size = stk_state_changes_size(mix);
    uint8_t *at = bytes + HEADER_BYTES;
    assert(changes > 0);
    memcpy(bytes + TOKEN_BYTES, MAGIC, sizeof(MAGIC));
    stk_store_le32(bytes + 68, VERSION);
    stk_store_le32(bytes + 72, mix->source_count);
    stk_store_le32(bytes + 76, changes);
    for (uint32_t i = 0; i < changes; i++) {
        const struct stk_course_leg *leg = stk_course_leg(&mix->course, mix->course.borrowed + i);
        stk_store_le64(at, leg->first);
        at += 8;
        for (uint32_t source = 0; source < mix->source_count; source++, at += 8) {
            uint64_t bits;
            memcpy(&bits, &leg->weights[source], sizeof(bits));
            stk_store_le64(at, bits);
        }
    }
    stk_store_le64(at, check_word(bytes, size));
}

/* ---- reading ------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int refuse(stoker_error *error, const char *format,
                                                        ...)
{
    const struct stk_place nowhere = STK_NOWHERE;
    char why[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    return stk_error_set(error, STOKER_ESTATE, STOKER_STAGE_OPTIONS, &nowhere, "resume_bytes: %s",
                         why);
}

/* Bytes that were written as a state with changes, of whatever mix. */
static int check_whole(const uint8_t *bytes, size_t size, stoker_error *error)
{
    if (size < HEADER_BYTES + CHECK_BYTES || size % 8 != 0 ||
        memcmp(bytes + TOKEN_BYTES, MAGIC, sizeof(MAGIC)) != 0 ||
        stk_load_le64(bytes + size - CHECK_BYTES) != check_word(bytes, size))
        return refuse(error, "not what stoker_loader_state_write() wrote, or damaged: %zu bytes",
                      size);
    return 0;
}

static int check_bytes(const struct stk_mix *mix, const uint8_t *bytes, size_t size,
                       stoker_error *error)
{
    const int rc = check_whole(bytes, size, error);
    if (rc < 0)
        return rc;
    const uint32_t version = stk_load_le32(bytes + 68);
    const uint32_t sources = stk_load_le32(bytes + 72);
    const uint32_t changes = stk_load_le32(bytes + 76);
    if (version != VERSION)
        return refuse(error, "version %" PRIu32 ", this library takes version %d", version,
                      VERSION);
    if (sources != mix->source_count)
        return refuse(error, "of a mix of %" PRIu32 " sources, this has %" PRIu32, sources,
                      mix->source_count);
    if (changes == 0 || changes > STK_COURSE_CHANGES_MAX ||
        size != HEADER_BYTES + changes * change_bytes(sources) + CHECK_BYTES)
        return refuse(error, "%zu bytes for %" PRIu32 " changes of %" PRIu32 " weights", size,
                      changes, sources);
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
        return refuse(error, "the change at position %" PRIu64 " is impossible", position);
    return stk_course_add(&mix->course, position, weights);
}

int stk_state_changes_read(struct stk_mix *mix, const void *bytes, size_t size, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const uint8_t *at = bytes;
    int rc = check_bytes(mix, at, size, error);
    if (rc < 0)
        return rc;
    const uint32_t changes = stk_load_le32(at + 76);
    double *weights = stk_calloc(mix->source_count, sizeof(*weights));
    rc = weights == NULL ? STOKER_ENOMEM : 0;
    at += HEADER_BYTES;
    for (uint32_t i = 0; rc == 0 && i < changes; i++, at += change_bytes(mix->source_count))
        rc = add_change(mix, at, weights, error);
    stk_free(weights);
    return rc == STOKER_ENOMEM || rc == STOKER_ELIMIT
               ? stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere,
                               "resume_bytes: %" PRIu32 " changes", changes)
               : rc;
}

/* ---- moving -------------------------------------------------------------------------------- */

int stoker_state_bytes_seek(void *bytes, size_t size, uint64_t epoch, uint64_t position,
                            stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    stoker_state token;
    if (bytes == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere, "bytes is NULL");
    int rc = size == TOKEN_BYTES ? 0 : check_whole(bytes, size, error);
    if (rc < 0)
        return rc;
    memcpy(token.bytes, bytes, TOKEN_BYTES);
    rc = stoker_state_seek(&token, epoch, position, error);
    if (rc < 0)
        return rc;
    memcpy(bytes, token.bytes, TOKEN_BYTES);
    if (size > TOKEN_BYTES)
        stk_store_le64((uint8_t *)bytes + size - CHECK_BYTES, check_word(bytes, size));
    return STOKER_OK;
}
