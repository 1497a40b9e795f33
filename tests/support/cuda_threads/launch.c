/* launch.c - the scheduler: blocks one after the other, and the threads of a block in turns.
 *
 * A stack runs threads one after the other until one waits: that one keeps the stack, and the next
 * begins on another.
 *
 *            ┌─────────────────────────────── barrier or shuffle complete ────────┐
 *            ▼                                                                    │
 *   CT_READY ──▶ runs ──▶ CT_AT_BARRIER, CT_AT_SHUFFLE ──▶ (nobody is ready) ─────┤
 *      ▲          │ │                                                             │
 *      └ interrupted└──▶ CT_ENDED                          nothing is complete: deadlock
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine.h"

struct ct_machine ct;
const struct cuda_where *cuda_now;

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards ct and what the other files keep */

uint64_t ct_random(void)
{
    ct.random ^= ct.random << 13;
    ct.random ^= ct.random >> 7;
    ct.random ^= ct.random << 17;
    return ct.random >> 16;
}

void ct_reach(const struct cuda_site *site)
{
    struct cuda_threads_report *report = ct.report;
    if (!ct_watched())
        return;
    for (uint32_t i = 0; i < report->site_count; i++)
        if (report->sites[i]->number == site->number)
            return;
    if (report->site_count < CUDA_THREADS_SITES_MAX)
        report->sites[report->site_count++] = site;
}

/* ---- threads --------------------------------------------------------------------------------- */

void ct_pause(enum ct_state state, const struct cuda_site *site)
{
    struct ct_thread *self = ct.running;
    ct_settle_writes();
    self->state = state;
    self->site = site;
    ct_fiber_switch(&self->fiber, &ct.scheduler);
}

void ct_end_launch(void)
{
    ct.ended = true;
    ct_pause(CT_ENDED, NULL);
    abort(); /* nobody resumes it */
}

/* Stacks lie in one mapping and stay for later launches. */
static char *stack_number(uint32_t i)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), each = CT_STACK_BYTES + page;
    if (ct.stacks != NULL)
        return ct.stacks + i * each + page;
    ct.stacks = mmap(NULL, CT_THREADS_MAX * each, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ct.stacks == MAP_FAILED)
        abort();
    for (size_t k = 0; k < CT_THREADS_MAX; k++)
        if (mprotect(ct.stacks + k * each, page, PROT_NONE) != 0)
            abort();
    return ct.stacks + i * each + page;
}

static void begin_slice(struct ct_thread *thread)
{
    ct.running = thread;
    ct.slice++;
    ct.report->switches++;
    cuda_now = &thread->where;
}

/* The body of a fiber: runs threads that have not begun, until one waits. */
static void run_threads(void)
{
    for (;;) {
        struct ct_thread *const self = ct.running;
        ct.call(ct.launch->arguments);
        ct_settle_writes();
        self->state = CT_ENDED;
        ct.live--;
        if (ct.begun == ct.thread_count || ct.ended)
            break;
        begin_slice(&ct.threads[ct.order[ct.begun++]]);
        ct.running->stack = self->stack;
    }
    ct_fiber_switch(&ct.running->fiber, &ct.scheduler);
    abort(); /* nobody resumes it */
}

/* Runs each thread of the block until it waits. */
static void begin_threads(void)
{
    static struct ct_fiber fiber;
    for (uint32_t i = 0; ct.begun < ct.thread_count && !ct.ended; i++) {
        begin_slice(&ct.threads[ct.order[ct.begun++]]);
        ct.running->stack = stack_number(i);
        ct_fiber_start(&fiber, ct.running->stack, CT_STACK_BYTES, run_threads);
        ct_fiber_switch(&ct.scheduler, &fiber);
    }
    ct.running = NULL;
}

static void resume(struct ct_thread *thread)
{
    begin_slice(thread);
    ct_fiber_switch(&ct.scheduler, &thread->fiber);
    ct.running = NULL;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void begin_block(uint32_t block)
{
    const struct cuda_threads_launch *launch = ct.launch;
    if (ct_watched())
        memset(ct.module->shared, 0xFF, (size_t)(ct.module->shared_end - ct.module->shared));
    ct.block_slice = ++ct.slice;
    ct.epoch = 0;
    ct.epoch_slices[0] = ct.slice;
    ct.live = ct.thread_count;
    ct.begun = 0;
    ct_order_begin_block();
    for (uint32_t i = 0; i < ct.thread_count; i++) {
        struct ct_thread *thread = &ct.threads[i];
        thread->where = (struct cuda_where){ { i, 0, 0 },
                                             { block % launch->grid_x, block / launch->grid_x, 0 },
                                             { launch->threads, 1, 1 },
                                             { launch->grid_x, launch->grid_y, 1 } };
        thread->state = CT_READY;
        thread->fence_slice = thread->fence_slice_before = thread->fence_epoch = 0;
    }
}

static void shuffle_order(uint32_t *order, uint32_t count)
{
    for (uint32_t i = count; ct.launch->seed != 0 && i > 1; i--) {
        const uint32_t other = (uint32_t)(ct_random() % i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

/* One turn: every thread that is ready runs until it waits. Returns false if none was. */
static bool run_ready(uint32_t *order)
{
    bool ran = false;
    shuffle_order(order, ct.thread_count);
    ct.order = order;
    if (ct.begun == 0) {
        begin_threads();
        return true;
    }
    for (uint32_t i = 0; i < ct.thread_count && !ct.ended; i++)
        if (ct.threads[order[i]].state == CT_READY) {
            resume(&ct.threads[order[i]]);
            ran = true;
        }
    return ran;
}

static void report_deadlock(void)
{
    const struct ct_thread *waiting = ct.threads;
    while (waiting->state == CT_ENDED)
        waiting++;
    cuda_now = &waiting->where;
    ct_find(CUDA_THREADS_DEADLOCK, NULL, "%u threads wait, this one at %s:%d", ct.live,
            waiting->site->file, waiting->site->line);
    ct.ended = true;
}

static void run_block(uint32_t block)
{
    uint32_t order[CT_THREADS_MAX];
    for (uint32_t i = 0; i < ct.thread_count; i++)
        order[i] = i;
    begin_block(block);
    while (ct.live > 0 && !ct.ended)
        if (!run_ready(order) && !ct_release_shuffles() && !ct_release_barrier())
            report_deadlock();
}

/* ---- launches -------------------------------------------------------------------------------- */

static void begin_launch(const struct cuda_threads_module *module,
                         const struct cuda_threads_launch *launch,
                         struct cuda_threads_report *report)
{
    const struct cuda_threads_kernel *kernel = module->kernels;
    while (kernel->name != NULL && strcmp(kernel->name, launch->kernel) != 0)
        kernel++;
    if (kernel->name == NULL || launch->threads < 1 || launch->threads > CT_THREADS_MAX)
        abort();
    *report = (struct cuda_threads_report){ 0 };
    ct.module = module;
    ct.launch = launch;
    ct.report = report;
    ct.call = kernel->call;
    ct.thread_count = launch->threads;
    ct.random = launch->seed * 0x9E3779B97F4A7C15U + 1;
    ct.ended = false;
    if (ct.slice > UINT32_MAX / 2) { /* their numbers would run out */
        ct_regions_forget();
        ct.slice = 0;
    }
    ct.launch_slice = ++ct.slice;
    ct_regions_begin();
    ct_order_begin_launch();
}

uint32_t cuda_threads_run(const struct cuda_threads_module *module,
                          const struct cuda_threads_launch *launch,
                          struct cuda_threads_report *report)
{
    const uint32_t columns = launch->grid_x - launch->first_x;
    const uint32_t blocks = columns * (launch->grid_y - launch->first_y);
    uint32_t *order = malloc(blocks * sizeof(*order));
    if (order == NULL)
        abort();
    pthread_mutex_lock(&lock);
    begin_launch(module, launch, report);
    for (uint32_t i = 0; i < blocks; i++)
        order[i] = (launch->first_y + i / columns) * launch->grid_x + launch->first_x + i % columns;
    shuffle_order(order, blocks);
    for (uint32_t i = 0; i < blocks && !ct.ended; i++)
        run_block(order[i]);
    ct_order_begin_launch(); /* frees what the launch noted */
    pthread_mutex_unlock(&lock);
    free(order);
    return report->count;
}

void cuda_threads_count_from(uint32_t slice)
{
    ct.slice = slice;
}

const struct cuda_threads_module *cuda_threads_open(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library == NULL ? NULL : dlsym(library, "cuda_threads_module");
}

bool cuda_threads_has(const struct cuda_threads_module *module, const char *kernel)
{
    for (const struct cuda_threads_kernel *k = module->kernels; k->name != NULL; k++)
        if (strcmp(k->name, kernel) == 0)
            return true;
    return false;
}
