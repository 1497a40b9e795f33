/* stoker/loader.h - batches in order, prepared ahead by worker threads.
 *
 * Lifetime  create, then { next, release } per batch, then destroy.
 * Threads   One thread at a time, the consumer, calls next, release and state. stoker_loader_stats() may be
 *           called from any thread at any time.
 * Order     A pure function of (seed, epoch, position): the number of workers, the reader, the cache and the
 *           prefetch depth never change a byte.
 * fork()    The loader stays with the parent. In the child every call returns STOKER_EFORKED, and destroy frees
 *           nothing.
 */
#ifndef STOKER_LOADER_H
#define STOKER_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>
#include <stoker/field.h>
#include <stoker/hook.h>
#include <stoker/mixing.h>
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
    STOKER_BATCH_WINDOW_MAX = 1 << 20,
    STOKER_CHANNELS_MAX = 64 /* for a mean and std per channel, or for layout NCHW */
};

typedef enum stoker_switch {
    STOKER_SWITCH_AUTO = 0,
    STOKER_SWITCH_ON = 1,
    STOKER_SWITCH_OFF = 2
} stoker_switch;

/* Where batches are delivered. On a GPU, images and labels lie in its memory, which the host cannot read; see
 * stoker/cuda.h. */
typedef enum stoker_device {
    /* What the environment variable STOKER_DEVICE names (cpu, cuda, cuda:1), else the first GPU, else the CPU.
     * stats.device and device_reason report the choice. */
    STOKER_DEVICE_AUTO = 0,
    STOKER_DEVICE_CPU = 1,
    STOKER_DEVICE_CUDA = 2,     /* GPU options.device_index; an error if there is none */
    STOKER_DEVICE_CUDA_HOST = 3 /* pinned host memory; the caller issues the copy */
} stoker_device;

enum { STOKER_DEVICE_INDEX_MAX = 1024 };

/* Where JPEG files are decoded. */
typedef enum stoker_decode {
    STOKER_DECODE_CPU = 0,    /* by the workers */
    STOKER_DECODE_DEVICE = 1, /* by the GPU; create fails if that is impossible */
    STOKER_DECODE_AUTO = 2 /* by the GPU, if that is possible; stats.decode_reason says why not */
} stoker_decode;

/* What stays in memory after its first use. */
typedef enum stoker_cache {
    /* On a GPU: DEVICE if possible and if it fits in cache_bytes. Else DECODED if it fits, else ENCODED if it
     * fits, else NONE. NONE also if a copy would not pay: for token files (tokens:, documents:, packed:), whose rows cost
     * about as much to copy as to read from the page cache; for raw rows that overlap or repeat in their files, so that
     * the cache would exceed the files; and if epochs is 1, the order is a permutation and the cache is not shared.
     * stats.cache_reason says which. */
    STOKER_CACHE_AUTO = 0,
    STOKER_CACHE_NONE = 1,    /* read every sample every time */
    STOKER_CACHE_ENCODED = 2, /* samples as stored; as many as fit, never evicted */
    STOKER_CACHE_DECODED = 3, /* decoded rows; as many as fit, never evicted */
    /* All fields that come from a part, in GPU memory: uint8 images as they cross the bus, other fields as delivered.
     * The first batch that holds a sample copies its rows; later batches are gathered, transformed and converted on the
     * GPU, and only ids and what values() makes cross the bus. create fails if impossible: EDEVICE on the CPU, ENOMEM
     * if the rows do not fit, ENOTSUP if a field varies in length, beside hooks, for samples without parts, for masks
     * of images that are cropped or flipped at random, and for images that the GPU cannot convert. */
    STOKER_CACHE_DEVICE = 4
} stoker_cache;

/* The last batch of an epoch whose samples do not fill it. Ranks that share an epoch always get equally many batches. */
typedef enum stoker_last {
    /* It comes as it is: batch.count is smaller, and may differ between ranks, down to 0: see EVEN. */
    STOKER_LAST_SHORT = 0,
    /* It is left out on every rank, and with it fewer than batch_size x world_size samples per epoch. */
    STOKER_LAST_DROP = 1,
    /* It is filled up with the first samples of the same epoch, in its order: position p holds the sample of position
     * p modulo the number of samples. So every rank gets equally many full batches; batch.padded counts the samples
     * that were added, which are the last ones of the batch. */
    STOKER_LAST_PAD = 2,
    /* It is filled up in the same way, but only until every rank has as many samples as rank 0: with DEAL_POSITIONS world_size - 1
     * are added at most, as by PyTorch's DistributedSampler. So no rank gets an empty batch, whose mean loss would be NaN.
     * With batch_values_max a rank without a batch gets that of another one, all of it padded. With one rank it equals SHORT. */
    STOKER_LAST_EVEN = 3
} stoker_last;

/* How ranks divide a global batch, the next batch_size x world_size positions of the epoch. Its samples are the same either
 * way, and so is the number of batches, which `last` decides by the last global batch. */
typedef enum stoker_deal {
    /* Rank r takes every world_size-th position of it, beginning with the r-th. An incomplete last one is divided equally:
     * the ranks' numbers of samples differ by at most one. */
    STOKER_DEAL_POSITIONS = 0,
    /* Rank r takes the r-th batch_size positions of it. So the ranks' batches are, row by row, those that one rank with
     * the same batch_size takes one after the other, and N ranks make the passes of one rank that accumulates the gradients of
     * N batches. Of an incomplete last one with LAST_SHORT, the last ranks may get no samples. */
    STOKER_DEAL_BATCHES = 1
} stoker_deal;

/* What happens to a sample that cannot be read or decoded. */
typedef enum stoker_on_bad {
    STOKER_ON_BAD_FAIL = 0, /* next returns the sample's error */
    /* The batch comes without it: batch.count is smaller. An epoch without a single good sample ends the run with
     * STOKER_EBADSAMPLES instead of its last batch; if ranks share epochs, world_size epochs of this rank. */
    STOKER_ON_BAD_SKIP = 1,
    /* Another sample, drawn from (seed, epoch, position), replaces it: one of the same source if the data set is a mix. */
    STOKER_ON_BAD_SUBSTITUTE = 2
} stoker_on_bad;

/* What next() does when the slot of the next batch is still lent. Every batch that you hold, and every batch that is
 * released while DLPack tensors of it live, occupies a slot of the ring (on a GPU: a buffer of its memory). */
typedef enum stoker_on_lent {
    /* BUSY; but GROW, without its wait, if a DLPack tensor was made of the lent batch. */
    STOKER_ON_LENT_AUTO = 0,
    STOKER_ON_LENT_BUSY = 1, /* return STOKER_BUSY at once */
    /* Wait for a release or the last deleter of a DLPack tensor, in any thread; STOKER_BUSY at the timeout. */
    STOKER_ON_LENT_WAIT = 2,
    /* The batch stays where it is, and other memory takes its slot's place: nothing is copied. That memory is
     * allocated when it is needed, page-locked like the slots (GPU memory on a GPU), reused once its batch is
     * returned, and freed by destroy; what no batch of an entire epoch has used gives its pages back, unless page-locked or on a GPU. When lent_bytes_max is used up, or nothing can be allocated: as WAIT.
     * stats.lent_reason says which. */
    STOKER_ON_LENT_GROW = 3
} stoker_on_lent;

/* How much a message of options.on_log matters. Later versions may have others, above WARNING. */
typedef enum stoker_log_level {
    STOKER_LOG_INFO = 0,   /* what the library chose, and why */
    STOKER_LOG_WARNING = 1 /* it got less than was asked for, or continues without something */
} stoker_log_level;

/* A position in the order: a token to store beside a checkpoint, the same bytes on every machine. It does not
 * depend on workers, prefetch or cache; batch size, world size and options.deal may differ on resume.
 *
 * It counts the positions of the epoch that all ranks together have taken, so after equally many batches it is the same on
 * every rank. A resume divides the positions after them into global batches, also if batch_size x world_size does not
 * divide their number: every sample still comes once. While that product stays the same, so do the samples of each global
 * batch.
 *
 * It holds a fingerprint of the data set: format, count, element type and shape; stoker_dataset_info.fingerprint;
 * names (relative to the data set's root) and sizes of the files; and for up to 65,536 evenly spread samples the
 * label, the location of the bytes and, in shards, the checksum. Another data set is refused with STOKER_ESTATE;
 * a moved or copied one is accepted. No file is read, so new bytes in a file of the same name and size are noticed
 * only in shards. */
typedef struct stoker_state {
    uint8_t bytes[64];
} stoker_state;

/* Which samples an epoch holds. Every kind is a pure function of (seed, epoch, position): it does not depend on workers,
 * ranks share its positions, and it resumes. */
typedef enum stoker_order_kind {
    /* shuffle = false: 0, 1, 2, ...; true: a permutation that differs in each epoch; of a data set with weights (see
     * stoker_dataset_balance) as WEIGHTED */
    STOKER_ORDER_DEFAULT = 0,
    STOKER_ORDER_WEIGHTED = 1, /* drawn with replacement, id i with probability weights[i] / sum */
    STOKER_ORDER_OWN = 2,      /* what `ids` says */
    STOKER_ORDER_UNIFORM = 3   /* drawn with replacement, all alike: without a table of weights */
} stoker_order_kind;

/* An order beyond `shuffle`, which WEIGHTED and OWN ignore. Start from STOKER_ORDER_INIT.
 *
 * A resume token holds a hash of kind, length, weights, name and fingerprint, and is refused with another order.
 * Random transforms are a function of (seed, epoch, sample id): a sample that comes twice in an epoch is transformed
 * alike both times. In a concat of a data set with itself each copy has transforms of its own. */
typedef struct stoker_order {
    size_t struct_size; /* set by STOKER_ORDER_INIT; checked by create */
    stoker_order_kind kind;
    /* Positions in an epoch, 1..2^62; only for orders that are no permutation. Default STOKER_LENGTH_AUTO = the number of
     * samples. */
    uint64_t length;
    /* WEIGHTED: one per sample, finite and >= 0, sum > 0; read by create, which makes a table of 16 bytes per sample.
     * The same ids are drawn on every machine. NULL (default) = the data set's own weights. */
    const double *weights;
    uint64_t weight_count; /* values in weights: the number of samples; default 0 = none */
    /* OWN: set ids_out[i] to the sample at position + i x stride of the epoch, for i < count; each below the number of
     * samples. Must be a pure function of its arguments. Called by workers, by several at a time, for a few dozen to a
     * few hundred rows at a time; may block, but then its batches wait. An error (< 0; text in error->message) or an id
     * that does not exist ends the run. */
    int (*ids)(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
               uint64_t *ids_out, stoker_error *error);
    void *self; /* passed to ids; must outlive the loader. Default NULL */
    /* OWN: what a resume token knows of `ids`: a name, and a number that differs if its parameters do. Read by create.
     * Default NULL and 0: nothing. */
    const char *name;
    uint64_t fingerprint;
} stoker_order;

#define STOKER_LENGTH_AUTO UINT64_MAX /* in stoker_order.length */

#define STOKER_ORDER_DEFAULTS                                                                      \
    STOKER_DEFAULT(struct_size, sizeof(stoker_order))                                              \
    STOKER_DEFAULT(length, STOKER_LENGTH_AUTO)

STOKER_MAKER(stoker_order, STOKER_ORDER_DEFAULTS)
#define STOKER_ORDER_INIT STOKER_INITIALIZER(stoker_order, STOKER_ORDER_DEFAULTS)
STOKER_API int stoker_order_init_sized(stoker_order *out, size_t struct_size);

/* Values of options that let the library choose. */
#define STOKER_EPOCHS_ENDLESS  UINT64_MAX
#define STOKER_BYTES_AUTO      UINT64_MAX
#define STOKER_PREFETCH_AUTO   UINT32_MAX
#define STOKER_READ_DEPTH_AUTO UINT32_MAX
#define STOKER_SCALE_AUTO      3.402823466e+38F /* the largest float */
#define STOKER_NO_LIMIT        UINT64_MAX       /* in max_bad_samples */
#define STOKER_RANK_AUTO       UINT32_MAX       /* in rank */

/* Start from STOKER_LOADER_OPTIONS_INIT and change what you need.
 * A 0 within a field's range is that number, and outside of it is refused with STOKER_EINVAL. */
typedef struct stoker_loader_options {
    size_t struct_size; /* set by STOKER_LOADER_OPTIONS_INIT; checked by create */

    /* ---- what most programs set ---- */

    /* Samples per batch and rank, 1..65536; a maximum with batch_values_max. An epoch that is shorter
     * is one short batch. Default 64. */
    uint32_t batch_size;
    bool shuffle;     /* a new order each epoch; default false: 0, 1, 2, ...; see `order` */
    stoker_last last; /* an epoch's incomplete last batch; default STOKER_LAST_SHORT */
    /* epochs until STOKER_FINISHED, 1..2^64 - 2; default STOKER_EPOCHS_ENDLESS */
    uint64_t epochs;
    uint64_t seed; /* the same seed gives the same order; default 0 */
    /* Worker threads, 1..256; 0 = all work is done in next(). Default STOKER_WORKERS_AUTO: starts with one per CPU
     * and tunes the number while the consumer waits, up to one per CPU. If samples are read or decoded and the
     * workers leave CPU time unused, up to four per CPU, at most 32 (or one per CPU, if that is more).
     * If the data set is in memory and the caller mostly waits, next() also does a worker's share: as an extra
     * worker if a CPU is free, else in place of the last one.
     * CPUs are those that affinity and control groups leave to this process. If the launcher's variables (stoker/ranks.h)
     * name several processes on this node they are divided: the threads of a process that the launcher has not bound to
     * fewer CPUs than its own keep to an equal, consecutive part of them; with a GPU each, to CPUs of the NUMA node of their
     * GPU, from which the slots' memory comes as well. For that each process must see all GPUs, take the one with the
     * number of its local rank, and find enough CPUs on every node. */
    int32_t num_workers;
    /* Element type of images, or of field 0: FLOAT32, FLOAT16 and BFLOAT16 convert, see scale; a wider integer type that
     * holds all values (uint16 to int32, int64, ...) keeps them, without transform. Default NONE = as stored. */
    stoker_dtype dtype;

    /* ---- reading ahead, and what stays in memory ---- */

    /* slots in the ring, for batches ahead and lent, 2..64; default STOKER_PREFETCH_AUTO */
    uint32_t prefetch_batches;
    uint32_t read_depth; /* reads in flight per worker, 1..1024; default STOKER_READ_DEPTH_AUTO */
    /* Your own reader, which then delivers every byte: see stoker/reader.h. NULL (default) = what the environment
     * variable STOKER_READER names (uring, pread), else io_uring if it works here, else pread. */
    const stoker_reader *reader;
    stoker_cache cache; /* default STOKER_CACHE_AUTO */
    /* Most bytes for the cache and its tables; GPU memory with DEVICE. Default STOKER_BYTES_AUTO = half of what the
     * machine and control groups leave at create, divided by the job's processes on this node (as the first
     * launcher of stoker/ranks.h says that gives their number), less what other loaders of this process reserved;
     * with DEVICE, half of the free GPU memory. */
    uint64_t cache_bytes;
    /* One cache for all loaders of a job on this node that read the same files in the same form, of any process: samples
     * are read and decoded once and lie in memory once. Equal files, positions of samples, fields, `resize` and kind of
     * cache are required, an equal user, PID namespace and user namespace (both sides look), and equal variables of the
     * launcher (TORCHELASTIC_RUN_ID, MASTER_ADDR, MASTER_PORT, PMIX_NAMESPACE, SLURM_JOB_ID, SLURM_STEP_ID); loaders that
     * differ have a cache each. Up to 250 share one at a time, those that were killed included.
     * cache_bytes is then the budget of the shared cache, AUTO's not divided by processes, and the first loader's counts.
     * The memory has no name in a file system and is freed when the last process ends, however it ends. A process that
     * is killed harms nobody. Before its first use of what another process has loaded, a loader compares a checksum, and
     * reads from the files what was changed by then; what such a process changes later is not noticed.
     * Impossible for samples that do not lie in files, with `reader`, and with DEVICE.
     * ON: create fails if impossible. Default AUTO: if the launcher's variables name several processes on this node;
     * stats.share_reason reports the choice. */
    stoker_switch share_cache;
    /* Batches that you keep. With WAIT and GROW any thread may release a batch, one thread per batch. The workers
     * refill its slot at once; on a GPU its buffer is refilled after the next call of next(). Default
     * STOKER_ON_LENT_AUTO. */
    stoker_on_lent on_lent;
    /* Most bytes that GROW allocates for batches that are kept, GPU memory on a GPU. Default STOKER_BYTES_AUTO = an
     * eighth of the memory available when the first one is kept; in host memory divided by the job's processes on
     * this node. */
    uint64_t lent_bytes_max;

    /* ---- device ---- */

    stoker_device device; /* default STOKER_DEVICE_CPU */
    /* GPU for STOKER_DEVICE_CUDA and _CUDA_HOST, as CUDA counts, 0..1023; default 0 */
    uint32_t device_index;
    /* Page-lock the slots. ON: create fails if impossible. Default AUTO: ON for a GPU, else OFF. */
    stoker_switch pin_memory;
    /* true: batches are copied to the GPU ahead, and next() returns before the copy is done; see
     * stoker_batch_wait_on(). false: next() copies the batch and waits. Ignored on the CPU. Default true. */
    bool non_blocking;
    /* On a GPU: copy uint8 rows with 1 to 4 channels as stored; the GPU applies transforms, type, scale, mean, std
     * and layout, with the same bits as the CPU. Images that differ in size are resized or transformed on the CPU
     * first. ON: create fails if impossible. OFF: the CPU does everything. Default AUTO: if possible and no more
     * bytes are copied that way; stats.converts_on_device reports the choice. */
    stoker_switch convert_on_device;

    /* ---- images ---- */

    stoker_layout layout; /* axis order of images: NHWC (default) or NCHW */
    /* The float types float32, float16 and bfloat16 get value * scale; any finite number but 0; others take only 1. Default STOKER_SCALE_AUTO = 1/255 for uint8 data, else
     * 1. */
    float scale;
    /* subtracted after scale, per channel; NULL (default) = 0. Copied by create */
    const float *mean;
    /* divides after mean, per channel, > 0; NULL (default) = 1. Copied by create */
    const float *std;
    /* values in mean and in std: 1 for all channels, or one per channel; default 0 = none */
    uint32_t mean_count;
    /* For uint8 images with 1 to 4 channels; default none. The cache holds what precedes the random part.
     * DECODED, if the CPU transforms: images after `resize`; without it, images as decoded, if they have the data
     * set's size. AUTO takes ENCODED if sizes may differ and `resize` is not set. DEVICE: the same, or finished
     * images if sizes differ and nothing is random. */
    stoker_transform transform;

    /* What to do with single fields, by name; others keep the defaults. Copied by create. Default NULL, 0. */
    const stoker_field_options *fields;
    uint32_t field_count;

    /* ---- order, distributed and resumed runs ---- */

    /* Draw samples by weight, or in an order of your own. Read by create. Default NULL = `shuffle` decides. */
    const stoker_order *order;
    /* This process's share of every epoch, < world_size; default 0. STOKER_RANK_AUTO: rank and world_size are those of
     * stoker_ranks_from_environment(), and world_size must be 1 or the same. */
    uint32_t rank;
    uint32_t world_size;        /* processes that share the epochs, 1..2^20; default 1 */
    const stoker_state *resume; /* continue after this state; NULL (default) = from the start */

    /* ---- bad samples and diagnostics ---- */

    stoker_on_bad on_bad_sample; /* default STOKER_ON_BAD_FAIL */
    /* More bad samples than this end the run with STOKER_EBADSAMPLES; 0 = the first one does. A sample that is bad in
     * several epochs counts once; every loader, also a resumed one, counts from 0. Default STOKER_NO_LIMIT. Unused
     * with FAIL. */
    uint64_t max_bad_samples;
    /* Events per thread to record for stoker_loader_trace(), 40 bytes each, 0..2^24, rounded up to a power of two;
     * allocated by create. Default 0. */
    uint32_t trace_events;
    /* Receives messages, one line of printable text each, which is valid during the call: the device, the reader and the
     * cache that were chosen, and why; what was not available (io_uring, page-locking, memory for a cache or for kept
     * batches, open files); samples that were skipped or substituted: the first ten, then the 20th, the 40th and so on,
     * with path and offset. Errors are not among them: calls return those. The library itself never prints.
     * Called in the thread that calls create or next(), before they return, never in a worker: what workers have to say
     * waits there, up to 32 messages, and a further message counts those that were lost. It must not call functions of
     * this loader but stats and interrupt. Default NULL = none. */
    void (*on_log)(void *self, stoker_log_level level, const char *message);
    void *log_self; /* passed to on_log; default NULL */

    /* ---- your own code ---- */

    /* Your own code on each row, and on each complete batch: see stoker/hook.h. Copied by create; what they point to must
     * outlive the loader. Default NULL = none. */
    const stoker_row_hook *row_hook;
    const stoker_batch_hook *batch_hook;

    /* ---- mixing samples of a batch ---- */

    stoker_mixing mixing; /* mixup and cutmix: see stoker/mixing.h; default none */

    /* ---- several ranks ---- */

    /* Which samples of a global batch this rank takes; the same on all ranks. Ignored with one rank. May differ on resume.
     * Default STOKER_DEAL_POSITIONS. */
    stoker_deal deal;
    /* For ranks that are threads of one process: this one's index among them, < local_world_size, and their number,
     * 1..2^20. This loader's threads and automatic sizes then take that share of the CPUs and the memory that the process may use.
     * Default 0 and 0 = processes that a launcher started share them, as stoker_ranks_from_environment() finds. */
    uint32_t local_rank;
    uint32_t local_world_size;

    /* ---- decoding on a GPU ---- */

    /* For batches on a GPU: workers read files and check their structure, the GPU decodes them by NVIDIA's nvImageCodec, whose
     * library is loaded by name (STOKER_NVIMGCODEC names a file), and transforms them; the bytes of the file cross the bus.
     * That is done with common JPEG files of data sets whose codec says that its parts are such files (inspect() of
     * stoker/codec.h: folder, tar and shards): gray or YCbCr, with as many channels as the rows. The CPU decodes all other
     * images, and those that the GPU refuses; what is wrong with them is then known, and on_bad_sample applies.
     * Such images get other pixels than from the CPU, by a few levels: another inverse transform. Damage inside of the coded data
     * that the GPU's decoder does not notice is delivered; checksums of shards find it before.
     * Samples stay in memory as stored, or with cache DEVICE in GPU memory: DECODED is impossible. So are hooks, other types
     * than uint8 with 1 or 3 channels, decode_scale FAST, an image that shares its part with other fields, and mixing
     * unless the GPU converts rows. Errors: STOKER_EDEVICE (no GPU, or no library), STOKER_ENOTSUP.
     * Default STOKER_DECODE_CPU. */
    stoker_decode decode;

    /* ---- resuming from a state of any size ---- */

    /* Instead of `resume`: what stoker_loader_state_write() wrote, and its size. Read by create. Default NULL, 0. */
    const void *resume_bytes;
    size_t resume_byte_count;

    /* ---- batches of samples that differ in length ---- */

    /* Most values of a batch, for example tokens: the lengths of its samples in the first field that varies, as the batch holds
     * them, so with padding if that field is padded: rows x the longest, rounded up. A batch then has as many samples as fit, up to
     * batch_size, which is the capacity of its memory. At least what the longest sample takes. Default 0 = no limit:
     * all batches have batch_size samples.
     *
     * Batches are planned in windows of batch_window positions of the order: of padded rows, those of about the same length come
     * together, and the batches of a window in a random order; other rows keep their order. Nothing is left out. A batch is
     * a function of seed, epoch and window, and rank r of w takes batches r, r + w, ...: all ranks have equally many, with
     * LAST_SHORT some perhaps an empty last one (LAST_EVEN: never), and `deal` is ignored. A run resumes on another number of ranks with the same
     * sequence of batches; batch_size, batch_values_max, batch_window and the field's form must be the same.
     *
     * All ranks plan all batches, each by asking for the lengths of all samples: a step costs a rank the planning of
     * world_size batches, in one thread, while the other workers wait. stoker_dataset_lengths() must know the lengths. How many
     * batches an epoch has is not known before its end, so stoker_loader_batches_per_epoch() is 0, and batch.index counts
     * from 0 after a resume. A substitute for a bad sample may be longer than it. Not with LAST_PAD.
     * In a mix (stoker/mix.h) windows keep the shares, batches need not. */
    uint64_t batch_values_max;
    /* Positions per window, 1..2^20; more give less padding, and mix lengths less over an epoch. Default 8192. */
    uint32_t batch_window;
} stoker_loader_options;

#define STOKER_LOADER_OPTIONS_DEFAULTS                                                             \
    STOKER_DEFAULT(struct_size, sizeof(stoker_loader_options))                                     \
    STOKER_DEFAULT(batch_size, 64)                                                                 \
    STOKER_DEFAULT(epochs, STOKER_EPOCHS_ENDLESS)                                                  \
    STOKER_DEFAULT(num_workers, STOKER_WORKERS_AUTO)                                               \
    STOKER_DEFAULT(prefetch_batches, STOKER_PREFETCH_AUTO)                                         \
    STOKER_DEFAULT(read_depth, STOKER_READ_DEPTH_AUTO)                                             \
    STOKER_DEFAULT(cache_bytes, STOKER_BYTES_AUTO)                                                 \
    STOKER_DEFAULT(lent_bytes_max, STOKER_BYTES_AUTO)                                              \
    STOKER_DEFAULT(device, STOKER_DEVICE_CPU)                                                      \
    STOKER_DEFAULT(non_blocking, true)                                                             \
    STOKER_DEFAULT(scale, STOKER_SCALE_AUTO)                                                       \
    STOKER_DEFAULT(transform, STOKER_TRANSFORM_INIT)                                               \
    STOKER_DEFAULT(world_size, 1)                                                                  \
    STOKER_DEFAULT(max_bad_samples, STOKER_NO_LIMIT)                                               \
    STOKER_DEFAULT(mixing.probability, 1.0F)                                                       \
    STOKER_DEFAULT(mixing.cutmix_share, 0.5F)                                                      \
    STOKER_DEFAULT(batch_window, 8192)

STOKER_MAKER(stoker_loader_options, STOKER_LOADER_OPTIONS_DEFAULTS)
#define STOKER_LOADER_OPTIONS_INIT                                                                 \
    STOKER_INITIALIZER(stoker_loader_options, STOKER_LOADER_OPTIONS_DEFAULTS)
STOKER_API int stoker_loader_options_init_sized(stoker_loader_options *out, size_t struct_size);

/* One batch, borrowed from the loader until it is released. Start from STOKER_BATCH_INIT. */
typedef struct stoker_batch {
    size_t struct_size; /* set by STOKER_BATCH_INIT; kept by next and release */
    /* [count, ...]; shape as the data set's or after options.transform; in options.layout */
    stoker_tensor images;
    stoker_tensor labels; /* [count]; dtype NONE and data NULL if there are no labels */
    /* All fields, in the data set's order, then those of options.mixing: see stoker_batch_field(). images are the
     * values of field 0, labels those of the field "label" if it is one int64 or float32 per sample. */
    const stoker_field *fields;
    uint32_t field_count;
    const uint64_t *ids; /* [count] sample ids, in host memory */
    /* Samples: batch_size, or fewer in an epoch's last batch and after skips. May be 0 there, since every rank gets
     * the same number of batches. */
    uint32_t count;
    /* The last `padded` of them were added by options.last PAD or EVEN: the epoch holds them at another position, too. */
    uint32_t padded;
    uint64_t epoch; /* 0, 1, ... */
    /* Index in the epoch, 0 .. batches_per_epoch - 1. Continues after a resume; if batch or world size changed, it
     * is chosen so that the epoch's last batch has the last index. */
    uint64_t index;
    stoker_device device;       /* where images and labels lie; never AUTO */
    uint32_t device_index;      /* the GPU; 0 on the CPU */
    const uint64_t *device_ids; /* [count] the ids again, where images lie */
    stoker_loader *loader;      /* private */
    void *lease;                /* private */
    uint64_t turn;              /* private */
} stoker_batch;

#define STOKER_BATCH_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_batch))

STOKER_MAKER(stoker_batch, STOKER_BATCH_DEFAULTS)
#define STOKER_BATCH_INIT STOKER_INITIALIZER(stoker_batch, STOKER_BATCH_DEFAULTS)
STOKER_API int stoker_batch_init_sized(stoker_batch *out, size_t struct_size);

/* Check the options, allocate all memory, start the workers. The loader shares the data set: close
 * yours when you like. On success *out belongs to the caller; on failure it is untouched, nothing is
 * left behind, and *error has the cause. options (NULL = the defaults) and error may be NULL.
 * Errors: STOKER_EINVAL (an option; the message names it), EBATCH (with STOKER_LAST_DROP batch_size x
 * world_size is larger than the data set, or, with batch_values_max, an epoch has fewer batches than
 * ranks), ELIMIT (more than 2^62 samples), ETYPE, ENOTSUP (an option that is ON is impossible here, or a file has no descriptor
 * and `reader` is NULL), ENOMEM, EPIN, ETHREAD, EREADER, EDEVICE, ESTATE, ECHANGED (see stoker/dataset.h). */
STOKER_API int stoker_loader_create(stoker_loader **out, const stoker_dataset *dataset,
                                    const stoker_loader_options *options, stoker_error *error);

/* Borrow the next batch. Waits at most timeout_ms milliseconds; -1 = no limit, 0 = do not wait. If next() makes rows
 * itself (see num_workers), it checks the time between rows: a single call of a codec or reader may exceed it.
 * *batch is written only on STOKER_OK, up to batch->struct_size bytes. Several batches may be held at
 * once: fewer than prefetch_batches, or as many as options.on_lent allows. After you moved a batch to
 * another variable, set *batch to STOKER_BATCH_INIT.
 *
 * Returns STOKER_OK or a normal stop: STOKER_EPOCH_END once after each epoch's last batch;
 * STOKER_FINISHED after options.epochs epochs, on every call; STOKER_INTERRUPTED (see
 * stoker_loader_interrupt()); STOKER_TIMEOUT (call again, nothing is lost); STOKER_BUSY (the slot of
 * the next batch is lent: release it, or see options.on_lent).
 * Errors, which stoker_loader_error() explains: STOKER_EINVAL (timeout_ms is below -1,
 * batch->struct_size is not set, or *batch is still lent); STOKER_EFORKED; or the first error of a
 * stage, on every call from then on. */
STOKER_API int stoker_loader_next(stoker_loader *loader, stoker_batch *batch, int32_t timeout_ms);

/* Set *fd to a descriptor that is readable while next() would not wait: for poll(), epoll and the loops of events that are
 * built on them. When it is readable call next() with timeout_ms 0, until that returns STOKER_TIMEOUT or you want no
 * more batches. It is readable at the end of an epoch, after an error and an interrupt, and if a call returns BUSY at once, too.
 *
 * With edges (EPOLLET, as tokio and mio use it) likewise: call next() with timeout_ms 0 until it
 * returns something else than STOKER_OK. An edge follows once it is worth calling again, after
 * STOKER_TIMEOUT at once if only next() gets further; none follows STOKER_BUSY before you
 * release a batch.
 *
 * It may be readable although next() then returns STOKER_TIMEOUT, or with on_lent WAIT or GROW STOKER_BUSY: wait again. It is always readable without workers
 * (num_workers = 0) and while batches are being copied to a GPU, where only next() finds out that a copy is done.
 *
 * It belongs to the loader: do not read, write or close it. destroy closes it, or the last DLPack tensor of the loader if
 * that lives longer. Every call returns the same one. Once there is one, next() does no worker's share any more, and the
 * number of workers that AUTO chooses stays as it is, since the library does not see you wait. A loader without one pays
 * nothing for it.
 *
 * Consumer thread. Errors: STOKER_EINVAL, STOKER_EFORKED, STOKER_ENOFILE (too many open files), STOKER_ENOMEM; then *fd is
 * untouched. error may be NULL. */
STOKER_API int stoker_loader_fd(stoker_loader *loader, int *fd, stoker_error *error);

/* Let the call of next() that waits, or the following one, return STOKER_INTERRUPTED: a normal stop, after which next()
 * continues where it was. Several interrupts before that count as one. If next() makes rows itself (see num_workers), it
 * returns between two rows; it does not return while it waits for a copy to a GPU. Any thread between create and destroy,
 * and signal handlers. Returns STOKER_OK, STOKER_EINVAL or STOKER_EFORKED. */
STOKER_API int stoker_loader_interrupt(stoker_loader *loader);

/* Return a batch to the loader. Its pointers become invalid, and *batch is zeroed except for struct_size. Batches may
 * be released in any order. NULL and a released or empty batch are allowed. A batch on a GPU is released as by
 * stoker_batch_release_on(), with the stream that last waited for it, or the default stream if none did. Consumer
 * thread; any thread if options.on_lent is WAIT or GROW. */
STOKER_API void stoker_batch_release(stoker_batch *batch);

/* Stop and join every worker, free everything, set *loader to NULL. NULL and a pointer to NULL are allowed. Batches
 * still lent become invalid. Waits for the call of your code (codec, data set, reader) that a worker is in, however
 * long it takes; no worker starts another row, and none of your code is called after the return. Waits at most 5
 * seconds for reads in flight: memory that a stuck device may still write to is leaked, and the data set
 * with it. */
STOKER_API void stoker_loader_destroy(stoker_loader **loader);

/* Put another loader over the same data set in *loader's place: as stoker_loader_destroy(), then stoker_loader_create() with
 * `options`, but what the first one has cached stays if the second one caches the same rows: options that decide what is cached,
 * and where, are the same. So a run can continue at another epoch or position (options.resume, stoker_state_seek()), or with another
 * batch size, without reading its samples again. Not kept: rows in GPU memory (cache DEVICE), and rows of a loader with options.reader.
 * The options are checked first: if one is refused, *loader stays as it is. After any other failure
 * *loader is NULL and the cache is freed. *error, which may be NULL, has the cause, as for create;
 * EINVAL also if *loader is NULL. Consumer thread. */
STOKER_API int stoker_loader_restart(stoker_loader **loader, const stoker_loader_options *options,
                                     stoker_error *error);

/* Why the last call of next() returned a negative code: the error that ended the run, or the argument
 * that was refused. NULL if it returned STOKER_OK or a normal stop, and if loader is NULL. Valid until
 * the next call of next(). Consumer thread; any thread if it only asks whether the run has failed. */
STOKER_API const stoker_error *stoker_loader_error(const stoker_loader *loader);

/* The state after the last batch that next() delivered. The first call for a data set computes its fingerprint:
 * about 2 ms for 60,000 files. Consumer thread. Returns STOKER_OK, STOKER_EINVAL, STOKER_EFORKED, or STOKER_ESTATE if
 * the weights of a mix changed while it ran: the state is larger then, see stoker_loader_state_write(). */
STOKER_API int stoker_loader_state(const stoker_loader *loader, stoker_state *out);

/* The state in as many bytes as it needs: 64, the token of stoker_loader_state(), for an order that was fixed from the start;
 * more if the weights of a mix changed while it ran (stoker_loader_change_mix()), since the changes are in it. So a resume
 * needs nothing else; options.resume_bytes takes them. With such changes the first 64 bytes alone are refused. The size changes only
 * with a change of weights; 0 if loader is NULL. Consumer thread. */
STOKER_API size_t stoker_loader_state_size(const stoker_loader *loader);

/* Write the state; `size` must be what stoker_loader_state_size() returns. Consumer thread. Errors: STOKER_EINVAL or
 * STOKER_EFORKED, with *error filled in (NULL = not wanted); then bytes is untouched. */
STOKER_API int stoker_loader_state_write(const stoker_loader *loader, void *bytes, size_t size,
                                         stoker_error *error);

/* Move a token to another position: *state becomes the token of the same run, data set and order after `position` samples
 * of `epoch`, counted over all ranks. A loader that resumes with it checks that an epoch has as many. On failure *state is
 * unchanged. Any thread. Returns STOKER_OK, STOKER_EINVAL if state is NULL, or STOKER_ESTATE if it is no token, is damaged
 * or is of another version. */
STOKER_API int stoker_state_seek(stoker_state *state, uint64_t epoch, uint64_t position,
                                 stoker_error *error);

/* Move a state of any size, as stoker_loader_state_write() writes it: as stoker_state_seek() for its token; changes of the weights
 * of a mix stay in it, with their positions. On failure bytes is unchanged. Any thread. */
STOKER_API int stoker_state_bytes_seek(void *bytes, size_t size, uint64_t epoch, uint64_t position,
                                       stoker_error *error);

/* The field of a batch with that name, valid until the batch is released; NULL if there is none, if the
 * batch is not lent, and for NULL. Any thread. */
STOKER_API const stoker_field *stoker_batch_field(const stoker_batch *batch, const char *name);

/* The index in batch.fields of the field with that name, 0 .. field_count - 1; -1 if there is none.
 * Any thread. */
STOKER_API int32_t stoker_loader_find_field(const stoker_loader *loader, const char *name);

/* Batches per epoch of this loader. A resumed first epoch counts in full, as batch.index does. 0 with
 * options.batch_values_max: epochs then differ. */
STOKER_API uint64_t stoker_loader_batches_per_epoch(const stoker_loader *loader);

/* Copy report `index` (0, 1, ... in the order of detection) of a sample that was skipped or substituted: its first
 * error, one per sample. The first 1024 are kept. Returns STOKER_OK, STOKER_EINVAL past the last one, or
 * STOKER_EFORKED. Any thread. */
STOKER_API int stoker_loader_bad_sample(const stoker_loader *loader, uint64_t index,
                                        stoker_error *out);

STOKER_END_DECLS
#endif
