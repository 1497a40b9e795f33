/* test_calls.c - each call of the CUDA runtime fails in its turn, once alone and once for good, as
 * a lost GPU does: an error that says which call, no copy after it, a clean destroy, nothing left.
 */
#include <stoker/arrays.h>

#include "loader/api/loader.h"
#include "loader/base/fault.h"
#include "loader/reader/readers.h"
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"

enum { CALLS_MAX = 5000 };

static struct stk_file_set set;
static struct stk_run run;
static struct stk_cuda_consumer consumer;
static uint32_t told; /* failures that were errors, over all sweeps */

static int create(stoker_loader **loader, stoker_loader_options options, stoker_error *error)
{
    return stoker_loader_create(loader, set.dataset, &options, error);
}

/* What next() reports, it repeats. */
static void expect_sticky(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_not_null(stoker_loader_error(loader));
    cr_assert_eq(stoker_loader_error(loader)->code, STOKER_EDEVICE);
    cr_assert_eq(stoker_loader_error(loader)->stage, STOKER_STAGE_TRANSFER);
    cr_assert(strstr(stoker_loader_error(loader)->message, "cuda:0: cu") != NULL, "%s",
              stoker_loader_error(loader)->message);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EDEVICE);
}

static void use(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    stk_cuda_run_on(loader, &consumer, &run, UINT32_MAX);
    if (run.rc == STOKER_FINISHED) { /* the last batch went out before anything failed */
        cr_assert(!standin_cuda_failed() || stoker_loader_error(loader) == NULL);
        return;
    }
    told++;
    cr_assert_eq(run.rc, STOKER_EDEVICE, "%s", stoker_error_name(run.rc));
    /* wait_on and release_on said it first: next says it then. */
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_EPOCH_END || rc == STOKER_OK)
        cr_assert_neq(rc, STOKER_OK);
    if (rc == STOKER_EDEVICE)
        expect_sticky(loader);
}

/* One life with the nth call failing. False: there was no nth. */
static bool fail_nth(const stoker_loader_options *options, uint64_t nth, bool lost)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    cr_assert(stk_cuda_consumer_init(&consumer, 20));
    standin_cuda_fail(nth, lost ? cudaErrorIllegalAddress : cudaErrorMemoryAllocation, lost);
    run = (struct stk_run){ 0 };
    const int rc = create(&loader, *options, &error);
    const bool done_without =
        rc == STOKER_OK && standin_cuda_failed() && stk_device_failure(loader->device) == NULL;
    if (done_without) {
        cr_assert(!lost); /* a function of the driver was not found: there is another way */
        standin_cuda_fail(0, 0, false);
    }
    if (rc == STOKER_OK) {
        use(loader);
    } else {
        told++;
        cr_assert(rc == STOKER_EDEVICE || rc == STOKER_EPIN, "%s", stoker_error_name(rc));
        cr_assert_eq(error.code, rc);
        cr_assert_null(loader);
    }
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    cr_assert_eq(standin_cuda_copies_after_failure(), 0U, "nth %llu", (unsigned long long)nth);
    cr_assert_eq(standin_cuda_violations(), 0U, "nth %llu", (unsigned long long)nth);
    cr_assert_eq(standin_cuda_live(), 0, "nth %llu leaks on the device", (unsigned long long)nth);
    cr_assert_eq(standin_cuda_pushed(), 0, "nth %llu", (unsigned long long)nth);
    return done_without || standin_cuda_failed();
}

static void sweep(stoker_loader_options options, int64_t before)
{
    for (int lost = 0; lost <= 1; lost++) {
        uint64_t nth = 1;
        while (fail_nth(&options, nth, lost == 1)) {
            cr_assert_eq(stk_fault_live_bytes(), before, "nth %llu leaks", (unsigned long long)nth);
            cr_assert_lt(nth, CALLS_MAX);
            nth++;
        }
        cr_assert_gt(nth, 30);
    }
}

CleanTest(cuda_calls, each_fails_once_and_for_good)
{
    cr_assert(stk_file_set_make(&set, 24, 4, 5, 0));
    stoker_loader_options options =
        stk_small_options(.device = STOKER_DEVICE_CUDA, .batch_size = 6, .epochs = 1);
    const int64_t before = stk_fault_live_bytes(); /* the data set has some */
    for (int pin = STOKER_SWITCH_ON; pin <= STOKER_SWITCH_OFF; pin++)
        for (int blocks = 0; blocks <= (pin == STOKER_SWITCH_ON); blocks++) {
            options.pin_memory = (stoker_switch)pin;
            options.non_blocking = blocks == 0;
            options.num_workers = pin == STOKER_SWITCH_ON ? 2 : 0;
            options.prefetch_batches = pin == STOKER_SWITCH_ON ? 2 : 4;
            sweep(options, before);
        }
    const bool built = stk_cuda_kernels_built();
    standin_cuda_use_kernels(); /* and with kernels behind the copies */
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.convert_on_device = built ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
    sweep(options, before);
    options.transform =
        (stoker_transform){ .resize = { 3, 3 } }; /* and that transform, with a scratch */
    sweep(options, before);
    options.cache = built ? STOKER_CACHE_DEVICE : STOKER_CACHE_NONE; /* and kept there */
    options.epochs = 2;
    options.blend.mixup_alpha = options.blend.cutmix_alpha = 0.5F; /* and mixed */
    sweep(options, before);
    cr_assert_gt(told, 100);
    stk_file_set_remove(&set);
}

static void fail_each_allocation(stoker_loader_options options, int64_t before)
{
    for (uint64_t nth = 1;; nth++) {
        stoker_loader *loader = NULL;
        stoker_error error = { .code = 0 };
        standin_cuda_reset(1);
        stk_fault_arm(STK_FAULT_MEMORY | STK_FAULT_THREAD, nth);
        const int rc = create(&loader, options, &error);
        const bool reached = stk_fault_disarm();
        cr_assert_eq(rc == STOKER_OK, !reached, "nth %llu", (unsigned long long)nth);
        cr_assert(rc == STOKER_OK || rc == STOKER_ENOMEM || rc == STOKER_ETHREAD);
        stoker_loader_destroy(&loader);
        cr_assert_eq(standin_cuda_live(), 0, "nth %llu", (unsigned long long)nth);
        cr_assert_eq(stk_fault_live_bytes(), before, "nth %llu", (unsigned long long)nth);
        if (!reached)
            break;
        cr_assert_lt(nth, 1000);
    }
}

/* Our own allocations, too, on the way to a GPU. */
CleanTest(cuda_calls, each_allocation_of_create_fails_once)
{
    cr_assert(stk_file_set_make(&set, 24, 4, 5, 0));
    const int64_t before = stk_fault_live_bytes();
    stoker_loader_options options =
        stk_small_options(.device = STOKER_DEVICE_CUDA, .num_workers = 2);
    options.reader = &stk_reader_pread; /* which has no other to go to */
    fail_each_allocation(options, before);
    standin_cuda_use_kernels();
    options.cache = STOKER_CACHE_DEVICE;
    if (stk_cuda_kernels_built())
        fail_each_allocation(options, before);
    stk_file_set_remove(&set);
}

/* Two fields, which a kernel of its own keeps. */
CleanTest(cuda_calls, each_fails_while_fields_are_kept)
{
    static float x[24 * 13];
    static int64_t y[24];
    stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
    stoker_loader_options options = stk_small_options();
    arrays[0].name = "row";
    arrays[0].data = x;
    arrays[0].dtype = STOKER_DTYPE_FLOAT32;
    arrays[0].rank = 1;
    arrays[0].shape[0] = 13;
    arrays[1].name = "label";
    arrays[1].data = y;
    arrays[1].dtype = STOKER_DTYPE_INT64;
    cr_assert_eq(stoker_dataset_from_arrays(&set.dataset, arrays, 2, 24, NULL, NULL), STOKER_OK);
    const int64_t before = stk_fault_live_bytes();
    standin_cuda_use_kernels();
    options.device = STOKER_DEVICE_CUDA;
    options.batch_size = 12;
    options.prefetch_batches = 4;
    options.num_workers = 0;
    options.cache = stk_cuda_kernels_built() ? STOKER_CACHE_DEVICE : STOKER_CACHE_NONE;
    sweep(options, before);
    options.num_workers = 2;
    if (stk_cuda_kernels_built())
        fail_each_allocation(options, before);
    stoker_dataset_close(&set.dataset);
}
