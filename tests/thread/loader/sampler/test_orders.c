/* test_orders.c - several loaders at a time over views of one data set, whose owners come and go:
 * in every kind of order, each run as the first one.
 *
 *   main      opens the set, gives each thread a share, closes its own
 *   thread i  { view of it ─▶ loader with three workers ─▶ batches ─▶ close } over and over
 */
#include <pthread.h>
#include <stdatomic.h>

#include "support/runs/scenario.h"
#include "support/thread_check.h"

enum { THREADS = 4, KINDS = STOKER_ORDER_WINDOW + 1, SAMPLES = 300 };

static uint64_t start_ns;
static double weights[SAMPLES];
static _Atomic uint64_t asked; /* calls of the caller's order */

static int backwards(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
                     uint64_t *ids, stoker_error *error)
{
    (void)self;
    (void)error;
    atomic_fetch_add(&asked, 1U);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = (SAMPLES - 1 - (position + i * stride) + epoch) % SAMPLES;
    return 0;
}

static stoker_dataset *view_of(stoker_dataset *set, uint32_t number)
{
    stoker_dataset *view = NULL;
    stoker_dataset *half = NULL;
    stoker_split split = stk_split_of(.test = 0.5, .seed = number, .stratified = number % 2 == 1);
    CHECK(stoker_dataset_split(&half, set, &split, NULL) == STOKER_OK);
    CHECK(stoker_dataset_concat(&view, (stoker_dataset *[]){ half, half }, 2, NULL) == STOKER_OK);
    stoker_dataset_close(&half);
    CHECK(stoker_dataset_get_info(view)->count == SAMPLES);
    return view;
}

static void run_once(stoker_dataset *set, uint32_t number, uint32_t kind, struct stk_run *run)
{
    stoker_order order = STOKER_ORDER_INIT;
    stoker_loader_options options = stk_small_options(.num_workers = 3);
    stoker_dataset *view = view_of(set, number);
    options.order = kind == 0 ? NULL : &order;
    order.kind = (stoker_order_kind)kind;
    order.weights = kind == 1 ? weights : NULL;
    order.weight_count = kind == 1 ? SAMPLES : 0;
    order.ids = kind == 2 ? backwards : NULL;
    if (kind == STOKER_ORDER_WINDOW) /* 34 blocks */
        order.block_samples = 9;
    CHECK(stk_run(view, &options, run) == STOKER_FINISHED);
    CHECK(run->samples == 2 * SAMPLES);
    stoker_dataset_close(&view);
}

struct part {
    pthread_t thread;
    uint32_t number;
    stoker_dataset *set;
    struct stk_run first[KINDS];
    struct stk_run next;
};

static void *work(void *argument)
{
    struct part *part = argument;
    for (uint32_t round = 0; round < 2 * KINDS || stk_time_left(start_ns); round++) {
        const uint32_t kind = round % KINDS;
        struct stk_run *run = round < KINDS ? &part->first[kind] : &part->next;
        run_once(part->set, part->number, kind, run);
        CHECK(round < KINDS || stk_runs_equal(&part->first[kind], run));
    }
    stoker_dataset_close(&part->set);
    return NULL;
}

int main(void)
{
    static struct part parts[THREADS];
    stoker_dataset *set = NULL;
    start_ns = stk_now_ns();
    for (uint32_t i = 0; i < SAMPLES; i++)
        weights[i] = i % 7;
    CHECK(stoker_dataset_open(
              &set, "concat:(synth:bytes?count=200&shape=9)+(synth:bytes?count=100&shape=9)", NULL,
              NULL) == STOKER_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        parts[i].number = i;
        parts[i].set = stoker_dataset_share(set);
        CHECK(pthread_create(&parts[i].thread, NULL, work, &parts[i]) == 0);
    }
    stoker_dataset_close(&set);
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(parts[i].thread, NULL) == 0);
    CHECK(asked > 0);
    return 0;
}
