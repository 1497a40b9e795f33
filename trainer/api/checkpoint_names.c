/* checkpoint_names.c - see checkpoint_names.h. */
#include "trainer/api/checkpoint_names.h"

#include <inttypes.h>
#include <stdio.h>

#include "trainer/update/update.h"

const char *stk_state_arena_name(uint32_t index)
{
    static const char *const names[STK_STATE_ARENAS_MAX] = { "optimizer.0", "optimizer.1",
                                                             "optimizer.2" };
    return names[index];
}

struct stk_tracked_name stk_tracked_name(const struct stk_layer *layer)
{
    struct stk_tracked_name name;
    (void)snprintf(name.text, sizeof(name.text), "%s.num_batches_tracked", layer->name);
    return name;
}

struct stk_schedule_note stk_schedule_note(const struct stk_schedule *schedule)
{
    struct stk_schedule_note note = { "" };
    const bool one_cycle = schedule->kind == STK_SCHEDULE_ONE_CYCLE;
    if (one_cycle || schedule->kind == STK_SCHEDULE_COSINE)
        (void)snprintf(note.text, sizeof(note.text), "%s, %" PRIu64 " updates",
                       one_cycle ? "one-cycle" : "cosine", schedule->total_updates);
    return note;
}
