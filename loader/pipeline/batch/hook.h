/* hook.h - calls the hooks of stoker/hook.h with a worker's scratch and a generator of their
 * own. */
#ifndef STK_PIPELINE_HOOK_H
#define STK_PIPELINE_HOOK_H

#include <stdbool.h>
#include <stoker/hook.h>

/* The hooks of a loader. All zero = none. */
struct stk_hooks {
    stoker_row_hook row;     /* apply == NULL = none */
    stoker_batch_hook batch; /* apply == NULL = none */
    uint64_t seed;
};

/* One worker's scratches. */
struct stk_hook_scratch {
    void *row, *batch;
    bool row_open, batch_open;
};

/* Returns true if each row has a hook. */
static inline bool stk_hooks_rows(const struct stk_hooks *hooks)
{
    return hooks->row.apply != NULL;
}

static inline bool stk_hooks_batches(const struct stk_hooks *hooks)
{
    return hooks->batch.apply != NULL;
}

/* Make a worker's scratches. On failure *error names the hook; stk_hooks_close() frees what was
 * made. */
int stk_hooks_open(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch,
                   stoker_error *error);
void stk_hooks_close(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch);

/* Call a hook. On failure *said holds the message, which names the hook. */
int stk_hooks_run_row(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch,
                      stoker_row *fields, uint32_t count, const stoker_hook_sample *sample,
                      stoker_error *said);
int stk_hooks_run_batch(const struct stk_hooks *hooks, struct stk_hook_scratch *scratch,
                        stoker_hook_field *fields, uint32_t count, const stoker_hook_batch *batch,
                        stoker_error *said);

#endif
