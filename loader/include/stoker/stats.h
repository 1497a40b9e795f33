/* stoker/stats.h - what a loader did, where the time went, and what limits it. */
#ifndef STOKER_STATS_H
#define STOKER_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

/* The stage that limits the rate. */
typedef enum stoker_limit {
    STOKER_LIMIT_UNKNOWN = 0, /* too little data */
    /* Batches wait for the consumer: the loader is fast enough. Without workers: your code between
     * calls of next() takes longer than next(). */
    STOKER_LIMIT_CONSUMER,
    STOKER_LIMIT_READ,    /* workers read, or wait for storage */
    STOKER_LIMIT_DECODE,  /* workers are busy decoding */
    STOKER_LIMIT_CONVERT, /* workers are busy gathering and converting rows */
    STOKER_LIMIT_HANDOVER /* the ring of slots: batches are too small or too few */
} stoker_limit;

/* Counts start at create and never decrease; times are summed over all workers. */
typedef struct stoker_stats {
    size_t struct_size;   /* set by STOKER_STATS_INIT */
    uint64_t batches;     /* delivered by next */
    uint64_t samples;     /* delivered by next */
    uint64_t bytes;       /* image bytes delivered */
    uint64_t bad_samples; /* rows skipped, substituted or failed; a sample counts in every epoch */

    uint64_t elapsed_ns;     /* since create */
    uint64_t first_batch_ns; /* from the return of create to the first batch; 0 = none yet */
    uint64_t read_ns;        /* workers reading, or waiting for reads */
    uint64_t decode_ns;      /* workers decoding */
    uint64_t convert_ns;     /* workers gathering and converting */
    uint64_t slot_wait_ns;   /* workers waiting for a free slot */
    uint64_t stall_ns;       /* consumer waiting in next */
    uint64_t stalls;         /* calls of next that had to wait */

    uint64_t reads; /* finished by the reader */
    uint64_t read_bytes;
    uint64_t read_retries; /* after EINTR, EAGAIN and short reads */
    uint64_t cache_hits;   /* samples served without a read */

    uint32_t workers;     /* running now; a consumer that does a worker's share counts as one */
    uint32_t workers_max; /* threads that exist */
    uint32_t cpus;        /* that this process may use: see options.num_workers */
    uint32_t slots;       /* in the ring */
    uint32_t slots_ready; /* full, waiting for the consumer */
    uint32_t read_depth;  /* reads in flight per worker, at most */

    uint64_t slot_bytes;       /* all slots together */
    uint64_t cache_bytes;      /* reserved for the cache and its tables; GPU memory with DEVICE */
    uint64_t cache_held_bytes; /* filled so far */
    /* Of all workers: buffers for reads, and for decoding and transforming images, of which only
     * the pages that images need take memory. */
    uint64_t scratch_bytes;
    /* page-locked: slots if pinned, and slots and scratch that io_uring registered */
    uint64_t locked_bytes;

    stoker_cache cache;      /* in use: never AUTO */
    bool pinned;             /* the slots are page-locked */
    bool huge_pages;         /* the kernel accepted the request for them */
    char reader[16];         /* in use: "uring", "pread", ... */
    char reader_reason[128]; /* why this one */
    char pin_reason[128];    /* why not pinned; "" if pinned or not asked for */

    stoker_limit limit;
    char verdict[192]; /* the limit in words, and what would help */

    char device[32];         /* in use: "cpu", "cuda:0" */
    char device_reason[192]; /* why this one; if AUTO found no GPU, why not */
    uint64_t device_bytes;   /* GPU memory allocated, the cache's included */
    uint64_t copies;         /* batches sent to the GPU */
    uint64_t copy_bytes;
    bool converts_on_device;  /* uint8 rows are copied, and the GPU converts them */
    char convert_reason[192]; /* why not; "" if it does or was not considered */
    uint64_t copy_waits;      /* calls of next in which the host waited for copies */
    uint64_t trace_bytes;     /* for the events of all threads; 0 = options.trace_events is 0 */
    /* Batches on a GPU: the memory that a DEVICE cache takes of which budget, or why there is none.
     * On the CPU: why AUTO took NONE: not all samples fit, memory is short, or a copy would not
     * pay. Else "". */
    char cache_reason[192];
    /* Memory of the machine or a control group is short (an eighth of it, or 1 GiB if that is less,
     * is left): the cache keeps what it holds but does not grow. */
    bool cache_paused;
    /* CPU time of the workers, including what the consumer does for them. That part is estimated,
     * so the sum may decrease slightly. 0 = unknown. */
    uint64_t cpu_ns;
    /* options.on_lent GROW: slots, or buffers of a GPU, allocated beside the ring for batches that
     * were kept. */
    uint32_t lent_slots;
    uint64_t lent_bytes;
    uint64_t lent_bytes_max; /* their budget; 0 = none was needed yet */
    char lent_reason[192];   /* why the last batch that was kept got none; "" if it did */
    /* How rows get into the batch, by the slowest of their parts: "gather: in memory, converted
     * into the batch", "read_in_place: ..." or "read_decode: ..."; chosen at create. */
    char route[128];
    uint64_t regions; /* images of which only the part was decoded that the row needs */
    /* Loaders of living processes that share the cache, this one included; 0 = it is not shared.
     * Counting takes some 10 us each. cache_bytes and cache_held_bytes are those of all. */
    uint32_t cache_sharers;
    char share_reason[128]; /* why the cache is not shared; "" if it is, or was not asked to be */
    /* options.decode: images that a GPU has decoded (the CPU decoded the others), and bytes of
     * their files, which crossed the bus and are not in copy_bytes. */
    uint64_t device_images, device_image_bytes;
    bool decodes_on_device;  /* a GPU decodes JPEG files */
    char decode_reason[192]; /* why it does not; "" if it does, or was not asked to */
    /* options.batch_values_max: lengths of all samples delivered, and the values that their batches
     * take with padding: 1 - length_values / length_room is the share of padding. 0 without it. */
    uint64_t length_values, length_room;
} stoker_stats;

#define STOKER_STATS_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_stats))

STOKER_MAKER(stoker_stats, STOKER_STATS_DEFAULTS)
#define STOKER_STATS_INIT STOKER_INITIALIZER(stoker_stats, STOKER_STATS_DEFAULTS)
STOKER_API int stoker_stats_init_sized(stoker_stats *out, size_t struct_size);

/* Fill *out, up to out->struct_size bytes. Any thread, any time between create and destroy. Errors:
 * STOKER_EINVAL (struct_size is not set), STOKER_EFORKED. */
STOKER_API int stoker_loader_stats(const stoker_loader *loader, stoker_stats *out);

/* What happened between two snapshots of one loader: counts and times become differences, other
 * fields are those of `after`, and limit and verdict judge only that period. Writes
 * after->struct_size bytes; out may be before or after. STOKER_EINVAL: the sizes differ or are not
 * set, or before is not the earlier one. Any thread. */
STOKER_API int stoker_stats_between(const stoker_stats *before, const stoker_stats *after,
                                    stoker_stats *out);

/* "consumer", "read", "decode", "convert", "handover", "unknown". */
STOKER_API const char *stoker_limit_name(stoker_limit limit);

/* "none", "encoded", "decoded", "device", "auto". */
STOKER_API const char *stoker_cache_name(stoker_cache cache);

STOKER_END_DECLS
#endif
