/* checkpoint.h - the names in a checkpoint, one safetensors file:
 *
 *   model.conv1.weight, ...    parameters, statistics, num_batches_tracked: PyTorch's layouts
 *   ema.conv1.weight, ...      the moving average of each parameter, if there is one
 *   state.counters             i64: updates, passes, loss scale, ... (counters.h); PyTorch
 *                              before 2.3 has no unsigned 64 bits
 *   state.optimizer.0, ...     f32: the optimizer's arenas, as they are in memory
 *   state.gradients            f32: of a group of passes under way
 *   state.loader               u8: what the caller saved of its loader
 *   __metadata__               the caller's notes; stoker.optimizer, stoker.schedule
 */
#ifndef STK_TRAINER_API_CHECKPOINT_H
#define STK_TRAINER_API_CHECKPOINT_H

#include "trainer/model/model.h"
#include "trainer/update/schedule.h"

#define STK_PREFIX_MODEL   "model."
#define STK_PREFIX_EMA     "ema."
#define STK_NAME_COUNTERS  "state.counters"
#define STK_NAME_GRADIENTS "state.gradients"
#define STK_NAME_LOADER    "state.loader"
#define STK_NOTE_OPTIMIZER "stoker.optimizer"
#define STK_NOTE_SCHEDULE  "stoker.schedule"

struct stk_tensor_name {
    char text[STOKER_LAYER_NAME_MAX + 32];
};

/* "state.optimizer.0", ... */
struct stk_tensor_name stk_state_arena_name(uint32_t index);
/* "model.bn1.num_batches_tracked": PyTorch's BatchNorm saves it beside its statistics. */
struct stk_tensor_name stk_tracked_name(const char *prefix, const struct stk_layer *layer);

/* "one-cycle, 600 updates": a schedule that depends on its length; "" = another. */
struct stk_schedule_note {
    char text[48];
};
struct stk_schedule_note stk_schedule_note(const struct stk_schedule *schedule);

#endif
