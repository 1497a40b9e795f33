/* dlpack.c - a batch as DLPack tensors, and who is the last to have it: see loans.h. */
#include <assert.h>
#include <string.h>

#include <stoker/cuda.h>
#include <stoker/stoker.h>

#include "loader/api/dlpack_layout.h"
#include "loader/api/loader.h"

enum { PARTS = 3 };

struct stk_tensor {
    union { /* as the caller asked for it; manager_ctx points to the tensor itself */
        DLManagedTensorVersioned versioned;
        DLManagedTensor unversioned;
    } managed;
    int64_t shape[STOKER_RANK_MAX];
    int64_t strides[STOKER_RANK_MAX];
    stoker_loader *loader;
    struct stk_loan *loan;
    uint64_t turn;    /* of its batch: the loan's own is the consumer's */
    void *stream;     /* on which the consumer's work ends; STREAM_NONE = it is over */
    _Atomic bool out; /* release by the deleter pairs with acquire in to_dlpack */
};

/* Names of streams, as CUDA and the protocol of __dlpack__ have them. */
#define STREAM_PER_THREAD ((uintptr_t)2)
#define STREAM_NONE       UINTPTR_MAX /* the consumer synchronises by itself */

/* ---- loans ---- */

int stk_loans_init(struct stk_loans *loans, uint32_t count)
{
    loans->count = count;
    pthread_mutex_init(&loans->lock, NULL);
    loans->loans = stk_calloc(count, sizeof(loans->loans[0]));
    loans->tensors = stk_calloc((size_t)count * PARTS, sizeof(loans->tensors[0]));
    return loans->loans == NULL || loans->tensors == NULL ? STOKER_ENOMEM : 0;
}

void stk_loans_destroy(struct stk_loans *loans)
{
    if (loans->count > 0)
        pthread_mutex_destroy(&loans->lock);
    stk_free(loans->loans);
    stk_free(loans->tensors);
    memset(loans, 0, sizeof(*loans));
}

bool stk_loans_end(struct stk_loans *loans)
{
    return atomic_fetch_or(&loans->out, STK_LOAN_RELEASED) == 0;
}

/* The work of one more stream with a batch ends: behind that of those before it. */
static int end_work(stoker_loader *loader, uint64_t turn, void *stream)
{
    if (!loader->on_device)
        return 0;
    pthread_mutex_lock(&loader->loans.lock);
    const int rc = stk_transfer_end_work(&loader->transfer, turn, stream);
    pthread_mutex_unlock(&loader->loans.lock);
    return rc;
}

bool stk_loan_release(stoker_loader *loader, uint64_t turn, void *stream, int *rc)
{
    struct stk_loan *loan = stk_loan_of(&loader->loans, turn);
    const uint32_t state = atomic_load_explicit(&loan->state, memory_order_acquire);
    *rc = 0;
    if (state == 0)
        return true;
    if (loan->turn != turn || (state & STK_LOAN_RELEASED) != 0)
        return false; /* released before, through a copy of the batch */
    *rc = end_work(loader, turn, stream);
    if (atomic_fetch_or(&loan->state, STK_LOAN_RELEASED) != 0)
        return false;
    atomic_store(&loan->state, 0U); /* the last deleter came just now */
    return true;
}

static void give_back(stoker_loader *loader, uint64_t turn)
{
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_RELEASE, turn);
    if (loader->on_device)
        stk_transfer_free(&loader->transfer, turn);
    else
        (void)stk_slots_release(&loader->pipeline.slots, turn);
    stk_trace_end(loader->trace.rings, STOKER_TRACE_RELEASE, begin_ns, turn, 0, 0);
}

void stk_loans_take_back(stoker_loader *loader)
{
    struct stk_loans *loans = &loader->loans;
    atomic_store(&loans->returned, false); /* before looking: who returns later sets it again */
    for (uint32_t i = 0; i < loans->count; i++) {
        struct stk_loan *loan = &loans->loans[i];
        if (atomic_load_explicit(&loan->state, memory_order_acquire) != STK_LOAN_RELEASED)
            continue;
        atomic_store(&loan->state, 0U);
        give_back(loader, loan->turn);
    }
}

/* ---- tensors ---- */

/* Any thread. */
static void take_back(struct stk_tensor *tensor)
{
    stoker_loader *loader = tensor->loader;
    struct stk_loan *loan = tensor->loan;
    if (stk_fork_guard_tripped(&loader->guard))
        return; /* the parent's tensor */
    if ((uintptr_t)tensor->stream != STREAM_NONE)
        (void)end_work(loader, tensor->turn, tensor->stream); /* next tells if that failed */
    atomic_store_explicit(&tensor->out, false, memory_order_release);
    if (atomic_fetch_sub(&loan->state, 1U) == (STK_LOAN_RELEASED | 1U))
        atomic_store(&loader->loans.returned, true);
    if (atomic_fetch_sub(&loader->loans.out, 1U) == (STK_LOAN_RELEASED | 1U))
        stk_loader_free(loader); /* destroy was waiting for us */
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
    take_back(managed->manager_ctx);
}

static void delete_unversioned(DLManagedTensor *managed)
{
    take_back(managed->manager_ctx);
}

static DLDataType type_of(stoker_dtype dtype)
{
    static const uint8_t codes[] = {
        [STOKER_UINT8] = kDLUInt,      [STOKER_INT8] = kDLInt,      [STOKER_INT16] = kDLInt,
        [STOKER_INT32] = kDLInt,       [STOKER_INT64] = kDLInt,     [STOKER_FLOAT16] = kDLFloat,
        [STOKER_BFLOAT16] = kDLBfloat, [STOKER_FLOAT32] = kDLFloat, [STOKER_FLOAT64] = kDLFloat,
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

/* The part without its type: ids are no stoker_tensor. */
static DLTensor describe(struct stk_tensor *tensor, const stoker_batch *batch, stoker_part part)
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

/* Whether the batch is lent still. */
static bool is_lent(const stoker_loader *loader, uint64_t turn)
{
    const struct stk_loan *loan = stk_loan_of(&loader->loans, turn);
    if ((atomic_load(&loan->state) & STK_LOAN_RELEASED) != 0)
        return false;
    return loader->on_device ? stk_transfer_holds(&loader->transfer, turn)
                             : stk_slots_holds(&loader->pipeline.slots, turn);
}

/* The stream waits for the copy of the batch. */
static int wait_on(const stoker_batch *batch, void *stream)
{
    if (batch->loader->on_device && (uintptr_t)stream == STREAM_PER_THREAD)
        return STOKER_EINVAL; /* in the deleter it may be another thread's */
    return (uintptr_t)stream == STREAM_NONE ? STOKER_OK : stoker_batch_wait_on(batch, stream);
}

/* Count a tensor of the part as out; the caller then fills in `managed`. */
static int lend(const stoker_batch *batch, stoker_part part, void *stream, struct stk_tensor **out)
{
    if (batch == NULL || batch->loader == NULL || (unsigned)part >= PARTS ||
        (part == STOKER_PART_LABELS && batch->labels.data == NULL))
        return STOKER_EINVAL;
    stoker_loader *loader = batch->loader;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    if (!is_lent(loader, batch->turn))
        return STOKER_EINVAL;
    struct stk_loan *loan = stk_loan_of(&loader->loans, batch->turn);
    struct stk_tensor *tensor =
        &loader->loans.tensors[PARTS * (batch->turn % loader->loans.count) + part];
    if (atomic_load_explicit(&tensor->out, memory_order_acquire))
        return STOKER_EBUSY;
    const int rc = wait_on(batch, stream);
    if (rc != STOKER_OK)
        return rc;
    tensor->loader = loader;
    tensor->loan = loan;
    tensor->turn = batch->turn;
    tensor->stream = stream;
    loan->turn = batch->turn;
    if (loader->on_device)
        stk_transfer_share(&loader->transfer, batch->turn);
    atomic_store(&tensor->out, true);
    atomic_fetch_add(&loan->state, 1U);
    atomic_fetch_add(&loader->loans.out, 1U);
    *out = tensor;
    return STOKER_OK;
}

int stoker_batch_to_dlpack(const stoker_batch *batch, stoker_part part, struct CUstream_st *stream,
                           struct DLManagedTensorVersioned **out)
{
    struct stk_tensor *tensor = NULL;
    const int rc = out == NULL ? STOKER_EINVAL : lend(batch, part, stream, &tensor);
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

int stoker_batch_to_dlpack_unversioned(const stoker_batch *batch, stoker_part part,
                                       struct CUstream_st *stream, struct DLManagedTensor **out)
{
    struct stk_tensor *tensor = NULL;
    const int rc = out == NULL ? STOKER_EINVAL : lend(batch, part, stream, &tensor);
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
