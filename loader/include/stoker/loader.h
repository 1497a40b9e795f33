/* stoker/loader.h - batches in order, prepared ahead by worker threads.
 *
 * Lifetime  create, then { next, release } per batch, then destroy.
 * Threads   One consumer thread per loader, or one after the other, calls next, release and state;
 *           stoker_loader_stats() may be called from any thread at any time.
 * Order     A pure function of (seed, epoch, position): the number of workers, the
 *           reader, the cache and the prefetch depth never change a byte.
 * fork()    The loader stays with the parent: in the child every call answers
 *           STOKER_EFORKED, and destroy only forgets.
 */
#ifndef STOKER_LOADER_H
#define STOKER_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>
#include <stoker/reader.h>
#include <stoker/tensor.h>
#include <stoker/transform.h>

STOKER_BEGIN_DECLS

typedef struct stoker_loader stoker_loader;

enum {
    STOKER_WORKERS_AUTO = -1, /* tuned while running */
    STOKER_WORKERS_MAX = 256,
    STOKER_BATCH_MAX = 65536,
    STOKER_PREFETCH_MAX = 64,
    STOKER_READ_DEPTH_MAX = 1024,
    STOKER_CHANNELS_MAX = 64 /* with a mean and std each, or in another layout */
};

typedef enum stoker_switch { STOKER_AUTO = 0, STOKER_ON = 1, STOKER_OFF = 2 } stoker_switch;

/* Where batches are delivered. On a GPU images and labels lie in its memory, where the host cannot
 * read them; see stoker/cuda.h. */
typedef enum stoker_device {
    /* What the environment variable STOKER_DEVICE names (cpu, cuda, cuda:1), else the first GPU, else
     * the CPU; stats say which and why. */
    STOKER_DEVICE_AUTO = 0,
    STOKER_DEVICE_CPU = 1,
    STOKER_DEVICE_CUDA = 2,     /* GPU number options.device_index; an error if there is none */
    STOKER_DEVICE_CUDA_HOST = 3 /* host memory that CUDA has page-locked, for who copies himself */
} stoker_device;

enum { STOKER_DEVICE_INDEX_MAX = 1024 };

/* What is kept in memory after its first use. */
typedef enum stoker_cache {
    /* For a GPU, DEVICE if it can be and fits in cache_bytes; DECODED if it fits, else ENCODED, else
     * NONE. */
    STOKER_CACHE_AUTO = 0,
    STOKER_CACHE_NONE = 1,    /* read every sample every time */
    STOKER_CACHE_ENCODED = 2, /* samples as stored; what fits, for good */
    STOKER_CACHE_DECODED = 3, /* rows; what fits, for good */
    /* Rows as uint8 in GPU memory, all of them, copied there by the first batches that hold them. Batches
     * are gathered, transformed and converted there, and of a batch whose rows are held only labels and
     * ids cross the bus. An error where that cannot be: EDEVICE on the CPU, ENOMEM where they do not
     * fit, ENOTSUP for other rows. */
    STOKER_CACHE_DEVICE = 4
} stoker_cache;

typedef enum stoker_on_bad {
    STOKER_BAD_FAIL = 0, /* next returns the sample's error */
    STOKER_BAD_SKIP = 1, /* the batch comes without it: count is smaller. A whole epoch without one
                            good sample ends the run with STOKER_EBADSAMPLES instead of its last
                            batch; where ranks share an epoch, world_size epochs of this rank */
    STOKER_BAD_SUBSTITUTE = 2 /* another sample, drawn from (seed, epoch, position), stands in */
} stoker_on_bad;

/* Where an order stands: a token to store beside a checkpoint. Same bytes on every
 * machine. It does not depend on workers, prefetch or cache; batch size and world
 * size may differ on resume.
 *
 * It carries a fingerprint of the data set: format, count, element type and shape; the number that
 * stoker_dataset_info.fingerprint gives; names (relative to the data set's root) and sizes of the files; and of
 * up to 65,536 samples, evenly spread, the label, where the bytes lie and, in shards, their checksum. Another data
 * set is refused with STOKER_ESTATE; a moved or copied one is accepted. No file is read for it: new bytes in a
 * file of the same name and size are noticed in shards only. */
typedef struct stoker_state {
    uint8_t bytes[64];
} stoker_state;

/* Start from STOKER_LOADER_OPTIONS_INIT and change what you need. */
typedef struct stoker_loader_options {
    size_t struct_size;        /* set by STOKER_LOADER_OPTIONS_INIT; checked by create */
    uint64_t seed;             /* same seed, same order; default 0 */
    uint32_t batch_size;       /* samples per batch and rank, 1..65536; default 64 */
    int32_t num_workers;       /* 1..256 threads; 0 = in the caller's thread. Over a set in memory
                                  a caller that mostly waits works in next as well: beside them,
                                  or in the last one's place where every CPU has a worker;
                                  default STOKER_WORKERS_AUTO: begins with one per CPU and changes
                                  their number while the consumer waits. Up to four per CPU, at
                                  most 32 (or one per CPU, if that is more), if samples are read
                                  or decoded and leave CPU time unused; else one per CPU */
    uint32_t prefetch_batches; /* slots in the ring: batches ahead and lent, 2..64;
                                  default 0 = choose */
    uint32_t read_depth;       /* reads in flight per worker, 1..1024; default 0 = choose */
    int32_t timeout_ms;        /* longest wait in next, milliseconds; default -1 = no limit. Where
                                  next itself makes rows (num_workers = 0, or see there) the time is
                                  looked at between rows: one call of a codec or reader may take longer */
    uint64_t epochs;           /* epochs until STOKER_FINISHED; default 0 = endless */
    bool shuffle;              /* a new order each epoch; default false: 0, 1, 2, ... */
    bool drop_last;            /* leave out an incomplete last batch; default false */
    stoker_device device;      /* default STOKER_DEVICE_CPU: the host can read it anywhere */
    stoker_switch pin_memory;  /* page-lock the slots. ON: an error if that fails. Default AUTO:
                                  ON for a GPU, else OFF */
    bool non_blocking;         /* batches for a GPU are copied ahead, and next returns before the
                                  copy is done: see stoker_batch_wait_on. false: next copies the
                                  batch and waits for that. No matter on the CPU; default true */
    stoker_cache cache;        /* default STOKER_CACHE_AUTO */
    /* Most memory the cache may take, for rows and what manages them; GPU memory with DEVICE. Default 0 = half of
     * what the machine and control groups leave at create, divided by the processes of the job
     * on this node (LOCAL_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_SIZE, SLURM_NTASKS_PER_NODE), less
     * what other loaders of this process reserved. With DEVICE: half of the GPU's free memory. */
    uint64_t cache_bytes;

    stoker_dtype dtype;   /* element type of images; default NONE = as stored.
                                  FLOAT32, FLOAT16, BFLOAT16 convert; see scale */
    stoker_layout layout; /* of images: NHWC (default) or NCHW */
    float scale;          /* float types get value * scale, then (. - mean) / std;
                                  default 0 = 1/255 for uint8 data, else 1 */
    const float *mean;    /* per channel; NULL (default) = 0. Copied by create */
    const float *std;     /* per channel, > 0; NULL (default) = 1. Copied by create */
    uint32_t mean_count;  /* values in mean and in std: 1 for all channels, or as many as
                                  there are channels; default 0 = neither is given */

    uint32_t rank;       /* this process's share of every epoch, < world_size; default 0 */
    uint32_t world_size; /* processes that share the epochs, 1..2^20; default 0 = 1 */

    stoker_on_bad on_bad_sample; /* default STOKER_BAD_FAIL */
    uint64_t max_bad_samples;    /* more bad samples than this end the run with
                                      STOKER_EBADSAMPLES. A sample that is bad in several epochs
                                      counts once; each loader counts anew, a resumed one too;
                                      default 0 = no limit; unused with FAIL */

    const stoker_state *resume;  /* go on after this state; NULL (default) = from the start */
    const stoker_reader *reader; /* a reader of your own, which then delivers every byte, see
                                    stoker/reader.h; NULL (default) = choose: what
                                    STOKER_READER names (uring, pread, null), else io_uring
                                    if it works here, else pread */
    stoker_error *error;         /* filled in when create fails; NULL (default) = not wanted */

    stoker_switch convert_on_device; /* on a GPU: rows of uint8 with 1 to 4 channels are copied as
                                        stored and get transforms, type, scale, mean, std and layout
                                        there, with the same bits. Images that differ in size are
                                        resized or transformed by the CPU before. ON: an error if
                                        it cannot be; OFF: the CPU does all; default AUTO: where it
                                        can and copies no more bytes for it, stats say whether */
    uint32_t device_index; /* with STOKER_DEVICE_CUDA or _CUDA_HOST: which GPU, as CUDA counts,
                              0..1023; default 0 */
    uint32_t trace_events; /* record what each thread does, for stoker_loader_trace(): room for so
                              many events of 40 bytes per thread, 1..2^24, rounded up to a power
                              of two; taken at create. Default 0 = do not record */

    stoker_transform transform; /* of uint8 images with 1 to 4 channels; default all 0 = none.
                                   Where the CPU transforms, DECODED then caches what precedes
                                   the random part: images as `resize` gives them, else as they
                                   are, where they have the data set's size; AUTO takes ENCODED
                                   where they need not. DEVICE keeps the same, or images as made
                                   where sizes differ and nothing is random */
} stoker_loader_options;

#define STOKER_LOADER_OPTIONS_DEFAULTS                                                             \
    STOKER_DEFAULT(struct_size, sizeof(stoker_loader_options))                                     \
    STOKER_DEFAULT(batch_size, 64)                                                                 \
    STOKER_DEFAULT(num_workers, STOKER_WORKERS_AUTO)                                               \
    STOKER_DEFAULT(timeout_ms, -1)                                                                 \
    STOKER_DEFAULT(device, STOKER_DEVICE_CPU)                                                      \
    STOKER_DEFAULT(non_blocking, true)

#ifdef __cplusplus
static inline stoker_loader_options stoker_loader_options_made(void)
{
    stoker_loader_options made = {};
    STOKER_LOADER_OPTIONS_DEFAULTS
    return made;
}
#define STOKER_LOADER_OPTIONS_INIT stoker_loader_options_made()
#else
#define STOKER_LOADER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        STOKER_LOADER_OPTIONS_DEFAULTS                                                             \
    }
#endif

/* One batch, borrowed from the loader until it is released. */
typedef struct stoker_batch {
    stoker_tensor images; /* [count, ...]; shape as the data set's or, with
                                   options.transform, what that gives; in options.layout */
    stoker_tensor labels; /* [count]; dtype NONE and data NULL if there are no labels */
    const uint64_t *ids;  /* [count] sample ids, in host memory */
    uint32_t count;       /* samples; batch_size but in an epoch's last batch, or after skips.
                               May be 0 there: every rank gets the same number of batches */
    uint64_t epoch;       /* 0, 1, ... */
    /* Of the batch in its epoch, 0 .. batches_per_epoch - 1. It continues after a resume. If batch or world size
     * differ from before, it is counted so that the epoch's last batch has the last index. */
    uint64_t index;
    stoker_device device;       /* where images and labels lie: never AUTO */
    uint32_t device_index;      /* on which GPU; 0 on the CPU */
    const uint64_t *device_ids; /* [count] the ids once more, where images lie */
    stoker_loader *loader;      /* private */
    uint64_t turn;              /* private */
} stoker_batch;

/* Check the options, take all memory, start the workers. dataset must outlive the
 * loader. On success *out belongs to the caller; on failure it is untouched,
 * nothing is left behind, and options->error tells why.
 * Errors: STOKER_EINVAL (an option; the message names it), EBATCH (batch_size, with drop_last times
 * world_size, is larger than the data set), ELIMIT (the set has more than 2^62 samples), ETYPE, ENOTSUP (ON
 * was asked for and cannot be here, or a file has no descriptor and `reader` is not given), ENOMEM, EPIN,
 * ETHREAD, EREADER, EDEVICE, ESTATE, ECHANGED (see stoker/dataset.h). */
STOKER_API int stoker_loader_create(stoker_loader **out, const stoker_dataset *dataset,
                                    const stoker_loader_options *options);

/* Borrow the next batch. Waits at most options.timeout_ms.
 * Returns STOKER_OK; STOKER_EPOCH_END once after each epoch's last batch;
 * STOKER_FINISHED after options.epochs epochs, again and again; STOKER_ETIMEDOUT
 * (try again, nothing is lost); STOKER_EBUSY (the slot of the batch that comes next is
 * lent: release it); STOKER_EFORKED; or the first error of a stage, from then on the same
 * one. *batch is written only on STOKER_OK.
 * Several batches may be held at once, fewer than prefetch_batches. */
STOKER_API int stoker_loader_next(stoker_loader *loader, stoker_batch *batch);

/* Hand a batch back; its pointers are dead then, and *batch is zeroed. Batches may be
 * released in any order. NULL and a zeroed batch are allowed: nothing happens. A batch on a GPU is
 * released as by stoker_batch_release_on, with the stream that last waited for it, or the default
 * stream if none did. */
STOKER_API void stoker_batch_release(stoker_batch *batch);

/* Stop and join every worker, free everything, set *loader to NULL. NULL and a pointer
 * to NULL are allowed. Batches still lent are dead after it. When it returns, nothing of yours (codec,
 * data set, reader) is called any more: it waits for the call that each worker is in, however long
 * that takes, and no worker begins another row. For reads in flight it waits
 * at most 5 seconds; what a stuck device still owns then is leaked, never freed, the data set with it:
 * stoker_dataset_close() forgets it then. */
STOKER_API void stoker_loader_destroy(stoker_loader **loader);

/* The first error of this loader, or NULL if there was none. Valid until destroy. */
STOKER_API const stoker_error *stoker_loader_error(const stoker_loader *loader);

/* The state after the last batch that next delivered. The first call for a data set computes its
 * fingerprint: about 2 ms for 60,000 files. Consumer thread. */
STOKER_API int stoker_loader_state(const stoker_loader *loader, stoker_state *out);

/* Batches in an epoch of this loader; a resumed first epoch counts in full, as batch.index does. */
STOKER_API uint64_t stoker_loader_batches_per_epoch(const stoker_loader *loader);

/* Report number `index` (0, 1, ... in the order of detection) of a bad sample that was
 * skipped or substituted, one for each sample: what it was at the first time. Those of the first
 * 1024 samples are kept. Returns STOKER_OK, or STOKER_EINVAL past
 * the last. Any thread. */
STOKER_API int stoker_loader_bad_sample(const stoker_loader *loader, uint64_t index,
                                        stoker_error *out);

STOKER_END_DECLS
#endif
