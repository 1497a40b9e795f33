/* stage_thread.h - a thread that does pieces of work in order, at most two of them queued.
 *
 *   post ─▶ [ 0 | 1 ] ─▶ work(argument, index) ─▶ done      index = number of the post, from 0
 */
#ifndef STK_TRAINER_STAGE_THREAD_H
#define STK_TRAINER_STAGE_THREAD_H

#include <stdint.h>

struct stk_stage_thread;
typedef void stk_stage_work(void *argument, uint32_t index);

/* STOKER_ENOMEM, ETHREAD. */
int stk_stage_thread_create(struct stk_stage_thread **out, stk_stage_work *work, void *argument);
/* Finishes all posted work first. */
void stk_stage_thread_destroy(struct stk_stage_thread **thread); /* NULL is allowed */

/* One thread calls these two. The work sees what was written before its post, and after await the
 * caller sees what the work wrote. */
void stk_stage_thread_post(struct stk_stage_thread *thread);
void stk_stage_thread_await(struct stk_stage_thread *thread, uint32_t index);

#endif
