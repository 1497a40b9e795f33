/* wake.h - a GPU and its libraries start while the data is opened: both take tenths of a second.
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

/* A thread that cannot be started is done without. waker must stay where it is until it is joined. */
void wake_begin(struct waker *waker, const char *backend, bool convolutions);
void wake_join(struct waker *waker); /* again is fine */

#endif
