/* recall.h - take back memory that locate() handed out.
 *
 *   reader   enter ──▶ locate again, if the turn changed ──▶ read the memory ──▶ leave
 *   owner    locate() stops handing it out ──▶ stk_recall(), in format.h ──▶ the memory may end
 *
 * Only data sets with `recalls` do that. A view may join several, so one count covers the readers
 * of all, for the whole process. A forked child inherits the count of its parent's readers, which
 * never leave there: its own recalls may fail.
 */
#ifndef STK_DATASET_RECALL_H
#define STK_DATASET_RECALL_H

#include <stdint.h>

#include "loader/dataset/dataset.h"

/* Returns the turn in which locate() is about to be called. */
uint32_t stk_recall_turn(void);

/* Begin to read located memory; what was located in an earlier turn must be located again. Returns
 * the turn. Never waits. May be nested. */
uint32_t stk_recall_enter(const stoker_dataset *dataset);
void stk_recall_leave(const stoker_dataset *dataset, uint32_t entered);

#endif
