/* test_dlpack.c - tensors of batches on a GPU and in memory that CUDA has page-locked: streams
 * wait, and the buffer is refilled behind the work of every stream that had a tensor.
 */
#include <stdatomic.h>

#include "loader/api/lend/dlpack_layout.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"

static struct stk_file_set set;
static struct stk_cuda_consumer consumers[2];

static void begin(void)
{
    standin_cuda_reset(2);
    cr_assert(stk_file_set_make(&set, 100, 4, 5, 3));
}

static void finish(void)
{
    stk_file_set_remove(&set);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(cuda_dlpack, .init = begin, .fini = finish);

static stoker_loader *make(stoker_device device, uint32_t index)
{
    stoker_loader_options options =
        stk_small_options(.device = device, .device_index = index, .prefetch_batches = 2,
                          .epochs = STOKER_EPOCHS_ENDLESS, .num_workers = 1);
    return loader_of(set.dataset, &options);
}

Test(cuda_dlpack, where_a_tensor_lies)
{
    static const struct {
        stoker_device device;
        int32_t type, id;
    } places[] = { { STOKER_DEVICE_CPU, kDLCPU, 0 },
                   { STOKER_DEVICE_CUDA_HOST, kDLCUDAHost, 0 },
                   { STOKER_DEVICE_CUDA, kDLCUDA, 1 } };
    for (int i = 0; i < 3; i++) {
        stoker_loader *loader = make(places[i].device, places[i].device == STOKER_DEVICE_CUDA);
        stoker_batch batch = next_batch(loader);
        DLManagedTensorVersioned *tensor = NULL;
        cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, NULL, &tensor), STOKER_OK);
        cr_assert_eq(tensor->dl_tensor.device.device_type, places[i].type);
        cr_assert_eq(tensor->dl_tensor.device.device_id, places[i].id);
        tensor->deleter(tensor);
        stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
        cr_assert_eq(cudaSetDevice(0), cudaSuccess);
    }
}

/* Two streams read the same batch through tensors and end late, each; the deleters are called at
 * once. */
Test(cuda_dlpack, the_buffer_waits_for_every_stream)
{
    stoker_loader *loader = make(STOKER_DEVICE_CUDA, 0);
    static uint64_t hashes[40][2];
    static uint64_t wanted[40];
    cr_assert(stk_cuda_consumer_init(&consumers[0], 4000));
    cr_assert(stk_cuda_consumer_init(&consumers[1], 500));
    for (int i = 0; i < 40; i++) {
        stoker_batch batch = next_batch(loader);
        DLManagedTensorVersioned *tensors[2];
        for (unsigned j = 0; j < 2; j++) {
            cr_assert_eq(
                stoker_batch_to_dlpack(&batch, (uint32_t)j, consumers[j].stream, &tensors[j]),
                STOKER_OK);
            stk_cuda_launch(&consumers[j], &batch, &hashes[i][j]);
        }
        if (i % 3 == 0)
            stoker_batch_release(&batch);
        tensors[i % 2]->deleter(tensors[i % 2]);
        if (i % 3 == 1)
            cr_assert_eq(stoker_batch_release_on(&batch, consumers[0].stream), STOKER_OK);
        tensors[(i + 1) % 2]->deleter(tensors[(i + 1) % 2]);
        stoker_batch_release(&batch); /* or nothing */
    }
    stk_cuda_consumer_wait(&consumers[0]);
    stk_cuda_consumer_wait(&consumers[1]);
    stoker_loader_destroy(&loader);
    loader = make(STOKER_DEVICE_CPU, 0);
    for (int i = 0; i < 40; i++) {
        stoker_batch batch = next_batch(loader);
        wanted[i] = stk_batch_hash(&batch);
        stoker_batch_release(&batch);
        cr_assert_eq(hashes[i][0], wanted[i], "batch %d", i);
        cr_assert_eq(hashes[i][1], wanted[i], "batch %d", i);
    }
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumers[0]);
    stk_cuda_consumer_destroy(&consumers[1]);
}

Test(cuda_dlpack, a_tensor_on_the_gpu_outlives_the_loader)
{
    for (int released = 0; released <= 1; released++) {
        stoker_loader *loader = make(STOKER_DEVICE_CUDA, 0);
        uint64_t hash = 0;
        cr_assert(stk_cuda_consumer_init(&consumers[0], 3000));
        stoker_batch batch = next_batch(loader);
        const stoker_batch copy = batch;
        DLManagedTensorVersioned *tensor = NULL;
        cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, consumers[0].stream, &tensor), STOKER_OK);
        if (released == 1)
            stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
        stk_cuda_launch(&consumers[0], &copy, &hash);
        tensor->deleter(tensor); /* waits for the kernel, and then frees */
        stoker_batch_release(&batch);
        stk_cuda_consumer_wait(&consumers[0]);
        cr_assert_neq(hash, 0U);
        stk_cuda_consumer_destroy(&consumers[0]);
        cr_assert_eq(standin_cuda_live(), 0);
    }
}

/* Names of streams that are no streams of the caller's: none, and the default one of a thread. */
Test(cuda_dlpack, without_synchronization_no_stream_is_touched)
{
    struct CUstream_st *const none = (struct CUstream_st *)(intptr_t)-1;
    stoker_loader *loader = make(STOKER_DEVICE_CUDA, 0);
    for (int i = 0; i < 20; i++) {
        stoker_batch batch = next_batch(loader);
        DLManagedTensorVersioned *images = NULL;
        DLManagedTensor *labels = NULL;
        cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, none, &images), STOKER_OK);
        cr_assert_eq(stoker_batch_to_dlpack_unversioned(&batch, 1, none, &labels), STOKER_OK);
        stoker_batch_release(&batch);
        images->deleter(images);
        labels->deleter(labels);
    }
    cr_assert_null(stoker_loader_error(loader));
    stoker_loader_destroy(&loader);
}

Test(cuda_dlpack, the_default_stream_of_a_thread_is_refused)
{
    struct CUstream_st *const per_thread = (struct CUstream_st *)(intptr_t)2;
    stoker_loader *loader = make(STOKER_DEVICE_CUDA, 0);
    stoker_batch batch = next_batch(loader);
    DLManagedTensorVersioned *tensor = NULL;
    DLManagedTensor *old = NULL;
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, per_thread, &tensor), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack_unversioned(&batch, 0, per_thread, &old), STOKER_EINVAL);
    cr_assert_null(tensor);
    cr_assert_null(old);
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, NULL, &tensor), STOKER_OK); /* nothing is out */
    tensor->deleter(tensor);
    stoker_batch_release(&batch);
    batch = next_batch(loader);
    stoker_batch_release(&batch);
    cr_assert_null(stoker_loader_error(loader));
    stoker_loader_destroy(&loader);
    loader = make(STOKER_DEVICE_CPU, 0); /* without streams, none is wrong */
    batch = next_batch(loader);
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, per_thread, &tensor), STOKER_OK);
    tensor->deleter(tensor);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

/* ---- memory that CUDA has page-locked ---- */

static void copy_late(void *argument)
{
    stoker_batch *batch = argument;
    (void)usleep(2000);
    cr_assert(stk_file_set_matches(&set, batch));
    atomic_fetch_add((_Atomic int *)&batch->turn, 1);
}

/* A GPU that nobody asked for is not woken up, and need not be free. */
Test(cuda_dlpack, memory_is_page_locked_with_the_loaders_own_gpu)
{
    static const stoker_device kinds[] = { STOKER_DEVICE_CUDA_HOST, STOKER_DEVICE_CUDA };
    for (int i = 0; i < 2; i++) {
        stoker_loader *loader = make(kinds[i], 1);
        int current = -1;
        cr_assert_eq(cudaGetDevice(&current), cudaSuccess);
        cr_assert_eq(current, 0);
        stoker_batch batch = next_batch(loader);
        if (kinds[i] == STOKER_DEVICE_CUDA_HOST)
            cr_assert_eq(standin_cuda_pinned_with(batch.images.data), 1);
        stoker_batch_release(&batch);
        cr_assert_eq(standin_cuda_strays(), 0);
        stoker_loader_destroy(&loader);
        cr_assert_eq(standin_cuda_strays(), 0);
    }
}

Test(cuda_dlpack, release_on_waits_for_the_consumers_own_copy)
{
    stoker_loader *loader = make(STOKER_DEVICE_CUDA_HOST, 1);
    const stoker_stats stats = stats_of(loader);
    cr_assert_str_eq(stats.device, "cuda-host:1");
    cr_assert(stats.pinned);
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    cr_assert(stk_cuda_consumer_init(&consumers[0], 0));
    for (int i = 0; i < 8; i++) {
        stoker_batch batch = next_batch(loader);
        stoker_batch seen = batch;
        seen.turn = 0;
        cr_assert_eq(batch.device, STOKER_DEVICE_CUDA_HOST);
        cr_assert_eq(stoker_batch_wait_on(&batch, consumers[0].stream), STOKER_OK);
        cr_assert_eq(cudaLaunchHostFunc(consumers[0].stream, copy_late, &seen), cudaSuccess);
        cr_assert_eq(stoker_batch_release_on(&batch, consumers[0].stream), STOKER_OK);
        cr_assert_eq(seen.turn, 1U);
    }
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumers[0]);
}
