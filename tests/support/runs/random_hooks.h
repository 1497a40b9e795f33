/* random_hooks.h - a row hook and a batch hook that change every byte by random numbers, and count
 * their calls.
 *
 * Each scratch is written without a lock: two threads that share one are a data race.
 */
#ifndef STK_TEST_RANDOM_HOOKS_H
#define STK_TEST_RANDOM_HOOKS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <stoker/hook.h>
#include <string.h>

struct stk_random_hooks {
    stoker_row_hook row;
    stoker_batch_hook batch;
    _Atomic int32_t opens, open, rows, batches;
    int32_t fails_open;   /* the n-th open() fails; 0 = none */
    uint64_t breaks_each; /* samples whose id is 3 modulo it fail; 0 = none */
    uint64_t breaks_at;   /* the batch at this position fails; 0 = none */
    int code;             /* what a failing apply() returns */
};

static inline int stk_random_open(void *self, void **scratch)
{
    struct stk_random_hooks *hooks = self;
    if (atomic_fetch_add(&hooks->opens, 1) + 1 == hooks->fails_open)
        return STOKER_ENOMEM;
    *scratch = calloc(1, sizeof(uint64_t));
    if (*scratch == NULL)
        return STOKER_ENOMEM;
    atomic_fetch_add(&hooks->open, 1);
    return STOKER_OK;
}

static inline void stk_random_close(void *self, void *scratch)
{
    struct stk_random_hooks *hooks = self;
    atomic_fetch_sub(&hooks->open, 1);
    free(scratch);
}

static inline void stk_random_bytes(void *data, size_t bytes, stoker_rng *rng)
{
    uint8_t *at = data;
    for (size_t i = 0; i < bytes; i += 64) /* some of them: quick enough for images */
        at[i] = (uint8_t)(at[i] ^ stoker_rng_u64(rng));
}

static inline int stk_random_row(void *self, void *scratch, stoker_row *fields, uint32_t count,
                                 const stoker_hook_sample *sample, stoker_rng *rng,
                                 stoker_error *error)
{
    struct stk_random_hooks *hooks = self;
    ++*(uint64_t *)scratch;
    atomic_fetch_add(&hooks->rows, 1);
    for (uint32_t i = 0; i < count; i++)
        stk_random_bytes(fields[i].data, fields[i].bytes_max, rng);
    if (hooks->breaks_each == 0 || sample->id % hooks->breaks_each != 3)
        return STOKER_OK;
    memcpy(error->message, "not this one", sizeof("not this one"));
    return hooks->code;
}

static inline int stk_random_batch(void *self, void *scratch, stoker_hook_field *fields,
                                   uint32_t count, const stoker_hook_batch *batch, stoker_rng *rng,
                                   stoker_error *error)
{
    struct stk_random_hooks *hooks = self;
    ++*(uint64_t *)scratch;
    atomic_fetch_add(&hooks->batches, 1);
    for (uint32_t i = 0; i < count; i++)
        stk_random_bytes(fields[i].data, fields[i].row_bytes * batch->rows, rng);
    if (hooks->breaks_at == 0 || batch->position != hooks->breaks_at)
        return STOKER_OK;
    memcpy(error->message, "nor this one", sizeof("nor this one"));
    return hooks->code;
}

/* Sets both up: do not copy or move them. */
static inline void stk_random_hooks_init(struct stk_random_hooks *hooks)
{
    memset(hooks, 0, sizeof(*hooks));
    hooks->code = STOKER_ECORRUPT;
    hooks->row = (stoker_row_hook){ .struct_size = sizeof(stoker_row_hook),
                                    .name = "random row",
                                    .self = hooks,
                                    .open = stk_random_open,
                                    .close = stk_random_close,
                                    .apply = stk_random_row };
    hooks->batch = (stoker_batch_hook){ .struct_size = sizeof(stoker_batch_hook),
                                        .name = "random batch",
                                        .self = hooks,
                                        .open = stk_random_open,
                                        .close = stk_random_close,
                                        .apply = stk_random_batch };
}

#endif
