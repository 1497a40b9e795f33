/* cut.h - what crosses between two stages: the value at the cut, its gradient, and norms.
 *
 *   first    second    value                                      gradient
 *   host     host      copied                                     copied
 *   device   host      out to staging, the host waits             copied to staging, in
 *   host     device    copied to staging, in                      out to staging; the host waits when it needs it
 *   device   device    over                                       over; nothing waits
 *
 * Copies from and to a device are those of backend/common/transfer.h. */
#ifndef STK_TRAINER_CUT_H
#define STK_TRAINER_CUT_H

#include "trainer/stage/stage.h"

struct stk_cut {
    struct stk_stage *first, *second;
    struct stk_transfer *transfer[2]; /* first's and second's; NULL: the stage is in host memory */
    /* Both stages are on devices: how copies go from one to the other; else NULL. */
    const char *crossing;
    uint8_t *host; /* [slot] { value, gradient, labels }; page-locked if one stage is on a device */
    uint8_t *device; /* the same in the memory of the second stage's device; else NULL */
};

/* The staging memory of one slot. */
struct stk_staging {
    uint8_t *value, *gradient, *labels;
};

static inline bool stk_on_device(const struct stk_stage *stage)
{
    return stage->ops->device != NULL;
}

/* Adds the bytes it takes to the memory of both stages, which are allocated. On failure
 * stk_cut_close() frees what there is. STOKER_ENOMEM, EDEVICE. */
int stk_cut_open(struct stk_cut *cut, struct stk_stage *first, struct stk_stage *second,
                 stoker_error *error);
void stk_cut_close(struct stk_cut *cut);

/* Bytes of `count` values, and of a label. */
size_t stk_cut_bytes_of(const struct stk_cut *cut, uint32_t count);
uint64_t stk_cut_label_bytes(const struct stk_stage *second);

/* base: cut->host or cut->device. */
struct stk_staging stk_cut_staging(const struct stk_cut *cut, uint8_t *base, uint32_t slot);
/* Arenas of the first stage with the activations of that slot. */
struct stk_arenas stk_cut_arenas(const struct stk_stage *first, uint32_t slot);
/* Where a plan of the first stage writes the value. */
void *stk_cut_output(const struct stk_plan *plan, const struct stk_arenas *arenas);

/* Brings the value at `from` to where the second stage reads it. */
int stk_cut_cross_value(const struct stk_cut *cut, uint32_t slot, const void *from, uint32_t count,
                        stoker_error *error);
/* Sends the gradient on its way: by the second stage's thread if it is in host memory, else by the
 * caller's. */
int stk_cut_send_gradient(const struct stk_cut *cut, uint32_t slot, uint32_t count,
                          stoker_error *error);
/* Then the gradient is in the first stage's arena, or that stage's stream waits for it. */
int stk_cut_await_gradient(const struct stk_cut *cut, uint32_t slot, uint32_t count,
                           stoker_error *error);

/* norm.c: the norm of the gradients of both stages, drained; each device gets the other half's.
 * *squared and *finite are written if a stage is in host memory, and then the host waits.
 * STOKER_EDEVICE. */
int stk_cut_norm(const struct stk_cut *cut, double *squared, bool *finite, stoker_error *error);

#endif
