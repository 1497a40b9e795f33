/* wake.c - see wake.h. */
#include "trainer/programs/wake.h"

#include <signal.h>
#include <stddef.h>
#include <stoker/trainer.h>

static void *wake(void *argument)
{
    const struct waker *const waker = argument;
    stoker_trainer_wake(waker->backend, waker->convolutions);
    return NULL;
}

/* Signals are the main thread's. */
void wake_begin(struct waker *waker, const char *backend, bool convolutions)
{
    sigset_t all;
    sigset_t before;
    waker->backend = backend;
    waker->convolutions = convolutions;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    waker->running = pthread_create(&waker->thread, NULL, wake, waker) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void wake_join(struct waker *waker)
{
    if (waker->running)
        (void)pthread_join(waker->thread, NULL);
    waker->running = false;
}
