/* stoker/dlpack.h - a batch as tensors of other libraries, without a copy.
 *
 * DLPack 1.x has DLManagedTensorVersioned, in a capsule named "dltensor_versioned"; DLPack 0.x has
 * DLManagedTensor, in a capsule named "dltensor". NumPy 2.1 and PyTorch 2.9, and later, accept
 * both; older ones, and JAX (at least 0.10), accept only the second. In Python,
 * __dlpack__(max_version=...) decides: return the first if max_version is given and at least (1,
 * 0), else the second. The structs are those of dlpack.h, which you may include as well.
 */
#ifndef STOKER_DLPACK_H
#define STOKER_DLPACK_H

#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

struct CUstream_st;
struct DLManagedTensorVersioned;
struct DLManagedTensor;

/* What a tensor shows: the values of a field, by its index in batch.fields, or one of these. */
enum {
    STOKER_TENSOR_IMAGES = 0, /* batch.images: field 0 */
    STOKER_TENSOR_OFFSETS =
        128,                 /* + the index of a field that varies: its count + 1 offsets, int64 */
    STOKER_TENSOR_IDS = 256, /* the ids, uint64 */
    STOKER_TENSOR_LABELS = 257 /* batch.labels */
};

/* Make a tensor of a part of a lent batch: its memory, type and shape, dense, with strides. bool is
 * kDLBool. The device is kDLCPU, kDLCUDA with the batch's GPU, or kDLCUDAHost for
 * STOKER_DEVICE_CUDA_HOST.
 *
 * Sharing   The batch's memory is refilled after the batch is released and (*out)->deleter was
 *           called for each of its tensors. The deleter may be called from any thread, also after
 *           the loader is destroyed: the memory stays until the last one. Until then the batch
 *           counts as kept: see options.on_lent.
 * Streams   On a GPU, `stream` is the consumer's argument of __dlpack__. It waits for the copy of
 *           the batch, and the deleter records on it that the work with the tensor ends there: the
 *           stream must live until then.
 *             NULL or 1   the legacy default stream
 *             2           the per-thread default stream: STOKER_EINVAL, since the deleter may run
 *                         in another thread. Pass a stream that you created
 *             -1          no synchronization: the caller makes sure that the copy is done before it
 *                         uses the tensor (stoker_batch_wait_on), and that all work with the tensor
 *                         is done on the GPU before it calls the deleter
 *             else        a cudaStream_t of the batch's GPU; STOKER_EINVAL if it is another GPU's,
 *                         or records a graph
 *           Ignored on the CPU.
 *
 * *out is written only on STOKER_OK, and belongs to the caller until its deleter is called. Returns
 * STOKER_OK, STOKER_EINVAL (the batch was released, or has no such part; the stream cannot be used,
 * and options.on_log hears why), STOKER_BUSY (a tensor of this part exists already, of either
 * struct), STOKER_EFORKED or STOKER_EDEVICE. Consumer thread. */
STOKER_API int stoker_batch_to_dlpack(const stoker_batch *batch, uint32_t part,
                                      struct CUstream_st *stream,
                                      struct DLManagedTensorVersioned **out);

/* The same with the struct of DLPack 0.x. */
STOKER_API int stoker_batch_to_dlpack_unversioned(const stoker_batch *batch, uint32_t part,
                                                  struct CUstream_st *stream,
                                                  struct DLManagedTensor **out);

STOKER_END_DECLS
#endif
