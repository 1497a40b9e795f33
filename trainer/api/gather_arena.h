/* gather_arena.h - an arena of the whole network in one piece, as files hold it.
 *
 *   one device    the arena, or a view of it (view.h)
 *   two stages    [ first stage's ][ second stage's ]   copied to host memory and back
 */
#ifndef STK_TRAINER_GATHER_ARENA_H
#define STK_TRAINER_GATHER_ARENA_H

#include "trainer/api/trainer.h"
#include "trainer/stage/view.h"

enum stk_arena {
    STK_ARENA_PARAMETERS,
    STK_ARENA_GRADIENTS,
    STK_ARENA_STATISTICS,
    STK_ARENA_EMA,
    STK_ARENA_STATE /* the first of STK_STATE_ARENAS_MAX */
};

/* As stk_view_read() and stk_view_blank(); the caller closes it. STOKER_ENOMEM, EDEVICE. */
int stk_gather_read(struct stk_view *out, const stoker_trainer *trainer, enum stk_arena which,
                    stoker_error *error);
int stk_gather_blank(struct stk_view *out, const stoker_trainer *trainer, enum stk_arena which,
                     stoker_error *error);

/* Copies the view to the arenas of the stages, unless it is the arena. STOKER_EDEVICE. */
int stk_gather_store(const struct stk_view *view, stoker_trainer *trainer, enum stk_arena which,
                     stoker_error *error);
/* The same from any host memory of that size. */
int stk_gather_write(stoker_trainer *trainer, enum stk_arena which, const void *from,
                     stoker_error *error);

#endif
