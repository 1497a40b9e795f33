/* stoker/dlpack.h - a batch as tensors of other libraries, without a copy.
 *
 * PyTorch, JAX, CuPy and NumPy take a DLManagedTensorVersioned (DLPack 1.x) in a capsule named
 * "dltensor_versioned". Its struct is that of dlpack.h, which you may include beside this header.
 */
#ifndef STOKER_DLPACK_H
#define STOKER_DLPACK_H

#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

struct CUstream_st;
struct DLManagedTensorVersioned;

typedef enum stoker_part {
    STOKER_PART_IMAGES = 0,
    STOKER_PART_LABELS = 1,
    STOKER_PART_IDS = 2 /* uint64, where images lie */
} stoker_part;

/* Make a tensor of a part of a lent batch: its memory, type and shape, dense, with strides. It is
 * kDLCPU, kDLCUDA with the batch's GPU, or kDLCUDAHost for STOKER_DEVICE_CUDA_HOST.
 *
 * Sharing   The batch's memory is refilled when the batch is released and (*out)->deleter has been
 *           called for each tensor of it. The deleter may be called from any thread, also after the
 *           loader is destroyed: the memory stays until the last one.
 * Streams   On a GPU `stream`, which the consumer names in __dlpack__ (its 1 and 2 are CUDA's names
 *           for default streams, too), waits for the copy of the batch; the deleter marks on the same
 *           stream that the work with it ends there. The stream must live until then. Elsewhere unused.
 *
 * *out is written on STOKER_OK alone, and then belongs to the caller until its deleter is called.
 * Returns STOKER_OK, STOKER_EINVAL (the batch was released, or has no labels), STOKER_EBUSY (there is a
 * tensor of this part already), STOKER_EFORKED, STOKER_EDEVICE. Consumer thread. */
STOKER_API int stoker_batch_to_dlpack(const stoker_batch *batch, stoker_part part,
                                      struct CUstream_st *stream,
                                      struct DLManagedTensorVersioned **out);

STOKER_END_DECLS
#endif
