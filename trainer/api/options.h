/* options.h - what a trainer was asked for, checked, and with every default filled in. */
#ifndef STK_TRAINER_OPTIONS_H
#define STK_TRAINER_OPTIONS_H

#include <stoker/trainer.h>

#include "trainer/backend/backend.h"
#include "trainer/update/loss_scale.h"
#include "trainer/update/schedule.h"

enum { STK_METRICS_INTERVAL_MAX = 1 << 20 };

struct stk_trainer_settings {
    const struct stk_backend_ops *ops;
    bool automatic; /* `cuda` if it can be made, else ops */
    struct stk_backend_options backend;
    uint32_t split;                           /* layers before the seam; 0 = one device */
    const struct stk_backend_ops *second_ops; /* of the layers behind it */
    uint32_t second_device;
    uint64_t seed;
    uint32_t batch_size;            /* STOKER_BATCH_SIZE_MAX: still to be chosen */
    uint32_t evaluation_batch_size; /* 0: as batch_size */
    uint32_t last_batch_size;       /* 0 or as large as others: none of its own */
    uint32_t accumulate;
    uint32_t metrics_interval;
    struct stk_update_rule rule;
    struct stk_schedule schedule;
    struct stk_loss_scale loss_scale; /* to begin with */
    double clip_norm;                 /* 0 = no limit */
    double ema_decay;                 /* 0 = none */
    uint64_t memory_budget;           /* 0 = no limit, or still to be chosen */
    uint32_t checkpoint_segments;
    bool recompute_batch_norm;
};

/* The options of a caller compiled with this version, an older one (its struct is smaller: the fields it lacks
 * have their defaults) or a newer one (larger, and 0 beyond ours). STOKER_EINVAL; given->error reports it where
 * the caller's struct has one. */
int stk_trainer_options_copy(stoker_trainer_options *out, const stoker_trainer_options *given);

/* STOKER_EINVAL, or EDEVICE for a back end that is not there; then *out is half filled. */
int stk_trainer_settings_read(struct stk_trainer_settings *out, const stoker_trainer_options *given,
                              stoker_error *error);

/* Whether the back end cannot do all that it is asked for; text: the first option, and why, of the kind
 * "benchmark: back end cpu has no algorithms to choose from". */
enum { STK_LACK_BYTES = 96 };
bool stk_trainer_lacks(const struct stk_backend_ops *ops, const struct stk_backend_options *asked,
                       char text[STK_LACK_BYTES]);

/* Of these ops, automatic and backend.device: "cuda:1" is "cuda" and device 1; "auto" is "cpu" where no GPU
 * can be had. STOKER_EDEVICE: no such name. */
int stk_trainer_read_backend(struct stk_trainer_settings *out, const char *given,
                             stoker_error *error);

#endif
