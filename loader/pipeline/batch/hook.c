/* hook.c - see hook.h. */
#include "loader/pipeline/batch/hook.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/rng.h"

static const char *row_name(const struct stk_hooks *hooks)
{
    return hooks->row.name != NULL ? hooks->row.name : "row hook";
}

static const char *batch_name(const struct stk_hooks *hooks)
{
    return hooks->batch.name != NULL ? hooks->batch.name : "batch hook";
}

/* ---- scratch ---- */

static int open_one(int (*open)(void *self, void **scratch), void *self, const char *name,
                    void **scratch, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const int rc = open == NULL ? 0 : open(self, scratch);
    if (rc == 0)
        return 0;
    stoker_error said;
    return stk_error_set(error, stk_callback_failed(rc, "open()", &said), STOKER_STAGE_HOOK,
                         &nowhere, "%s: %s", name, said.message);
}

int stk_hooks_open(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch,
                   stoker_error *error)
{
    int rc = 0;
    *scratch = (struct stk_hook_scratch){ .row = NULL };
    if (stk_hooks_rows(hooks)) {
        rc = open_one(hooks->row.open, hooks->row.self, row_name(hooks), &scratch->row, error);
        scratch->row_open = rc == 0;
    }
    if (rc == 0 && stk_hooks_batches(hooks)) {
        rc = open_one(hooks->batch.open, hooks->batch.self, batch_name(hooks), &scratch->batch,
                      error);
        scratch->batch_open = rc == 0;
    }
    return rc;
}

void stk_hooks_close(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch)
{
    if (scratch->batch_open && hooks->batch.close != NULL)
        hooks->batch.close(hooks->batch.self, scratch->batch);
    if (scratch->row_open && hooks->row.close != NULL)
        hooks->row.close(hooks->row.self, scratch->row);
    *scratch = (struct stk_hook_scratch){ .row = NULL };
}

/* ---- calls ---- */

/* Put the hook's name before its message. */
static int failed(int rc, const char *name, stoker_error *said)
{
    char message[sizeof(said->message)];
    if (rc == 0)
        return 0;
    said->message[sizeof(said->message) - 1] = '\0';
    rc = stk_callback_code(rc, "apply()", said);
    memcpy(message, said->message, sizeof(message));
    (void)snprintf(said->message, sizeof(said->message), "%.64s: %.400s", name,
                   message[0] != '\0' ? message : stoker_strerror(rc));
    return rc;
}

int stk_hooks_run_row(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch,
                      stoker_row *fields, uint32_t count, const stoker_hook_sample *sample,
                      stoker_error *said)
{
    stoker_rng rng;
    stoker_rng_init(&rng, hooks->seed, sample->epoch, sample->id, STK_RNG_OWN(STK_RNG_ROW_HOOK));
    stk_error_clear(said);
    return failed(
        hooks->row.apply(hooks->row.self, scratch->row, fields, count, sample, &rng, said),
        row_name(hooks), said);
}

int stk_hooks_run_batch(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch,
                        stoker_hook_field *fields, uint32_t count, const stoker_hook_batch *batch,
                        stoker_error *said)
{
    stoker_rng rng;
    stoker_rng_init(&rng, hooks->seed, batch->epoch, batch->position,
                    STK_RNG_OWN(STK_RNG_BATCH_HOOK));
    stk_error_clear(said);
    return failed(
        hooks->batch.apply(hooks->batch.self, scratch->batch, fields, count, batch, &rng, said),
        batch_name(hooks), said);
}
