/* loader.h - what stands behind a stoker_loader.
 *
 *   create.c   options in, pipeline built, workers started; and the way back
 *   loader.c   the consumer's side: next and what it waits for, state
 *   deliver.c  from a full slot to what the consumer sees, in place or on a device
 *   batch.c    what becomes of a batch: streams, release
 *   dlpack.c   or tensors of other libraries, which may outlive the loader
 *   stats.c    looking at it from any thread
 *   trace.c    what each thread did, for any thread
 *
 * What a batch holds is decided by pipeline/schedule and sampler/ alone; who makes it, and when, by
 * pipeline/slots and pipeline/worker. These files know both sides and add nothing to either.
 */
#ifndef STK_LOADER_H
#define STK_LOADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/api/dlpack_refs.h"
#include "loader/base/fork.h"
#include "loader/device/device.h"
#include "loader/pipeline/bad_samples.h"
#include "loader/pipeline/caller_assist.h"
#include "loader/pipeline/ledger.h"
#include "loader/pipeline/pipeline.h"
#include "loader/pipeline/trace.h"
#include "loader/pipeline/transfer.h"
#include "loader/pipeline/tuner.h"
#include "loader/pipeline/worker.h"

struct stoker_loader {
    struct stk_fork_guard guard;
    struct stk_device *device;
    bool on_device;                           /* batches are copied there */
    struct stk_device_convert device_convert; /* all zero on the CPU */
    size_t row_bytes;                         /* of a row as delivered */
    char convert_reason[STK_DEVICE_WHY_BYTES];
    char cache_reason[STK_DEVICE_WHY_BYTES];
    char device_reason[STK_DEVICE_WHY_BYTES];
    struct stk_pipeline pipeline;
    struct stk_transfer transfer; /* all zero on the CPU */
    struct stk_dlpack_refs refs;
    struct stk_tensor *tensors; /* three per ref: dlpack.c */
    bool has_bad_samples;       /* bad_samples is initialised */
    struct stk_bad_samples bad_samples;
    stoker_file *files;
    stoker_loader_options options;
    char reader_reason[128];

    struct stk_worker *workers; /* worker_count threads; or one without a thread */
    uint32_t worker_count;
    uint32_t workers_made;
    bool threads; /* false: num_workers = 0 */

    /* A caller that mostly waits does a worker's share in next(): see pipeline/caller_assist.h. */
    struct stk_worker caller_worker; /* without a thread: runs inside next() */
    bool has_caller_worker;
    _Atomic bool caller_assists; /* written by the consumer */
    struct stk_caller_assist assist;
    struct stk_trace trace; /* shared: its own rules */
    bool tuned;
    struct stk_tuner tuner;
    uint64_t tune_ns; /* not before then does the tuner look again */
    /* Not before then is the CPU time of work in the caller's thread measured. */
    uint64_t sample_ns;
    uint64_t waited_ns; /* when the last wait for a batch ended */
    uint32_t cpus;

    /* The consumer's side. */
    struct stk_ledger_consumer ledger;
    uint64_t created_ns;
    bool end_pending;     /* the epoch's last batch is delivered, its end not yet told */
    uint64_t state_epoch; /* where a resume would go on */
    uint64_t state_position;
    uint64_t files_look_ns;  /* when it looks again whether open files have changed */
    bool epoch_is_good;      /* a sample of the epoch that is being delivered was */
    uint64_t barren_samples; /* of whole epochs and this one, without a good one among them */
    _Atomic bool failed;     /* release pairs with acquire in stoker_loader_error */
    stoker_error error;
};

/* What the refs of the loader's batches need; last_out frees the loader. */
struct stk_dlpack_owner stk_batch_owner(stoker_loader *loader, void (*last_out)(void *));

/* The tensors of that many batches, or NULL. */
struct stk_tensor *stk_tensors_make(uint32_t batches);

#endif
