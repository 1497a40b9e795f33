/* dlpack.c - makes DLPack tensors of a batch, without a copy: see leases.h for its lifetime. */
#include <assert.h>
#include <string.h>

#include <stoker/cuda.h>
#include <stoker/stoker.h>

#include "loader/api/dlpack_layout.h"
#include "loader/api/loader.h"

enum { PARTS = 3 };

struct stk_tensor {
    union { /* the kind that the caller asked for; manager_ctx points to the tensor */
        DLManagedTensorVersioned versioned;
        DLManagedTensor unversioned;
    } managed;
    int64_t shape[STOKER_RANK_MAX];
    int64_t strides[STOKER_RANK_MAX];
    stoker_loader *loader;
    struct stk_lease *lease; /* its batch lies there */
    void *stream;            /* where the consumer's work ends; STREAM_NONE: already ended */
    _Atomic bool out;        /* release by the deleter pairs with acquire in to_dlpack */
};

/* Special stream values of CUDA and of the __dlpack__ protocol. */
#define STREAM_PER_THREAD ((uintptr_t)2)
#define STREAM_NONE       UINTPTR_MAX /* the consumer synchronises itself */

struct stk_tensor *stk_tensors_make(uint32_t batches)
{
    return stk_calloc((size_t)batches * PARTS, sizeof(struct stk_tensor));
}

struct stk_tensor *stk_tensors_of(struct stk_tensor *tensors, uint32_t batch)
{
    return &tensors[(size_t)batch * PARTS];
}

/* Any thread. */
static void delete_tensor(struct stk_tensor *tensor)
{
    stoker_loader *loader = tensor->loader;
    struct stk_lease *lease = tensor->lease;
    if (stk_fork_guard_tripped(&loader->guard))
        return;                                   /* the parent's tensor */
    if ((uintptr_t)tensor->stream != STREAM_NONE) /* next() reports it if that fails */
        (void)stk_leases_end_work(&loader->leases, lease, tensor->stream);
    atomic_store_explicit(&tensor->out, false, memory_order_release);
    stk_leases_drop(&loader->leases, lease);
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
    delete_tensor(managed->manager_ctx);
}

static void delete_unversioned(DLManagedTensor *managed)
{
    delete_tensor(managed->manager_ctx);
}

static DLDataType type_of(stoker_dtype dtype)
{
    static const uint8_t codes[] = {
        [STOKER_DTYPE_UINT8] = kDLUInt,      [STOKER_DTYPE_INT8] = kDLInt,
        [STOKER_DTYPE_INT16] = kDLInt,       [STOKER_DTYPE_INT32] = kDLInt,
        [STOKER_DTYPE_INT64] = kDLInt,       [STOKER_DTYPE_FLOAT16] = kDLFloat,
        [STOKER_DTYPE_BFLOAT16] = kDLBfloat, [STOKER_DTYPE_FLOAT32] = kDLFloat,
        [STOKER_DTYPE_FLOAT64] = kDLFloat,   [STOKER_DTYPE_UINT16] = kDLUInt,
        [STOKER_DTYPE_UINT32] = kDLUInt,     [STOKER_DTYPE_UINT64] = kDLUInt,
        [STOKER_DTYPE_BOOL] = kDLBool,
    };
    return (DLDataType){ .code = codes[dtype],
                         .bits = (uint8_t)(8 * stoker_dtype_bytes(dtype)),
                         .lanes = 1 };
}

static DLDevice device_of(const stoker_batch *batch)
{
    if (batch->device == STOKER_DEVICE_CUDA)
        return (DLDevice){ kDLCUDA, (int32_t)batch->device_index };
    return (DLDevice){ batch->device == STOKER_DEVICE_CUDA_HOST ? kDLCUDAHost : kDLCPU, 0 };
}

/* ids are not a stoker_tensor, so the part decides. */
static DLTensor describe(struct stk_tensor *tensor, const stoker_batch *batch,
                         stoker_batch_part part)
{
    const stoker_tensor *view = part == STOKER_PART_IMAGES ? &batch->images : &batch->labels;
    const uint32_t rank = part == STOKER_PART_IMAGES ? view->rank : 1;
    assert(rank <= STOKER_RANK_MAX);
    int64_t stride = 1;
    for (uint32_t axis = rank; axis-- > 0;) {
        tensor->shape[axis] = axis == 0 ? batch->count : (int64_t)view->shape[axis];
        tensor->strides[axis] = stride;
        stride *= tensor->shape[axis];
    }
    return (DLTensor){
        .data = part == STOKER_PART_IDS ? (void *)batch->device_ids : view->data,
        .device = device_of(batch),
        .ndim = (int32_t)rank,
        .dtype = part == STOKER_PART_IDS ? (DLDataType){ kDLUInt, 64, 1 } : type_of(view->dtype),
        .shape = tensor->shape,
        .strides = tensor->strides,
    };
}

/* Returns true if the consumer still has the batch. */
static bool is_lent(const stoker_loader *loader, const struct stk_lease *lease, uint64_t turn)
{
    if (stk_lease_turn(lease) != turn || (atomic_load(&lease->users) & STK_LEASE_RELEASED) != 0)
        return false;
    if (lease->kept)
        return true;
    return loader->on_device
               ? stk_buffer_holds(stk_transfer_buffer_of((struct stk_lease *)lease), turn)
               : stk_slots_holds(&loader->pipeline.slots, turn);
}

/* Make the stream wait for the copy of the batch. */
static int wait_on(const stoker_batch *batch, void *stream)
{
    if (batch->loader->on_device && (uintptr_t)stream == STREAM_PER_THREAD)
        return STOKER_EINVAL; /* the deleter may run in another thread */
    return (uintptr_t)stream == STREAM_NONE ? STOKER_OK : stoker_batch_wait_on(batch, stream);
}

/* Take the tensor of a part; the caller then fills in `managed`. */
static int take_tensor(const stoker_batch *batch, stoker_batch_part part, void *stream,
                       struct stk_tensor **out)
{
    if (batch == NULL || batch->loader == NULL || (unsigned)part >= PARTS ||
        (part == STOKER_PART_LABELS && batch->labels.data == NULL))
        return STOKER_EINVAL;
    stoker_loader *loader = batch->loader;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    struct stk_lease *lease = batch->lease;
    if (!is_lent(loader, lease, batch->turn))
        return STOKER_EINVAL;
    struct stk_tensor *tensor = &lease->tensors[part];
    if (atomic_load_explicit(&tensor->out, memory_order_acquire))
        return STOKER_EBUSY;
    const int rc = wait_on(batch, stream);
    if (rc != STOKER_OK)
        return rc;
    tensor->loader = loader;
    tensor->lease = lease;
    tensor->stream = stream;
    if (loader->on_device)
        stk_transfer_share(stk_transfer_buffer_of(lease));
    atomic_store(&tensor->out, true);
    stk_leases_add(&loader->leases, lease);
    *out = tensor;
    return STOKER_OK;
}

int stoker_batch_to_dlpack(const stoker_batch *batch, stoker_batch_part part,
                           struct CUstream_st *stream, struct DLManagedTensorVersioned **out)
{
    struct stk_tensor *tensor = NULL;
    const int rc = out == NULL ? STOKER_EINVAL : take_tensor(batch, part, stream, &tensor);
    if (rc != STOKER_OK)
        return rc;
    tensor->managed.versioned = (DLManagedTensorVersioned){
        .version = { DLPACK_MAJOR, DLPACK_MINOR },
        .manager_ctx = tensor,
        .deleter = delete_versioned,
        .dl_tensor = describe(tensor, batch, part),
    };
    *out = &tensor->managed.versioned;
    return STOKER_OK;
}

int stoker_batch_to_dlpack_unversioned(const stoker_batch *batch, stoker_batch_part part,
                                       struct CUstream_st *stream, struct DLManagedTensor **out)
{
    struct stk_tensor *tensor = NULL;
    const int rc = out == NULL ? STOKER_EINVAL : take_tensor(batch, part, stream, &tensor);
    if (rc != STOKER_OK)
        return rc;
    tensor->managed.unversioned = (DLManagedTensor){
        .dl_tensor = describe(tensor, batch, part),
        .manager_ctx = tensor,
        .deleter = delete_unversioned,
    };
    *out = &tensor->managed.unversioned;
    return STOKER_OK;
}
