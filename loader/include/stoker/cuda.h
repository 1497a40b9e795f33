/* stoker/cuda.h - batches in GPU memory, ordered by CUDA streams.
 *
 *   while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
 *       stoker_batch_wait_on(&batch, stream);        the stream waits for the copy, not the host
 *       train_step<<<..., stream>>>(batch.images.data, batch.labels.data, batch.count);
 *       stoker_batch_release_on(&batch, stream);     refilled after that kernel
 *   }
 *
 * A stream is a cudaStream_t or a CUstream: both are pointers to struct CUstream_st, so this header
 * needs no CUDA header. NULL is the legacy default stream. The same loop also works with batches in
 * host memory, for which there is nothing to wait for. With STOKER_DEVICE_CUDA_HOST, whose batches
 * you copy yourself, stoker_batch_release_on() blocks the host until the stream is done;
 * stoker_batch_release() does not.
 *
 * A stream must belong to the batch's GPU, and must not be recording a graph
 * (cudaStreamBeginCapture). Otherwise the call returns STOKER_EINVAL, options.on_log receives the
 * reason, the recording is not disturbed, and the loader continues. stoker_batch_release() and a
 * tensor's deleter return nothing: with such a stream they take effect once the recording is over.
 *
 * Needs libcudart of CUDA 12 or 13, loaded by its name or from the file that the environment
 * variable STOKER_CUDART names, and NVIDIA's driver 525 or later, 580 for CUDA 13. Batches are
 * delivered to every GPU that CUDA supports. To convert (convert_on_device) or cache rows there,
 * the library needs kernels for the GPU, of compute capability 7.5 or later. Without them
 * the CPU does the work, and stats.convert_reason and cache_reason say why.
 *
 * With several GPUs, any may be current: each call works on the loader's, initializes no other, and
 * leaves the thread as it was. A CUDA runtime without cudaGetDriverEntryPoint is the exception:
 * cudaSetDevice() initializes the GPU that it returns to, so make the loader's GPU current in the
 * consumer's thread.
 */
#ifndef STOKER_CUDA_H
#define STOKER_CUDA_H

#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

struct CUstream_st;

/* Make the stream wait until the batch is copied. Call it before the first use of a batch, for each
 * stream that uses it, unless options.non_blocking is false. Returns STOKER_OK, STOKER_EINVAL (the
 * batch was released, or the stream cannot be used), STOKER_EFORKED or STOKER_EDEVICE. Consumer
 * thread. */
STOKER_API int stoker_batch_wait_on(const stoker_batch *batch, struct CUstream_st *stream);

/* Release a batch like stoker_batch_release(), to be refilled after the work queued on the stream
 * so far. Order work with the batch on other streams before that. Returns STOKER_OK, STOKER_EFORKED
 * or STOKER_EDEVICE, all with the batch released, or STOKER_EINVAL (the stream cannot be used: the
 * batch is still lent, release it again). Consumer thread. */
STOKER_API int stoker_batch_release_on(stoker_batch *batch, struct CUstream_st *stream);

STOKER_END_DECLS
#endif
