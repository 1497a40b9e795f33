/* event.h - a descriptor that poll() reports as readable while it is set. */
#ifndef STK_BASE_EVENT_H
#define STK_BASE_EVENT_H

/* Make one that is set, and not inherited by programs that are started. Returns 0 or -errno; on
 * failure *out is unchanged. */
int stk_event_open(int *out);

/* Set and clear it, however often. Neither blocks; stk_event_set() may be called in any thread and
 * in signal handlers, and keeps errno. */
void stk_event_set(int event);
void stk_event_clear(int event);

#endif
