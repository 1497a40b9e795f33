/* stoker/stats.h - what the loader did, where the time went, what holds it back. */
#ifndef STOKER_STATS_H
#define STOKER_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

/* The one stage that limits the rate. */
typedef enum stoker_limit {
    STOKER_LIMIT_UNKNOWN = 0, /* too little was seen to tell */
    STOKER_LIMIT_CONSUMER, /* batches wait for you: the loader is fast enough. Without workers: what
                                 you do between calls of next takes more time than next */
    STOKER_LIMIT_READ,     /* workers read, or wait for storage */
    STOKER_LIMIT_DECODE,   /* workers are busy decoding */
    STOKER_LIMIT_CONVERT,  /* workers are busy gathering and converting rows */
    STOKER_LIMIT_HANDOVER  /* the ring of slots: batches are too small or too few */
} stoker_limit;

/* Counts run from create on and never go down; time is summed over all workers. */
typedef struct stoker_stats {
    size_t struct_size;   /* set by the caller to sizeof(stoker_stats) */
    uint64_t batches;     /* delivered by next */
    uint64_t samples;     /* delivered by next */
    uint64_t bytes;       /* of images delivered */
    uint64_t bad_samples; /* rows skipped, substituted or failed: a sample counts in each epoch */

    uint64_t elapsed_ns;     /* since create */
    uint64_t first_batch_ns; /* from create's return to the first batch's delivery; 0 = not yet */
    uint64_t read_ns;        /* workers reading, or waiting for reads */
    uint64_t decode_ns;      /* workers decoding */
    uint64_t convert_ns;     /* workers gathering and converting */
    uint64_t slot_wait_ns;   /* workers waiting for a free slot */
    uint64_t stall_ns;       /* consumer waiting in next */
    uint64_t stalls;         /* calls of next that had to wait */

    uint64_t reads; /* finished by the reader */
    uint64_t read_bytes;
    uint64_t read_retries; /* EINTR, EAGAIN, short reads taken up again */
    uint64_t cache_hits;   /* samples served without a read */

    uint32_t workers;     /* running now; a consumer that helps counts as one */
    uint32_t workers_max; /* threads that exist */
    uint32_t cpus;        /* that affinity and cgroup quota leave us */
    uint32_t slots;
    uint32_t slots_ready; /* full, waiting for the consumer */
    uint32_t read_depth;

    uint64_t slot_bytes; /* all slots together */
    /* Reserved for the cache and what manages it; of GPU memory if it is DEVICE. */
    uint64_t cache_bytes;
    uint64_t cache_held_bytes; /* filled so far */
    /* Of all workers together: what is read, and where images are decoded and transformed, of
     * which as much is used as images are large. */
    uint64_t scratch_bytes;
    /* Page-locked by this loader: slots, and scratch that io_uring registered. */
    uint64_t locked_bytes;

    stoker_cache cache;      /* in use: never AUTO */
    bool pinned;             /* the slots are page-locked */
    bool huge_pages;         /* the kernel was asked for them and agreed */
    char reader[16];         /* in use: "uring", "pread", ... */
    char reader_reason[128]; /* why this one */
    char pin_reason[128];    /* why not pinned; "" if pinned or not asked for */

    stoker_limit limit;
    char verdict[192]; /* the limit in words, with what would help */

    char device[32];         /* in use: "cpu", "cuda:0" */
    char device_reason[192]; /* why this one; where AUTO found no GPU, why not */
    uint64_t device_bytes;   /* GPU memory taken, the cache's included */
    uint64_t copies;         /* batches sent to the GPU */
    uint64_t copy_bytes;
    bool converts_on_device;  /* copies are of uint8 rows, and the GPU does the rest */
    char convert_reason[192]; /* why not, where that was looked at; else "" */
    uint64_t copy_waits;      /* calls of next in which the host waited for copies */
    uint64_t trace_bytes;     /* for the events of all threads; 0 = no options.trace_events */
    /* With batches for a GPU: what a cache DEVICE takes of which budget, or why it is none. On the CPU: that
     * AUTO took NONE because not all samples fit, or that memory is short. Else "". */
    char cache_reason[192];
    /* The machine's memory, or that of a control group, is short (an eighth of it is left, or 1
     * GiB): the cache keeps what it holds and takes no more for now. */
    bool cache_paused;
    uint64_t cpu_ns; /* CPU time of the workers, what the consumer does for them included; that part
                        is estimated, so the sum may go down a little. 0 = unknown */
} stoker_stats;

/* Fill *out, up to out->struct_size bytes. Any thread, any time between create and
 * destroy. Errors: STOKER_EINVAL (struct_size is not set), STOKER_EFORKED. */
STOKER_API int stoker_loader_stats(const stoker_loader *loader, stoker_stats *out);

/* What happened between two looks at the same loader: counts and times become differences, what
 * is no count is taken from `after`, and limit and verdict speak of the time between alone.
 * out may be before or after. STOKER_EINVAL: a struct_size is not this version's, or before is
 * not the earlier one. Any thread. */
STOKER_API int stoker_stats_between(const stoker_stats *before, const stoker_stats *after,
                                    stoker_stats *out);

/* "consumer", "read", "decode", "convert", "handover", "unknown". */
STOKER_API const char *stoker_limit_name(stoker_limit limit);

/* "none", "encoded", "decoded", "device", "auto". */
STOKER_API const char *stoker_cache_name(stoker_cache cache);

STOKER_END_DECLS
#endif
