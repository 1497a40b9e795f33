/* wake.h - starts a GPU and its libraries while the data is opened: both take tenths of a second.
 *
 *   main thread   open data, build network ─▶ join ─▶ create the trainer
 *   waker         driver, context, libraries ─┘
 */
#ifndef STK_PROGRAMS_WAKE_H
#define STK_PROGRAMS_WAKE_H

#include <pthread.h>
#include <stdbool.h>

struct waker {
    const char *backend;
    bool convolutions;
    bool running;
    pthread_t thread;
};

/* A failure to start the thread is ignored. waker must not move until it is joined. */
void wake_begin(struct waker *waker, const char *backend, bool convolutions);
void wake_join(struct waker *waker); /* may be called again */

#endif
