/* choice.c - see choice.h. */
#include "trainer/backend/cuda/engine/choice.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

#include "loader/base/error.h"

enum { COMPILED_TIMED_MAX = 3 };

bool stk_engine_allowed(const struct stk_engine_rules *rules, const struct stk_engine_notes *notes,
                        bool float32)
{
    if (rules->deterministic && notes->nondeterministic)
        return false;
    const bool less_than_float32 = notes->tensor_cores || notes->reduced || notes->transformed;
    return !(rules->full_float32 && float32 && less_than_float32);
}

/* The position in the list, and counts of engines skipped, by reason. */
struct walk {
    const struct stk_engine_source *source;
    const struct stk_engine_rules *rules;
    bool float32;
    uint32_t next;
    uint32_t disallowed, refused, too_large, failed;
    uint32_t compiled; /* built so far */
    uint64_t least_bytes;
};

static bool has_failed(const struct stk_engine_source *source, uint32_t index)
{
    return source->failures != NULL && (source->failures->engines >> index & 1) != 0;
}

/* An engine that is allowed fails, for another reason than that it does not support the graph. */
static void record_failure(struct walk *walk, uint32_t index, int64_t engine, const char *what,
                           const stoker_error *cause)
{
    struct stk_engine_failures *const failures = walk->source->failures;
    walk->failed++;
    failures->engines |= UINT64_C(1) << index;
    if (failures->first.code == STOKER_OK)
        (void)stk_refuse_option(&failures->first, STOKER_EDEVICE, "engine %" PRId64 " %s: %s",
                                engine, what, cause->message);
}

/* Build the next engine that is allowed and fits; false at the end or on an error. Whatever cuDNN
 * answers, another engine may build; if the device is lost, none does, and the first cause is
 * reported. */
static bool next_allowed(struct walk *walk, struct stk_engine_choice *out, int *rc,
                         stoker_error *error)
{
    const struct stk_engine_source *const s = walk->source;
    while (walk->next < s->count) {
        const uint32_t index = walk->next++;
        struct stk_engine_notes notes;
        s->notes(s->context, index, &notes);
        if (!stk_engine_allowed(walk->rules, &notes, walk->float32)) {
            walk->disallowed++;
            continue;
        }
        if (has_failed(s, index)) {
            walk->failed++;
            continue;
        }
        if (notes.compiled_when_built && out->timed > 0 && walk->compiled >= COMPILED_TIMED_MAX)
            continue;
        uint64_t bytes = 0;
        stoker_error cause = { .message = "" };
        *rc = s->build(s->context, index, &bytes, &cause);
        if (*rc == STOKER_EDEVICE && s->failures != NULL) {
            record_failure(walk, index, notes.engine, "did not build", &cause);
            *rc = STOKER_OK;
            continue;
        }
        if (*rc == STOKER_ENOTSUP) {
            walk->refused++;
            *rc = STOKER_OK;
            continue;
        }
        if (*rc != STOKER_OK) {
            if (error != NULL)
                *error = cause;
            return false;
        }
        walk->compiled += notes.compiled_when_built;
        if (bytes > walk->rules->workspace_bytes_max) {
            walk->least_bytes = bytes < walk->least_bytes ? bytes : walk->least_bytes;
            walk->too_large++;
            continue;
        }
        out->index = index;
        out->engine = notes.engine;
        out->workspace_bytes = bytes;
        return true;
    }
    return false;
}

static int none(const struct walk *walk, stoker_error *error)
{
    return stk_refuse_option(error, STOKER_ENOTSUP,
                             "of %" PRIu32 " engines, %" PRIu32 " are not allowed, %" PRIu32
                             " are not built here, %" PRIu32 " failed, %" PRIu32
                             " need more than %" PRIu64 " bytes (%" PRIu64 " at the least)",
                             walk->source->count, walk->disallowed, walk->refused, walk->failed,
                             walk->too_large, walk->rules->workspace_bytes_max,
                             walk->too_large > 0 ? walk->least_bytes : 0);
}

/* Run the first, built already; while that fails, the next. */
static int run_them(struct walk *walk, struct stk_engine_choice *choice, stoker_error *error)
{
    const struct stk_engine_source *const s = walk->source;
    stoker_error cause = { .message = "" };
    int rc = STOKER_OK;
    do {
        rc = s->run(s->context, &cause);
        if (rc == STOKER_OK)
            return rc;
        if (rc != STOKER_ENOTSUP) {
            if (error != NULL)
                *error = cause;
            return rc;
        }
        record_failure(walk, choice->index, choice->engine, "did not run", &cause);
        rc = STOKER_OK;
    } while (next_allowed(walk, choice, &rc, error));
    return rc != STOKER_OK ? rc : none(walk, error);
}

static int time_them(struct walk *walk, struct stk_engine_choice *best, stoker_error *error)
{
    const struct stk_engine_source *const s = walk->source;
    struct stk_engine_choice now = *best; /* the first, built already */
    stoker_error cause = { .message = "" };
    int rc = STOKER_OK;
    uint32_t timed = 0;
    do {
        double seconds = 0;
        rc = s->time(s->context, &seconds, &cause);
        if (rc == STOKER_ENOTSUP) {
            record_failure(walk, now.index, now.engine, "did not run", &cause);
            rc = STOKER_OK;
            continue;
        }
        if (rc != STOKER_OK) {
            if (error != NULL)
                *error = cause;
            return rc;
        }
        if (timed == 0 || seconds < best->seconds) {
            *best = now;
            best->seconds = seconds;
        }
        best->timed = now.timed = ++timed;
    } while (timed < walk->rules->benchmark && next_allowed(walk, &now, &rc, error));
    if (rc != STOKER_OK)
        return rc;
    return timed > 0 ? STOKER_OK : none(walk, error);
}

int stk_engine_choose(struct stk_engine_choice *out, const struct stk_engine_source *source,
                      const struct stk_engine_rules *rules, bool float32, stoker_error *error)
{
    assert(rules->benchmark <= STK_BENCHMARK_MAX);
    assert(source->count <= STK_ENGINES_MAX);
    assert(rules->benchmark == 0 || source->time != NULL);
    assert((source->time == NULL && source->run == NULL) || source->failures != NULL);
    struct walk walk = {
        .source = source, .rules = rules, .float32 = float32, .least_bytes = UINT64_MAX
    };
    struct stk_engine_choice choice = { .engine = -1 };
    int rc = STOKER_OK;
    if (!next_allowed(&walk, &choice, &rc, error))
        return rc != STOKER_OK ? rc : none(&walk, error);
    if (rules->benchmark > 0)
        rc = time_them(&walk, &choice, error);
    else if (source->run != NULL)
        rc = run_them(&walk, &choice, error);
    if (rc == STOKER_OK)
        *out = choice;
    return rc;
}

int stk_engine_result(int rc, const struct stk_engine_failures *failures, stoker_error *error)
{
    if (rc != STOKER_ENOTSUP || failures->first.code == STOKER_OK)
        return rc;
    if (error != NULL)
        *error = failures->first;
    return STOKER_EDEVICE;
}
