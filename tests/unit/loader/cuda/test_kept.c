/* test_kept.c - batches that the caller keeps while the ring comes round to them: options.on_lent,
 * in host memory, in page-locked memory and on the stand-in's GPU.
 */
#include <pthread.h>

#include "loader/api/lend/dlpack_layout.h"
#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"
#include "support/runs/kept_batches.h"
#include "support/runs/memory_limit.h"
#include "support/runs/opened_loader.h"

enum { SAMPLES = 600, BATCH = 5, BATCHES = SAMPLES / BATCH };

static const stoker_device devices[] = { STOKER_DEVICE_CPU, STOKER_DEVICE_CUDA_HOST,
                                         STOKER_DEVICE_CUDA };
enum { DEVICES = 3 };

static struct stk_file_set set;
static struct stk_cuda_consumer consumer;
static struct stk_run plain;
static struct stk_kept_run kept;

static void begin(void)
{
    kept.timeout_ms = 20000; /* a hang ends as a failure */
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    cr_assert(stk_file_set_make(&set, SAMPLES, 4, 5, 3));
    cr_assert(stk_cuda_consumer_init(&consumer, 10));
}

static void finish(void)
{
    stk_cuda_consumer_destroy(&consumer);
    stk_file_set_remove(&set);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0U);
    stk_test_check_leaks();
}

TestSuite(kept, .init = begin, .fini = finish);

static stoker_loader_options options_of(stoker_device device, stoker_on_lent policy)
{
    return stk_small_options(.device = device, .batch_size = BATCH, .prefetch_batches = 4,
                             .num_workers = 2, .epochs = 1, .on_lent = policy);
}

static stoker_loader *make(stoker_loader_options options)
{
    kept.count = 0;
    return loader_of(set.dataset, &options);
}

/* What a run that keeps nothing delivers. */
static void run_plain(stoker_loader_options options)
{
    options.device = STOKER_DEVICE_CPU;
    options.convert_on_device = STOKER_SWITCH_OFF;
    options.cache = STOKER_CACHE_NONE;
    options.on_lent = STOKER_ON_LENT_BUSY;
    cr_assert_eq(stk_run(set.dataset, &options, &plain), STOKER_FINISHED);
}

static void expect_kept(uint32_t count)
{
    cr_assert_eq(kept.count, count);
    cr_assert(stk_kept_are_apart(&kept));
    stk_hash_kept(&kept, &consumer);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(kept.hashes[i], plain.hashes[i], "batch %u", i);
}

static void release_all(void)
{
    for (uint32_t i = 0; i < kept.count; i++)
        stoker_batch_release(&kept.batches[i]);
    kept.count = 0;
}

static void keep_an_epoch(stoker_loader_options options)
{
    run_plain(options);
    stoker_loader *loader = make(options);
    stk_keep_all(loader, &kept, UINT32_MAX);
    cr_assert_eq(kept.rc, STOKER_FINISHED, "%s", stoker_error_name(kept.rc));
    expect_kept(BATCHES);
    const stoker_stats stats = stats_of(loader);
    cr_assert_geq(stats.lent_slots, BATCHES - 4U);
    cr_assert_leq(stats.lent_slots, (uint32_t)BATCHES);
    cr_assert_gt(stats.lent_bytes, 0U);
    cr_assert_str_eq(stats.lent_reason, "");
    if (options.device == STOKER_DEVICE_CUDA_HOST)
        for (uint32_t i = 0; i < kept.count; i++)
            cr_assert_eq(standin_cuda_pinned_with(kept.batches[i].images.data), 0);
    release_all();
    stoker_loader_destroy(&loader);
}

Test(kept, an_epoch_stays_readable_until_its_end)
{
    for (int i = 0; i < DEVICES; i++)
        for (int32_t workers = 0; workers <= 3; workers += 3)
            for (uint32_t slots = 2; slots <= 9; slots += 7) {
                stoker_loader_options options = options_of(devices[i], STOKER_ON_LENT_GROW);
                options.num_workers = workers;
                options.prefetch_batches = slots;
                options.non_blocking = slots == 2;
                run_plain(options);
                stoker_loader *loader = make(options);
                stk_keep_all(loader, &kept, UINT32_MAX);
                cr_assert_eq(kept.rc, STOKER_FINISHED, "%s", stoker_error_name(kept.rc));
                expect_kept(BATCHES);
                release_all();
                stoker_loader_destroy(&loader);
            }
}

Test(kept, stats_report_what_was_allocated)
{
    for (int i = 0; i < DEVICES; i++)
        keep_an_epoch(options_of(devices[i], STOKER_ON_LENT_GROW));
}

Test(kept, converted_on_the_gpu_and_gathered_there)
{
    if (!stk_cuda_kernels_built())
        return;
    standin_cuda_use_kernels();
    stoker_loader_options options = options_of(STOKER_DEVICE_CUDA, STOKER_ON_LENT_GROW);
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.convert_on_device = STOKER_SWITCH_ON;
    keep_an_epoch(options);
    options.cache = STOKER_CACHE_DEVICE;
    keep_an_epoch(options);
}

/* Nothing is copied: the memory that the caller saw stays at its address, and other memory enters
 * the ring. */
Test(kept, no_batch_moves)
{
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader *loader = make(options_of(devices[i], STOKER_ON_LENT_GROW));
        const void *images[BATCHES];
        stoker_batch batch = STOKER_BATCH_INIT;
        for (uint32_t k = 0; k < BATCHES; k++) {
            stk_keep_all(loader, &kept, k + 1);
            images[k] = kept.batches[k].images.data;
        }
        for (uint32_t k = 0; k < BATCHES; k++)
            cr_assert_eq(kept.batches[k].images.data, images[k]);
        cr_assert_eq(stoker_loader_next(loader, &batch, kept.timeout_ms), STOKER_EPOCH_END);
        release_all();
        stoker_loader_destroy(&loader);
    }
}

/* A caller that keeps a few batches for a while needs a few spares, however long it runs. */
Test(kept, returned_memory_is_used_again)
{
    enum { HELD = 7 };
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader_options options = options_of(devices[i], STOKER_ON_LENT_GROW);
        options.epochs = 5;
        run_plain(options);
        stoker_loader *loader = make(options);
        stoker_batch held[HELD] = { { .count = 0 } };
        stoker_batch batch = STOKER_BATCH_INIT;
        uint64_t hashes[5 * BATCHES];
        int rc;
        for (uint32_t k = 0;
             (rc = stoker_loader_next(loader, &batch, kept.timeout_ms)) != STOKER_FINISHED;) {
            if (rc == STOKER_EPOCH_END)
                continue;
            cr_assert_eq(rc, STOKER_OK, "%s", stoker_error_name(rc));
            if (batch.device == STOKER_DEVICE_CUDA) {
                cr_assert_eq(stoker_batch_wait_on(&batch, consumer.stream), STOKER_OK);
                stk_cuda_launch(&consumer, &batch, &hashes[k]);
            } else {
                hashes[k] = stk_batch_hash(&batch);
            }
            stoker_batch_release(&held[k % HELD]);
            held[k++ % HELD] = batch;
            batch = (stoker_batch)STOKER_BATCH_INIT;
        }
        stk_cuda_consumer_wait(&consumer);
        cr_assert_arr_eq(hashes, plain.hashes, sizeof(hashes));
        cr_assert_leq(stats_of(loader).lent_slots, HELD + 4U);
        stoker_loader_destroy(&loader); /* with batches lent */
        for (int k = 0; k < HELD; k++)
            stoker_batch_release(&held[k]);
    }
}

Test(kept, a_caller_that_keeps_nothing_allocates_nothing)
{
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader *loader = make(options_of(devices[i], STOKER_ON_LENT_GROW));
        stoker_batch batch = STOKER_BATCH_INIT;
        int rc;
        cr_assert_eq(stoker_loader_next(loader, &batch, kept.timeout_ms), STOKER_OK);
        stoker_batch_release(&batch);
        const int64_t live = stk_fault_live_bytes();
        while ((rc = stoker_loader_next(loader, &batch, kept.timeout_ms)) == STOKER_OK)
            stoker_batch_release(&batch);
        cr_assert_eq(rc, STOKER_EPOCH_END);
        cr_assert_eq(stk_fault_live_bytes(), live);
        cr_assert_eq(stats_of(loader).lent_slots, 0U);
        stoker_loader_destroy(&loader);
    }
}

/* ---- the end of the budget ---- */

Test(kept, the_budget_ends_in_busy_and_a_release_goes_on)
{
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader_options options = options_of(devices[i], STOKER_ON_LENT_GROW);
        const uint64_t kept_bytes = devices[i] == STOKER_DEVICE_CUDA ? 8192 : 65536;
        kept.timeout_ms = 20;
        run_plain(options);
        stk_limit_kept(set.dataset, &options, kept_bytes);
        stoker_loader *loader = make(options);
        stk_keep_all(loader, &kept, UINT32_MAX);
        cr_assert_eq(kept.rc, STOKER_BUSY, "%s", stoker_error_name(kept.rc));
        cr_assert_gt(kept.count, 4U);
        cr_assert_lt(kept.count, (uint32_t)BATCHES);
        expect_kept(kept.count);
        stoker_stats stats = stats_of(loader);
        cr_assert_lt(stats.lent_bytes, options.memory_bytes);
        cr_assert_leq(stats.memory_bytes, stats.memory_bytes_max);
        cr_assert_eq(stats.memory_bytes_max, options.memory_bytes);
        cr_assert(strstr(stats.lent_reason, "what memory_bytes leaves") != NULL, "%s",
                  stats.lent_reason);
        cr_assert_null(stoker_loader_error(loader));
        stoker_batch copy = kept.batches[1];
        stoker_batch_release(&kept.batches[1]); /* outside of the ring: any will do */
        stoker_batch_release(&copy);            /* a second time: nothing happens */
        const uint32_t before = kept.count;
        stk_keep_all(loader, &kept, UINT32_MAX);
        cr_assert_eq(kept.rc, STOKER_BUSY);
        cr_assert_eq(kept.count, before + 1);
        release_all();
        stk_keep_all(loader, &kept, before);
        cr_assert_eq(kept.count, before);
        release_all();
        stoker_loader_destroy(&loader);
    }
}

Test(kept, busy_and_auto_do_not_wait)
{
    static const stoker_on_lent policies[] = { STOKER_ON_LENT_BUSY, STOKER_ON_LENT_AUTO };
    for (int i = 0; i < DEVICES; i++)
        for (int p = 0; p < 2; p++) {
            stoker_loader_options options = options_of(devices[i], policies[p]);
            kept.timeout_ms = -1;
            stoker_loader *loader = make(options);
            stk_keep_all(loader, &kept, UINT32_MAX);
            cr_assert_eq(kept.rc, STOKER_BUSY);
            cr_assert_eq(kept.count, 4U);
            cr_assert_eq(stats_of(loader).lent_slots, 0U);
            stoker_batch_release(&kept.batches[0]);
            cr_assert_eq(stoker_loader_next(loader, &kept.batches[0], kept.timeout_ms), STOKER_OK);
            release_all();
            stoker_loader_destroy(&loader);
        }
}

static void *release_late(void *batch)
{
    (void)usleep(20000);
    stoker_batch_release(batch);
    return NULL;
}

Test(kept, wait_sleeps_until_another_thread_releases)
{
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader *loader = make(options_of(devices[i], STOKER_ON_LENT_WAIT));
        pthread_t thread;
        stk_keep_all(loader, &kept, 4);
        cr_assert_eq(kept.count, 4U);
        cr_assert_eq(pthread_create(&thread, NULL, release_late, &kept.batches[0]), 0);
        stoker_batch batch = STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_next(loader, &batch, kept.timeout_ms), STOKER_OK);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_assert_gt(stats_of(loader).stall_ns, 1000000U);
        stoker_batch_release(&batch);
        release_all();
        stoker_loader_destroy(&loader);
    }
}

Test(kept, wait_ends_at_the_timeout)
{
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader_options options = options_of(devices[i], STOKER_ON_LENT_WAIT);
        kept.timeout_ms = 15;
        stoker_loader *loader = make(options);
        const uint64_t start_ns = stk_now_ns();
        stk_keep_all(loader, &kept, UINT32_MAX);
        cr_assert_eq(kept.rc, STOKER_BUSY);
        cr_assert_eq(kept.count, 4U);
        cr_assert_geq(stk_now_ns() - start_ns, 15000000U);
        release_all();
        stk_keep_all(loader, &kept, 4);
        cr_assert_eq(kept.count, 4U);
        release_all();
        stoker_loader_destroy(&loader);
    }
}

/* ---- DLPack ---- */

static DLManagedTensorVersioned *tensor_of(const stoker_batch *batch)
{
    DLManagedTensorVersioned *tensor = NULL;
    cr_assert_eq(stoker_batch_to_dlpack(batch, STOKER_TENSOR_IMAGES, consumer.stream, &tensor),
                 STOKER_OK);
    return tensor;
}

/* As a notebook does: list(loader). */
Test(kept, tensors_of_an_epoch_live_without_any_option)
{
    static DLManagedTensorVersioned *tensors[BATCHES];
    for (int i = 0; i < DEVICES; i++)
        for (int released = 0; released <= 1; released++) {
            stoker_loader_options options = options_of(devices[i], STOKER_ON_LENT_AUTO);
            run_plain(options);
            stoker_loader *loader = make(options);
            stoker_batch copies[BATCHES];
            for (uint32_t k = 0; k < BATCHES; k++) {
                stk_keep_all(loader, &kept, k + 1);
                cr_assert_eq(kept.count, k + 1);
                tensors[k] = tensor_of(&kept.batches[k]);
                copies[k] = kept.batches[k];
                if (released == 1)
                    stoker_batch_release(&kept.batches[k]);
            }
            if (released == 0) {
                expect_kept(BATCHES);
            } else if (devices[i] != STOKER_DEVICE_CUDA) {
                for (uint32_t k = 0; k < BATCHES; k++)
                    cr_assert_eq(stk_batch_hash(&copies[k]), plain.hashes[k]);
            }
            if (released == 0 && i == 0)
                release_all();
            kept.count = 0;
            if (i == 1)
                stoker_loader_destroy(&loader); /* they outlive it */
            for (uint32_t k = 0; k < BATCHES; k++)
                tensors[k]->deleter(tensors[k]);
            for (uint32_t k = 0; released == 0 && i > 0 && k < BATCHES; k++)
                stoker_batch_release(&copies[k]);
            stoker_loader_destroy(&loader);
        }
}

static void *delete_late(void *tensor)
{
    DLManagedTensorVersioned *managed = tensor;
    (void)usleep(20000);
    managed->deleter(managed);
    return NULL;
}

Test(kept, a_deleter_in_another_thread_ends_the_wait)
{
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader *loader = make(options_of(devices[i], STOKER_ON_LENT_WAIT));
        pthread_t thread;
        stk_keep_all(loader, &kept, 4);
        DLManagedTensorVersioned *tensor = tensor_of(&kept.batches[0]);
        stoker_batch_release(&kept.batches[0]);
        cr_assert_eq(pthread_create(&thread, NULL, delete_late, tensor), 0);
        stoker_batch batch = STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_next(loader, &batch, kept.timeout_ms), STOKER_OK);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        stoker_batch_release(&batch);
        release_all();
        stoker_loader_destroy(&loader);
    }
}

Test(kept, auto_says_busy_when_its_budget_is_used_up)
{
    DLManagedTensorVersioned *tensors[BATCHES];
    for (int i = 0; i < DEVICES; i++) {
        stoker_loader_options options = options_of(devices[i], STOKER_ON_LENT_AUTO);
        stk_limit_kept(set.dataset, &options, 1); /* less than one slot */
        kept.timeout_ms = -1;
        stoker_loader *loader = make(options);
        stoker_batch batch = STOKER_BATCH_INIT;
        uint32_t held = 0;
        int rc;
        while ((rc = stoker_loader_next(loader, &batch, kept.timeout_ms)) == STOKER_OK) {
            tensors[held++] = tensor_of(&batch);
            stoker_batch_release(&batch);
        }
        cr_assert_eq(rc, STOKER_BUSY);
        cr_assert_geq(held, 4U);
        tensors[0]->deleter(tensors[0]);
        cr_assert_eq(stoker_loader_next(loader, &batch, kept.timeout_ms), STOKER_OK);
        stoker_batch_release(&batch);
        for (uint32_t k = 1; k < held; k++)
            tensors[k]->deleter(tensors[k]);
        stoker_loader_destroy(&loader);
    }
}

Test(kept, an_unknown_policy_is_refused)
{
    stoker_loader_options options = options_of(STOKER_DEVICE_CPU, (stoker_on_lent)4);
    stoker_error error = { .code = 0 };
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_EINVAL);
    cr_assert(strstr(error.message, "on_lent 4") != NULL, "%s", error.message);
}
