/* stage.h - what runs a network, or half of one, on one device.
 *
 *   open ──▶ plan_memory ──▶ allocate            then a runner (runner.h) brings passes through
 *   back end  plans, sizes    arenas, programs
 *
 * One thread uses a stage at a time. */
#ifndef STK_TRAINER_STAGE_H
#define STK_TRAINER_STAGE_H

#include "trainer/stage/settings.h"
#include <stoker/trainer.h>

struct stk_stage {
    const stoker_model *model; /* borrowed */
    /* Batch sizes and recomputation as chosen by plan_memory. */
    struct stk_trainer_settings settings;
    const struct stk_backend_ops *ops;
    struct stk_backend *backend;
    struct stk_plan train_plan, evaluation_plan; /* alternate in one arena of activations */
    struct stk_plan train_halves[2], evaluation_halves[2]; /* the parts of them that run */
    struct stk_program *train, *evaluation;
    /* In the first stage of two: the part that runs when the gradient has arrived; else NULL. */
    struct stk_program *backward;
    /* Gradients of a group's later passes, one at a time, before they are added to
     * arenas.gradients: see stoker_trainer_options.deterministic. NULL: they are added to at once.
     * */
    float *pass_gradients;
    struct stk_arenas arenas; /* activations: `slots` of slot_bytes each */
    uint32_t slots;           /* passes whose activations are kept at one time: 1 or 2 */
    uint64_t slot_bytes;
    float *state[STK_STATE_ARENAS_MAX];
    float *ema; /* NULL = none */
    /* What arenas.half_weights was rounded from; NULL = it no longer matches anything. */
    const float *half_weights_from;
    struct stk_training training; /* from settings, for a device that decides */
    stoker_trainer_memory memory;
};

/* Each of these: on failure stk_stage_close() frees what there is. */

/* Opens the back end. settings->backend must suit the model. STOKER_EDEVICE, ENOMEM. */
int stk_stage_open(struct stk_stage *stage, const stoker_model *model,
                   const struct stk_trainer_settings *settings, uint32_t slots,
                   stoker_error *error);
/* plan_memory.c: chooses batch size and recomputation as `asked`, makes both plans and fills in
 * memory. May be called again before allocate. STOKER_ELIMIT, ENOMEM. */
int stk_stage_plan_memory(struct stk_stage *stage, const struct stk_trainer_settings *asked,
                          stoker_error *error);
/* True if it has pass_gradients. */
bool stk_stage_sums_passes(const struct stk_stage *stage);
/* Takes all memory, loads the programs and runs them once. STOKER_ENOMEM, EDEVICE. */
int stk_stage_allocate(struct stk_stage *stage, stoker_error *error);
void stk_stage_close(struct stk_stage *stage);

/* Gives back activations, workspaces and, between groups, gradients; refill takes them again before
 * anything runs, and before gradients are written. trim returns bytes. refill: STOKER_ENOMEM, and
 * then nothing has changed. */
uint64_t stk_stage_trim(struct stk_stage *stage, bool between_groups);
int stk_stage_refill(struct stk_stage *stage, stoker_error *error);

/* Makes arenas.half_weights these weights, rounded, unless it is so already. Nothing to do if T is
 * float32. STOKER_EDEVICE. */
int stk_stage_round_weights(struct stk_stage *stage, const float *weights, stoker_error *error);

/* Rule and arenas of an optimizer step; step, rate and factor are the caller's. */
struct stk_update stk_stage_update_of(const struct stk_stage *stage);

/* "cpu", "cuda:1" */
enum { STK_STAGE_NAME_BYTES = 32 };
void stk_stage_name(const struct stk_stage *stage, char text[STK_STAGE_NAME_BYTES]);

/* Arenas of a forward plan: the averaged weights, if there are any. */
struct stk_arenas stk_stage_evaluation_arenas(const struct stk_stage *stage);

#endif
