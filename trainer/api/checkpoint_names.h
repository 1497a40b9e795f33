/* checkpoint_names.h - names of tensors and notes in the files of a trainer. */
#ifndef STK_TRAINER_CHECKPOINT_NAMES_H
#define STK_TRAINER_CHECKPOINT_NAMES_H

#include "trainer/model/model.h"
#include "trainer/update/schedule.h"

#define STK_NAME_COUNTERS  "counters"
#define STK_NAME_EMA       "ema"
#define STK_NAME_GRADIENTS "gradients"
#define STK_NAME_LOADER    "loader"
#define STK_NOTE_OPTIMIZER "optimizer"
#define STK_NOTE_SCHEDULE  "schedule"

/* "optimizer.0", ... */
const char *stk_state_arena_name(uint32_t index);

/* "bn1.num_batches_tracked": PyTorch's BatchNorm saves it beside its statistics. */
struct stk_tracked_name {
    char text[STOKER_LAYER_NAME_MAX + 24];
};
struct stk_tracked_name stk_tracked_name(const struct stk_layer *layer);

/* "one-cycle, 600 updates": a schedule that depends on its length; "" = another. */
struct stk_schedule_note {
    char text[48];
};
struct stk_schedule_note stk_schedule_note(const struct stk_schedule *schedule);

#endif
