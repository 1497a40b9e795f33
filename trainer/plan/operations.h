/* operations.h - graph -> list of operations on buffers.
 *
 *   operations.c ──▶ forward.c, backward.c ──▶ writer.c
 *   order            one node                  one operation, one buffer
 */
#ifndef STK_TRAINER_OPERATIONS_H
#define STK_TRAINER_OPERATIONS_H

#include "trainer/plan/writer.h"

/* Fills in the plan's ops and buffers (all but sizes, lives and offsets), output and segments. A
 * buffer's number grows with the operation that first uses it. On failure (STOKER_ENOMEM) the
 * caller frees what plan has. */
int stk_operations_write(struct stk_plan *plan, const struct stk_graph *graph,
                         const struct stk_recompute *recompute);

/* forward.c: compute one node. backward_follows: backward operations read the result;
 * otherwise only forward ones do. */
void stk_write_cast(struct stk_writer *writer);
void stk_write_forward(struct stk_writer *writer, uint32_t n, bool again, bool backward_follows);
void stk_write_loss(struct stk_writer *writer);
/* Cuts: a first stage ends by handing on its value and taking the gradient; a second hands the
 * gradient back. */
void stk_write_end(struct stk_writer *writer);
void stk_write_beginning(struct stk_writer *writer);

/* backward.c: from the gradient of a node's value to those of what it reads. */
void stk_write_backward(struct stk_writer *writer, uint32_t n);

#endif
