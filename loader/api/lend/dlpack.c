/* dlpack.c - makes DLPack tensors of a batch, without a copy: see leases.h for its lifetime. */
#include <assert.h>
#include <string.h>

#include <stoker/cuda.h>
#include <stoker/stoker.h>

#include "loader/api/lend/dlpack_layout.h"
#include "loader/api/loader.h"

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
    struct stk_unended unended;
};

/* Special stream values of CUDA and of the __dlpack__ protocol. */
#define STREAM_PER_THREAD ((uintptr_t)2)
#define STREAM_NONE       UINTPTR_MAX /* the consumer synchronizes itself */

/* Tensors of a batch: fields, offsets of fields, ids. */
static size_t parts_of(uint32_t fields)
{
    return 2 * (size_t)fields + 1;
}

struct stk_tensor *stk_tensors_make(uint32_t batches, uint32_t fields)
{
    return stk_calloc(batches * parts_of(fields), sizeof(struct stk_tensor));
}

struct stk_tensor *stk_tensors_of(struct stk_tensor *tensors, uint32_t batch, uint32_t fields)
{
    return &tensors[batch * parts_of(fields)];
}

/* Any thread. */
static void delete_tensor(struct stk_tensor *tensor)
{
    stoker_loader *loader = tensor->loader;
    struct stk_lease *lease = tensor->lease;
    if (stk_fork_guard_tripped(&loader->guard))
        return;                                     /* the parent's tensor */
    if ((uintptr_t)tensor->stream != STREAM_NONE && /* next() reports it if that fails */
        stk_leases_end_work(&loader->leases, lease, tensor->stream) == STOKER_EINVAL) {
        stk_leases_end_later(&loader->leases, &tensor->unended, lease, tensor->stream,
                             &tensor->out);
        return;
    }
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

/* The array that a part of the batch shows. Returns false if the batch has no such part. */
static bool view_of(const stoker_batch *batch, uint32_t part, stoker_tensor *view)
{
    const struct stk_outputs *outputs = &batch->loader->outputs;
    const stoker_field *fields = ((const struct stk_lease *)batch->lease)->fields;
    *view = (stoker_tensor){ .rank = 1, .shape = { batch->count } };
    if (part == STOKER_TENSOR_IDS) {
        view->data = (void *)batch->device_ids;
        view->dtype = STOKER_DTYPE_UINT64;
    } else if (part == STOKER_TENSOR_LABELS && outputs->label != STK_NO_FIELD) {
        *view = fields[outputs->label].values;
    } else if (part < outputs->count) {
        *view = fields[part].values;
    } else if (part >= STOKER_TENSOR_OFFSETS && part - STOKER_TENSOR_OFFSETS < outputs->count) {
        view->data = (void *)fields[part - STOKER_TENSOR_OFFSETS].device_offsets;
        view->dtype = STOKER_DTYPE_INT64;
        view->shape[0] = (uint64_t)batch->count + 1;
    }
    return view->data != NULL;
}

/* The index of its tensor among those of a lease. */
static uint32_t place_of(const stoker_batch *batch, uint32_t part)
{
    const struct stk_outputs *outputs = &batch->loader->outputs;
    if (part == STOKER_TENSOR_IDS)
        return 2 * outputs->count;
    if (part == STOKER_TENSOR_LABELS)
        return outputs->label;
    return part < STOKER_TENSOR_OFFSETS ? part : outputs->count + part - STOKER_TENSOR_OFFSETS;
}

static DLTensor describe(struct stk_tensor *tensor, const stoker_batch *batch,
                         const stoker_tensor *view)
{
    assert(view->rank <= STOKER_RANK_MAX);
    int64_t stride = 1;
    for (uint32_t axis = view->rank; axis-- > 0;) {
        tensor->shape[axis] = (int64_t)view->shape[axis];
        tensor->strides[axis] = stride;
        stride *= tensor->shape[axis];
    }
    return (DLTensor){
        .data = view->data,
        .device = device_of(batch),
        .ndim = (int32_t)view->rank,
        .dtype = type_of(view->dtype),
        .shape = tensor->shape,
        .strides = tensor->strides,
    };
}

/* Make the stream wait for the copy of the batch. */
static int wait_on(const stoker_batch *batch, void *stream)
{
    stoker_loader *loader = batch->loader;
    if (loader->on_device && (uintptr_t)stream == STREAM_PER_THREAD) {
        stk_messages_put(
            &loader->pipeline.messages, STOKER_LOG_WARNING,
            "a tensor cannot be used on the per-thread default stream: its deleter may "
            "run in another thread, where that is another stream");
        return STOKER_EINVAL;
    }
    return (uintptr_t)stream == STREAM_NONE ? STOKER_OK : stoker_batch_wait_on(batch, stream);
}

/* Take the tensor of a part, and set *view to what it shows; the caller then fills in `managed`. */
static int take_tensor(const stoker_batch *batch, uint32_t part, void *stream,
                       struct stk_tensor **out, stoker_tensor *view)
{
    if (batch == NULL || batch->loader == NULL)
        return STOKER_EINVAL;
    stoker_loader *loader = batch->loader;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    struct stk_lease *lease = batch->lease;
    if (!stk_batch_is_lent(loader, lease, batch->turn) || !view_of(batch, part, view))
        return STOKER_EINVAL;
    struct stk_tensor *tensor = &lease->tensors[place_of(batch, part)];
    if (atomic_load_explicit(&tensor->out, memory_order_acquire))
        return STOKER_BUSY;
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

int stoker_batch_to_dlpack(const stoker_batch *batch, uint32_t part, struct CUstream_st *stream,
                           struct DLManagedTensorVersioned **out)
{
    struct stk_tensor *tensor = NULL;
    stoker_tensor view;
    const int rc = out == NULL ? STOKER_EINVAL : take_tensor(batch, part, stream, &tensor, &view);
    if (rc != STOKER_OK)
        return rc;
    tensor->managed.versioned = (DLManagedTensorVersioned){
        .version = { DLPACK_MAJOR, DLPACK_MINOR },
        .manager_ctx = tensor,
        .deleter = delete_versioned,
        .dl_tensor = describe(tensor, batch, &view),
    };
    *out = &tensor->managed.versioned;
    return STOKER_OK;
}

int stoker_batch_to_dlpack_unversioned(const stoker_batch *batch, uint32_t part,
                                       struct CUstream_st *stream, struct DLManagedTensor **out)
{
    struct stk_tensor *tensor = NULL;
    stoker_tensor view;
    const int rc = out == NULL ? STOKER_EINVAL : take_tensor(batch, part, stream, &tensor, &view);
    if (rc != STOKER_OK)
        return rc;
    tensor->managed.unversioned = (DLManagedTensor){
        .dl_tensor = describe(tensor, batch, &view),
        .manager_ctx = tensor,
        .deleter = delete_unversioned,
    };
    *out = &tensor->managed.unversioned;
    return STOKER_OK;
}
