/* test_batches.c - batches on a GPU, and the streams that read them: page-locked slots, waits,
 * holding and releasing; on the stand-in, whose copies are late and whose memory the host cannot
 * touch.
 */
#include <signal.h>
#include <stdatomic.h>

#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"

enum { SAMPLES = 150, WORK_US = 300 };

static struct stk_file_set set;
static struct stk_run expected;
static struct stk_run found;
static struct stk_cuda_consumer consumer;

static void begin(void)
{
    standin_cuda_reset(1);
    cr_assert(stk_file_set_make(&set, SAMPLES, 4, 5, 3));
}

static void finish(void)
{
    stk_file_set_remove(&set);
    standin_cuda_reset(1); /* ends the default streams */
    cr_assert_eq(standin_cuda_live(), 0, "%lld left on the device", (long long)standin_cuda_live());
    stk_test_check_leaks();
}

TestSuite(cuda_loader, .init = begin, .fini = finish);

static stoker_loader_options cuda_options(void)
{
    return stk_small_options(.device = STOKER_DEVICE_CUDA);
}

static void expect_same(const stoker_dataset *dataset, stoker_loader_options options)
{
    (void)stk_cuda_run(dataset, &options, WORK_US, &found);
    options.device = STOKER_DEVICE_CPU;
    if (options.pin_memory == STOKER_SWITCH_ON)
        options.pin_memory = STOKER_SWITCH_AUTO; /* irrelevant for the run on the CPU */
    (void)stk_run(dataset, &options, &expected);
    cr_assert_gt(expected.batches, 0);
    cr_assert(
        stk_runs_equal(&expected, &found),
        "pin %d non_blocking %d workers %d batch %u prefetch %u cache %d: %s after %u batches",
        (int)options.pin_memory, options.non_blocking, (int)options.num_workers, options.batch_size,
        options.prefetch_batches, (int)options.cache, stoker_error_name(found.rc), found.batches);
    cr_assert_eq(standin_cuda_violations(), 0U);
}

Test(cuda_loader, a_batch_stays_until_its_stream_has_read_it)
{
    stoker_loader_options options = cuda_options();
    standin_cuda_delay(50);
    for (uint32_t i = 0; i < 16; i++) {
        options.pin_memory = i % 2 == 0 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
        options.non_blocking = i / 2 % 2 == 0;
        options.num_workers = i / 4 % 2 == 0 ? 0 : 3;
        options.prefetch_batches = i / 8 == 0 ? 2 : 5;
        expect_same(set.dataset, options);
    }
}

/* ---- page-locking and waits ---- */

static stoker_loader *make(stoker_loader_options options)
{
    return loader_of(set.dataset, &options);
}

Test(cuda_loader, slots_are_page_locked_unless_that_is_off)
{
    for (int pin = STOKER_SWITCH_AUTO; pin <= STOKER_SWITCH_OFF; pin++) {
        stoker_loader_options options = cuda_options();
        options.pin_memory = (stoker_switch)pin;
        standin_cuda_reset(1);
        stoker_loader *loader = make(options);
        stoker_stats stats = stats_of(loader);
        cr_assert_eq(stats.pinned, pin != STOKER_SWITCH_OFF);
        const uint64_t slots = pin != STOKER_SWITCH_OFF ? stats.slot_bytes : 0;
        /* io_uring may register the scratch, and slots that are not page-locked yet. */
        cr_assert_geq(stats.locked_bytes, slots);
        cr_assert_leq(stats.locked_bytes, stats.slot_bytes + stats.scratch_bytes);
        stk_run_on(loader, &found, 0);
        stoker_batch batch = next_batch(loader);
        stoker_batch_release(&batch);
        cr_assert_eq(standin_cuda_staged() > 0, pin == STOKER_SWITCH_OFF);
        stoker_loader_destroy(&loader);
    }
}

Test(cuda_loader, a_failure_to_page_lock_is_loud)
{
    for (int pin = STOKER_SWITCH_AUTO; pin <= STOKER_SWITCH_ON; pin++) {
        stoker_loader *loader = NULL;
        stoker_loader_options options = cuda_options();
        stoker_error error = { .code = 0 };
        options.pin_memory = (stoker_switch)pin;
        standin_cuda_reset(1);
        /* The calls of open come first; then the slots are page-locked. */
        uint64_t nth = 1;
        int rc;
        for (rc = STOKER_EDEVICE; rc == STOKER_EDEVICE || rc == STOKER_OK; nth++) {
            cr_assert_lt(nth, 100);
            stoker_loader_destroy(&loader); /* made without what was not found */
            standin_cuda_fail(nth, cudaErrorMemoryAllocation, false);
            rc = stoker_loader_create(&loader, set.dataset, &options, &error);
        }
        cr_assert_eq(rc, STOKER_EPIN, "%s", stoker_error_name(rc));
        cr_assert_null(loader);
        cr_assert(strstr(error.message, "cudaHostRegister of ") != NULL, "%s", error.message);
        cr_assert(strstr(error.message, "out of memory") != NULL, "%s", error.message);
    }
}

Test(cuda_loader, blocking_next_returns_a_batch_that_is_there)
{
    stoker_loader_options options = cuda_options();
    options.non_blocking = false;
    options.shuffle = false;
    standin_cuda_delay(2000);
    stoker_loader *loader = make(options);
    for (uint64_t i = 0; i < 4; i++) {
        stoker_batch batch = next_batch(loader);
        stoker_batch seen = batch;
        seen.images.data = standin_cuda_view(batch.images.data);
        seen.labels.data = standin_cuda_view(batch.labels.data);
        cr_assert(stk_file_set_matches(&set, &seen));
        cr_assert_eq(stats_of(loader).copies, i + 1); /* none ahead */
        stoker_batch_release(&batch);
    }
    cr_assert_eq(stats_of(loader).copy_waits, 4U);
    stoker_loader_destroy(&loader);
}

Test(cuda_loader, batches_are_copied_ahead)
{
    stoker_loader_options options = cuda_options();
    options.prefetch_batches = 5;
    options.num_workers = 1;
    stoker_loader *loader = make(options);
    stoker_batch batch = next_batch(loader);
    /* The workers fill the ring by themselves; of what was ready early, more was sent already. */
    while (stats_of(loader).slots_ready + stats_of(loader).copies < 5)
        (void)usleep(100);
    stoker_batch other = next_batch(loader);
    cr_assert_eq(stats_of(loader).copies, 5U, "%llu",
                 (unsigned long long)stats_of(loader).copies); /* as many as there are buffers */
    cr_assert_eq(stats_of(loader).copy_waits, 0U);
    stoker_batch_release(&other);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

static void host_reads(void)
{
    stoker_loader *loader = make(cuda_options());
    stoker_batch batch = next_batch(loader);
    cr_assert_eq(batch.device, STOKER_DEVICE_CUDA);
    const volatile uint8_t *image = batch.images.data;
    (void)*image;
}

#ifndef STK_TEST_ASAN /* which ends the program its own way */
Test(cuda_loader, the_host_cannot_touch_a_batch, .signal = SIGSEGV)
{
    host_reads();
}
#else
Test(cuda_loader, the_host_cannot_touch_a_batch, .disabled = true)
{
    host_reads();
}
#endif

/* ---- holding, releasing ---- */

Test(cuda_loader, batches_may_be_held_and_released_in_any_order)
{
    enum { HELD = 4 };
    stoker_loader_options options = cuda_options();
    options.prefetch_batches = HELD + 1;
    options.epochs = STOKER_EPOCHS_ENDLESS;
    (void)stk_cuda_consumer_init(&consumer, WORK_US);
    stoker_loader *loader = make(options);
    for (int round = 0; round < 6; round++) {
        stoker_batch held[HELD];
        stk_batches_begin(held, HELD);
        uint64_t hashes[HELD];
        for (int i = 0; i < HELD; i++) {
            int rc = stoker_loader_next(loader, &held[i], -1);
            if (rc == STOKER_EPOCH_END)
                rc = stoker_loader_next(loader, &held[i], -1);
            cr_assert_eq(rc, STOKER_OK);
            cr_assert_eq(stoker_batch_wait_on(&held[i], consumer.stream), STOKER_OK);
            stk_cuda_launch(&consumer, &held[i], &hashes[i]);
        }
        stk_cuda_consumer_wait(&consumer);
        for (int i = 0; i < HELD; i++) {
            const int which = (i * 3 + round) % HELD;
            stoker_batch copy = held[which];
            stk_cuda_run_kernel(&(struct stk_cuda_kernel){ .batch = copy, .hash = &hashes[0] });
            cr_assert_eq(stoker_batch_release_on(&held[which], consumer.stream), STOKER_OK);
            cr_assert_null(held[which].loader);
            cr_assert_eq(stoker_batch_wait_on(&copy, consumer.stream), STOKER_EINVAL);
            stoker_batch_release(&copy); /* a second time: nothing happens */
        }
    }
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
}

Test(cuda_loader, a_held_batch_makes_next_busy)
{
    stoker_loader_options options = cuda_options();
    options.prefetch_batches = 2;
    stoker_loader *loader = make(options);
    stoker_batch first = STOKER_BATCH_INIT;
    stoker_batch second = STOKER_BATCH_INIT;
    stoker_batch third = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &first, -1), STOKER_OK);
    cr_assert_eq(stoker_loader_next(loader, &second, -1), STOKER_OK);
    cr_assert_eq(stoker_loader_next(loader, &third, -1), STOKER_BUSY);
    stoker_batch_release(&first);
    cr_assert_eq(stoker_loader_next(loader, &third, -1), STOKER_OK);
    stoker_batch_release(&third);
    stoker_batch_release(&second);
    stoker_loader_destroy(&loader);
}

/* ---- a consumer that pauses ---- */

static _Atomic bool gate_open;

static void wait_at_gate(void *argument)
{
    (void)argument;
    while (!atomic_load(&gate_open))
        (void)usleep(100);
}

Test(cuda_loader, next_keeps_its_time_limit_while_the_gpu_is_stuck)
{
    stoker_loader_options options = cuda_options();
    options.prefetch_batches = 2;
    options.epochs = STOKER_EPOCHS_ENDLESS;
    for (int32_t workers = 0; workers <= 1; workers++) {
        options.num_workers = workers;
        atomic_store(&gate_open, false);
        (void)stk_cuda_consumer_init(&consumer, 0);
        stoker_loader *loader = make(options);
        cr_assert_eq(cudaLaunchHostFunc(consumer.stream, wait_at_gate, NULL), cudaSuccess);
        stoker_batch batch = STOKER_BATCH_INIT;
        int rc = STOKER_OK;
        for (int i = 0; i < 100 && rc != STOKER_TIMEOUT; i++) {
            rc = stoker_loader_next(loader, &batch, 20);
            if (rc == STOKER_OK)
                cr_assert_eq(stoker_batch_release_on(&batch, consumer.stream), STOKER_OK);
        }
        cr_assert_eq(rc, STOKER_TIMEOUT);
        atomic_store(&gate_open, true);
        do
            rc = stoker_loader_next(loader, &batch, 20);
        while (rc == STOKER_TIMEOUT || rc == STOKER_EPOCH_END);
        cr_assert_eq(rc, STOKER_OK);
        stoker_batch_release(&batch);
        stk_cuda_consumer_wait(&consumer);
        stoker_loader_destroy(&loader);
        stk_cuda_consumer_destroy(&consumer);
    }
}

Test(cuda_loader, destroy_waits_for_what_is_under_way)
{
    stoker_loader_options options = cuda_options();
    options.epochs = STOKER_EPOCHS_ENDLESS;
    standin_cuda_delay(3000);
    for (int taken = 0; taken < 6; taken++) {
        stoker_batch batches[6];
        stoker_loader *loader = make(options);
        for (int i = 0; i < taken; i++) {
            batches[i] = (stoker_batch)STOKER_BATCH_INIT;
            cr_assert_eq(stoker_loader_next(loader, &batches[i], -1), STOKER_OK);
            if (i % 2 == 0)
                stoker_batch_release(&batches[i]);
        }
        stoker_loader_destroy(&loader);
        for (int i = 0; i < taken; i++) /* some outlive it */
            stoker_batch_release(&batches[i]);
        cr_assert_eq(standin_cuda_violations(), 0U);
    }
}

/* ---- several devices ---- */

Test(cuda_loader, loaders_on_several_devices_leave_the_current_one_alone)
{
    stoker_loader *loaders[2];
    stoker_loader_options options = cuda_options();
    cudaStream_t streams[2];
    standin_cuda_reset(3);
    for (int i = 0; i < 2; i++) {
        options.device_index = 2U - (uint32_t)i;
        cr_assert_eq(cudaSetDevice((int)options.device_index), cudaSuccess);
        cr_assert_eq(cudaStreamCreateWithFlags(&streams[i], 0), cudaSuccess);
        cr_assert_eq(cudaSetDevice(0), cudaSuccess);
        loaders[i] = make(options);
    }
    cr_assert_str_eq(stats_of(loaders[0]).device, "cuda:2");
    for (int turn = 0; turn < 8; turn++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        int current = -1;
        const int rc = stoker_loader_next(loaders[turn % 2], &batch, -1);
        cr_assert_eq(rc, STOKER_OK);
        cr_assert_eq(batch.device_index, 2U - (uint32_t)turn % 2);
        cr_assert_eq(stoker_batch_wait_on(&batch, streams[turn % 2]), STOKER_OK);
        if (turn < 4)
            cr_assert_eq(stoker_batch_release_on(&batch, streams[turn % 2]), STOKER_OK);
        else
            stoker_batch_release(&batch);
        cr_assert_eq(cudaGetDevice(&current), cudaSuccess);
        cr_assert_eq(current, 0);
    }
    for (int i = 0; i < 2; i++) {
        stoker_loader_destroy(&loaders[i]);
        cr_assert_eq(cudaStreamDestroy(streams[i]), cudaSuccess);
    }
}

/* The default stream is that of the current device: the loader's while it is asked. */
Test(cuda_loader, the_default_stream_is_that_of_the_loaders_device)
{
    stoker_loader_options options = cuda_options();
    standin_cuda_reset(2);
    options.device_index = 1;
    stoker_loader *loader = make(options);
    stoker_batch batch = next_batch(loader);
    cr_assert_eq(stoker_batch_wait_on(&batch, NULL), STOKER_OK);
    cr_assert_eq(stoker_batch_release_on(&batch, NULL), STOKER_OK);
    stoker_loader_destroy(&loader);
}
