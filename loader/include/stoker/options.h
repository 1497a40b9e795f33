/* stoker/options.h - all options of a loader, with their ranges and defaults.
 *
 *   stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
 *   options.batch_size = 256;
 *   options.shuffle = true;
 *
 * Most programs set only the first group of stoker_loader_options. The rest tunes itself or stays
 * off.
 */
#ifndef STOKER_OPTIONS_H
#define STOKER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/blend.h>
#include <stoker/error.h>
#include <stoker/field.h>
#include <stoker/hook.h>
#include <stoker/reader.h>
#include <stoker/tensor.h>
#include <stoker/transform.h>

STOKER_BEGIN_DECLS

enum {
    STOKER_WORKERS_AUTO = -1, /* tuned while running */
    STOKER_WORKERS_MAX = 256,
    STOKER_BATCH_MAX = 65536,
    STOKER_PREFETCH_MAX = 64,
    STOKER_READ_DEPTH_MAX = 1024,
    STOKER_BATCH_WINDOW_MAX = 1 << 20,
    STOKER_DEVICE_INDEX_MAX = 1024,
    STOKER_CHANNELS_MAX = 64 /* for a mean and std per channel, or for layout NCHW */
};

/* Values that let the library choose, or that set no limit. */
#define STOKER_EPOCHS_ENDLESS  UINT64_MAX
#define STOKER_PREFETCH_AUTO   UINT32_MAX
#define STOKER_READ_DEPTH_AUTO UINT32_MAX
#define STOKER_SCALE_AUTO      3.402823466e+38F /* the largest float */
#define STOKER_NO_LIMIT        UINT64_MAX       /* in max_bad_samples */
#define STOKER_RANK_AUTO       UINT32_MAX       /* in rank */
#define STOKER_LENGTH_AUTO     UINT64_MAX       /* in stoker_order.length, block_samples */

typedef enum stoker_switch {
    STOKER_SWITCH_AUTO = 0,
    STOKER_SWITCH_ON = 1,
    STOKER_SWITCH_OFF = 2
} stoker_switch;

/* ---- the last batch, ranks and the order ---- */

/* What happens to an epoch's last batch if the samples do not fill it. Ranks that share an epoch
 * always get the same number of batches. */
typedef enum stoker_last {
    /* Deliver it short: batch.count is smaller. It may differ between ranks, and be 0: see EVEN. */
    STOKER_LAST_SHORT = 0,
    /* Drop it on every rank: fewer than batch_size x world_size samples per epoch. */
    STOKER_LAST_DROP = 1,
    /* Pad it with the first samples of the same epoch, in order: position p holds the sample of
     * position p modulo the number of samples. All batches are full. batch.padded counts the added
     * samples, the last ones of the batch. */
    STOKER_LAST_PAD = 2,
    /* Pad it the same way, but only until every rank has as many samples as rank 0. With
     * DEAL_POSITIONS that adds at most world_size - 1 samples, like PyTorch's DistributedSampler.
     * No rank gets an empty batch, whose mean loss would be NaN. With batch_values_max, a rank
     * without a batch gets a copy of another rank's, all of it padding. With one rank, as SHORT. */
    STOKER_LAST_EVEN = 3
} stoker_last;

/* How ranks divide a global batch, the next batch_size x world_size positions of the epoch. Neither
 * the samples of a global batch nor the number of batches depend on it. */
typedef enum stoker_deal {
    /* Rank r takes every world_size-th position, starting with the r-th. An incomplete last global
     * batch is divided equally: the ranks' shares differ by at most one sample. */
    STOKER_DEAL_POSITIONS = 0,
    /* Rank r takes the r-th batch_size positions. N ranks get the same batches, row by row, as one
     * rank with the same batch_size gets one after the other, for example to accumulate their
     * gradients. With LAST_SHORT the last ranks may get no samples of an incomplete last global
     * batch. */
    STOKER_DEAL_BATCHES = 1
} stoker_deal;

/* How to choose the samples of an epoch. Every kind is a pure function of (seed, epoch, position):
 * it does not depend on the workers, ranks divide its positions, and a loader can resume it. */
typedef enum stoker_order_kind {
    /* Without options.shuffle 0, 1, 2, ...; with it a new permutation each epoch, or WINDOW if the
     * data set declares blocks, or WEIGHTED if it has weights. */
    STOKER_ORDER_DEFAULT = 0,
    STOKER_ORDER_WEIGHTED = 1, /* draw with replacement, id i with probability weights[i] / sum */
    STOKER_ORDER_OWN = 2,      /* call `ids` */
    STOKER_ORDER_UNIFORM = 3,  /* draw with replacement, all ids with the same probability */
    /* A new permutation each epoch that uses each block of samples within a short time: of the
     * blocks, then of the samples within window_blocks of them. Of a mix: each source has its own.
     * docs/order.md shows how random it is. */
    STOKER_ORDER_WINDOW = 4
} stoker_order_kind;

/* The order of samples. Start from STOKER_ORDER_INIT. Kinds other than DEFAULT ignore `shuffle`.
 *
 * A state contains a hash of kind, length, weights, name, fingerprint, and of windows and blocks;
 * create refuses to resume with another order. Random transforms are a function of (seed, epoch,
 * sample id), so a sample drawn twice in an epoch is transformed the same way both times.
 */
typedef struct stoker_order {
    size_t struct_size; /* set by STOKER_ORDER_INIT; checked by create */
    stoker_order_kind kind;
    /* Positions in an epoch, 1..2^62; not for permutations. Default STOKER_LENGTH_AUTO = the number
     * of samples. */
    uint64_t length;
    /* WEIGHTED: one per sample, finite and >= 0, with a sum > 0. Read by create, which makes a
     * table of 16 bytes per sample. Every machine draws the same ids. Default NULL = the data set's
     * weights. */
    const double *weights;
    uint64_t weight_count; /* values in weights: the number of samples; default 0 = none */
    /* OWN: set ids_out[i] to the sample at position + i x stride of the epoch, for i < count. Must
     * be a pure function of its arguments. Called by several workers at once, for a few dozen to a
     * few hundred rows per call; it may block, which delays the batches. Return 0, or < 0 with the
     * reason in error->message. An error, or an id not below the number of samples, ends the
     * run. */
    int (*ids)(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
               uint64_t *ids_out, stoker_error *error);
    void *self; /* passed to ids; must outlive the loader. Default NULL */
    /* OWN: a name for `ids`, and a number that changes with its parameters, to recognize the order
     * on resume. Read by create. Default NULL and 0. */
    const char *name;
    uint64_t fingerprint;
    /* WINDOW, and DEFAULT if that is one: blocks that are shuffled together, >= 1, of mean size. At
     * any time at most lanes x (window_blocks + 1) blocks are in use; ranks divide them if
     * world_size divides lanes. As many as there are, or more: the permutation without blocks.
     * Default 4. */
    uint64_t window_blocks;
    /* WINDOW, and DEFAULT if that is one: independent walks through the blocks, 1..65536, from
     * which the positions of an epoch come in turn. Default 64. */
    uint32_t lanes;
    /* WINDOW, of a data set or source that declares no blocks: samples per block, 1..2^62. Default
     * STOKER_LENGTH_AUTO: about 4 MiB as stored. */
    uint64_t block_samples;
} stoker_order;

#define STOKER_ORDER_DEFAULTS                                                                      \
    STOKER_DEFAULT(struct_size, sizeof(stoker_order))                                              \
    STOKER_DEFAULT(length, STOKER_LENGTH_AUTO)                                                     \
    STOKER_DEFAULT(window_blocks, 4)                                                               \
    STOKER_DEFAULT(lanes, 64)                                                                      \
    STOKER_DEFAULT(block_samples, STOKER_LENGTH_AUTO)

STOKER_MAKER(stoker_order, STOKER_ORDER_DEFAULTS)
#define STOKER_ORDER_INIT STOKER_INITIALIZER(stoker_order, STOKER_ORDER_DEFAULTS)
STOKER_API int stoker_order_init_sized(stoker_order *out, size_t struct_size);

/* ---- memory and devices ---- */

/* What stays in memory after its first use. */
typedef enum stoker_cache {
    /* On a GPU, DEVICE if possible and all rows fit in memory_bytes. Else DECODED if all rows fit,
     * else ENCODED if all samples fit, each as long as the longest or all of them in the files that
     * hold them, else NONE. Rows that are as cheap to make as to copy, of token files and raw ones
     * that overlap or repeat in their files: ENCODED if they are shuffled, or for 4 epochs or more;
     * of tokens that are delivered as stored, DECODED if they are shuffled; else NONE. NONE also if
     * epochs is 1, the order is a permutation and the cache is not shared. stats.cache_reason
     * reports the choice. */
    STOKER_CACHE_AUTO = 0,
    STOKER_CACHE_NONE = 1, /* read every sample every time */
    /* Samples as stored; those that come first, never evicted. Of cheap rows (see AUTO) pieces of
     * 2 MiB of their files, copied from the page cache. */
    STOKER_CACHE_ENCODED = 2,
    STOKER_CACHE_DECODED = 3, /* decoded rows; as many as fit, never evicted */
    /* All fields that are read from a part, in GPU memory: uint8 images as they cross the bus,
     * other fields as delivered. The first batch that holds a sample copies its rows; later batches
     * are gathered, transformed and converted on the GPU, and only ids and fields of values() cross
     * the bus. create fails if impossible: EDEVICE on the CPU, ENOMEM if the rows do not fit,
     * ENOTSUP if a field varies in length, with hooks, for samples without parts, for masks of
     * images that are cropped or flipped at random, and for images that the GPU cannot convert. */
    STOKER_CACHE_DEVICE = 4
} stoker_cache;

/* What next() does when the slot of the next batch is still lent. Every batch that you hold, and
 * every released batch with live DLPack tensors, occupies a slot of the ring (on a GPU, a buffer in
 * GPU memory). */
typedef enum stoker_on_lent {
    /* BUSY; but GROW, without its wait, if a DLPack tensor was made of the lent batch. */
    STOKER_ON_LENT_AUTO = 0,
    STOKER_ON_LENT_BUSY = 1, /* return STOKER_BUSY at once */
    /* Wait until any thread releases the batch or deletes its last DLPack tensor; STOKER_BUSY at
     * the timeout. */
    STOKER_ON_LENT_WAIT = 2,
    /* Give the slot other memory, so the batch can stay lent: nothing is copied. The memory is
     * allocated on demand, page-locked like the slots (GPU memory on a GPU), reused once its batch
     * is returned, and freed by destroy. Pages that no batch of a whole epoch used are returned to
     * the system, unless page-locked or on a GPU. As WAIT if memory_bytes is used up or an
     * allocation fails; stats.lent_reason says which. */
    STOKER_ON_LENT_GROW = 3
} stoker_on_lent;

/* Where batches are delivered. On a GPU, images and labels lie in its memory, which the host cannot
 * read; see stoker/cuda.h. */
typedef enum stoker_device {
    /* The device that the environment variable STOKER_DEVICE names (cpu, cuda, cuda:1), else the
     * first GPU, else the CPU. stats.device and device_reason report the choice. */
    STOKER_DEVICE_AUTO = 0,
    STOKER_DEVICE_CPU = 1,
    STOKER_DEVICE_CUDA = 2,     /* GPU options.device_index; an error if there is none */
    STOKER_DEVICE_CUDA_HOST = 3 /* page-locked host memory; the caller issues the copy */
} stoker_device;

/* Where JPEG files are decoded. */
typedef enum stoker_decode {
    STOKER_DECODE_CPU = 0,    /* by the workers */
    STOKER_DECODE_DEVICE = 1, /* by the GPU; create fails if that is impossible */
    STOKER_DECODE_AUTO = 2    /* by the GPU if possible; stats.decode_reason says why not */
} stoker_decode;

/* ---- bad samples and messages ---- */

/* What happens to a sample that cannot be read or decoded. */
typedef enum stoker_on_bad {
    STOKER_ON_BAD_FAIL = 0, /* next returns the sample's error */
    /* Deliver the batch without it: batch.count is smaller. An epoch without a good sample ends the
     * run with STOKER_EBADSAMPLES instead of its last batch. If ranks share epochs, only after
     * about world_size such epochs in a row: the good samples may have been on other ranks. */
    STOKER_ON_BAD_SKIP = 1,
    /* Replace it by another sample, drawn from (seed, epoch, position); in a mix, from the same
     * source. The run ends as with SKIP. */
    STOKER_ON_BAD_SUBSTITUTE = 2
} stoker_on_bad;

/* Severity of a message to options.on_log. Later versions may add levels above WARNING. */
typedef enum stoker_log_level {
    STOKER_LOG_INFO = 0,   /* what the library chose, and why */
    STOKER_LOG_WARNING = 1 /* a fallback, or less than was asked for */
} stoker_log_level;

/* ---- all options ---- */

/* Start from STOKER_LOADER_OPTIONS_INIT and change what you need. A 0 is never replaced by a
 * default: it is a value, or refused with STOKER_EINVAL if it is out of range. */
typedef struct stoker_loader_options {
    size_t struct_size; /* set by STOKER_LOADER_OPTIONS_INIT; checked by create */

    /* ---- what most programs set ---- */

    /* Samples per batch and rank, 1..65536; a maximum with batch_values_max. An epoch with fewer
     * samples is one short batch. Default 64. */
    uint32_t batch_size;
    bool shuffle;     /* a new order each epoch; default false: 0, 1, 2, ...; see `order` */
    stoker_last last; /* an epoch's incomplete last batch; default STOKER_LAST_SHORT */
    uint64_t epochs;  /* epochs until STOKER_FINISHED, 1..2^64 - 2; default STOKER_EPOCHS_ENDLESS */
    uint64_t seed;    /* of the order and of all random transforms; default 0 */
    /* Element type of field 0 as delivered: FLOAT32, FLOAT16 or BFLOAT16, see `scale`; or, without
     * transform, a wider integer type (uint16 as int32, int64, ...). Default NONE = as stored. */
    stoker_dtype dtype;

    /* ---- reading and memory ---- */

    /* Worker threads, 1..256; 0 = all work is done in next(). Default STOKER_WORKERS_AUTO: start
     * with one per CPU and tune the number, up to one per CPU. If samples are read or decoded and
     * the workers leave CPU time unused, up to four per CPU, at most 32 or one per CPU. If the data
     * set is in memory and the caller mostly waits, next() also does a worker's share. See
     * stoker/ranks.h for how processes of a node divide its CPUs. */
    int32_t num_workers;
    /* Slots in the ring, for lent batches and those ahead, 2..64; default STOKER_PREFETCH_AUTO */
    uint32_t prefetch_batches;
    uint32_t read_depth; /* reads in flight per worker, 1..1024; default STOKER_READ_DEPTH_AUTO */
    stoker_cache cache;  /* default STOKER_CACHE_AUTO */
    /* Limit on the bytes of the slots, the cache with its tables, and what GROW allocates together;
     * create fails with ENOMEM if it is less than two slots, or prefetch_batches, take. The cache
     * leaves an eighth, or what these take. An eighth of what the cache leaves may hold notes about
     * images of which parts are decoded (stats.notes_bytes). GPU memory has the same limit, of its
     * own. Default STOKER_BYTES_AUTO: for cache and notes half of the memory that the machine and
     * control groups leave at create, divided by the job's processes on this node (stoker/ranks.h),
     * less what other loaders of this process reserved; at most an eighth of what is left at create
     * for slots, and of what is left when the first batch is kept for GROW. On a GPU the same parts
     * of its free memory. */
    uint64_t memory_bytes;
    /* Limit on the bytes of unpacked blocks, for files that consist of blocks (stoker_file.blocks),
     * in addition to memory_bytes. Workers share them. A block takes as many bytes as the longest
     * one, and twice as many while it is unpacked. Create fails with EINVAL if there is no room for
     * one block per worker and one more. Memory is taken as blocks need it. Default
     * STOKER_BYTES_AUTO: a quarter of the memory that is left at create, divided by the job's
     * processes on this node, at least that room. */
    uint64_t block_memory_bytes;
    /* Share one cache between all loaders of a job on this node, in any process, that read the same
     * files in the same form: each sample is read, decoded and kept once. Loaders must agree in
     * files, positions of samples, fields, `resize` and kind of cache; in user, PID namespace and
     * user namespace (both sides check); and in the launcher's variables (TORCHELASTIC_RUN_ID,
     * MASTER_ADDR, MASTER_PORT, PMIX_NAMESPACE, SLURM_JOB_ID, SLURM_STEP_ID). Others have a cache
     * of their own. Up to 250 loaders share one, including killed ones. The first loader's
     * memory_bytes limits it for all; AUTO does not divide it by processes.
     *
     * The memory has no name in a file system and is freed when the last process ends, however it
     * ends. A killed process does no damage. A loader verifies a checksum before it first uses a
     * sample that another process loaded, and reads damaged samples from the files; later damage is
     * not noticed. Impossible for samples outside of files, with `reader`, and with DEVICE. ON:
     * create fails if impossible. Default AUTO: on if the launcher's variables name several
     * processes on this node; stats.share_reason reports the choice. */
    stoker_switch share_cache;
    /* What happens to batches that you keep. With WAIT and GROW any thread may release a batch, one
     * thread per batch. Workers refill its slot at once; on a GPU its buffer is refilled after the
     * next call of next(). Default STOKER_ON_LENT_AUTO. */
    stoker_on_lent on_lent;

    /* ---- device ---- */

    stoker_device device; /* default STOKER_DEVICE_CPU */
    /* CUDA's index of the GPU for STOKER_DEVICE_CUDA and _CUDA_HOST, 0..1023; default 0 */
    uint32_t device_index;
    /* Page-lock the slots. ON: create fails if impossible. Default AUTO: ON for a GPU, else OFF. */
    stoker_switch pin_memory;
    /* true: copy batches to the GPU ahead; next() returns before the copy is done; see
     * stoker_batch_wait_on(). false: next() copies the batch and waits. Ignored on the CPU. Default
     * true. */
    bool non_blocking;
    /* On a GPU: copy uint8 rows with 1 to 4 channels as stored; the GPU applies transforms, type,
     * scale, mean, std and layout, with the same bits as the CPU. Images that differ in size are
     * resized or transformed on the CPU first. ON: create fails if impossible. OFF: the CPU does
     * everything. Default AUTO: if possible and no more bytes are copied that way;
     * stats.converts_on_device reports the choice. */
    stoker_switch convert_on_device;
    /* For batches on a GPU: workers read files and check their structure; the GPU decodes them with
     * NVIDIA's nvImageCodec, loaded by name or from the file that STOKER_NVIMGCODEC names, and
     * transforms them. Only the bytes of the files cross the bus. Applies to common JPEG files
     * (gray or YCbCr, with as many channels as the rows) of data sets whose codec has
     * STOKER_CODEC_FILE (folder, tar and shards). The CPU decodes all other images and those that
     * the GPU refuses, so on_bad_sample applies as usual.
     *
     * Pixels differ from the CPU's by a few levels, since the inverse transform differs. Damage
     * within the coded data that the GPU's decoder does not notice is delivered; the checksums of
     * shards catch it. Samples are cached as stored, or with cache DEVICE in GPU memory. Impossible
     * with cache DECODED, hooks, types other than uint8 with 1 or 3 channels, decode_scale FAST, an
     * image that shares its part with other fields, and `blend` unless the GPU converts rows.
     * Errors: STOKER_EDEVICE (no GPU, or no library), STOKER_ENOTSUP. Default STOKER_DECODE_CPU. */
    stoker_decode decode;

    /* ---- images and fields ---- */

    stoker_layout layout; /* axis order of images: NHWC (default) or NCHW */
    /* Factor for float32, float16 and bfloat16, finite and not 0; other types require 1. Default
     * STOKER_SCALE_AUTO = 1/255 for data stored as uint8, else 1. */
    float scale;
    const float *mean; /* subtracted after scale, copied by create; default NULL = 0 */
    const float *std;  /* divisors after mean, > 0, copied by create; default NULL = 1 */
    /* Values in mean and in std: 1 for all channels, or one per channel; default 0 = none */
    uint32_t mean_count;
    /* For uint8 images with 1 to 4 channels; default none. A cache holds images before the first
     * random step: with DECODED after `resize` if the CPU transforms, else decoded images of the
     * data set's size. AUTO chooses ENCODED if sizes may differ and `resize` is not set. DEVICE:
     * the same, or finished images if sizes differ and nothing is random. */
    stoker_transform transform;
    stoker_blend blend; /* mixup and cutmix within a batch: see stoker/blend.h; default none */
    /* Options of single fields, by name; the others have the defaults. Copied by create. Default
     * NULL, 0. */
    const stoker_field_options *fields;
    uint32_t field_count;
    /* Limit on the values of a batch, for example tokens: the sum of its samples' lengths in the
     * first field that varies, padding included if that field is padded (rows x the longest,
     * rounded up). A batch has as many samples as fit, up to batch_size. At least the longest
     * sample's length. Default 0 = no limit: all batches have batch_size samples.
     *
     * Batches are planned in windows of batch_window positions of the order. Padded rows are
     * grouped by length, and the batches of a window shuffled; other rows keep their order. No
     * sample is dropped. A batch is a function of seed, epoch and window. Rank r of w takes batches
     * r, r + w, ...; all ranks get equally many, the last one possibly empty with LAST_SHORT, and
     * `deal` is ignored. A run resumes on another number of ranks with the same sequence of
     * batches; batch_size, batch_values_max, batch_window and the field's form must be the same.
     *
     * Every rank plans the batches of all ranks, in one thread, while its other workers wait.
     * stoker_dataset_lengths() must know the lengths. The number of batches of an epoch is unknown
     * before its end, so stoker_loader_batches_per_epoch() is 0, and batch.index counts from 0
     * after a resume. The substitute for a bad sample may be longer. Not with LAST_PAD. In a mix
     * (stoker/mix.h) windows keep the shares, batches may not. */
    uint64_t batch_values_max;
    /* Positions per window, 1..2^20. A larger window needs less padding, and distributes lengths
     * less evenly over an epoch. Default 8192. */
    uint32_t batch_window;

    /* ---- order, ranks and resuming ---- */

    /* Draw samples by weight, or in an order of your own. Read by create. Default NULL =
     * `shuffle`. */
    const stoker_order *order;
    /* Index of this process, < world_size; default 0. STOKER_RANK_AUTO: take rank and world_size
     * from stoker_ranks_from_environment(); world_size here must be 1 or the same. */
    uint32_t rank;
    uint32_t world_size; /* processes that share the epochs, 1..2^20; default 1 */
    /* Which samples of a global batch this rank takes; the same on all ranks. Ignored with one
     * rank. May differ on resume. Default STOKER_DEAL_POSITIONS. */
    stoker_deal deal;
    /* For ranks that are threads of one process: the index of this one, < local_world_size, and
     * their number, 1..2^20. This loader then uses its share of the process's CPUs and memory.
     * Default 0 and 0: processes divide the node as stoker_ranks_from_environment() finds. */
    uint32_t local_rank;
    uint32_t local_world_size;
    /* Continue from this state, resume_size bytes that stoker_loader_state() wrote. Read by create.
     * Default NULL, 0 = from the start. */
    const void *resume;
    size_t resume_size;

    /* ---- bad samples and diagnostics ---- */

    stoker_on_bad on_bad_sample; /* default STOKER_ON_BAD_FAIL */
    /* More bad samples than this end the run with STOKER_EBADSAMPLES; 0 = the first one does. A
     * sample that is bad in several epochs counts once; every loader counts from 0, even if
     * resumed. Unused with FAIL. Default STOKER_NO_LIMIT. */
    uint64_t max_bad_samples;
    /* Events per thread to record for stoker_loader_trace(), 40 bytes each, 0..2^24, rounded up to
     * a power of two; allocated by create. Default 0. */
    uint32_t trace_events;
    /* Receive messages, one line of printable text each, valid during the call: the device, the
     * reader and the cache that were chosen, and why; what was not available (io_uring,
     * page-locking, memory for a cache or for kept batches, open files); samples that were skipped
     * or substituted, with path and offset: the first ten, then the 20th, the 40th and so on.
     * Errors are returned, not logged. The library itself never prints.
     *
     * Called in the thread that calls create or next(), before they return, never in a worker. Up
     * to 32 messages of workers wait for that; another message counts the lost ones. It may call no
     * function of this loader but stats and interrupt. Default NULL = none. */
    void (*on_log)(void *self, stoker_log_level level, const char *message);
    void *log_self; /* passed to on_log; default NULL */

    /* ---- your own code ---- */

    /* Your own reader, which then reads every byte: see stoker/reader.h. Copied by create. Default
     * NULL = the one that the environment variable STOKER_READER names (uring, pread), else
     * io_uring if it works here, else pread. */
    const stoker_reader *reader;
    /* Your code for each row and each complete batch: see stoker/hook.h. Copied by create; `name`
     * and `self` must outlive the loader. Default NULL = none. */
    const stoker_row_hook *row_hook;
    const stoker_batch_hook *batch_hook;
} stoker_loader_options;

#define STOKER_LOADER_OPTIONS_DEFAULTS                                                             \
    STOKER_DEFAULT(struct_size, sizeof(stoker_loader_options))                                     \
    STOKER_DEFAULT(batch_size, 64)                                                                 \
    STOKER_DEFAULT(epochs, STOKER_EPOCHS_ENDLESS)                                                  \
    STOKER_DEFAULT(num_workers, STOKER_WORKERS_AUTO)                                               \
    STOKER_DEFAULT(prefetch_batches, STOKER_PREFETCH_AUTO)                                         \
    STOKER_DEFAULT(read_depth, STOKER_READ_DEPTH_AUTO)                                             \
    STOKER_DEFAULT(memory_bytes, STOKER_BYTES_AUTO)                                                \
    STOKER_DEFAULT(block_memory_bytes, STOKER_BYTES_AUTO)                                          \
    STOKER_DEFAULT(device, STOKER_DEVICE_CPU)                                                      \
    STOKER_DEFAULT(non_blocking, true)                                                             \
    STOKER_DEFAULT(scale, STOKER_SCALE_AUTO)                                                       \
    STOKER_DEFAULT(transform, STOKER_TRANSFORM_INIT)                                               \
    STOKER_DEFAULT(blend.probability, 1.0F)                                                        \
    STOKER_DEFAULT(blend.cutmix_share, 0.5F)                                                       \
    STOKER_DEFAULT(batch_window, 8192)                                                             \
    STOKER_DEFAULT(world_size, 1)                                                                  \
    STOKER_DEFAULT(max_bad_samples, STOKER_NO_LIMIT)

STOKER_MAKER(stoker_loader_options, STOKER_LOADER_OPTIONS_DEFAULTS)
#define STOKER_LOADER_OPTIONS_INIT                                                                 \
    STOKER_INITIALIZER(stoker_loader_options, STOKER_LOADER_OPTIONS_DEFAULTS)
STOKER_API int stoker_loader_options_init_sized(stoker_loader_options *out, size_t struct_size);

STOKER_END_DECLS
#endif
