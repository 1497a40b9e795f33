/* split.h - the runner of one network over two devices: the layers before the cut on one, the
 * others on the other.
 *
 *              pass 0     pass 1       pass 2           ...    group ends
 *   first      F0 ──┐     F1 ──┐ B0    F2 ──┐ B1               B2        update
 *   second          └─ FB0 ────┴── FB1 ─────┴── FB2            ┘         update
 *
 * F: forward up to the cut; FB: forward from there, loss, backward; B: the first stage's backward.
 * The passes are those of a group (accumulate): while the second stage works on one, the first is
 * at the next and at the one before. Each stage has half the network (model/cut.h) and its own back
 * end; passes are added up in order, so the numbers are those of one device.
 *
 *   split.c ──▶ schedule.c ──▶ cut.c      the order of passes; what crosses from one stage to the other
 *                         └──▶ stage_thread.c
 *
 * A second stage in host memory has its own thread, which alone touches its memory from the start
 * of a pass to its end. A stage on a GPU is queued, and what crosses is copied on separate streams:
 * between two GPUs the host never waits. */
#ifndef STK_TRAINER_SPLIT_H
#define STK_TRAINER_SPLIT_H

#include "trainer/stage/runner.h"

/* The stages are allocated; the bytes of the cut are added to their memory. STOKER_ENOMEM, ETHREAD,
 * EDEVICE. */
int stk_split_create(struct stk_runner **out, struct stk_stage *first, struct stk_stage *second,
                     stoker_error *error);

#endif
