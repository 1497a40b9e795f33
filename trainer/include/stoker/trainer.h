/* stoker/trainer.h - train a model with batches from a loader.
 *
 *   loader ──▶ step: forward, loss, backward ──▶ (every `accumulate` steps) clip, update, ema
 *
 * Memory   All of it is taken by create, and told exactly: stoker_trainer_get_memory(). What a step leaves
 *          unused can be given back for a while: stoker_trainer_trim().
 * Errors   As in stoker/error.h; outputs are written only on success.
 * Threads  One thread calls a trainer. Its back end may use more.
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
struct CUstream_st;

typedef enum stoker_optimizer {
    STOKER_SGD = 0,
    STOKER_ADAM,
    STOKER_ADAMW,
    STOKER_ADAGRAD,
    STOKER_RMSPROP,
    STOKER_ADADELTA,
    STOKER_ADAMAX,
    STOKER_ASGD
} stoker_optimizer;

typedef enum stoker_schedule {
    STOKER_CONSTANT = 0,
    STOKER_STEP,     /* times schedule_gamma every schedule_steps updates */
    STOKER_COSINE,   /* from learning_rate to learning_rate x final_fraction over total_updates */
    STOKER_ONE_CYCLE /* PyTorch's OneCycleLR, cosine annealing: learning_rate is the peak */
} stoker_schedule;

#define STOKER_BATCH_SIZE_MAX UINT32_MAX /* in options.batch_size: the largest that fits */

/* In options.learning_rate, rho and epsilon: PyTorch's default for the optimiser. */
#define STOKER_OPTIMIZER_DEFAULT (-1.0F)

/* Begin with STOKER_TRAINER_OPTIONS_INIT, which holds the defaults. A 0 that lies in a field's range is a value:
 * betas = { 0, 0.999F } trains without momentum, learning_rate = 0 leaves the weights as they are. Only where a
 * comment says "0 = ..." does 0 mean something else, and there it is no value of the option. */

typedef struct stoker_trainer_options {
    /* Set by STOKER_TRAINER_OPTIONS_INIT. A smaller struct, of an older version, has the defaults for the fields
     * that it lacks; a larger one, of a newer version, must be 0 beyond this version's fields. */
    size_t struct_size;
    /* "cuda" (the first GPU), "cuda:1", "cpu", "ref"; "auto" (default NULL): "cuda" where a GPU
     * answers and all that the model needs is there, else "cpu". */
    const char *backend;
    uint32_t threads; /* compute threads, 0..256; default 0 = the CPUs left to the process */
    uint64_t seed;    /* of weights and dropout; default 0 */

    uint32_t batch_size; /* samples of one pass at most, 1..65536; STOKER_BATCH_SIZE_MAX = the
                            largest that fits in memory_budget; default 64 */
    uint32_t accumulate; /* passes whose gradients are summed to one update, 0..2^20;
                            default 0 = 1 */
    uint32_t evaluation_batch_size; /* 0..65536; default 0 = batch_size */
    /* Samples of an epoch's last batch, where it is known and smaller, 0..65536: a GPU is made ready for it
     * by create, not when it comes; default 0 = none. */
    uint32_t last_batch_size;
    /* Passes from one telling of loss to the next, 0..2^20; default 0 = 1. On a GPU telling means to
     * wait for it. */
    uint32_t metrics_interval;
    /* On a GPU: queue each operation of a step by itself. Default false: from its second time on a step
     * is one CUDA graph. The numbers are the same. */
    bool uncaptured;

    stoker_optimizer optimizer;
    /* >= 0. Default STOKER_OPTIMIZER_DEFAULT: 0.001 for Adam and AdamW, 0.002 for Adamax, 1 for Adadelta, else
     * 0.01. */
    float learning_rate;
    float momentum; /* SGD, RMSprop: 0..<1; default 0 */
    bool nesterov;  /* SGD with momentum */
    float betas[2]; /* Adam, AdamW, Adamax: 0..<1; default 0.9, 0.999 */
    /* Adadelta's rho, RMSprop's alpha: 0..<1; default STOKER_OPTIMIZER_DEFAULT: 0.9, 0.99. */
    float rho;
    float epsilon; /* >= 0; default STOKER_OPTIMIZER_DEFAULT: 1e-8, Adadelta 1e-6, Adagrad 1e-10 */
    /* Default 0. AdamW's is decoupled, and PyTorch's default for it, 0.01, is not assumed. */
    float weight_decay;

    stoker_schedule schedule;
    uint64_t total_updates; /* COSINE, ONE_CYCLE: length in updates, >= 1 */
    /* So many updates rise linearly from 0 first; default 0. Not with ONE_CYCLE, which has a rise of its
     * own (schedule_rise). */
    uint64_t warmup_updates; /* fewer than total_updates, if that is given */
    uint64_t schedule_steps; /* STEP: updates between two drops, >= 1 */
    float schedule_gamma;    /* STEP: >= 0; default 0.1 */
    float schedule_rise;     /* ONE_CYCLE: share of the updates that rise, 0..<1; default 0.3 */
    float schedule_start;    /* ONE_CYCLE: start = learning_rate / it; > 0; default 25 */
    float final_fraction;    /* COSINE: 0..1; default 0. ONE_CYCLE ends at start / 1e4 */

    float clip_norm;  /* largest 2-norm of all gradients; default 0 = no limit */
    float ema_decay;  /* of the weights' moving average, 0..<1; default 0 = none kept */
    float loss_scale; /* > 0, multiplies the loss against underflow; default 0 = 1; dynamic below */
    /* Start at loss_scale or 65536, halve it and skip the update on overflow, double it after 2000 good
     * ones, within 2^-14..2^24. Default false. */
    bool dynamic_loss_scale;

    /* Most bytes the trainer may take; default 0 = no limit (with STOKER_BATCH_SIZE_MAX: half of what is
     * available). Chooses recomputation. */
    uint64_t memory_budget;
    /* Keep only that many borders of activations, 0..8192; default 0 = all. */
    uint32_t checkpoint_segments;
    bool recompute_batch_norm; /* keep one buffer for BatchNorm+ReLU, make the other again */

    /* What activations and their gradients are stored in: STOKER_FLOAT32 (default 0), FLOAT16 or BFLOAT16,
     * which take half the memory. Parameters, sums and statistics stay float32; each convolution and linear
     * layer reads a 16-bit copy of its weights. With FLOAT16 and no loss_scale, dynamic_loss_scale is on.
     * "cpu" has float32 only; "auto" is refused, too, where that is all there is. */
    stoker_dtype precision;
    /* Choose among a GPU's algorithms by timing them; default false = its heuristics. Others than "cuda"
     * refuse it, and so does "auto" where no GPU answers. */
    bool benchmark;
    /* The same bits from the same input on a GPU, too; default false. "cpu" and "ref" always are. */
    bool deterministic;

    /* Default 0 = one device. Else backend names two, "cuda:0,cuda:1", "cpu,cuda:0" and so on, and the first
     * `split` layers (as stoker_model_summary lists them, the input not counted) are the first one's, the others
     * the second's; only the value between the two may cross, so not inside a residual block, and both have
     * something to train. The passes of an update (accumulate) overlap: the second device works on one while the
     * first is at the next; for that metrics_interval must be more than 1, since telling waits. The numbers are
     * those of one device with the same accumulate, and so are checkpoints. memory_budget is that of each device.
     * Batches lie in host memory. No device is named twice but "ref". */
    uint32_t split;

    /* On a GPU, in float32: factors of convolutions and linear layers may be rounded to 10 bits (TF32),
     * which matrix units take several times as fast. Refused in 16 bits, and where benchmark is; of two devices
     * one must be a GPU. Default false: float32 is float32, and gradients are those of "ref" to 1e-5. */
    bool tf32;

    stoker_error *error; /* filled in when create fails; NULL (default) = not wanted */
} stoker_trainer_options;

#define STOKER_TRAINER_OPTIONS_DEFAULTS                                                            \
    STOKER_DEFAULT(struct_size, sizeof(stoker_trainer_options))                                    \
    STOKER_DEFAULT(batch_size, 64)                                                                 \
    STOKER_DEFAULT(learning_rate, STOKER_OPTIMIZER_DEFAULT)                                        \
    STOKER_DEFAULT(betas[0], 0.9F)                                                                 \
    STOKER_DEFAULT(betas[1], 0.999F)                                                               \
    STOKER_DEFAULT(rho, STOKER_OPTIMIZER_DEFAULT)                                                  \
    STOKER_DEFAULT(epsilon, STOKER_OPTIMIZER_DEFAULT)                                              \
    STOKER_DEFAULT(schedule_gamma, 0.1F)                                                           \
    STOKER_DEFAULT(schedule_rise, 0.3F)                                                            \
    STOKER_DEFAULT(schedule_start, 25.0F)

#ifdef __cplusplus
static inline stoker_trainer_options stoker_trainer_options_made(void)
{
    stoker_trainer_options made = {};
    STOKER_TRAINER_OPTIONS_DEFAULTS
    return made;
}
#define STOKER_TRAINER_OPTIONS_INIT stoker_trainer_options_made()
#else
#define STOKER_TRAINER_OPTIONS_INIT                                                                \
    {                                                                                              \
        STOKER_TRAINER_OPTIONS_DEFAULTS                                                            \
    }
#endif

/* Bytes taken, by class. Exact: their sum is what the back end was asked for. */
typedef struct stoker_trainer_memory {
    uint64_t parameters;
    uint64_t gradients;
    uint64_t optimizer_state; /* the moving average of the weights included */
    uint64_t statistics;      /* running statistics of BatchNorm */
    uint64_t activations;
    uint64_t workspace;
    uint64_t stored_parameters;   /* a copy in 16 bits, where precision asks for it */
    uint64_t peak;                /* all of the above together */
    uint64_t activations_plain;   /* what activations would be without recomputation */
    uint64_t activations_float32; /* what activations would be in float32 */
    stoker_dtype precision;       /* of activations: STOKER_FLOAT32, FLOAT16 or BFLOAT16 */
    uint32_t batch_size;          /* as chosen */
    uint32_t checkpoint_segments; /* as chosen */
    bool recompute_batch_norm;    /* as chosen */
} stoker_trainer_memory;

/* What is told of a pass: with a metrics_interval, of all passes since the last that told something.
 * Between them count is 0, and on a GPU an update counts as made once it is queued. */
typedef struct stoker_step {
    double loss;      /* mean over count samples; 0 if count is 0 */
    uint64_t correct; /* of count; classification only */
    uint64_t count;
    float learning_rate; /* of the update that belongs to this pass */
    float loss_scale;    /* on a GPU: as last told */
    float gradient_norm; /* of the last update, before clipping; 0 = not worked out, or not told */
    bool updated;        /* this pass ended with an update of the weights */
    bool skipped;        /* overflow, so no update was made. On a GPU where something is told */
} stoker_step;

/* Check options, work out the plan, take all memory, initialise the weights. The model must be
 * closed and outlive the trainer. On success *out is the caller's; on failure untouched.
 * STOKER_EINVAL (an option; the message names it), STOKER_ELIMIT (nothing fits in memory_budget; the
 * message tells the least that would), STOKER_ENOMEM, STOKER_ETHREAD, STOKER_EDEVICE (no such back end). */
STOKER_API int stoker_trainer_create(stoker_trainer **out, const stoker_model *model,
                                     const stoker_trainer_options *options);
STOKER_API void stoker_trainer_destroy(stoker_trainer **trainer); /* NULL-safe; sets NULL */

/* Start what options.backend = `backend` will compute on, and its libraries, which takes a GPU some tenths
 * of a second: in a thread of the caller's, while he opens his data. convolutions: the model will have some.
 * Where there is no such back end nothing happens; create will tell. Any thread. */
STOKER_API void stoker_trainer_wake(const char *backend, bool convolutions);

/* One pass, with an update after every `accumulate` of them (and see stoker_trainer_flush).
 * images: float32 NHWC of the model's input, labels as the loss asks; count <= batch_size. An empty
 * batch does nothing. STOKER_EINVAL, STOKER_EMISMATCH (shape or type), and then nothing has changed. STOKER_EINVAL,
 * as in PyTorch, also for a batch of 1 whose BatchNorm has no more than one value of each channel.
 *
 * On a GPU the pass is queued on stoker_trainer_stream(), and the call waits for nothing unless something is
 * told. A batch in the memory of that GPU is used there, behind its copy (stoker_batch_wait_on is called);
 * release it at once: stoker_batch_release and _release_on know when it is done with. Its labels are looked
 * at there as well: samples whose label is no class count for nothing, and the pass that next tells something
 * returns STOKER_EINVAL. Other host memory is the caller's again when the call returns: a GPU that reads such
 * memory by itself (HMM, ATS) is waited for until it has, with the pass queued behind.
 * From page-locked memory (STOKER_DEVICE_CUDA_HOST) the stream copies late: release with
 * stoker_batch_release_on(batch, stoker_trainer_stream(trainer)). STOKER_EDEVICE: the GPU failed. */
STOKER_API int stoker_trainer_step(stoker_trainer *trainer, const stoker_batch *batch,
                                   stoker_step *out);
/* From now on tell something every so many passes, 1..2^20: options.metrics_interval for who wants to know
 * first which back end there is. STOKER_EINVAL. */
STOKER_API int stoker_trainer_set_metrics_interval(stoker_trainer *trainer, uint32_t passes);
/* Update with the gradients summed so far, if any: the end of an epoch. Tells what was not told yet. */
STOKER_API int stoker_trainer_flush(stoker_trainer *trainer, stoker_step *out);

typedef struct stoker_evaluation {
    double loss_sum;
    uint64_t correct, count;
} stoker_evaluation;
/* Forward only, without dropout and with running statistics. Uses the moving average of the weights if
 * there is one. Adds to *sum; on a GPU the call waits for that. With sum NULL it waits for nothing, and what
 * is found is summed where it was worked out, until stoker_trainer_evaluated() asks; release the batch as
 * after stoker_trainer_step(). Returns what that does. */
STOKER_API int stoker_trainer_evaluate(stoker_trainer *trainer, const stoker_batch *batch,
                                       stoker_evaluation *sum);
/* Add to *sum what batches evaluated with NULL have found since this was last called; waits for them.
 * STOKER_EINVAL: labels of batches on a GPU were no classes (then all of it is forgotten); STOKER_EDEVICE. */
STOKER_API int stoker_trainer_evaluated(stoker_trainer *trainer, stoker_evaluation *sum);
/* The outputs of the last layer before the loss, [count][outputs] floats, for `count` samples. */
STOKER_API int stoker_trainer_predict(stoker_trainer *trainer, const float *samples, uint32_t count,
                                      float *outputs);

/* The last error of step, flush, evaluate and predict, or NULL if there was none: its message names
 * what does not fit. Valid until the next call. */
STOKER_API const stoker_error *stoker_trainer_error(const stoker_trainer *trainer);

STOKER_API void stoker_trainer_get_memory(const stoker_trainer *trainer,
                                          stoker_trainer_memory *out);
/* Give back to the device what holds nothing from one step to the next, once all that was queued is done:
 * activations, workspaces, recorded graphs and, between two updates, gradients. The next call that needs
 * it takes it again (then STOKER_ENOMEM, and it can be called again, or EDEVICE), and records anew; no number
 * changes by that. Returns bytes, of the classes of stoker_trainer_memory; 0 if there was nothing left. */
STOKER_API uint64_t stoker_trainer_trim(stoker_trainer *trainer);

/* How steps reached a GPU so far; all 0 where the back end is none. The numbers are the same either way:
 * what is not one graph costs the host a launch for each operation. */
typedef struct stoker_trainer_capture {
    uint64_t launched;  /* steps that were one CUDA graph */
    uint64_t queued;    /* steps that were not: the first of each kind; all, if uncaptured */
    uint64_t refused;   /* kinds of steps that could not be recorded, and are queued each time */
    const char *reason; /* why the first of these could not, in CUDA's words, valid as long as the
                           trainer; NULL = there was none */
} stoker_trainer_capture;
STOKER_API void stoker_trainer_get_capture(const stoker_trainer *trainer,
                                           stoker_trainer_capture *out);
/* Write the memory table, as snprintf does; see stoker_model_summary. */
STOKER_API size_t stoker_trainer_memory_table(const stoker_trainer *trainer, char *text,
                                              size_t bytes);
/* Write what options.backend can name here, as snprintf does: the CPU, and each GPU with its name, compute
 * capability, memory and the versions of driver and runtime, or why there is none. For a person. */
STOKER_API size_t stoker_trainer_devices(char *text, size_t bytes);
STOKER_API uint64_t stoker_trainer_updates(const stoker_trainer *trainer); /* made so far */
/* "cuda", "cpu" or "ref", static; of two devices "cpu,ref", the trainer's. */
STOKER_API const char *stoker_trainer_backend(const stoker_trainer *trainer);
/* The cudaStream_t that all is queued on; NULL where the back end is no GPU. */
STOKER_API struct CUstream_st *stoker_trainer_stream(const stoker_trainer *trainer);
STOKER_API uint32_t stoker_trainer_threads(const stoker_trainer *trainer);

/* Save everything needed to continue: weights in path (safetensors, PyTorch's names and layouts),
 * optimiser state, counters and, if loader is not NULL, the loader's state in a file beside it, which the
 * weights file names. Atomic: after a crash at any moment path holds the old checkpoint or the new one.
 * With ema_decay > 0 the averages of the weights lie beside it as well, in the same format with the running
 * statistics of path: "model.safetensors" has "model.ema.safetensors". PyTorch loads either file.
 * STOKER_EDIVERGED: a weight is NaN or infinite; nothing was written, and path holds what it held. */
STOKER_API int stoker_trainer_save(stoker_trainer *trainer, const char *path,
                                   const stoker_state *loader, stoker_error *error);
/* Continue from a checkpoint: the rest of the run is the same to the bit. With COSINE or ONE_CYCLE total_updates must
 * be what it was (EMISMATCH): another length would move the rate to another place of the curve. *loader, if wanted, becomes
 * options.resume of the loader; *has_loader tells if there was one. On failure nothing has changed, but
 * for EDEVICE. STOKER_ENOENT, EFORMAT, ETRUNCATED, EMISMATCH (another model; the message names the tensor),
 * ELIMIT, EDEVICE (the device failed: then anything may have changed). */
STOKER_API int stoker_trainer_load(stoker_trainer *trainer, const char *path, stoker_state *loader,
                                   bool *has_loader, stoker_error *error);
/* Only the weights and running statistics, of any safetensors file with the model's names: a file saved by
 * PyTorch, too. Tensors may be F32, F16, BF16 or F64. num_batches_tracked continues from the file's. The moving average of the weights begins again from them; the optimiser continues as it was. */
STOKER_API int stoker_trainer_load_weights(stoker_trainer *trainer, const char *path,
                                           stoker_error *error);
/* The same, but the weights are the averages that the checkpoint at path has. STOKER_EMISMATCH: it has none. */
STOKER_API int stoker_trainer_load_averages(stoker_trainer *trainer, const char *path,
                                            stoker_error *error);

/* Notes: strings for the run that continues, such as the name of the network or of the data. Saves write them
 * into the header of the weights ("__metadata__"); a later call with the same key replaces the value. Both are
 * copied. Key: 1..63 bytes, not beginning with "stoker."; value: 0..8191 bytes; both UTF-8; at most 32 notes.
 * A load does not bring notes along. STOKER_EINVAL, ELIMIT, ENOMEM. */
STOKER_API int stoker_trainer_set_note(stoker_trainer *trainer, const char *key, const char *value,
                                       stoker_error *error);
/* Calls take(user, key, value) for each note of a safetensors file, before there is a trainer. The strings are
 * valid during the call. A file without notes is no error. Returns what reading the file returns: STOKER_ENOENT,
 * EACCES, EISDIR, EIO, ETRUNCATED, EOVERSIZE, EFORMAT, ECORRUPT, ELIMIT, ENOMEM. */
typedef void stoker_note_function(void *user, const char *key, const char *value);
STOKER_API int stoker_trainer_read_notes(const char *path, stoker_note_function *take, void *user,
                                         stoker_error *error);

STOKER_END_DECLS
#endif
