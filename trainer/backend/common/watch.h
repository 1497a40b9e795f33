/* watch.h - how a back end reports what a pass has completed: see stk_pass_watch in backend.h. */
#ifndef STK_TRAINER_BACKEND_COMMON_WATCH_H
#define STK_TRAINER_BACKEND_COMMON_WATCH_H

#include "trainer/backend/backend.h"

/* Operations before `ops` have added all their gradients. *reported: slices so far. */
static inline void stk_watch_complete(const struct stk_pass_watch *watch, uint32_t *reported,
                                      uint32_t ops)
{
    while (watch != NULL && *reported < watch->slices->count &&
           watch->slices->slices[*reported].op < ops)
        watch->ready(watch->context, (*reported)++);
}

static inline void stk_watch_poll(const struct stk_pass_watch *watch)
{
    if (watch != NULL)
        watch->poll(watch->context);
}

#endif
