/* stoker/trainer.h - train a model with batches from a loader.
 *
 *   loader ──▶ step: forward, loss, backward ──▶ (every `accumulate` steps) clip, update, ema
 *
 * Memory   create takes all of it; stoker_trainer_get_memory() reports it exactly.
 *          stoker_trainer_trim() gives back what carries no state between steps.
 * Errors   As in stoker/error.h; outputs are written only on success.
 * Threads  One thread calls a trainer. Its back end may use others.
 * Order    The same model, options, seed and batches give the same weights, bit for bit, on the
 *          same back end and thread count.
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
    STOKER_SCHEDULE_STEP, /* times schedule_gamma every schedule_steps updates */
    /* from learning_rate to learning_rate x final_fraction over total_updates */
    STOKER_SCHEDULE_COSINE,
    STOKER_SCHEDULE_ONE_CYCLE /* PyTorch's OneCycleLR with cosine; learning_rate is the peak */
} stoker_schedule;

/* Processes or threads that train one model together, each on its own batches: see
 * options.peers. */
typedef enum stoker_peers {
    STOKER_PEERS_NONE = 0, /* this trainer alone */
    STOKER_PEERS_AUTO,     /* those that stoker_ranks_from_environment() finds; one process: NONE */
    STOKER_PEERS_MPI,      /* all processes of MPI */
    STOKER_PEERS_THREADS,  /* threads of this process: those of options.peer_group */
    STOKER_PEERS_NCCL      /* as AUTO, on GPUs only: "auto" is "cuda"; one process uses NCCL, too */
} stoker_peers;

#define STOKER_BATCH_SIZE_AUTO UINT32_MAX       /* in options.batch_size: the largest that fits */
#define STOKER_BATCH_SIZE_SAME (UINT32_MAX - 1) /* in evaluation_batch_size: batch_size */
#define STOKER_THREADS_AUTO    UINT32_MAX       /* the CPUs that the process may use */
#define STOKER_LOSS_SCALE_AUTO (-1.0F)          /* 1; if dynamic, 65536 / batch_size */
#define STOKER_NORM_UNLIMITED  3.402823466e+38F /* in clip_norm: the largest float */

/* In options.learning_rate, rho and epsilon: PyTorch's default for that optimizer. */
#define STOKER_OPTIMIZER_DEFAULT (-1.0F)

/* Start from STOKER_TRAINER_OPTIONS_INIT, which holds the defaults. A 0 within a field's range is a
 * value: betas = { 0, 0.999F } trains without momentum, learning_rate = 0 leaves the weights
 * unchanged; outside of it, it is refused with STOKER_EINVAL. */
typedef struct stoker_trainer_options {
    /* Set by STOKER_TRAINER_OPTIONS_INIT. Fields missing from an older version's struct have their
     * defaults; a newer version's struct must be 0 beyond the fields of this version. */
    size_t struct_size;

    /* ---- what most programs set ---- */

    /* "cuda" (the first GPU), "cuda:1", "cpu", "ref"; "auto" (default NULL): "cuda" if a GPU and
     * the libraries that the model needs are available, else "cpu". */
    const char *backend;
    uint64_t seed; /* for initial weights and dropout; default 0 */
    /* Most samples of a pass, 1..65536; STOKER_BATCH_SIZE_AUTO = as many as fit in memory_budget;
     * default 64. */
    uint32_t batch_size;
    stoker_optimizer optimizer;
    /* >= 0. Default STOKER_OPTIMIZER_DEFAULT: 0.001 for Adam and AdamW, 0.002 for Adamax, 1 for
     * Adadelta, else 0.01. */
    float learning_rate;

    /* ---- batches and reports ---- */

    /* Passes whose gradients are summed for one update, 1..2^20; default 1. */
    uint32_t accumulate;
    uint32_t evaluation_batch_size; /* samples, 1..65536; default STOKER_BATCH_SIZE_SAME */
    /* Samples of an epoch's last batch if it is known to be smaller, 0..65536: create prepares a
     * GPU for it; default 0 = unknown. */
    uint32_t last_batch_size;
    /* Passes from one report of the loss to the next, 1..2^20; default 1. A report waits for the
     * GPU. */
    uint32_t metrics_interval;

    /* ---- optimizer ---- */

    float momentum; /* SGD, RMSprop: 0..<1; default 0 */
    bool nesterov;  /* SGD with momentum */
    float betas[2]; /* Adam, AdamW, Adamax: 0..<1; default 0.9, 0.999 */
    /* Adadelta's rho, RMSprop's alpha: 0..<1; default STOKER_OPTIMIZER_DEFAULT: 0.9, 0.99. */
    float rho;
    float epsilon; /* >= 0; default STOKER_OPTIMIZER_DEFAULT: 1e-8, Adadelta 1e-6, Adagrad 1e-10 */
    /* >= 0; default 0, for AdamW too, whose decay is decoupled (PyTorch's default there is
     * 0.01). */
    float weight_decay;
    float clip_norm; /* largest 2-norm of all gradients, > 0; default STOKER_NORM_UNLIMITED */
    /* Decay of the weights' moving average, 0..<1; default 0 = none is kept. */
    float ema_decay;

    /* ---- learning rate over time ---- */

    stoker_schedule schedule;
    uint64_t total_updates; /* COSINE, ONE_CYCLE: length of the schedule, >= 1 */
    /* Updates during which the rate first rises linearly from 0; fewer than total_updates, if that
     * is given; default
     * 0. Not with ONE_CYCLE, which has schedule_rise. */
    uint64_t warmup_updates;
    uint64_t schedule_steps; /* STEP: updates between two drops, >= 1 */
    float schedule_gamma;    /* STEP: >= 0; default 0.1 */
    /* ONE_CYCLE: share of the updates with a rising rate, 0..<1; default 0.3. */
    float schedule_rise;
    /* ONE_CYCLE: initial rate = learning_rate / schedule_start; > 0; default 25. */
    float schedule_start;
    float final_fraction; /* COSINE: 0..1; default 0. ONE_CYCLE ends at start / 1e4 */

    /* ---- numbers and algorithms ---- */

    /* Type of activations and their gradients: STOKER_DTYPE_FLOAT32 (default 0), or FLOAT16 or
     * BFLOAT16, which take half the memory. Parameters, sums and statistics stay float32;
     * convolutions and linear layers read a 16-bit copy of their weights. FLOAT16 with
     * STOKER_LOSS_SCALE_AUTO turns on dynamic_loss_scale. "cpu" supports FLOAT32, and BFLOAT16 if
     * the CPU has AVX512_BF16; on "cuda" BFLOAT16 needs a GPU of compute capability 8.0 or later
     * (STOKER_ENOTSUP). */
    stoker_dtype precision;
    /* Factor on each sample's loss against underflow, > 0; dynamic below. Default
     * STOKER_LOSS_SCALE_AUTO. PyTorch scales the mean over a batch: its scale is this one times
     * batch_size. */
    float loss_scale;
    /* Start at loss_scale, or at the largest power of two up to 65536 / batch_size; halve it and
     * skip the update on overflow, double it after 2000 updates without one; range 2^-14..2^24.
     * Default false. */
    bool dynamic_loss_scale;
    /* On a GPU, with float32: round factors of convolutions and linear layers to 10 bits (TF32),
     * which tensor cores multiply several times as fast. Default false: gradients are those of
     * "ref" to 1e-5. Only "cuda" supports it, or two devices of which one is a GPU. */
    bool tf32;
    /* The same input gives the same bits on a GPU too; default false. "cpu" and "ref" are always
     * deterministic. With it they also sum each pass of a group by itself, which takes a second
     * arena of gradients if accumulate is above 1, and ranks add their gradients after each pass,
     * in the order of ranks. The bits then depend on the product of ranks and `accumulate` alone: N
     * ranks have those of one rank with N times `accumulate`. Ranks with a GPU each add theirs
     * after the last pass of an update, so with `accumulate` above 1 they have them up to
     * rounding. */
    bool deterministic;
    /* Choose among a GPU's algorithms by timing them; default false = use its heuristics. Only
     * "cuda" supports it. */
    bool benchmark;
    /* On a GPU: queue the operations of a step one by one. Default false: from its second run, a
     * step is one CUDA graph. The numbers are the same. */
    bool uncaptured;

    /* ---- memory and devices ---- */

    /* Most bytes the trainer may take, >= 1, by recomputing as much as needed; default
     * STOKER_BYTES_AUTO = no limit (with STOKER_BATCH_SIZE_AUTO: half of the available memory).
     * With split: on each device. */
    uint64_t memory_budget;
    /* Segments of layers between which activations are kept, 0..8192; default 0 = keep all. */
    uint32_t checkpoint_segments;
    bool recompute_batch_norm; /* keep one buffer for BatchNorm + ReLU and recompute the other */
    uint32_t threads;          /* compute threads, 1..256; default STOKER_THREADS_AUTO */
    /* Layers on the first of two devices; default 0 = one device. backend then names two, as in
     * "cuda:0,cuda:1" or "cpu,cuda:0"; only "ref" may appear twice. Layers are counted as in
     * stoker_model_summary, without the input. Both parts must have parameters, and only one value
     * may cross, so the border is not inside a residual block. The passes of an update (accumulate)
     * overlap if metrics_interval is above 1: a report waits for both devices. Numbers and
     * checkpoints are those of one device with the same accumulate. Batches lie in host memory. */
    uint32_t split;

    /* ---- ranks ---- */

    /* Ranks that train one model. Default STOKER_PEERS_NONE. Give all ranks the same model and
     * options. Each rank steps with its own share of the samples (the loader's rank and
     * world_size), batch_size being that of one rank: N ranks compute what one computes with N
     * times `accumulate`, and an update sums the gradients of all. All ranks use rank 0's weights
     * and seed. A call that is marked "All ranks" waits for the others; if one rank fails, is
     * stopped or does not come, it returns STOKER_EPEER with a message that names that rank. create
     * starts MPI unless it runs, through libstoker_mpi.so (or the file that $STOKER_MPI names), and
     * the program's exit finishes it. Not with split.
     *
     * With "cuda" each rank has a GPU: that of its number among the ranks of its node, unless
     * "cuda:K" names one; two ranks with one GPU are refused (STOKER_EINVAL). "auto" is "cuda" if
     * every rank has a GPU, else "cpu". NCCL sums in the memory of the GPUs (libnccl.so.2, or the
     * file that $STOKER_NCCL names), in its own order: N ranks compute what one does up to
     * rounding. The rest goes over MPI, if the launcher brings it, else by NCCL, whose id rank 0
     * hands out at $MASTER_ADDR, $STOKER_PORT or $MASTER_PORT + 1. */
    stoker_peers peers;
    /* With STOKER_PEERS_THREADS: each thread of the group creates a trainer and a loader of its
     * own, with the same model, and gives its rank here and to the loader (rank and world_size;
     * local_rank and local_world_size too, so that the loaders share the CPUs). The trainers of a
     * group that the ranks create first train together, then those that they create second, and so
     * on. Launchers are ignored, and sums are those of `deterministic`. Unless `threads` says
     * otherwise the ranks share the CPUs. The group must outlive the trainers. Default NULL and 0;
     * other values only with STOKER_PEERS_THREADS, which needs a group. */
    stoker_peer_group *peer_group;
    uint32_t peer_rank; /* this thread's, < world_size of the group; no other thread may have it */
    /* Longest wait for another rank, milliseconds, 1..2^31; default 120000. It must exceed the
     * slowest pass, save and pause of any rank. */
    uint32_t peer_timeout_ms;
    /* BatchNorm takes the statistics of all ranks together, as one rank would of their batches in
     * one; default false: each rank those of its own batch, while the running statistics see every
     * rank's. */
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

/* Bytes taken, by class: exactly what the back end was asked for. */
typedef struct stoker_trainer_memory {
    uint64_t parameters;
    uint64_t gradients;
    uint64_t optimizer_state; /* including the moving average of the weights */
    uint64_t statistics;      /* running statistics of BatchNorm */
    uint64_t activations;
    uint64_t workspace;
    uint64_t stored_parameters;   /* the 16-bit copy, if precision is a 16-bit type */
    uint64_t peak;                /* sum of the above */
    uint64_t activations_plain;   /* activations without recomputation */
    uint64_t activations_float32; /* activations in float32 */
    stoker_dtype precision; /* type of activations: STOKER_DTYPE_FLOAT32, FLOAT16 or BFLOAT16 */
    uint32_t batch_size;    /* as chosen */
    uint32_t checkpoint_segments; /* as chosen */
    bool recompute_batch_norm;    /* as chosen */
    uint64_t reserved[8];         /* 0; the size never changes: new members take their place */
} stoker_trainer_memory;

/* Report of the passes since the last report, one every metrics_interval passes. In between, count
 * is 0, and a GPU's update counts as made once it is queued. */
typedef struct stoker_step {
    double loss;         /* mean over count samples; 0 if count is 0 */
    uint64_t correct;    /* samples classified correctly, 0..count; 0 for other losses */
    uint64_t count;      /* samples reported */
    float learning_rate; /* rate of the update that this pass belongs to */
    float loss_scale;    /* on a GPU: as of the last report */
    /* 2-norm in the last update, before clipping; 0 = not computed, or no report. */
    float gradient_norm;
    bool updated; /* this pass ended with an update of the weights */
    bool skipped; /* the update was skipped because of an overflow; on a GPU, only in a report */
    uint64_t reserved[4]; /* 0; the size never changes: new members take their place */
} stoker_step;

/* Ranks that are threads of this process, 1..256 of them, for options.peer_group. On success the
 * caller owns *out. Any thread. STOKER_EINVAL, ENOMEM. */
STOKER_API int stoker_peer_group_create(stoker_peer_group **out, uint32_t world_size,
                                        stoker_error *error);
/* After its last trainer was destroyed. NULL-safe; sets NULL. */
STOKER_API void stoker_peer_group_destroy(stoker_peer_group **group);

/* Check options, plan and take all memory, initialize the weights. The model must be closed and
 * outlive the trainer. On success the caller owns *out; on failure it is unchanged, and *error has
 * the cause; error may be NULL. STOKER_EINVAL (the message names the option; options must not be
 * NULL), STOKER_ELIMIT (nothing fits in memory_budget; the message names the least that would),
 * STOKER_ENOMEM, STOKER_ETHREAD, STOKER_EDEVICE (no such back end; the GPU failed, or runs none of
 * the engines for a layer). All ranks; STOKER_EPEER; STOKER_ENOTSUP (peers: no MPI, or a launcher
 * or a back end that it does not serve; BFLOAT16 on a GPU or CPU without it). */
STOKER_API int stoker_trainer_create(stoker_trainer **out, const stoker_model *model,
                                     const stoker_trainer_options *options, stoker_error *error);
/* NULL-safe; sets NULL. All ranks: one that comes early ends the others' next call with
 * STOKER_EPEER. */
STOKER_API void stoker_trainer_destroy(stoker_trainer **trainer);

/* Warm up the device and libraries of `backend` (hundreds of milliseconds on a GPU). Call it from
 * another thread while opening the data. convolutions: true if the model will have some. Does
 * nothing if there is no such back end; create then reports it. Any thread. */
STOKER_API void stoker_trainer_wake(const char *backend, bool convolutions);

/* Run one pass, and an update after every `accumulate` passes (see stoker_trainer_flush). images:
 * float32 NHWC with the shape of the model's input; labels as the loss requires; count <=
 * batch_size. An empty batch does nothing. Samples that pad the batch (batch->padded) train as any
 * other. All ranks, also one whose batch is empty; an error of one rank's batch is an error on all,
 * and then nothing has changed. STOKER_EINVAL, STOKER_EMISMATCH (shape or type); then nothing has
 * changed. As in PyTorch, a batch of 1 is STOKER_EINVAL if a BatchNorm has only one value per
 * channel.
 *
 * On a GPU the pass is queued on stoker_trainer_stream(), and the call waits only for a report.
 * STOKER_EDEVICE: the GPU failed. The batch may lie in
 *   the GPU's memory It is read there, after its copy (stoker_batch_wait_on is called). Release it
 *   at once;
 *                        stoker_batch_release and _release_on wait until it was read. A sample
 *                        whose label is out of range is ignored, and the next report returns
 *                        STOKER_EINVAL.
 *   page-locked memory   (STOKER_DEVICE_CUDA_HOST) The stream copies it later: release it with
 *                        stoker_batch_release_on(batch, stoker_trainer_stream(trainer)). other host
 *                        memory It may be reused when the call returns: if the GPU reads such
 *                        memory directly (HMM, ATS), the call waits for that. */
STOKER_API int stoker_trainer_step(stoker_trainer *trainer, const stoker_batch *batch,
                                   stoker_step *out);
/* Change options.metrics_interval (1..2^20), for example once the chosen back end is known.
 * STOKER_EINVAL. */
STOKER_API int stoker_trainer_set_metrics_interval(stoker_trainer *trainer, uint32_t passes);
/* Update with the gradients summed so far, if any, and report: for the end of an epoch. All
 * ranks. */
STOKER_API int stoker_trainer_flush(stoker_trainer *trainer, stoker_step *out);

typedef struct stoker_evaluation {
    double loss_sum;
    uint64_t correct, count;
    uint64_t reserved[4]; /* 0; the size never changes: new members take their place */
} stoker_evaluation;
/* Run forward only, without dropout, with running statistics and with the moving average of the
 * weights if there is one. Adds to *sum, for which a GPU is waited for. With sum NULL nothing is
 * waited for, and the results add up internally until stoker_trainer_evaluated(). Samples that pad
 * the batch (batch->padded) are left out: the epoch holds them elsewhere. Release the batch as
 * after stoker_trainer_step(), whose errors apply. This rank's batch only: with several ranks leave
 * sum NULL. */
STOKER_API int stoker_trainer_evaluate(stoker_trainer *trainer, const stoker_batch *batch,
                                       stoker_evaluation *sum);
/* Add the results of batches evaluated with NULL since the last such call to *sum; waits for them.
 * STOKER_EINVAL: labels of batches on a GPU were out of range (the results are then discarded);
 * STOKER_EDEVICE. All ranks, and *sum gets the results of all. */
STOKER_API int stoker_trainer_evaluated(stoker_trainer *trainer, stoker_evaluation *sum);
/* Write the outputs of the last layer before the loss for `count` samples: float
 * [count][outputs]. */
STOKER_API int stoker_trainer_predict(stoker_trainer *trainer, const float *samples, uint32_t count,
                                      float *outputs);

/* The last error of step, flush, evaluate or predict; NULL if there was none. Valid until the next
 * call. Getters accept a NULL trainer and return NULL or 0. */
STOKER_API const stoker_error *stoker_trainer_error(const stoker_trainer *trainer);

STOKER_API void stoker_trainer_get_memory(const stoker_trainer *trainer,
                                          stoker_trainer_memory *out);
/* Free memory that carries no state between steps, after pending work completes: activations,
 * workspaces, recorded graphs and, between two updates, gradients. The next call that needs it
 * takes it again, and may then return STOKER_ENOMEM (call it again later) or EDEVICE; results do
 * not change. Returns the bytes freed, counted as in stoker_trainer_memory. */
STOKER_API uint64_t stoker_trainer_trim(stoker_trainer *trainer);

/* How steps reached a GPU so far; all 0 on another back end. Results are the same either way, but
 * without a graph the host launches each operation. */
typedef struct stoker_trainer_capture {
    uint64_t launched; /* steps launched as one CUDA graph */
    uint64_t queued;   /* other steps: the first of each kind; all, if uncaptured */
    uint64_t refused;  /* kinds of steps that could not be recorded, and are queued each time */
    /* CUDA's reason for the first refusal, valid as long as the trainer; NULL = there was none. */
    const char *reason;
    /* Convolutions and products whose first engine (of cuDNN, cuBLASLt) failed when it was tried,
     * so that another one runs; the first of them in words (what failed, why, what runs), as
     * long-lived as reason; NULL = there was none. */
    uint64_t replaced;
    const char *replacement;
    uint64_t reserved[2]; /* 0; the size never changes: new members take their place */
} stoker_trainer_capture;
STOKER_API void stoker_trainer_get_capture(const stoker_trainer *trainer,
                                           stoker_trainer_capture *out);
/* Write the memory table, as snprintf does; see stoker_model_summary. */
STOKER_API size_t stoker_trainer_memory_table(const stoker_trainer *trainer, char *text,
                                              size_t bytes);
/* List what options.backend can name on this machine, as snprintf does, for a person to read: the
 * CPU, and each GPU with its name, compute capability, memory and the versions of driver and
 * runtime, or why there is none. */
STOKER_API size_t stoker_trainer_devices(char *text, size_t bytes);
STOKER_API uint64_t stoker_trainer_updates(const stoker_trainer *trainer);    /* so far */
STOKER_API uint32_t stoker_trainer_rank(const stoker_trainer *trainer);       /* 0 without peers */
STOKER_API uint32_t stoker_trainer_world_size(const stoker_trainer *trainer); /* 1 without peers */
/* The GPU of a trainer on one; else 0. */
STOKER_API uint32_t stoker_trainer_device_index(const stoker_trainer *trainer);
/* Check that the loaders of all ranks deliver one data set in one order, from one place of it: that
 * their states are the same (stoker_loader_state()). Ranks with other seeds or data would
 * train on some samples twice and on others not at all. Call it once each rank has its loader; the
 * names and sizes of the data's files are compared, not their bytes. All ranks. STOKER_EMISMATCH:
 * the message names the first rank that differs from rank 0, and in what; STOKER_EINVAL, ENOMEM,
 * EPEER, EFORKED. Without peers STOKER_OK. error may be NULL. */
STOKER_API int stoker_trainer_compare_loader(stoker_trainer *trainer, const stoker_loader *loader,
                                             stoker_error *error);
/* Sets *flag to true if it is true on any rank: for decisions that all must take, such as to stop.
 * All ranks. STOKER_EPEER. */
STOKER_API int stoker_trainer_any(stoker_trainer *trainer, bool *flag);
/* "cuda", "cpu" or "ref"; with split, as in "cpu,cuda:0". Valid as long as the trainer. */
STOKER_API const char *stoker_trainer_backend(const stoker_trainer *trainer);
/* The cudaStream_t of all queued work; NULL unless the back end is a GPU. */
STOKER_API struct CUstream_st *stoker_trainer_stream(const stoker_trainer *trainer);
STOKER_API uint32_t stoker_trainer_threads(const stoker_trainer *trainer);

/* Save everything needed to continue in one safetensors file: "model.NAME" for each weight and
 * statistic, with PyTorch's names and layouts; with ema_decay > 0 "ema.NAME" for the averaged
 * weights; "state.*" for the optimizer, counters and, if size > 0, the loader's state, as
 * stoker_loader_state() writes it. Atomic: after a crash path holds the old checkpoint or the
 * new one. Between two passes of an update the sum of their gradients is saved, too. Another number
 * of ranks makes the passes that are missing; if it does not divide the number of those made, the
 * update is up to world_size - 1 batches short. STOKER_EDIVERGED: a weight is NaN or infinite;
 * nothing was written. STOKER_EINVAL: path is a device or FIFO. All ranks, of which rank 0 writes;
 * the others wait, and return its error as STOKER_EPEER. */
STOKER_API int stoker_trainer_save(stoker_trainer *trainer, const char *path, const void *state,
                                   size_t size, stoker_error *error);
/* Continue from a checkpoint: the rest of the run is the same to the bit. `state`, unless NULL,
 * receives the loader's state, for its options.resume, and *size, unless NULL, its bytes; 0: the
 * checkpoint has none. If `capacity` is less: STOKER_ELIMIT, and *size is set. On failure nothing
 * has changed, except with EDEVICE. STOKER_ENOENT, EFORMAT, ETRUNCATED, ECORRUPT, ELIMIT, EDEVICE,
 * EMISMATCH (another model: the message names the tensor; or another total_updates with COSINE or
 * ONE_CYCLE, which would change the rate). All ranks, with one capacity, of which rank 0 reads: the
 * number of ranks may differ from that of the run that saved. */
STOKER_API int stoker_trainer_load(stoker_trainer *trainer, const char *path, void *state,
                                   size_t capacity, size_t *size, stoker_error *error);
/* Load only weights, running statistics and num_batches_tracked from a checkpoint, or from a
 * safetensors file with the model's names, such as one saved by PyTorch. Tensors may be F32, F16,
 * BF16 or F64. The moving average of the weights restarts from them; the optimizer's state is kept.
 * All ranks, of which rank 0 reads. */
STOKER_API int stoker_trainer_load_weights(stoker_trainer *trainer, const char *path,
                                           stoker_error *error);
/* The same with the averaged weights of the checkpoint at path. STOKER_EMISMATCH: it has none. All
 * ranks. */
STOKER_API int stoker_trainer_load_averages(stoker_trainer *trainer, const char *path,
                                            stoker_error *error);

/* Set a note: a string for the run that continues, such as the name of the network or of the data.
 * Saves write notes into the header of the file ("__metadata__"); a load does not set them. A key
 * that is set again has the new value. Both strings are copied. Key: 1..63 bytes, not starting with
 * "stoker."; value: 0..8191 bytes; both UTF-8; at most 32 notes. STOKER_EINVAL, ELIMIT, ENOMEM. */
STOKER_API int stoker_trainer_set_note(stoker_trainer *trainer, const char *key, const char *value,
                                       stoker_error *error);
/* Call take(user, key, value) for each note of a safetensors file; needs no trainer. The strings
 * are valid during the call. A file without notes is not an error. STOKER_ENOENT, EACCES, EISDIR,
 * EIO, ETRUNCATED, EOVERSIZE, EFORMAT, ECORRUPT, ELIMIT, ENOMEM. */
typedef void stoker_note_function(void *user, const char *key, const char *value);
STOKER_API int stoker_trainer_read_notes(const char *path, stoker_note_function *take, void *user,
                                         stoker_error *error);

STOKER_END_DECLS
#endif
