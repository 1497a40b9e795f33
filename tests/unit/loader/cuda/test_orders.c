/* test_orders.c - weights and views on a GPU: the batches are those of the CPU, also if the rows
 * stay in GPU memory, where a sample that comes twice in one batch is kept once.
 */
#include <criterion/criterion.h>

#include "support/cuda_kernels.h"
#include "support/cuda_run.h"
#include "support/leaks.h"

enum { SAMPLES = 60 };

static struct stk_file_set set;
static struct stk_run expected;
static struct stk_run found;

static void begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_kernels(NULL);
    standin_cuda_delay(30);
    cr_assert(stk_file_set_make(&set, SAMPLES, 4, 5, 3));
    standin_cuda_use_kernels();
}

static void finish(void)
{
    stk_file_set_remove(&set);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0, "%lld left on the device", (long long)standin_cuda_live());
    stk_test_check_leaks();
}

TestSuite(cuda_orders, .init = begin, .fini = finish);

/* Workers, caches, random transforms and types. */
static void check_everywhere(const stoker_dataset *dataset, const stoker_order *order)
{
    static const int32_t workers[] = { 0, 1, 3, STOKER_WORKERS_AUTO };
    static const stoker_cache caches[] = { STOKER_CACHE_DEVICE, STOKER_CACHE_NONE,
                                           STOKER_CACHE_DECODED };
    for (int i = 0; i < 24; i++) {
        stoker_loader_options options = stk_small_options();
        options.epochs = 3;
        options.order = order;
        options.device = STOKER_DEVICE_CUDA;
        options.num_workers = workers[i % 4];
        options.cache = caches[i % 3];
        if (options.cache == STOKER_CACHE_DEVICE && !stk_cuda_kernels_built())
            continue;
        options.non_blocking = i / 12 == 0;
        options.dtype = i % 2 == 0 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_FLOAT32;
        options.transform.flip = i / 4 % 2 == 0;
        (void)stk_cuda_run(dataset, &options, 50, &found);
        options.device = STOKER_DEVICE_CPU;
        options.cache = STOKER_CACHE_NONE;
        (void)stk_run(dataset, &options, &expected);
        cr_assert_gt(expected.batches, 0);
        cr_assert(stk_runs_equal(&expected, &found), "workers %d cache %s: %s %s after %u of %u",
                  (int)workers[i % 4], stoker_cache_name(caches[i % 3]),
                  stoker_error_name(found.rc), found.error.message, found.batches,
                  expected.batches);
        cr_assert_eq(standin_cuda_violations(), 0U);
    }
}

Test(cuda_orders, samples_that_come_twice_are_the_same)
{
    double weights[SAMPLES] = { 0 };
    stoker_order order = STOKER_ORDER_INIT;
    for (int i = 0; i < 8; i++) /* batches of 16 from 8 samples */
        weights[7 * i] = 1 + i;
    order.kind = STOKER_ORDER_WEIGHTED;
    order.weights = weights;
    order.weight_count = SAMPLES;
    check_everywhere(set.dataset, &order);
}

Test(cuda_orders, views_are_the_same)
{
    stoker_dataset *side = NULL;
    stoker_dataset *joined = NULL;
    stoker_split split = STOKER_SPLIT_INIT;
    split.test = 0.3;
    cr_assert_eq(stoker_dataset_split(&side, set.dataset, &split, NULL), STOKER_OK);
    cr_assert_eq(
        stoker_dataset_concat(&joined, (stoker_dataset *[]){ side, set.dataset, side }, 3, NULL),
        STOKER_OK);
    check_everywhere(joined, NULL);
    stoker_dataset_close(&joined);
    stoker_dataset_close(&side);
}
