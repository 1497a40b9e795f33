/* test_kept.c - memory for batches that are kept fails to be allocated, locked or registered, each
 * call in its turn: it counts as a budget that is used up, never as an error of the run, and the
 * batches that are held stay as they were.
 */
#include "support/leaks.h"
#include "support/runs/kept_batches.h"

enum { SAMPLES = 90, BATCH = 5, BATCHES = SAMPLES / BATCH, SLOTS = 3, CALLS = 250 };

static struct stk_file_set set;
static struct stk_cuda_consumer consumer;
static struct stk_run plain;
static struct stk_kept_run kept;

static stoker_loader_options options_of(stoker_device device)
{
    return stk_small_options(.device = device, .batch_size = BATCH, .prefetch_batches = SLOTS,
                             .epochs = 1, .num_workers = 1, .memory_bytes = 8U << 20,
                             .on_lent = STOKER_ON_LENT_GROW);
}

static void expect_the_bytes(void)
{
    stk_hash_kept(&kept, &consumer);
    for (uint32_t i = 0; i < kept.count; i++)
        cr_assert_eq(kept.hashes[i], plain.hashes[i], "batch %u", i);
}

static stoker_loader *make(const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    kept.count = 0;
    standin_cuda_reset(1);
    standin_cuda_delay(10);
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, options, NULL), STOKER_OK);
    return loader;
}

static void end(stoker_loader *loader)
{
    for (uint32_t i = 0; i < kept.count; i++)
        stoker_batch_release(&kept.batches[i]);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0U);
}

/* Returns true if the nth allocation or lock was reached. */
static bool fail_nth(const stoker_loader_options *options, unsigned kinds, uint64_t nth)
{
    stoker_loader *loader = make(options);
    stk_fault_arm(kinds, nth);
    stk_keep_all(loader, &kept, BATCHES);
    const bool reached = stk_fault_disarm();
    if (kept.rc != STOKER_OK) {
        cr_assert(reached);
        cr_assert_eq(kept.rc, STOKER_BUSY, "%s", stoker_error_name(kept.rc));
        cr_assert_geq(kept.count, (uint32_t)SLOTS);
    }
    expect_the_bytes();
    cr_assert_null(stoker_loader_error(loader));
    stk_keep_all(loader, &kept, BATCHES); /* there is memory again */
    cr_assert_eq(kept.count, (uint32_t)BATCHES);
    expect_the_bytes();
    end(loader);
    return reached;
}

static void begin(void)
{
    standin_cuda_reset(1);
    cr_assert(stk_file_set_make(&set, SAMPLES, 4, 5, 0));
    stoker_loader_options options = options_of(STOKER_DEVICE_CPU);
    cr_assert_eq(stk_run(set.dataset, &options, &plain), STOKER_FINISHED);
}

static void finish(void)
{
    stk_file_set_remove(&set);
    stk_test_check_leaks();
}

TestSuite(kept_faults, .init = begin, .fini = finish);

Test(kept_faults, each_allocation_and_lock_fails_once)
{
    static const stoker_device devices[] = { STOKER_DEVICE_CPU, STOKER_DEVICE_CUDA_HOST,
                                             STOKER_DEVICE_CUDA };
    for (int i = 0; i < 3; i++)
        for (int locks = 0; locks <= (i == 0); locks++) {
            stoker_loader_options options = options_of(devices[i]);
            options.pin_memory = locks == 1 ? STOKER_SWITCH_ON : STOKER_SWITCH_AUTO;
            uint64_t nth = 1;
            while (fail_nth(&options, locks == 1 ? STK_FAULT_LOCK : STK_FAULT_MEMORY, nth))
                cr_assert_lt(nth++, 500U);
            cr_assert_gt(nth, 10U);
        }
}

/* Each call of the CUDA runtime once the ring is lent: the call that allocates or registers may
 * fail without harm; any other ends the run, as always. */
Test(kept_faults, each_cuda_call_fails_once)
{
    static const stoker_device devices[] = { STOKER_DEVICE_CUDA_HOST, STOKER_DEVICE_CUDA };
    uint32_t busy = 0, went_on = 0;
    for (int i = 0; i < 2; i++) {
        const stoker_loader_options options = options_of(devices[i]);
        for (uint64_t nth = 1; nth <= CALLS; nth++) {
            stoker_loader *loader = make(&options);
            standin_cuda_fail(nth, cudaErrorMemoryAllocation, false);
            stk_keep_all(loader, &kept, BATCHES);
            cr_assert(kept.rc == STOKER_OK || kept.rc == STOKER_BUSY || kept.rc == STOKER_EDEVICE,
                      "%s", stoker_error_name(kept.rc));
            busy += kept.rc == STOKER_BUSY;
            if (kept.rc == STOKER_BUSY) {
                cr_assert_null(stoker_loader_error(loader));
                stk_keep_all(loader, &kept, BATCHES);
                /* cudaGetDevice failed before the allocation: that is the device's, and ends the
                 * run. */
                cr_assert(kept.count == BATCHES || kept.rc == STOKER_EDEVICE);
                went_on += kept.count == BATCHES;
                if (kept.count == BATCHES)
                    expect_the_bytes();
            }
            end(loader);
        }
    }
    cr_assert_gt(busy, 10U);
    cr_assert_gt(went_on, 10U);
}
