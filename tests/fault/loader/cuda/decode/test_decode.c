/* test_decode.c - each call of nvImageCodec and of the CUDA runtime, and each allocation of create,
 * fails in its turn while a GPU decodes: an error that says which call, the right bytes before it,
 * a clean destroy, nothing left.
 */
#include "loader/base/fault.h"
#include "loader/reader/readers.h"
#include "support/files/jpeg_set.h"
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/standin_nvimgcodec/standin_nvimgcodec.h"

enum { CALLS_MAX = 5000, ALLOCATION_FAILURE = 5 };

static struct stk_jpeg_set set;
static struct stk_run whole, run;
static struct stk_cuda_consumer consumer;
static int64_t before; /* live bytes: the data set has some */

static void make_set(void)
{
    const struct stk_jpeg_set_kind kind = { .count = 10 };
    cr_assert(stk_jpeg_set_make(&set, &kind, "?channels=3"));
    before = stk_fault_live_bytes();
}

static void open_set(void)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    make_set();
}

static stoker_loader_options options_for(int32_t workers)
{
    stoker_loader_options options =
        stk_small_options(.device = STOKER_DEVICE_CUDA, .decode = STOKER_DECODE_DEVICE,
                          .transform.resize = (stoker_size){ 6, 5 }, .num_workers = workers,
                          .prefetch_batches = 3, .epochs = 1, .batch_size = 5);
    options.reader = &stk_reader_pread; /* which has no other to go to */
    return options;
}

static void begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    standin_nvimgcodec_reset();
    standin_cuda_use_kernels();
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    run = (struct stk_run){ 0 };
}

/* What was delivered before an error is right. */
static void end(int rc, stoker_loader **loader, uint64_t nth, bool lost)
{
    if (rc == STOKER_OK && run.rc != STOKER_FINISHED) {
        stoker_batch batch = STOKER_BATCH_INIT;
        int code;
        cr_assert_eq(run.rc, STOKER_EDEVICE, "nth %llu: %s", (unsigned long long)nth,
                     stoker_error_name(run.rc));
        while ((code = stoker_loader_next(*loader, &batch, -1)) == STOKER_EPOCH_END)
            continue;
        /* The call that failed may have been one for the last batch. */
        cr_assert(code == STOKER_EDEVICE || code == STOKER_FINISHED, "%s", stoker_error_name(code));
        if (code == STOKER_EDEVICE)
            cr_assert_not_null(strstr(stoker_loader_error(*loader)->message, "cuda:0: "), "%s",
                               stoker_loader_error(*loader)->message);
    }
    for (uint32_t i = 0; i < run.batches && !lost;
         i++) /* a lost GPU runs no kernels of the consumer */
        cr_assert_eq(run.hashes[i], whole.hashes[i], "nth %llu, batch %u", (unsigned long long)nth,
                     i);
    stoker_loader_destroy(loader);
    stk_cuda_consumer_destroy(&consumer);
    cr_assert_eq(standin_nvimgcodec_violations(), 0U, "nth %llu", (unsigned long long)nth);
    cr_assert_eq(standin_nvimgcodec_live(), 0, "nth %llu", (unsigned long long)nth);
    cr_assert_eq(standin_cuda_violations(), 0U, "nth %llu", (unsigned long long)nth);
    cr_assert_eq(standin_cuda_live(), 0, "nth %llu leaks on the device", (unsigned long long)nth);
    cr_assert_eq(stk_fault_live_bytes(), before, "nth %llu leaks", (unsigned long long)nth);
}

static void run_whole(const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    begin();
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, options, NULL), STOKER_OK);
    stk_cuda_run_on(loader, &consumer, &run, UINT32_MAX);
    cr_assert_eq(run.rc, STOKER_FINISHED);
    whole = run;
    end(STOKER_OK, &loader, 0, false);
}

CleanTest(decode_faults, a_build_without_kernels_says_so)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    if (stk_cuda_kernels_built())
        cr_skip("this build has kernels");
    make_set();
    const stoker_loader_options options = options_for(1);
    standin_cuda_reset(1);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "without nvcc"), "%s", error.message);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_jpeg_set_remove(&set);
}

CleanTest(decode_faults, each_call_of_the_library_fails_once)
{
    open_set();
    for (int32_t workers = 0; workers <= 2; workers += 2) {
        const stoker_loader_options options = options_for(workers);
        uint32_t errors = 0;
        bool reached = true;
        run_whole(&options);
        for (uint64_t nth = 1; reached; nth += workers == 0 ? 1 : 7) {
            stoker_loader *loader = NULL;
            stoker_error error = { .message = "" };
            begin();
            standin_nvimgcodec_fail(nth, ALLOCATION_FAILURE);
            const int rc = stoker_loader_create(&loader, set.dataset, &options, &error);
            cr_assert(rc == STOKER_OK || rc == STOKER_EDEVICE, "%s", stoker_error_name(rc));
            if (rc == STOKER_OK)
                stk_cuda_run_on(loader, &consumer, &run, UINT32_MAX);
            else
                cr_assert_not_null(strstr(error.message, "allocation failed (5)"), "%s",
                                   error.message);
            errors += rc != STOKER_OK || run.rc != STOKER_FINISHED;
            end(rc, &loader, nth, false);
            reached = standin_nvimgcodec_failed();
            cr_assert_lt(nth, CALLS_MAX);
        }
        /* Each but those that destroy. */
        cr_assert_gt(errors, workers == 0 ? 20U : 3U);
    }
    stk_jpeg_set_remove(&set);
}

CleanTest(decode_faults, each_call_of_the_runtime_fails)
{
    open_set();
    const stoker_loader_options options = options_for(0);
    run_whole(&options);
    for (int lost = 0; lost <= 1; lost++) {
        bool reached = true;
        for (uint64_t nth = 1; reached; nth++) {
            stoker_loader *loader = NULL;
            stoker_error error = { .message = "" };
            begin();
            standin_cuda_fail(nth, lost ? cudaErrorIllegalAddress : cudaErrorMemoryAllocation,
                              lost == 1);
            const int rc = stoker_loader_create(&loader, set.dataset, &options, &error);
            cr_assert(rc == STOKER_OK || rc == STOKER_EDEVICE || rc == STOKER_EPIN, "%s",
                      stoker_error_name(rc));
            if (rc == STOKER_OK)
                stk_cuda_run_on(loader, &consumer, &run, UINT32_MAX);
            end(rc, &loader, nth, lost == 1);
            reached = standin_cuda_failed();
            cr_assert_lt(nth, CALLS_MAX);
        }
    }
    stk_jpeg_set_remove(&set);
}

CleanTest(decode_faults, each_allocation_of_create_fails)
{
    open_set();
    const stoker_loader_options options = options_for(0); /* threads would begin, and allocate */
    bool reached = true;
    run_whole(&options);
    for (uint64_t nth = 1; reached; nth++) {
        stoker_loader *loader = NULL;
        stoker_error error = { .message = "" };
        begin();
        stk_fault_arm(STK_FAULT_MEMORY | STK_FAULT_THREAD, nth);
        const int rc = stoker_loader_create(&loader, set.dataset, &options, &error);
        reached = stk_fault_disarm();
        cr_assert_eq(rc == STOKER_OK, !reached, "nth %llu", (unsigned long long)nth);
        cr_assert(rc == STOKER_OK || rc == STOKER_ENOMEM || rc == STOKER_ETHREAD, "%s",
                  stoker_error_name(rc));
        run.rc = STOKER_FINISHED; /* none was made */
        end(rc, &loader, nth, false);
        cr_assert_lt(nth, 1000U);
    }
    stk_jpeg_set_remove(&set);
}

/* AUTO: the CPU decodes if the GPU has no memory left for it. */
CleanTest(decode_faults, auto_does_without_memory)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    stoker_stats stats = STOKER_STATS_INIT;
    open_set();
    stoker_loader_options options = options_for(2);
    run_whole(&options);
    begin();
    standin_cuda_memory(1 << 16); /* the slots' buffers, but no room for decoded images */
    options.decode = STOKER_DECODE_AUTO;
    const int rc = stoker_loader_create(&loader, set.dataset, &options, &error);
    cr_assert_eq(rc, STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_not(stats.decodes_on_device);
    cr_assert_not_null(strstr(stats.decode_reason, "cudaMalloc"), "%s", stats.decode_reason);
    stk_cuda_run_on(loader, &consumer, &run, UINT32_MAX);
    cr_assert_eq(run.rc, STOKER_FINISHED);
    end(rc, &loader, 0, false);
    stk_jpeg_set_remove(&set);
}
