/* split.h - one network over two devices: the layers before the seam on one, the others on the other.
 *
 *              pass 0     pass 1       pass 2           ...    group ends
 *   first      F0 ──┐     F1 ──┐ B0    F2 ──┐ B1               B2        update
 *   second          └─ FB0 ────┴── FB1 ─────┴── FB2            ┘         update
 *
 * F: forward up to the seam; FB: from there forward, loss, backward; B: the first stage's backward. Passes are
 * those of a group (accumulate): while the second stage works on one, the first is at the next and at the one
 * before. Each stage is a trainer of its own on its own back end, with half the network (model/cut.h); passes
 * are added up in their order, so that the numbers are those of one device.
 *
 * A second stage in host memory has a thread of its own; its memory is touched by that thread alone between the
 * handing over of a pass and its end. A stage on a GPU is queued, and what crosses is on streams of their own: between
 * two GPUs the host waits for nothing. */
#ifndef STK_TRAINER_SPLIT_H
#define STK_TRAINER_SPLIT_H

#include "trainer/api/trainer.h"

struct stk_split;

/* Make both stages as trainer->settings say, and fill in what the trainer tells of itself: settings, memory.
 * STOKER_EINVAL: no split there; else as stoker_trainer_create(). What was made is trainer->split, on failure,
 * too. */
int stk_split_create(stoker_trainer *trainer, stoker_error *error);
void stk_split_destroy(struct stk_split **split); /* NULL is allowed */

void stk_split_stages(const struct stk_split *split, struct stk_stages *stages);
const char *stk_split_name(const struct stk_split *split); /* "cpu,cuda" */
size_t stk_split_memory_table(const stoker_trainer *trainer, char *text, size_t bytes);

/* One pass: the second stage may be at it when this returns. What it found comes to trainer->unread later.
 * STOKER_EINVAL: a label that is none, and nothing has changed. STOKER_EDEVICE. */
int stk_split_pass(stoker_trainer *trainer, const struct stk_pass *pass);
/* Bring passes under way to their end: then gradients of both stages are whole. Nothing to do with one device.
 * STOKER_EDEVICE. */
int stk_split_drain(stoker_trainer *trainer, stoker_error *error);
/* Of the gradients of both stages, drained; each device has the other's then. Written where the host decides, which
 * waits. STOKER_EDEVICE. */
int stk_split_norm(stoker_trainer *trainer, double *squared, bool *finite);
/* Forward through both, and wait. */
int stk_split_forward(stoker_trainer *trainer, const struct stk_pass *pass, struct stk_loss *loss);

#endif
