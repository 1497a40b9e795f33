/* trainer.h - the inside of a stoker_trainer, for the files that make it up. */
#ifndef STK_TRAINER_TRAINER_H
#define STK_TRAINER_TRAINER_H

#include "trainer/api/notes.h"
#include "trainer/api/options.h"

/* All that changes from step to step, but for the arenas. */
struct stk_progress {
    uint64_t updates;       /* of the weights */
    uint64_t groups;        /* of passes that are over, those whose update was left out too */
    uint64_t passes;        /* in all */
    uint64_t group_passes;  /* whose gradients are summed in the arena, not used yet */
    uint64_t group_samples; /* of these passes */
    uint64_t seed;          /* of dropout; of the weights, where they were not loaded */
    struct stk_loss_scale loss_scale;
};

/* Passes of which nothing was told yet. */
struct stk_unread {
    uint64_t passes;
    uint64_t bad_labels;  /* of batches on a device */
    uint64_t groups;      /* that ended among them */
    struct stk_loss loss; /* where the device decides: as far as it was read */
};

struct stk_split;

/* Of one device, or of a stage of two; over two devices (split.h) it has no back end, plans, arenas and state
 * of its own: its stages have. */
struct stoker_trainer {
    const stoker_model *model;            /* borrowed */
    struct stk_trainer_settings settings; /* as chosen: nothing open any more */
    struct stk_split *split;              /* NULL = one device */
    const struct stk_backend_ops *ops;
    struct stk_backend *backend;
    struct stk_plan train_plan, evaluation_plan; /* run in turn, in one arena of activations */
    struct stk_plan train_halves[2], evaluation_halves[2]; /* what is run of them */
    struct stk_program *train, *evaluation;
    struct stk_program *backward; /* of a first stage: what follows when the gradient has come */
    struct stk_arenas arenas; /* activations: as many as there are slots, one behind the other */
    uint32_t slots;           /* passes of which activations are kept at one time */
    uint64_t slot_bytes;
    float *state[STK_STATE_ARENAS_MAX];
    uint32_t state_count;
    float *ema; /* NULL = none */
    const float
        *stored_from; /* what arenas.stored was rounded from; NULL = of nothing that still holds */
    struct stk_progress progress; /* where the device decides: updates and loss_scale as of the last
                                     read, and the updates queued since counted as made */
    struct stk_unread unread;
    stoker_evaluation evaluated;  /* and not told yet; where the device decides it has more */
    struct stk_training training; /* what settings say, for a device that decides */
    stoker_trainer_memory memory;
    struct stk_notes notes; /* for the next save */
    /* Of each BatchNorm: batches that its statistics have seen beside progress.passes, modulo 2^64. */
    uint64_t *batches_before;
    stoker_error error; /* code 0 = none so far */
};

/* What has arenas of its own: the trainer itself, or its two stages in their order. */
struct stk_stages {
    uint32_t count;
    stoker_trainer *stage[2];
};
struct stk_stages stk_stages_of(const stoker_trainer *trainer);

/* create.c: the back end that settings name, for the trainer's model; then, with memory settled, all memory
 * and programs. For a stage, too, whose split is NULL. On failure stoker_trainer_destroy() has the rest. */
int stk_trainer_open(stoker_trainer *trainer, stoker_error *error);
int stk_trainer_furnish(stoker_trainer *trainer, stoker_error *error);

/* Whether loss scale, updates and losses are kept by the device: by both. */
bool stk_trainer_device_decides(const stoker_trainer *trainer);

/* step.c: what an optimiser step of this trainer, or of a stage, reads and writes; rule and floats. */
struct stk_update stk_trainer_update_of(const stoker_trainer *trainer);

/* plan_memory.c: settle batch size and recomputation, make both plans and fill in memory. The back end
 * is there already. On failure the plans are all zero. */
int stk_trainer_settle(stoker_trainer *trainer, stoker_error *error);

/* create.c: memory of the back end, into the pointer at out; NULL for none of it. STOKER_ENOMEM. */
int stk_trainer_take(stoker_trainer *trainer, void *out, uint64_t bytes, const char *what,
                     stoker_error *error);

/* trim.c: what was given back is taken again. Before anything runs, and before gradients are written.
 * STOKER_ENOMEM, and then nothing has changed. */
int stk_trainer_refill(stoker_trainer *trainer, stoker_error *error);

/* batch.c: a batch with samples must have the model's shapes and types, and lie where the back end can
 * read it; its stream waits for one on a GPU. STOKER_EINVAL, EMISMATCH, EDEVICE; error tells. */
int stk_trainer_check_batch(stoker_trainer *trainer, const stoker_batch *batch);

/* half_weights.c: let arenas.stored be these weights, rounded; they are so already if nothing wrote to either
 * since. Nothing to do where T is float32. STOKER_EDEVICE. */
int stk_trainer_store(stoker_trainer *trainer, const float *weights);

/* metrics.c: bring progress and unread up to what the device knows; waits for it. Nothing to do where
 * the host decides. STOKER_EDEVICE. */
int stk_trainer_sync(stoker_trainer *trainer, stoker_error *error);
/* Tell what is unread, once. STOKER_EDEVICE; STOKER_EINVAL: labels of batches on the device were no
 * classes. */
int stk_trainer_tell(stoker_trainer *trainer, stoker_step *out, stoker_error *error);
/* The device goes on from progress. */
int stk_trainer_place(stoker_trainer *trainer, stoker_error *error);

/* The layer whose output the loss reads, as one sample has it. */
struct stk_shape stk_trainer_output_shape(const stoker_model *model);

#endif
