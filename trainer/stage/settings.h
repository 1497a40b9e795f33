/* settings.h - the options of a trainer, checked and with every default filled in (api/options.c).
 * */
#ifndef STK_TRAINER_SETTINGS_H
#define STK_TRAINER_SETTINGS_H

#include "trainer/backend/backend.h"
#include "trainer/update/loss_scale.h"
#include "trainer/update/schedule.h"

struct stk_trainer_settings {
    const struct stk_backend_ops *ops;
    bool automatic;    /* `cuda` if it can be opened, else ops */
    bool device_named; /* "cuda:1"; else a rank's GPU is its number among those of its node */
    struct stk_backend_options backend;
    uint32_t split;                           /* layers before the cut; 0 = one device */
    const struct stk_backend_ops *second_ops; /* back end of the layers after it */
    uint32_t second_device;
    uint64_t seed;
    uint32_t batch_size;            /* STOKER_BATCH_SIZE_AUTO: not chosen yet */
    uint32_t evaluation_batch_size; /* 0: as batch_size */
    uint32_t last_batch_size;       /* 0 or >= batch_size: no smaller last batch */
    uint32_t accumulate;            /* passes of a group, 1..2^20 */
    uint32_t metrics_interval;      /* passes, 1..2^20 */
    struct stk_update_rule rule;
    struct stk_schedule schedule;
    /* At the start; scale 0 if batch_size decides and is not known yet. */
    struct stk_loss_scale loss_scale;
    double clip_norm;       /* 0 = no limit */
    double ema_decay;       /* 0 = no moving average */
    uint64_t memory_budget; /* bytes; 0 = no limit */
    uint32_t checkpoint_segments;
    bool recompute_batch_norm;
    bool sync_batch_norm;
    uint32_t peer_timeout_ms;
};

#endif
