/* stoker/loader.h - batches in order, prepared ahead by worker threads: the calls.
 *
 * Lifetime  create, then { next, release } per batch, then destroy. Lent batches, their tensors and
 *           the data set may be released or closed in any order, before or after destroy.
 * Threads   One thread at a time, the consumer, calls next, release and state.
 *           stoker_loader_stats() and stoker_loader_interrupt() may be called from any thread at
 *           any time.
 * Order     A pure function of (seed, epoch, position): the number of workers, the reader, the
 *           cache and the prefetch depth never change a byte.
 * fork()    The loader stays with the parent. In the child every call returns STOKER_EFORKED, and
 *           destroy frees nothing.
 */
#ifndef STOKER_LOADER_H
#define STOKER_LOADER_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/batch.h>
#include <stoker/dataset.h>
#include <stoker/error.h>
#include <stoker/options.h>

STOKER_BEGIN_DECLS

typedef struct stoker_loader stoker_loader;

/* Check the options, allocate all memory, start the workers. The loader shares the data set: close
 * yours when you like. On success the caller owns *out; on failure it is untouched, nothing is left
 * behind, and *error has the cause. options (NULL = the defaults) and error may be NULL.
 * Errors: STOKER_EINVAL (an option; the message names it), EBATCH (with STOKER_LAST_DROP batch_size
 * x world_size is larger than the data set, or, with batch_values_max, an epoch has fewer batches
 * than ranks), ELIMIT (more than 2^62 samples), ETYPE, ENOTSUP (an option that is ON is impossible
 * here, or a file has no descriptor and `reader` is NULL), ENOMEM, EPIN, ETHREAD, EREADER, EDEVICE,
 * ESTATE, ECHANGED (see stoker/dataset.h). */
STOKER_API int stoker_loader_create(stoker_loader **out, const stoker_dataset *dataset,
                                    const stoker_loader_options *options, stoker_error *error);

/* Borrow the next batch. Waits at most timeout_ms milliseconds; -1 = no limit, 0 = do not wait. If
 * next() makes rows itself (num_workers = 0), it checks the time between rows: a single call of a
 * codec or reader may exceed it. *batch is written only on STOKER_OK, up to batch->struct_size
 * bytes. Several batches may be held at once: fewer than prefetch_batches, or as many as
 * options.on_lent allows. After you moved a batch to another variable, set *batch to
 * STOKER_BATCH_INIT.
 *
 * Returns STOKER_OK or a normal stop: STOKER_EPOCH_END once after each epoch's last batch;
 * STOKER_FINISHED after options.epochs epochs, on every call; STOKER_INTERRUPTED (see
 * stoker_loader_interrupt()); STOKER_TIMEOUT (call again, nothing is lost); STOKER_BUSY (the slot
 * of the next batch is lent: release it, or see options.on_lent). Errors, which
 * stoker_loader_error() explains: STOKER_EINVAL (an argument is NULL, timeout_ms is below -1,
 * batch->struct_size is not set, or *batch is still lent); STOKER_EFORKED; or the first error of a
 * stage, on every call from then on. */
STOKER_API int stoker_loader_next(stoker_loader *loader, stoker_batch *batch, int32_t timeout_ms);

/* Set *fd to a descriptor that is readable while next() would not wait, for poll(), epoll and event
 * loops built on them. When it is readable, call next() with timeout_ms 0 until that returns
 * STOKER_TIMEOUT or you want no more batches. It is also readable at the end of an epoch, after an
 * error or an interrupt, and while next() returns STOKER_BUSY at once.
 *
 * Edge-triggered (EPOLLET, as tokio and mio use it): call next() with timeout_ms 0 until it returns
 * something other than STOKER_OK. An edge follows once another call makes sense: at once after
 * STOKER_TIMEOUT if only next() makes progress; none after STOKER_BUSY before you release a batch.
 *
 * It may be readable although next() then returns STOKER_TIMEOUT, or with on_lent WAIT or GROW
 * STOKER_BUSY: wait again. It is always readable without workers (num_workers = 0) and while
 * batches are being copied to a GPU, where only next() finds out that a copy is done.
 *
 * The loader owns it: do not read, write or close it. It is closed with the loader's last batch or
 * DLPack tensor, else by destroy. Every call returns the same one. From the first call on, next()
 * does no worker's share, and AUTO no longer tunes the number of workers, since the library cannot
 * see you wait. A loader that is not asked for its descriptor has no cost for it.
 *
 * Consumer thread. error may be NULL. Errors, which leave *fd untouched: STOKER_EINVAL,
 * STOKER_EFORKED, STOKER_ENOFILE (too many open files), STOKER_ENOMEM. */
STOKER_API int stoker_loader_fd(stoker_loader *loader, int *fd, stoker_error *error);

/* Interrupt next(): the call that waits, or else the following one, returns STOKER_INTERRUPTED, a
 * normal stop after which next() continues where it was. Several interrupts before that count as
 * one. If next() makes rows itself (num_workers = 0), it returns between two rows; with
 * non_blocking false, only after the copy to the GPU. Any thread between create and destroy, and
 * signal handlers. Returns STOKER_OK, STOKER_EINVAL or STOKER_EFORKED. */
STOKER_API int stoker_loader_interrupt(stoker_loader *loader);

/* Stop and join every worker, free everything, set *loader to NULL. NULL and a pointer to NULL are
 * allowed. If batches are lent or tensors are out, the memory of all batches stays until the last
 * of them is released. Workers start no other row; destroy waits until they have returned from your
 * code (codec, data set, reader), however long that takes, and none of it is called after destroy
 * returns. Waits at most 5 seconds for reads in flight: memory to which a stuck device may still
 * write is leaked, and the data set with it. */
STOKER_API void stoker_loader_destroy(stoker_loader **loader);

/* Replace *loader by another one over the same data set: like stoker_loader_destroy() followed by
 * stoker_loader_create() with `options`, but the cache stays if the new loader caches the same rows
 * in the same place. Use it to continue at another epoch or position (options.resume,
 * stoker_state_seek()), or with another batch size, without reading samples again. Not kept: rows
 * in GPU memory (cache DEVICE), and rows of a loader with options.reader.
 *
 * The options are checked first: if one is refused, *loader stays as it is. After any other failure
 * *loader is NULL and the cache is freed. *error, which may be NULL, has the cause. Errors as for
 * create; STOKER_EINVAL also if *loader is NULL. Consumer thread. */
STOKER_API int stoker_loader_restart(stoker_loader **loader, const stoker_loader_options *options,
                                     stoker_error *error);

/* Return the error of the last call of next(): the one that ended the run, or the argument that was
 * refused. NULL if it returned STOKER_OK or a normal stop, and if loader is NULL. Owned by the
 * loader, valid until the next call of next(). Consumer thread; any thread to compare it to
 * NULL. */
STOKER_API const stoker_error *stoker_loader_error(const stoker_loader *loader);

/* Bytes of a state. If stoker_loader_change_mix() changed the weights of a mix, each change adds
 * 8 x (1 + sources) bytes. */
enum { STOKER_STATE_BYTES = 64 };

/* Write the state of a loader, to save in a checkpoint and to resume from (options.resume). It
 * holds the position in the order after the last batch that next() delivered, and has the same
 * bytes on every machine.
 *
 * Writes the state to `state`, which has room for `capacity` bytes, and its size in bytes to *size,
 * even if capacity is too small. size may be NULL. Pass state NULL and capacity 0 for the size
 * alone, which changes only with a change of weights.
 *
 * The position counts the samples that all ranks together have consumed in the epoch, so ranks that
 * delivered the same number of batches have the same state. The reader, workers, prefetch, cache,
 * batch size, world size and options.deal may differ on resume: the remaining samples are divided
 * into global batches anew, and each is still delivered once. While batch_size x world_size stays
 * the same, so do the samples of each global batch.
 *
 * The state also identifies the seed, the order and the data set: its format, count, element type
 * and shape; stoker_dataset_info.fingerprint; the names (relative to the root) and sizes of its
 * files; and for up to 65,536 evenly spread samples the label, the location of the bytes and, in
 * shards, the checksum. A moved or copied data set is accepted. No file is read, so new bytes in a
 * file of the same name and size are noticed only in shards. The first call for a data set computes
 * all this: about 2 ms for 60,000 files.
 *
 * Consumer thread. error may be NULL. Errors: STOKER_EINVAL (loader is NULL), STOKER_EFORKED,
 * STOKER_ELIMIT (capacity is too small: nothing but *size is written). */
STOKER_API int stoker_loader_state(const stoker_loader *loader, void *state, size_t capacity,
                                   size_t *size, stoker_error *error);

/* Move a state of `size` bytes, in place, to where the same run has consumed `position` samples of
 * `epoch`, counted over all ranks. Changes of the weights of a mix keep their positions. The
 * position is checked when a loader resumes. On failure the state is unchanged. Any thread. error
 * may be NULL. Errors: STOKER_EINVAL (state is NULL), STOKER_ESTATE (it is damaged, cut, or of
 * another version). */
STOKER_API int stoker_state_seek(void *state, size_t size, uint64_t epoch, uint64_t position,
                                 stoker_error *error);

/* Return the index in batch.fields of the field with that name; -1 if there is none. Any thread. */
STOKER_API int32_t stoker_loader_find_field(const stoker_loader *loader, const char *name);

/* Return the batches per epoch of this loader. A resumed first epoch counts in full, like
 * batch.index. 0 with options.batch_values_max: epochs then differ. Any thread. */
STOKER_API uint64_t stoker_loader_batches_per_epoch(const stoker_loader *loader);

/* Copy report `index` (0, 1, ... in the order of detection) of a sample that was skipped or
 * substituted: its first error, one per sample. The first 1024 are kept. Any thread. Returns
 * STOKER_OK, STOKER_EINVAL past the last one, or STOKER_EFORKED. */
STOKER_API int stoker_loader_bad_sample(const stoker_loader *loader, uint64_t index,
                                        stoker_error *out);

STOKER_END_DECLS
#endif
