/* stoker/cuda.h - batches in GPU memory, ordered by streams.
 *
 *   while (stoker_loader_next(loader, &batch) == STOKER_OK) {
 *       stoker_batch_wait_on(&batch, stream);        the stream waits for the copy, the host does not
 *       train_step<<<..., stream>>>(batch.images.data, batch.labels.data, batch.count);
 *       stoker_batch_release_on(&batch, stream);     refilled once that kernel is done
 *   }
 *
 * A stream is a cudaStream_t or a CUstream: both are pointers to struct CUstream_st, so this header needs
 * none of CUDA's. NULL is the legacy default stream. Streams belong to the GPU of the batch.
 * On a batch in host memory these calls have nothing to wait for, so that one loop serves both. With
 * STOKER_DEVICE_CUDA_HOST, whose batches you copy yourself, stoker_batch_release_on waits on the host for
 * the stream; stoker_batch_release does not.
 *
 * With several GPUs make the loader's the current one (cudaSetDevice) in the consumer's thread: the
 * calls then need not switch, and CUDA sets no other GPU up.
 */
#ifndef STOKER_CUDA_H
#define STOKER_CUDA_H

#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

struct CUstream_st;

/* What is put on the stream from now on finds the batch in place. To be called before the first use
 * of a batch, on each stream that uses it, unless the loader was made with non_blocking = false.
 * Returns STOKER_OK, STOKER_EINVAL (the batch was released), STOKER_EFORKED, STOKER_EDEVICE. Consumer
 * thread. */
STOKER_API int stoker_batch_wait_on(const stoker_batch *batch, struct CUstream_st *stream);

/* Hand a batch back as stoker_batch_release does, to be refilled when what is on the stream now is done.
 * Work with the batch on other streams must be ordered before that. The batch is handed back in any
 * case. Returns STOKER_OK, STOKER_EFORKED, STOKER_EDEVICE. Consumer thread. */
STOKER_API int stoker_batch_release_on(stoker_batch *batch, struct CUstream_st *stream);

STOKER_END_DECLS
#endif
