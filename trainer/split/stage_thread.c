/* stage_thread.c - see stage_thread.h. Both counters only grow (and wrap): `posted` by the owner,
 * `done` by the thread. */
#include "trainer/split/stage_thread.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stoker/error.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/memory/memory.h"

struct stk_stage_thread {
    stk_stage_work *work;
    void *argument;
    pthread_t thread;
    _Atomic uint32_t posted; /* released by post and destroy, acquired by serve */
    _Atomic uint32_t done;   /* released by serve, acquired by await */
    bool stop;               /* written before a post, read after it */
};

static void *serve(void *argument)
{
    struct stk_stage_thread *thread = argument;
    for (uint32_t index = 0;; index++) {
        while (atomic_load_explicit(&thread->posted, memory_order_acquire) == index)
            stk_futex_wait(&thread->posted, index, -1);
        if (thread->stop)
            return NULL;
        thread->work(thread->argument, index);
        atomic_store_explicit(&thread->done, index + 1, memory_order_release);
        stk_futex_wake(&thread->done, INT_MAX);
    }
}

int stk_stage_thread_create(struct stk_stage_thread **out, stk_stage_work *work, void *argument)
{
    struct stk_stage_thread *thread = stk_calloc(1, sizeof(*thread));
    if (thread == NULL)
        return STOKER_ENOMEM;
    thread->work = work;
    thread->argument = argument;
    const int rc = stk_thread_start(&thread->thread, "stoker-stage", serve, thread);
    if (rc != STOKER_OK) {
        stk_free(thread);
        return rc;
    }
    *out = thread;
    return STOKER_OK;
}

void stk_stage_thread_post(struct stk_stage_thread *thread)
{
    atomic_fetch_add_explicit(&thread->posted, 1U, memory_order_release);
    stk_futex_wake(&thread->posted, 1);
}

void stk_stage_thread_await(struct stk_stage_thread *thread, uint32_t index)
{
    for (;;) {
        const uint32_t done = atomic_load_explicit(&thread->done, memory_order_acquire);
        if ((int32_t)(done - index) > 0)
            return;
        stk_futex_wait(&thread->done, done, -1);
    }
}

void stk_stage_thread_destroy(struct stk_stage_thread **thread)
{
    struct stk_stage_thread *const t = *thread;
    if (t == NULL)
        return;
    const uint32_t posted = atomic_load_explicit(&t->posted, memory_order_relaxed);
    stk_stage_thread_await(t, posted - 1);
    t->stop = true;
    stk_stage_thread_post(t);
    (void)pthread_join(t->thread, NULL);
    stk_free(t);
    *thread = NULL;
}
