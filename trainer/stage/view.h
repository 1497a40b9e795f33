/* view.h - an arena in host memory: the arena itself, or a copy of one on a device.
 *
 *   back end in host memory    view.floats = the arena             store: nothing to do
 *   on a device                view.floats = memory of the view    read: download, store: upload
 */
#ifndef STK_TRAINER_VIEW_H
#define STK_TRAINER_VIEW_H

#include "trainer/stage/stage.h"

struct stk_view {
    float *floats; /* NULL: the arena is empty */
    size_t bytes;
    bool copied;
};

/* All zero is closed. */
#define STK_VIEW_CLOSED                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/* Open a view of an arena: read, with its contents; blank, to be filled and stored: its own memory
 * is zeros. STOKER_ENOMEM, EDEVICE; then the view is closed. */
int stk_view_read(struct stk_view *out, const struct stk_stage *stage, float *arena, size_t bytes,
                  stoker_error *error);
int stk_view_blank(struct stk_view *out, const struct stk_stage *stage, float *arena, size_t bytes,
                   stoker_error *error);

/* Gives the view its own memory, zeros. STOKER_ENOMEM. */
int stk_view_take(struct stk_view *view, stoker_error *error);

void stk_view_close(struct stk_view *view); /* closed is allowed */

/* Copies from host memory to an arena. STOKER_EDEVICE. */
int stk_arena_write(const struct stk_stage *stage, void *arena, const void *from, size_t bytes,
                    stoker_error *error);
/* Copies part of an arena to host memory. STOKER_EDEVICE. */
int stk_arena_read(const struct stk_stage *stage, void *to, const void *arena, size_t bytes,
                   stoker_error *error);

#endif
