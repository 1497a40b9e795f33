/* trainer.h - the inside of a stoker_trainer: its stages, their runner, and what changes from step
 * to step. */
#ifndef STK_TRAINER_TRAINER_H
#define STK_TRAINER_TRAINER_H

#include "trainer/api/gradient_sum.h"
#include "trainer/backend/common/device_sums.h"
#include "trainer/files/tensors.h"
#include "trainer/stage/runner.h"

/* All that changes from step to step, except the arenas. */
struct stk_progress {
    uint64_t updates; /* made */
    uint64_t groups;  /* groups of passes that ended, skipped updates included */
    uint64_t passes;
    uint64_t group_passes;  /* passes whose gradients are summed but not used yet */
    uint64_t group_batches; /* batches of all ranks in these passes, empty ones left out */
    uint64_t group_samples; /* samples of these passes */
    uint64_t seed;          /* for dropout, and for the weights unless they were loaded */
    struct stk_loss_scale loss_scale;
};

/* Passes that were not reported yet. */
struct stk_unread {
    uint64_t passes;
    uint64_t bad_labels;  /* in batches on a device */
    uint64_t groups;      /* groups that ended in them */
    struct stk_loss loss; /* if the device decides: as far as it was read */
};

/* Strings that a program saves with its weights for the run that continues. */
enum { STK_TRAINER_NOTES_MAX = 32, STK_NOTE_KEY_MAX = 63, STK_NOTE_VALUE_MAX = 8191 };

/* All zero is empty. The strings are owned. */
struct stk_notes {
    struct stk_note note[STK_TRAINER_NOTES_MAX];
    uint32_t count;
};

void stk_notes_free(struct stk_notes *notes);

struct stoker_trainer {
    const stoker_model *model;            /* borrowed */
    struct stk_trainer_settings settings; /* all chosen */
    /* One stage runs the model; of two, each runs one of stage_model. */
    struct stk_stage *stage[2];
    uint32_t stage_count;
    stoker_model *stage_model[2]; /* NULL with one stage */
    struct stk_runner *runner;
    struct stk_peers *peers; /* the other ranks; one of one if there are none */
    bool asks_nccl;          /* STOKER_PEERS_NCCL */
    bool ranks_have_gpus; /* back end "auto" of several ranks: each has a GPU and the libraries */
    struct stk_device_sums *device_sums; /* sums of GPUs, beside the peers; NULL: none */
    /* With peers and host memory: the mean and variance of this rank's batch, as the arena of
     * statistics. NULL without. */
    double *batch_statistics;
    struct stk_gradient_sum gradient_sum; /* with peers */
    char backend_name[64];                /* "cuda"; "cpu,cuda:1" */
    uint32_t state_count;                 /* arenas of optimizer state */
    /* If the device decides: updates and loss_scale as of the last read; updates queued since count
     * as made. */
    struct stk_progress progress;
    struct stk_unread unread;
    stoker_evaluation evaluated;  /* not reported yet; if the device decides it has more */
    stoker_trainer_memory memory; /* all stages together */
    struct stk_notes notes;       /* for the next save */
    /* For each BatchNorm: batches that its statistics have seen, less progress.passes, modulo 2^64.
     * */
    uint64_t *batches_before;
    stoker_error error; /* code 0 = none so far */
};

/* True if loss scale, updates and losses are kept by the device: by both of two. */
bool stk_trainer_device_decides(const stoker_trainer *trainer);

/* Finishes passes under way. STOKER_EDEVICE. */
int stk_trainer_drain(stoker_trainer *trainer, stoker_error *error);

/* batch.c: checks that a batch has the model's shapes and types and lies where the back end can
 * read it; the back end's stream waits for a batch on a GPU. STOKER_EINVAL, EMISMATCH, EDEVICE,
 * described in trainer->error. */
int stk_trainer_check_batch(stoker_trainer *trainer, const stoker_batch *batch);

/* metrics.c: brings progress and unread up to what the device knows; waits for it. Nothing to do if
 * the host decides. STOKER_EDEVICE. */
int stk_trainer_sync(stoker_trainer *trainer, stoker_error *error);
/* Reports what is unread, once. STOKER_EDEVICE; STOKER_EINVAL: labels of batches on the device out
 * of range. */
int stk_trainer_report(stoker_trainer *trainer, stoker_step *out, stoker_error *error);
/* metrics.c: sets the device's counters and loss scale from progress. STOKER_EDEVICE. */
int stk_trainer_upload_state(stoker_trainer *trainer, stoker_error *error);

/* The layer whose output the loss reads, as one sample has it. */
struct stk_shape stk_trainer_output_shape(const stoker_model *model);

#endif
