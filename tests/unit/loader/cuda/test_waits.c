/* test_waits.c - where the host waits for a GPU it sleeps; it spins for a short time if a core is
 * spare. */
#include <pthread.h>

#include "loader/base/clock.h"
#include "loader/device/device.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"

static struct stk_device *device;
static cudaStream_t stream;
static void *event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool gate_is_open; /* guarded by lock */

static void begin(void)
{
    char why[STK_DEVICE_WHY_BYTES];
    standin_cuda_reset(1);
    cr_assert_eq(stk_device_cuda.open(&device, 0, why), 0, "%s", why);
    event = device->ops->event_create(device, why);
    cr_assert_not_null(event);
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    standin_cuda_own_calls(false);
    gate_is_open = false;
}

static void finish(void)
{
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaStreamDestroy(stream), cudaSuccess);
    standin_cuda_own_calls(false);
    device->ops->event_destroy(device, event);
    stk_device_close(device);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(cuda_waits, .init = begin, .fini = finish);

static void wait_for_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!gate_is_open)
        pthread_cond_wait(&opened, &lock);
    pthread_mutex_unlock(&lock);
}

static void *open_gate(void *unused)
{
    (void)unused;
    (void)usleep(3000);
    pthread_mutex_lock(&lock);
    gate_is_open = true;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The event is done once the gate is open. */
static void mark_behind_gate(void)
{
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaLaunchHostFunc(stream, wait_for_gate, NULL), cudaSuccess);
    standin_cuda_own_calls(false);
    char why[STK_DEVICE_WHY_BYTES];
    cr_assert_eq(device->ops->mark_on(device, event, stream, why), 0);
}

Test(cuda_waits, without_a_spare_core_the_host_sleeps)
{
    pthread_t opener;
    mark_behind_gate();
    cr_assert_eq(pthread_create(&opener, NULL, open_gate, NULL), 0);
    cr_assert_eq(device->ops->wait(device, event, UINT64_MAX, false), 1);
    const struct standin_cuda_host host = standin_cuda_host();
    cr_assert_eq(host.waits, 1);
    cr_assert_eq(host.spins, 0);
    cr_assert_eq(host.looks, 0);
    cr_assert_eq(pthread_join(opener, NULL), 0);
}

/* A wait with an end looks now and then. */
Test(cuda_waits, a_wait_with_an_end_naps_between_looks)
{
    pthread_t opener;
    mark_behind_gate();
    cr_assert_eq(device->ops->wait(device, event, stk_now_ns() + 1000000, false), 0);
    const struct standin_cuda_host host = standin_cuda_host();
    cr_assert_eq(host.waits, 0);
    cr_assert_gt(host.looks, 0);
    cr_assert_lt(host.looks, 40); /* naps last at least 5, 10, 20, 40 and then 50 us */
    cr_assert_eq(device->ops->wait(device, event, 0, false), 0);
    cr_assert_eq(pthread_create(&opener, NULL, open_gate, NULL), 0);
    cr_assert_eq(device->ops->wait(device, event, UINT64_MAX, false), 1);
    cr_assert_eq(pthread_join(opener, NULL), 0);
}

Test(cuda_waits, with_a_spare_core_it_spins_first_and_then_sleeps)
{
    pthread_t opener;
    mark_behind_gate();
    cr_assert_eq(pthread_create(&opener, NULL, open_gate, NULL), 0);
    cr_assert_eq(device->ops->wait(device, event, UINT64_MAX, true), 1);
    const struct standin_cuda_host host = standin_cuda_host();
    cr_assert_eq(host.spins, 0); /* CUDA's own wait never spins */
    cr_assert_leq(host.waits, 1);
    cr_assert_eq(pthread_join(opener, NULL), 0);
    cr_assert_eq(device->ops->wait(device, event, 0, true), 1);
    cr_assert_eq(device->ops->wait(device, event, UINT64_MAX, true), 1);
}

/* Whole runs, with more workers than CPUs: waits, and none that takes a core. */
Test(cuda_waits, a_loader_without_a_spare_core_takes_none)
{
    static struct stk_run run;
    struct stk_file_set set;
    stoker_loader_options options = stk_small_options(.device = STOKER_DEVICE_CUDA);
    cr_assert(stk_file_set_make(&set, 100, 4, 5, 3));
    options.num_workers = (int32_t)sysconf(_SC_NPROCESSORS_ONLN) + 1;
    options.non_blocking = false;
    standin_cuda_delay(500);
    cr_assert_eq(stk_cuda_run(set.dataset, &options, 100, &run), STOKER_FINISHED);
    const struct standin_cuda_host host = standin_cuda_host();
    cr_assert_geq(host.waits, run.batches);
    cr_assert_eq(host.spins, 0);
    stk_file_set_remove(&set);
}
