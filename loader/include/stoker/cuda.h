/* stoker/cuda.h - batches in GPU memory, ordered by CUDA streams.
 *
 *   while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
 *       stoker_batch_wait_on(&batch, stream);        the stream waits for the copy, not the host
 *       train_step<<<..., stream>>>(batch.images.data, batch.labels.data, batch.count);
 *       stoker_batch_release_on(&batch, stream);     refilled after that kernel
 *   }
 *
 * A stream is a cudaStream_t or a CUstream: both are pointers to struct CUstream_st, so this header
 * needs no CUDA header. NULL is the legacy default stream. Streams must belong to the batch's GPU.
 * On a batch in host memory there is nothing to wait for, so one loop serves both. With
 * STOKER_DEVICE_CUDA_HOST, whose batches you copy yourself, stoker_batch_release_on() blocks the
 * host until the stream is done; stoker_batch_release() does not.
 *
 * A stream cannot be used while it records a graph (cudaStreamBeginCapture), or if it is another
 * GPU's. That is an error of the call alone, STOKER_EINVAL, and options.on_log hears the reason:
 * the recording is not disturbed, and the loader continues. stoker_batch_release() and the deleter
 * of a tensor return nothing: with such a stream they count once the recording is over.
 *
 * Needs libcudart of CUDA 12 or 13, found by its name or by the environment variable STOKER_CUDART,
 * and NVIDIA's driver 525 or later, 580 for CUDA 13. Every GPU that CUDA supports will do;
 * conversion on the GPU (convert_on_device) and a cache there need a kernel for it: compute
 * capability 7.5 or later, unless the library was built for fewer. Without one the CPU does their
 * work, and stats.convert_reason and cache_reason say why.
 *
 * With several GPUs, any may be current: each call works on the loader's, initializes no other, and
 * leaves the thread as it was. A CUDA runtime without cudaGetDriverEntryPoint leaves only
 * cudaSetDevice() for that, which initializes the GPU that it goes back to: there, make the
 * loader's GPU current in the consumer's thread.
 */
#ifndef STOKER_CUDA_H
#define STOKER_CUDA_H

#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

struct CUstream_st;

/* Make the stream wait until the batch is copied. Call it before the first use of a batch, on each
 * stream that uses it, unless options.non_blocking is false. Returns STOKER_OK, STOKER_EINVAL (the
 * batch was released, or the stream cannot be used, see above), STOKER_EFORKED or STOKER_EDEVICE.
 * Consumer thread. */
STOKER_API int stoker_batch_wait_on(const stoker_batch *batch, struct CUstream_st *stream);

/* Release a batch as stoker_batch_release() does; it is refilled after the work that is on the
 * stream now. Work with the batch on other streams must be ordered before that. The batch is
 * released even if an error is returned, other than STOKER_EINVAL. Returns STOKER_OK, STOKER_EINVAL
 * (the stream cannot be used: the batch is still lent, release it again), STOKER_EFORKED or
 * STOKER_EDEVICE. Consumer thread. */
STOKER_API int stoker_batch_release_on(stoker_batch *batch, struct CUstream_st *stream);

STOKER_END_DECLS
#endif
