/* consumer_wait.h - how the consumer waits for the next batch.
 *
 *   spin briefly ─▶ spin longer, if a core is spare ─▶ sleep while several batches are made ─▶ sleep for the next one
 *
 * It sleeps on a timer if a core is spare, else until a worker wakes it, for as long as the pace of
 * earlier batches says that several will take. A wake-up for each batch would cost more than making
 * a small one.
 */
#ifndef STK_PIPELINE_CONSUMER_WAIT_H
#define STK_PIPELINE_CONSUMER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/slots/slots.h"

/* Wait until the head batch is ready. Returns false if it is not by deadline_ns (UINT64_MAX = no
 * limit), or if stopping or interrupted. *now_ns is the time at the call and becomes the time at
 * the return. */
bool stk_consumer_wait(struct stk_slots *slots, uint64_t deadline_ns, uint64_t *now_ns);

#endif
