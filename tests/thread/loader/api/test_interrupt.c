/* test_interrupt.c - stoker_loader_interrupt() from another thread: each one ends one call of
 * next(), and the batches are those of a run without interrupts.
 */
#include <pthread.h>
#include <time.h>

#include "loader/base/fault.h"
#include "support/runs/scenario.h"
#include "support/runs/scripted_reader.h"
#include "support/thread_check.h"

enum { SAMPLES = 300, INTERRUPTS = 200 };

static struct stk_file_set set;
static struct stk_run expected, found;
static _Atomic bool over;

static void *interrupt_often(void *argument)
{
    stoker_loader *loader = argument;
    for (int i = 0; i < INTERRUPTS && !atomic_load(&over); i++) {
        CHECK(stoker_loader_interrupt(loader) == STOKER_OK);
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    }
    return NULL;
}

/* Returns the number of interrupts that next() returned. */
static uint32_t run_interrupted(const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    pthread_t thread;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t interrupts = 0;
    found = (struct stk_run){ 0 };
    atomic_store(&over, false);
    CHECK(stoker_loader_create(&loader, set.dataset, options, NULL) == STOKER_OK);
    CHECK(pthread_create(&thread, NULL, interrupt_often, loader) == 0);
    while ((found.rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        CHECK(found.rc >= 0);
        if (found.rc == STOKER_INTERRUPTED)
            interrupts++;
        else if (found.rc == STOKER_EPOCH_END)
            found.epoch_ends++;
        if (found.rc != STOKER_OK)
            continue;
        found.hashes[found.batches++] = stk_batch_hash(&batch);
        found.samples += batch.count;
        stoker_batch_release(&batch);
    }
    atomic_store(&over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    stoker_loader_destroy(&loader);
    return interrupts;
}

/* Nothing is ready, and nothing will be: only the interrupt ends the wait. */
static void *interrupt_once(void *argument)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    CHECK(stoker_loader_interrupt(argument) == STOKER_OK);
    return NULL;
}

static void wait_without_end(int32_t workers)
{
    const struct stk_script_rule rule = { .what = STK_SCRIPT_STALL, .file = STK_SCRIPT_ANY_FILE };
    stoker_loader_options options = stk_small_options();
    stoker_loader *loader = NULL;
    pthread_t thread;
    stoker_batch batch = STOKER_BATCH_INIT;
    options.reader = &stk_scripted_reader;
    options.num_workers = workers;
    stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    CHECK(pthread_create(&thread, NULL, interrupt_once, loader) == 0);
    CHECK(stoker_loader_next(loader, &batch, -1) == STOKER_INTERRUPTED);
    CHECK(pthread_join(thread, NULL) == 0);
    stk_script_release();
    CHECK(stoker_loader_interrupt(loader) == STOKER_OK);
    CHECK(stoker_loader_interrupt(loader) == STOKER_OK); /* two count as one */
    CHECK(stoker_loader_next(loader, &batch, 0) == STOKER_INTERRUPTED);
    CHECK(stoker_loader_next(loader, &batch, -1) == STOKER_OK);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

int main(void)
{
    uint32_t interrupts = 0;
    CHECK(stk_file_set_make(&set, SAMPLES, 3, 5, 0));
    CHECK(stoker_loader_interrupt(NULL) == STOKER_EINVAL);
    for (int32_t workers = 0; workers <= 3; workers++) {
        stoker_loader_options options = stk_small_options(.num_workers = workers, .batch_size = 3);
        CHECK(stk_run(set.dataset, &options, &expected) == STOKER_FINISHED);
        interrupts += run_interrupted(&options);
        CHECK(stk_runs_equal(&expected, &found));
        wait_without_end(workers);
    }
    stk_file_set_remove(&set);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%u calls interrupted\n", (unsigned)interrupts);
    return interrupts > 0 ? 0 : 1;
}
