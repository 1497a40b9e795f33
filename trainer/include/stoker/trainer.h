/* stoker/trainer.h - train a model with batches from a loader.
 *
 *   loader ──▶ step: forward, loss, backward ──▶ (every `accumulate` steps) clip, update, ema
 *
 * Memory   stoker_trainer_create() allocates all of it; stoker_trainer_get_memory() reports it.
 *          stoker_trainer_trim() frees the memory that carries no state between steps.
 * Errors   As in stoker/error.h; outputs are written only on success.
 * Threads  Call a trainer from one thread at a time. Its back end may start others.
 * Order    On the CPU, the same model, options, batches and number of threads give the same
 *          weights, bit for bit; on a GPU, with options.deterministic.
 */
#ifndef STOKER_TRAINER_H
#define STOKER_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/export.h>
#include <stoker/loader.h>
#include <stoker/model.h>
#include <stoker/tensor.h>

STOKER_BEGIN_DECLS

typedef struct stoker_trainer stoker_trainer;
typedef struct stoker_peer_group stoker_peer_group;
struct CUstream_st;

typedef enum stoker_optimizer {
    STOKER_OPTIMIZER_SGD = 0,
    STOKER_OPTIMIZER_ADAM,
    STOKER_OPTIMIZER_ADAMW,
    STOKER_OPTIMIZER_ADAGRAD,
    STOKER_OPTIMIZER_RMSPROP,
    STOKER_OPTIMIZER_ADADELTA,
    STOKER_OPTIMIZER_ADAMAX,
    STOKER_OPTIMIZER_ASGD
} stoker_optimizer;

typedef enum stoker_schedule {
    STOKER_SCHEDULE_CONSTANT = 0,
    STOKER_SCHEDULE_STEP, /* multiply by schedule_gamma every schedule_steps updates */
    /* from learning_rate to learning_rate x final_fraction, reached after total_updates */
    STOKER_SCHEDULE_COSINE,
    /* PyTorch's OneCycleLR with anneal_strategy "cos"; learning_rate is the peak */
    STOKER_SCHEDULE_ONE_CYCLE
} stoker_schedule;

/* The ranks: processes or threads that train one model, each on its own batches. See
 * options.peers. */
typedef enum stoker_peers {
    STOKER_PEERS_NONE = 0, /* this trainer alone */
    STOKER_PEERS_AUTO,     /* as stoker_ranks_from_environment() finds; one process: NONE */
    STOKER_PEERS_MPI,      /* all processes of MPI_COMM_WORLD */
    STOKER_PEERS_THREADS,  /* the threads of options.peer_group, in this process */
    STOKER_PEERS_NCCL      /* as AUTO, but on GPUs only and with NCCL even in one process */
} stoker_peers;

#define STOKER_BATCH_SIZE_AUTO UINT32_MAX       /* in options.batch_size: the largest that fits */
#define STOKER_BATCH_SIZE_SAME (UINT32_MAX - 1) /* in evaluation_batch_size: batch_size */
#define STOKER_THREADS_AUTO    UINT32_MAX       /* the CPUs that the process may use */
#define STOKER_LOSS_SCALE_AUTO (-1.0F)          /* 1, or as dynamic_loss_scale says */
#define STOKER_NORM_UNLIMITED  3.402823466e+38F /* in clip_norm: the largest float */

/* In options.learning_rate, rho and epsilon: PyTorch's default for that optimizer. */
#define STOKER_OPTIMIZER_DEFAULT (-1.0F)

/* Start from STOKER_TRAINER_OPTIONS_INIT, which holds the defaults. 0 is a value like any other:
 * learning_rate = 0 leaves the weights unchanged. A value out of range is STOKER_EINVAL. */
typedef struct stoker_trainer_options {
    /* Set by STOKER_TRAINER_OPTIONS_INIT. Fields missing from an older, smaller struct get their
     * defaults; bytes beyond this version's struct must be 0. */
    size_t struct_size;

    /* ---- what most programs set ---- */

    /* "cuda" (the first GPU), "cuda:1", "cpu", "ref"; "auto" (default NULL): "cuda" if a GPU and
     * the libraries that the model needs are available, else "cpu". */
    const char *backend;
    uint64_t seed; /* for initial weights and dropout; default 0 */
    /* Largest number of samples in a pass, 1..65536; default 64. STOKER_BATCH_SIZE_AUTO = as many
     * as fit in memory_budget; not with several ranks. */
    uint32_t batch_size;
    stoker_optimizer optimizer;
    /* >= 0. Default STOKER_OPTIMIZER_DEFAULT: 0.001 for Adam and AdamW, 0.002 for Adamax, 1 for
     * Adadelta, else 0.01. */
    float learning_rate;

    /* ---- batches and reports ---- */

    /* Passes per update, which uses the sum of their gradients, 1..2^20; default 1. */
    uint32_t accumulate;
    uint32_t evaluation_batch_size; /* samples, 1..65536; default STOKER_BATCH_SIZE_SAME */
    /* Samples in an epoch's last batch if that is smaller, 0..65536, so that create can prepare a
     * GPU for it; default 0 = unknown. */
    uint32_t last_batch_size;
    /* Report the loss every so many passes, 1..2^20; default 1. A report waits for the GPU. */
    uint32_t metrics_interval;

    /* ---- optimizer ---- */

    float momentum; /* SGD, RMSprop: 0..<1; default 0 */
    bool nesterov;  /* only SGD with momentum > 0; default false */
    float betas[2]; /* Adam, AdamW, Adamax: 0..<1; default 0.9, 0.999 */
    /* Adadelta's rho, RMSprop's alpha: 0..<1; default STOKER_OPTIMIZER_DEFAULT: 0.9, 0.99. */
    float rho;
    float epsilon; /* >= 0; default STOKER_OPTIMIZER_DEFAULT: 1e-8, Adadelta 1e-6, Adagrad 1e-10 */
    /* >= 0; default 0, also for AdamW, whose decay is decoupled (PyTorch's default: 0.01). */
    float weight_decay;
    float clip_norm; /* clip the gradients' 2-norm to this, > 0; default STOKER_NORM_UNLIMITED */
    /* Decay of the weights' exponential moving average, 0..<1; default 0 = keep none. */
    float ema_decay;

    /* ---- learning rate over time ---- */

    stoker_schedule schedule; /* default STOKER_SCHEDULE_CONSTANT */
    uint64_t total_updates;   /* COSINE, ONE_CYCLE: length of the schedule, >= 1 */
    /* Updates during which the rate first rises linearly: update i = 0, 1, ... has
     * (i + 1) / (warmup_updates + 1) of it. Fewer than total_updates, unless that is 0; default 0.
     * Not with ONE_CYCLE, which has schedule_rise. */
    uint64_t warmup_updates;
    uint64_t schedule_steps; /* STEP: updates between two drops, >= 1 */
    float schedule_gamma;    /* STEP: >= 0; default 0.1 */
    /* ONE_CYCLE: fraction of the updates in which the rate rises, 0..<1; default 0.3. */
    float schedule_rise;
    /* ONE_CYCLE: initial rate = learning_rate / schedule_start; > 0; default 25. */
    float schedule_start;
    float final_fraction; /* COSINE: 0..1; default 0. ONE_CYCLE ends at its initial rate / 1e4 */

    /* ---- numbers and algorithms ---- */

    /* Type of activations and their gradients: STOKER_DTYPE_FLOAT32 (default; 0 means the same),
     * FLOAT16 or BFLOAT16. Parameters, their gradients and statistics stay float32; convolutions
     * and linear layers read a 16-bit copy of their weights. FLOAT16 with STOKER_LOSS_SCALE_AUTO
     * turns on dynamic_loss_scale. "cpu" has no FLOAT16 (STOKER_EINVAL). BFLOAT16 needs AVX512_BF16
     * and oneDNN on "cpu", and compute capability 8.0 on "cuda" (STOKER_ENOTSUP). */
    stoker_dtype precision;
    /* Multiply each sample's loss by this so that 16-bit gradients do not underflow, > 0; default
     * STOKER_LOSS_SCALE_AUTO. PyTorch scales the mean over a batch, so its value for the same
     * effect is batch_size times this one. */
    float loss_scale;
    /* Start at loss_scale (AUTO: the largest power of two <= 65536 / batch_size). On overflow,
     * halve it and skip the update; after 2000 updates without overflow, double it. 2^-14..2^24.
     * Default false. */
    bool dynamic_loss_scale;
    /* Let tensor cores multiply float32 convolutions and linear layers in TF32, with 10 mantissa
     * bits, which is several times as fast. Default false: gradients equal those of "ref" to 1e-5.
     * Needs precision FLOAT32 and "cuda", or two devices of which one is a GPU. */
    bool tf32;
    /* Make a GPU give the same bits for the same input; default false. "cpu" and "ref" always do.
     * If true, they also sum each pass of an update separately (a second arena of gradients if
     * accumulate > 1), and ranks add their gradients after each pass, in rank order. The bits then
     * depend only on ranks x accumulate: N ranks equal one rank with N times `accumulate`. Ranks
     * with GPUs add theirs once per update: equal up to rounding if accumulate > 1. */
    bool deterministic;
    /* Time a GPU's algorithms and choose the fastest; default false = follow the library's
     * heuristics. Takes 0.5 s more at the start, until the GPU's clock has risen. Only on
     * "cuda". */
    bool benchmark;
    /* On a GPU, queue the operations of a step one by one; default false = launch each step as one
     * CUDA graph from its second run on. The results are the same. */
    bool uncaptured;

    /* ---- memory and devices ---- */

    /* Bytes the trainer may use on each device, >= 1; activations are recomputed as needed to fit.
     * Default STOKER_BYTES_AUTO = no limit; with STOKER_BATCH_SIZE_AUTO, half the available
     * memory. */
    uint64_t memory_budget;
    /* Segments of layers between which activations are kept, 0..8192; default 0 = keep all. */
    uint32_t checkpoint_segments;
    bool recompute_batch_norm; /* recompute the outputs of BatchNorm + ReLU; default false */
    uint32_t threads;          /* compute threads, 1..256; default STOKER_THREADS_AUTO */
    /* Run the first `split` layers on one device, the others on a second; default 0 = one device.
     * backend names both, as in "cuda:0,cuda:1" or "cpu,cuda:0"; only "ref" may appear twice.
     * Layers are counted as in stoker_model_summary(), without the input. Both parts must have
     * parameters, and the cut must not lie inside a residual block. The passes of an update overlap
     * if metrics_interval > 1. Results and checkpoints equal those of one device. Batches must be
     * in host memory. Not with several ranks. */
    uint32_t split;

    /* ---- ranks ---- */

    /* Ranks that train one model; default STOKER_PEERS_NONE. All ranks need the same model and
     * options (STOKER_EMISMATCH) and use rank 0's weights and seed. Each steps with its own share
     * of the samples (the loader's rank and world_size); batch_size counts one rank's. An update
     * sums all gradients: N ranks compute what one computes with N times `accumulate`.
     *
     * A call marked "All ranks" waits for the others. If one rank fails, stops or does not call it,
     * the others return STOKER_EPEER, and the message names that rank. create initializes MPI if
     * the program has not, through libstoker_mpi.so or the file in $STOKER_MPI; the program's exit
     * finalizes it.
     *
     * With "cuda", each rank uses the GPU with its rank on the node, unless "cuda:K" names one; two
     * ranks on one GPU are STOKER_EINVAL. "auto" is "cuda" if every rank has a GPU, else "cpu".
     * NCCL (libnccl.so.2, or the file in $STOKER_NCCL) sums in GPU memory, in its own order, so
     * results equal those of one rank up to rounding. Control messages use MPI if the launcher
     * provides it, else NCCL, whose id rank 0 hands out at $MASTER_ADDR, port $STOKER_PORT or
     * $MASTER_PORT + 1. */
    stoker_peers peers;
    /* Required with STOKER_PEERS_THREADS; else NULL (default). Each thread of the group creates its
     * own trainer and loader, with the same model, and gives its rank here and to the loader (rank
     * and world_size; also local_rank and local_world_size, so that loaders share the CPUs). The
     * first trainers that the ranks create train together, then the second ones, and so on.
     * Launchers are ignored, and gradients are summed as with `deterministic`. By default the ranks
     * share the CPUs. The group must outlive the trainers. */
    stoker_peer_group *peer_group;
    uint32_t peer_rank; /* of this thread, unique, 0..world_size of the group - 1; default 0 */
    /* Longest wait for another rank, milliseconds, 1..2^31; default 120000. Must exceed any rank's
     * slowest pass, save or pause. */
    uint32_t peer_timeout_ms;
    /* Normalize with the statistics of all ranks' batches together; default false: each rank uses
     * its own batch's. The running statistics include every rank either way. */
    bool sync_batch_norm;
} stoker_trainer_options;

#define STOKER_TRAINER_OPTIONS_DEFAULTS                                                            \
    STOKER_DEFAULT(struct_size, sizeof(stoker_trainer_options))                                    \
    STOKER_DEFAULT(threads, STOKER_THREADS_AUTO)                                                   \
    STOKER_DEFAULT(batch_size, 64)                                                                 \
    STOKER_DEFAULT(accumulate, 1)                                                                  \
    STOKER_DEFAULT(evaluation_batch_size, STOKER_BATCH_SIZE_SAME)                                  \
    STOKER_DEFAULT(metrics_interval, 1)                                                            \
    STOKER_DEFAULT(learning_rate, STOKER_OPTIMIZER_DEFAULT)                                        \
    STOKER_DEFAULT(betas[0], 0.9F)                                                                 \
    STOKER_DEFAULT(betas[1], 0.999F)                                                               \
    STOKER_DEFAULT(rho, STOKER_OPTIMIZER_DEFAULT)                                                  \
    STOKER_DEFAULT(epsilon, STOKER_OPTIMIZER_DEFAULT)                                              \
    STOKER_DEFAULT(schedule_gamma, 0.1F)                                                           \
    STOKER_DEFAULT(schedule_rise, 0.3F)                                                            \
    STOKER_DEFAULT(schedule_start, 25.0F)                                                          \
    STOKER_DEFAULT(clip_norm, STOKER_NORM_UNLIMITED)                                               \
    STOKER_DEFAULT(loss_scale, STOKER_LOSS_SCALE_AUTO)                                             \
    STOKER_DEFAULT(memory_budget, STOKER_BYTES_AUTO)                                               \
    STOKER_DEFAULT(peer_timeout_ms, 120000)

STOKER_MAKER(stoker_trainer_options, STOKER_TRAINER_OPTIONS_DEFAULTS)
#define STOKER_TRAINER_OPTIONS_INIT                                                                \
    STOKER_INITIALIZER(stoker_trainer_options, STOKER_TRAINER_OPTIONS_DEFAULTS)
STOKER_API int stoker_trainer_options_init_sized(stoker_trainer_options *out, size_t struct_size);

/* Bytes requested from the back end, by class. */
typedef struct stoker_trainer_memory {
    uint64_t parameters;
    uint64_t gradients;
    uint64_t optimizer_state; /* including the moving average of the weights */
    uint64_t statistics;      /* running statistics of BatchNorm */
    uint64_t activations;
    uint64_t workspace;
    uint64_t stored_parameters;   /* the 16-bit copy, if precision is a 16-bit type */
    uint64_t peak;                /* sum of the above */
    uint64_t activations_plain;   /* what activations would take without recomputation */
    uint64_t activations_float32; /* what activations would take in float32 */
    stoker_dtype precision; /* type of activations: STOKER_DTYPE_FLOAT32, FLOAT16 or BFLOAT16 */
    uint32_t batch_size;    /* as chosen */
    uint32_t checkpoint_segments; /* as chosen */
    bool recompute_batch_norm;    /* as chosen */
    uint64_t reserved[8];         /* 0; the size never changes: new members take their place */
} stoker_trainer_memory;

/* What stoker_trainer_step() did. Every metrics_interval passes it reports the loss of the passes
 * since the last report; in between, count is 0, and `updated` on a GPU means queued. */
typedef struct stoker_step {
    double loss;         /* mean over count samples; 0 if count is 0 */
    uint64_t correct;    /* samples classified correctly, 0..count; 0 with mse */
    uint64_t count;      /* samples in this report */
    float learning_rate; /* rate of the update that this pass belongs to */
    float loss_scale;    /* on a GPU: as of the last report */
    /* 2-norm of the last update's gradients before clipping. 0 without clip_norm and
     * dynamic_loss_scale, and if nothing is reported. */
    float gradient_norm;
    bool updated; /* this pass ended with an update of the weights */
    bool skipped; /* the update was skipped because of an overflow; on a GPU, only in a report */
    uint64_t reserved[4]; /* 0; the size never changes: new members take their place */
} stoker_step;

/* Create a group of 1..256 ranks that are threads of this process, for options.peer_group. On
 * success the caller owns *out; on failure it is unchanged. error may be NULL. Any thread.
 * STOKER_EINVAL, ENOMEM. */
STOKER_API int stoker_peer_group_create(stoker_peer_group **out, uint32_t world_size,
                                        stoker_error *error);
/* Destroy a group after its last trainer. NULL-safe; sets *group to NULL. */
STOKER_API void stoker_peer_group_destroy(stoker_peer_group **group);

/* Check the options, allocate all memory and initialize the weights. The model must be closed and
 * outlive the trainer. On success the caller owns *out; on failure it is unchanged, and *error has
 * the cause; error may be NULL. All ranks.
 * STOKER_EINVAL (the message names the option), ELIMIT (memory_budget is too small; the message
 * names the least that works), ENOMEM, ETHREAD, EDEVICE (no such back end; the GPU failed or runs
 * no engine for a layer), ENOTSUP (no MPI; a launcher or back end that does not support ranks;
 * BFLOAT16), EMISMATCH (ranks with different models or options), EPEER. */
STOKER_API int stoker_trainer_create(stoker_trainer **out, const stoker_model *model,
                                     const stoker_trainer_options *options, stoker_error *error);
/* Destroy a trainer. NULL-safe; sets *trainer to NULL. All ranks: if one does so early, the others'
 * next call returns STOKER_EPEER. */
STOKER_API void stoker_trainer_destroy(stoker_trainer **trainer);

/* Load the driver and libraries of `backend` (as in options; hundreds of milliseconds on a GPU).
 * Call it from another thread while opening the data. convolutions: true if the model has some.
 * Does nothing without a GPU; create reports errors. Any thread. */
STOKER_API void stoker_trainer_wake(const char *backend, bool convolutions);

/* Run one pass, and an update after every `accumulate` passes. images: float32 [count][input],
 * channels last; labels as the loss requires; count <= batch_size. An empty batch does nothing.
 * Samples that pad the batch (batch->padded) train like any other. out may be NULL.
 *
 * All ranks, even with an empty batch; an error in one rank's batch is an error on all. After
 * STOKER_EINVAL (a label, the count, or 1 sample if a BatchNorm has one value per channel, as in
 * PyTorch) or EMISMATCH (shape, type or device) nothing has changed. STOKER_EDEVICE: the GPU
 * failed.
 *
 * A GPU's pass is queued on stoker_trainer_stream(); the call waits only for a report. A batch in
 *   the GPU's memory     is read after its copy (stoker_batch_wait_on is called). Release it at
 *                        once: it is refilled after that stream has read it. Samples with labels
 *                        out of range are ignored; a report after that pass is STOKER_EINVAL.
 *   page-locked memory   (STOKER_DEVICE_CUDA_HOST) is copied later: release it with
 *                        stoker_batch_release_on(batch, stoker_trainer_stream(trainer)).
 *   other host memory    may be reused when the call returns. */
STOKER_API int stoker_trainer_step(stoker_trainer *trainer, const stoker_batch *batch,
                                   stoker_step *out);
/* Change options.metrics_interval (1..2^20), for example once the back end is known. All ranks the
 * same. STOKER_EINVAL. */
STOKER_API int stoker_trainer_set_metrics_interval(stoker_trainer *trainer, uint32_t passes);
/* Update with the gradients summed so far, if any, and report the loss, as at the end of an epoch.
 * All ranks. out may be NULL. Errors as of stoker_trainer_step(). */
STOKER_API int stoker_trainer_flush(stoker_trainer *trainer, stoker_step *out);

typedef struct stoker_evaluation {
    double loss_sum;
    uint64_t correct, count;
    uint64_t reserved[4]; /* 0; the size never changes: new members take their place */
} stoker_evaluation;
/* Run the forward pass without dropout, with running statistics and, if kept, the averaged weights,
 * and add to *sum. If sum is NULL, add to a sum that stoker_trainer_evaluated() returns, so that
 * the host need not wait for a GPU. Samples that pad the batch (batch->padded) are skipped: the
 * epoch holds them elsewhere. Any count. Errors, and when to release the batch, as of
 * stoker_trainer_step(). Evaluates this rank's batch only: with several ranks pass NULL. */
STOKER_API int stoker_trainer_evaluate(stoker_trainer *trainer, const stoker_batch *batch,
                                       stoker_evaluation *sum);
/* Add the results of all batches evaluated with sum NULL since the last call, on all ranks, to
 * *sum, and clear them, also on failure. Waits for a GPU. All ranks. STOKER_EINVAL (labels on a GPU
 * were out of range), EDEVICE, EPEER. */
STOKER_API int stoker_trainer_evaluated(stoker_trainer *trainer, stoker_evaluation *sum);
/* Compute the outputs of the last layer before the loss, as in evaluate: samples is
 * [count][model input] in host memory, outputs [count][elements per output]. Waits for a GPU. This
 * rank only. STOKER_EINVAL, ENOMEM, EDEVICE. */
STOKER_API int stoker_trainer_predict(stoker_trainer *trainer, const float *samples, uint32_t count,
                                      float *outputs);

/* Returns the last error of step, flush, evaluate, evaluated, predict, trim or any; NULL if there
 * was none. Valid until the next call. Getters accept a NULL trainer and return NULL or 0. */
STOKER_API const stoker_error *stoker_trainer_error(const stoker_trainer *trainer);

STOKER_API void stoker_trainer_get_memory(const stoker_trainer *trainer,
                                          stoker_trainer_memory *out);
/* Wait for pending work, then free activations, workspaces, recorded graphs and, between two
 * updates, gradients. The next call that needs them allocates them again and may return
 * STOKER_ENOMEM (try again later) or EDEVICE; results do not change. Returns the bytes freed,
 * counted as in stoker_trainer_memory; 0 also on failure. */
STOKER_API uint64_t stoker_trainer_trim(stoker_trainer *trainer);

/* How steps reached a GPU so far; all 0 on another back end. Results do not depend on it. */
typedef struct stoker_trainer_capture {
    uint64_t launched; /* steps launched as one CUDA graph */
    uint64_t queued;   /* other steps: the first of each kind, or all if options.uncaptured */
    uint64_t refused;  /* kinds of steps that could not be captured, and are queued each time */
    /* CUDA's reason for the first refusal; NULL = none. Valid until destroy. */
    const char *reason;
    /* Convolutions and products whose first choice of cuDNN or cuBLASLt engine failed in a trial
     * and was replaced. replacement describes the first: what failed, why, what runs instead; NULL
     * = none. Valid until destroy. */
    uint64_t replaced;
    const char *replacement;
    /* The first GPU's engine for each of them, a line each, with the time of one run if engines
     * were timed (options.benchmark); the last are left out after 16 KiB. NULL = none. Valid until
     * the next call. */
    const char *engines;
    uint64_t reserved[1]; /* 0; the size never changes: new members take their place */
} stoker_trainer_capture;
STOKER_API void stoker_trainer_get_capture(const stoker_trainer *trainer,
                                           stoker_trainer_capture *out);
/* Write the memory table into text, as stoker_model_summary() does. */
STOKER_API size_t stoker_trainer_memory_table(const stoker_trainer *trainer, char *text,
                                              size_t bytes);
/* List the devices that options.backend can name on this machine, for a person: the CPU, and each
 * GPU with its name, compute capability, memory, driver and runtime versions, or the reason
 * why there is none. Writes and returns as stoker_model_summary(). Any thread. */
STOKER_API size_t stoker_trainer_devices(char *text, size_t bytes);
STOKER_API uint64_t stoker_trainer_updates(const stoker_trainer *trainer);    /* so far */
STOKER_API uint32_t stoker_trainer_rank(const stoker_trainer *trainer);       /* 0 without peers */
STOKER_API uint32_t stoker_trainer_world_size(const stoker_trainer *trainer); /* 1 without peers */
/* Returns the GPU's number; 0 on another back end. */
STOKER_API uint32_t stoker_trainer_device_index(const stoker_trainer *trainer);
/* Check that the loaders of all ranks have equal states (stoker_loader_state()): the same data set,
 * order, seed and position. Else ranks would train on some samples twice and miss others. Compares
 * the names and sizes of the data's files, not their bytes. Call it once each rank has its loader.
 * All ranks. error may be NULL. STOKER_EMISMATCH (the message names the first rank that differs
 * from rank 0, and in what), EINVAL, ENOMEM, EPEER, EFORKED. Without peers STOKER_OK. */
STOKER_API int stoker_trainer_compare_loader(stoker_trainer *trainer, const stoker_loader *loader,
                                             stoker_error *error);
/* Set *flag to true if it is true on any rank, so that all ranks decide alike, for example to stop.
 * All ranks. STOKER_EINVAL, EPEER. */
STOKER_API int stoker_trainer_any(stoker_trainer *trainer, bool *flag);
/* Returns "cuda", "cpu" or "ref"; with split both devices, as in "cpu,cuda:0". Valid until
 * destroy. */
STOKER_API const char *stoker_trainer_backend(const stoker_trainer *trainer);
/* Returns the cudaStream_t that reads batches; NULL unless the (first) device is a GPU. */
STOKER_API struct CUstream_st *stoker_trainer_stream(const stoker_trainer *trainer);
/* Returns the number of compute threads; a GPU counts as one. */
STOKER_API uint32_t stoker_trainer_threads(const stoker_trainer *trainer);

/* Save everything needed to continue in one safetensors file: "model.NAME" for each weight and
 * statistic, with PyTorch's names and layouts; "ema.NAME" for averaged weights if ema_decay > 0;
 * "state.*" for the optimizer, the counters and, if size > 0, the loader's state as
 * stoker_loader_state() writes it. Between two passes of an update the summed gradients are saved
 * too; if another number of ranks continues, that update may be up to world_size - 1 batches short.
 * Atomic: after a crash, path holds the old checkpoint or the new one. error may be NULL. All
 * ranks: rank 0 writes, the others wait and return its error as STOKER_EPEER. STOKER_EDIVERGED (a
 * weight is NaN or infinite; nothing was written), EINVAL (path is a device or FIFO), ENOMEM,
 * EDEVICE, or an error of the file system. */
STOKER_API int stoker_trainer_save(stoker_trainer *trainer, const char *path, const void *state,
                                   size_t size, stoker_error *error);
/* Continue from a checkpoint: the rest of the run has the same bits. `state`, unless NULL, receives
 * the loader's state, for its options.resume, and *size, unless NULL, its bytes; 0 = the checkpoint
 * has none. All ranks, with the same capacity: rank 0 reads; their number may differ from that of
 * the run that saved. error may be NULL.
 * A bad file changes nothing: STOKER_ENOENT, EFORMAT, ETRUNCATED, ECORRUPT, EMISMATCH (the message
 * names the tensor; or another optimizer; or another total_updates with COSINE or ONE_CYCLE, which
 * would change the rate), ELIMIT (capacity is too small; *size is set). After STOKER_EDEVICE,
 * ENOMEM or EPEER, load again or destroy the trainer: a part may have been loaded. */
STOKER_API int stoker_trainer_load(stoker_trainer *trainer, const char *path, void *state,
                                   size_t capacity, size_t *size, stoker_error *error);
/* Load only weights, running statistics and num_batches_tracked, from a checkpoint or from another
 * safetensors file with the model's names, such as PyTorch's; F32, F16, BF16 or F64. Restarts the
 * moving average from these weights and keeps the optimizer's state. All ranks: rank 0 reads.
 * Errors as of stoker_trainer_load(). */
STOKER_API int stoker_trainer_load_weights(stoker_trainer *trainer, const char *path,
                                           stoker_error *error);
/* Do the same with a checkpoint's averaged weights. STOKER_EMISMATCH if it has none. All ranks. */
STOKER_API int stoker_trainer_load_averages(stoker_trainer *trainer, const char *path,
                                            stoker_error *error);

/* Set a note, such as the name of the network or of the data. Each save writes all notes into the
 * file's header ("__metadata__"); loading does not set them. A key set again gets the new value.
 * Both strings are copied. Key: 1..63 bytes, not starting with "stoker."; value: 0..8191 bytes;
 * both UTF-8; at most 32 notes. error may be NULL. STOKER_EINVAL, ELIMIT, ENOMEM. */
STOKER_API int stoker_trainer_set_note(stoker_trainer *trainer, const char *key, const char *value,
                                       stoker_error *error);
/* Call take(user, key, value) for each note of a safetensors file, except keys starting with
 * "stoker."; the strings are valid during the call. Needs no trainer. error may be NULL.
 * STOKER_EINVAL, ENOENT, EACCES, EISDIR, EIO, ETRUNCATED, EOVERSIZE, EFORMAT, ECORRUPT, ELIMIT,
 * ENOMEM. */
typedef void stoker_note_function(void *user, const char *key, const char *value);
STOKER_API int stoker_trainer_read_notes(const char *path, stoker_note_function *take, void *user,
                                         stoker_error *error);

STOKER_END_DECLS
#endif
