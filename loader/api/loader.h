/* loader.h - the members of a stoker_loader, and the files that work on it:
 *
 *   choose/    choices that the options leave open
 *   create.c   checks the options, builds the pipeline, starts the workers
 *   destroy.c  stops the workers; frees everything once no batch is in use
 *   restart.c  replaces the loader by another one, which takes over its cache
 *   loader.c   the consumer's side: next() and its waiting, state
 *   deliver.c  from a full slot to the consumer's batch, in place or on a device
 *   batch.c    releasing a batch, and its use on CUDA streams
 *   lend/      batches that are in use: by DLPack tensors, when the ring comes round to them,
 *              and the descriptor that is readable while next() need not wait
 *   report/    messages, figures and recorded events
 *
 * pipeline/schedule and sampler/ alone decide what a batch holds; pipeline/slots and
 * pipeline/worker decide when it is made and in which thread.
 */
#ifndef STK_LOADER_H
#define STK_LOADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/api/lend/grown_slots.h"
#include "loader/api/lend/leases.h"
#include "loader/api/outputs.h"
#include "loader/api/report/log.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/fork.h"
#include "loader/device/device.h"
#include "loader/pipeline/gpu/transfer.h"
#include "loader/pipeline/plan/pipeline.h"
#include "loader/pipeline/report/bad_samples.h"
#include "loader/pipeline/report/ledger.h"
#include "loader/pipeline/report/trace.h"
#include "loader/pipeline/work/caller_assist.h"
#include "loader/pipeline/work/tuner.h"
#include "loader/pipeline/work/worker.h"
#include "loader/sampler/draws.h"
#include "loader/sampler/mix.h"
#include "loader/storage/block_reader.h"
#include "loader/storage/reader.h"

struct stoker_loader {
    struct stk_fork_guard guard;
    struct stk_device *device;
    bool on_device;                           /* batches are copied to `device` */
    struct stk_device_convert device_convert; /* all zero on the CPU */
    struct stk_device_blend device_blend;
    size_t row_bytes; /* per row as delivered */
    char convert_reason[STK_DEVICE_WHY_BYTES];
    char cache_reason[STK_DEVICE_WHY_BYTES];
    char decode_reason[STK_DEVICE_WHY_BYTES];
    char share_reason[128]; /* why the cache is not shared */
    char device_reason[STK_DEVICE_WHY_BYTES];
    bool cache_needless;             /* the data set or the GPU holds the rows */
    bool cache_declined;             /* AUTO keeps no rows, whatever fits: see cache_reason */
    bool share_failed;               /* share_reason is a failure, not a consequence of options */
    bool has_messages;               /* pipeline.messages is initialized */
    struct stk_log log;              /* what on_log has reported */
    uint32_t slots_wanted;           /* slots without the limit by memory; 0 = given */
    struct stk_pipeline_facts facts; /* collected by create, for pipeline.plan */
    struct stk_pipeline pipeline;
    struct stk_draws draws;       /* all zero if the order is a permutation */
    struct stk_mix mix;           /* all zero without one */
    uint32_t order_hash;          /* 24 bits, for the state; 0 = no order but shuffle */
    struct stk_transfer transfer; /* all zero on the CPU */
    struct stk_leases leases;
    struct stk_outputs outputs;
    stoker_field *fields;       /* the ring's: kept.c hands them to its leases */
    struct stk_tensor *tensors; /* the ring's: kept.c hands them to its leases */
    struct stk_kept kept;
    bool has_bad_samples; /* bad_samples is initialized */
    struct stk_bad_samples bad_samples;
    stoker_file *files;
    stoker_dataset *dataset; /* shared with the caller */
    stoker_loader_options options;
    char reader_reason[128];
    /* A copy of options.reader, or the reader of storages; that of blocks above it if files consist
     * of blocks. All zero without any of them. */
    stoker_reader own_reader;
    struct stk_storage_reader storage_reader; /* if files are in storages or blocks */
    bool has_blocks;                          /* block_reader is above the other */
    struct stk_block_reader block_reader;

    struct stk_worker *workers; /* worker_count threads; or one without a thread */
    uint32_t worker_count;
    uint32_t workers_made;
    bool threads; /* false: num_workers = 0 */

    /* A caller that mostly waits does a worker's share in next(): pipeline/work/caller_assist.h */
    struct stk_worker caller_worker; /* without a thread: runs inside next() */
    bool has_caller_worker;
    _Atomic bool caller_assists; /* written by the consumer */
    struct stk_caller_assist assist;
    struct stk_trace trace; /* shared; trace.h has the rules */
    bool tuned;
    struct stk_tuner tuner;
    uint64_t tune_ns;   /* time of the tuner's next step */
    uint64_t sample_ns; /* time of the next measurement of the caller's CPU time */
    uint64_t waited_ns; /* end of the last wait for a batch */
    int32_t gpu_node;   /* NUMA node of the GPU, which workers and slots keep to; below 0 = any */
    uint32_t cpus;
    uint64_t available_bytes; /* memory that was left when the loader was made */
    /* What the cache leaves of options.memory_bytes; UINT64_MAX = AUTO. */
    uint64_t batches_bytes_max;

    /* The consumer's side. */
    struct stk_ledger_consumer ledger;
    uint64_t created_ns;
    bool polls;           /* the caller has asked for `event` */
    int event;            /* see api/lend/poll.h */
    bool end_pending;     /* the epoch's last batch is delivered, its end not yet reported */
    uint64_t state_epoch; /* where a resume would continue */
    uint64_t state_position;
    uint64_t files_look_ns;  /* time of the next check of open files for changes */
    bool epoch_is_good;      /* the current epoch has delivered a good sample */
    uint64_t barren_samples; /* samples since the last good one, counted in whole epochs */
    _Atomic bool failed;     /* release pairs with acquire in stoker_loader_error */
    stoker_error error;
    _Atomic bool misused; /* the last call of next() was refused: `misuse` says why; relaxed */
    stoker_error misuse;
};

/* Returns true if the consumer still holds the batch that was lent on this turn. */
bool stk_batch_is_lent(const stoker_loader *loader, const struct stk_lease *lease, uint64_t turn);

/* The callbacks for leases; last_out frees the loader. */
struct stk_leases_owner stk_batch_owner(stoker_loader *loader, void (*last_out)(void *));

/* Tensors for `batches` batches; NULL = no memory. Free with stk_free(). */
struct stk_tensor *stk_tensors_make(uint32_t batches, uint32_t fields);
struct stk_tensor *stk_tensors_of(struct stk_tensor *tensors, uint32_t batch, uint32_t fields);

/* Run `workers` workers from now on. A caller that assists is an extra one if a core is free, else
 * it replaces the last one. */
static inline void stk_loader_run_workers(stoker_loader *loader, uint32_t workers, bool assists)
{
    const bool spare_core = loader->cpus > workers;
    loader->pipeline.slots.workers = workers;
    loader->pipeline.slots.spare_core = spare_core;
    atomic_store(&loader->caller_assists, assists);
    atomic_store(&loader->pipeline.active_workers, workers - (assists && !spare_core ? 1 : 0));
    stk_futex_wake(&loader->pipeline.active_workers, UINT32_MAX);
}

/* next() does no worker's share any more: the caller waits elsewhere. */
static inline void stk_loader_stop_assisting(stoker_loader *loader)
{
    if (atomic_load_explicit(&loader->caller_assists, memory_order_relaxed))
        stk_loader_run_workers(loader, loader->tuner.workers, false);
}

/* When a call of next() that began at start_ns must return; UINT64_MAX = no limit. */
static inline uint64_t stk_loader_deadline(int32_t timeout_ms, uint64_t start_ns)
{
    return timeout_ms < 0 ? UINT64_MAX : start_ns + (uint64_t)timeout_ms * UINT64_C(1000000);
}

/* The consumer has waited in next(). */
static inline void stk_loader_count_stall(stoker_loader *loader, uint64_t before_ns,
                                          uint64_t now_ns)
{
    stk_ledger_add(&loader->ledger.stall_ns, now_ns - before_ns);
    stk_ledger_add(&loader->ledger.stalls, 1);
    loader->waited_ns = now_ns;
}

#endif
