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

/* Part of a batch that a tensor shows: the index of a field in batch.fields, or one of these. */
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
 * Sharing   The batch's memory is refilled once the batch is released and (*out)->deleter was
 *           called for each of its tensors. Until then the batch counts as kept: see
 *           options.on_lent. The deleter may be called from any thread, also after the loader is
 *           destroyed: the memory stays until the last one.
 * Streams   On a GPU, `stream` is the consumer's argument of __dlpack__. It waits for the copy of
 *           the batch. The deleter marks the end of the work with the tensor on it, so the stream
 *           must live until then. Ignored on the CPU.
 *             NULL or 1   the legacy default stream
 *             2           the per-thread default stream: STOKER_EINVAL, since the deleter may run
 *                         in another thread; pass a stream that you created
 *             -1          no synchronization: the caller waits for the copy before it uses the
 *                         tensor (stoker_batch_wait_on), and for its own work on the GPU before it
 *                         calls the deleter
 *             else        a cudaStream_t of the batch's GPU that is not recording a graph
 *
 * On STOKER_OK the caller owns *out until it calls the deleter; else *out is untouched. Returns
 * also STOKER_EINVAL (an argument is NULL, the batch was released or has no such part, or the
 * stream cannot be used; options.on_log then receives the reason), STOKER_BUSY (a tensor of this
 * part exists already, of either struct), STOKER_EFORKED or STOKER_EDEVICE. Consumer thread. */
STOKER_API int stoker_batch_to_dlpack(const stoker_batch *batch, uint32_t part,
                                      struct CUstream_st *stream,
                                      struct DLManagedTensorVersioned **out);

/* The same with the struct of DLPack 0.x. */
STOKER_API int stoker_batch_to_dlpack_unversioned(const stoker_batch *batch, uint32_t part,
                                                  struct CUstream_st *stream,
                                                  struct DLManagedTensor **out);

STOKER_END_DECLS
#endif
