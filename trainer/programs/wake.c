/* wake.c - see wake.h. */
#include "trainer/programs/wake.h"

#include <stddef.h>
#include <stoker/trainer.h>

#include "loader/base/cpu/thread.h"

static void *wake(void *argument)
{
    const struct waker *const waker = argument;
    stoker_trainer_wake(waker->backend, waker->convolutions);
    return NULL;
}

void wake_begin(struct waker *waker, const char *backend, bool convolutions)
{
    waker->backend = backend;
    waker->convolutions = convolutions;
    waker->running = stk_thread_start(&waker->thread, "stoker-wake", wake, waker) == 0;
}

void wake_join(struct waker *waker)
{
    if (waker->running)
        (void)pthread_join(waker->thread, NULL);
    waker->running = false;
}
