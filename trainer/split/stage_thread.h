/* stage_thread.h - a thread that takes up pieces of work in their order, at most two ahead of it.
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
/* All that was posted is done first. */
void stk_stage_thread_destroy(struct stk_stage_thread **thread); /* NULL is allowed */

/* One thread calls these two. What it wrote before a post is seen by the work, and what the work wrote is seen
 * after the await. */
void stk_stage_thread_post(struct stk_stage_thread *thread);
void stk_stage_thread_await(struct stk_stage_thread *thread, uint32_t index);

#endif
