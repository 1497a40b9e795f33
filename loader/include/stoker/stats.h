/* stoker/stats.h - counters, times and memory of a loader, and the stage that limits its rate. */
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
    /* Your code: batches wait for it or, without workers, it spends more time than next(). */
    STOKER_LIMIT_CONSUMER,
    STOKER_LIMIT_READ,    /* workers read, or wait for storage */
    STOKER_LIMIT_DECODE,  /* workers decode */
    STOKER_LIMIT_CONVERT, /* workers gather and convert rows */
    STOKER_LIMIT_HANDOVER /* the ring of slots: batches are too small or too few */
} stoker_limit;

/* Counts and times start at 0 in create and never decrease, unless noted; times of workers are
 * sums over all workers. Texts are one line. */
typedef struct stoker_stats {
    size_t struct_size;   /* set by STOKER_STATS_INIT */
    uint64_t batches;     /* delivered by next */
    uint64_t samples;     /* delivered by next */
    uint64_t bytes;       /* delivered by next in the first field */
    uint64_t bad_samples; /* rows skipped, substituted or failed; a sample counts once per epoch */

    uint64_t elapsed_ns;     /* since create */
    uint64_t first_batch_ns; /* from the return of create to the first batch; 0 = none yet */
    uint64_t read_ns;        /* workers reading, or waiting for reads */
    uint64_t decode_ns;      /* workers decoding */
    uint64_t convert_ns;     /* workers gathering and converting */
    uint64_t slot_wait_ns;   /* workers waiting for a free slot */
    uint64_t stall_ns;       /* consumer waiting in next */
    uint64_t stalls;         /* calls of next that waited */

    uint64_t reads;        /* finished by the reader */
    uint64_t read_bytes;   /* sum of their results */
    uint64_t read_retries; /* after short reads and errors that pass, such as EINTR */
    uint64_t cache_hits;   /* samples served without a read */
    /* Of files that consist of blocks: blocks that were read and unpacked; how many of them a
     * second time because block_memory_bytes was used up too early; their bytes as stored.
     * read_bytes counts what samples took of them. */
    uint64_t blocks, blocks_again, block_bytes;

    uint32_t workers;     /* running now, including a consumer that works as one */
    uint32_t workers_max; /* worker threads created */
    uint32_t cpus;        /* CPUs that this loader may use: see options.num_workers */
    uint32_t slots;       /* in the ring */
    uint32_t slots_ready; /* full, waiting for the consumer */
    uint32_t read_depth;  /* reads in flight per worker, at most */

    uint64_t slot_bytes;       /* memory of all slots */
    uint64_t cache_bytes;      /* reserved for the cache and its tables; GPU memory with DEVICE */
    uint64_t cache_held_bytes; /* filled so far */
    /* Buffers of all workers, for reads and for decoding and transforming images. This is address
     * space: only the pages that images need use memory. */
    uint64_t scratch_bytes;
    uint64_t locked_bytes; /* page-locked: pinned slots, and what io_uring registered */

    stoker_cache cache;      /* in use: never AUTO */
    bool pinned;             /* the slots are page-locked */
    bool huge_pages;         /* the kernel accepted the request for huge pages */
    char reader[16];         /* in use: "uring", "pread", ... */
    char reader_reason[128]; /* why this reader */
    char pin_reason[128];    /* why not pinned; "" if pinned or not asked for */

    stoker_limit limit;
    char verdict[192]; /* the limit in words, and a change that would help */

    char device[32];          /* in use: "cpu", "cuda:0" */
    char device_reason[192];  /* why this device; if AUTO found no GPU, why not */
    uint64_t device_bytes;    /* GPU memory allocated, including the cache */
    uint64_t copies;          /* batches sent to the GPU */
    uint64_t copy_bytes;      /* bytes copied for them */
    bool converts_on_device;  /* the GPU converts rows, which are copied as uint8 */
    char convert_reason[192]; /* why not; "" if it does or was not considered */
    uint64_t copy_waits;      /* calls of next in which the host waited for copies */
    uint64_t trace_bytes;     /* memory for events; 0 = options.trace_events is 0 */
    /* Batches on a GPU: memory and budget of a DEVICE cache, or why there is none. On the CPU: why
     * AUTO chose NONE (not all samples fit, memory is short, or a copy would not pay). Else "". */
    char cache_reason[192];
    /* The cache keeps its rows but does not grow now: only an eighth of the memory of the machine
     * or control group, at most 1 GiB, is left. */
    bool cache_paused;
    /* CPU time of the workers' work. The consumer's part of it is estimated, so the sum may
     * decrease slightly. 0 = unknown. */
    uint64_t cpu_ns;
    uint32_t lent_slots;   /* slots, or buffers on a GPU, that options.on_lent GROW allocated */
    uint64_t lent_bytes;   /* memory of these, without pages that were returned to the system */
    char lent_reason[192]; /* why no slot was allocated for the last kept batch; "" if one was */
    /* How create routes a sample's slowest part into the batch: "gather: in memory, converted into
     * the batch", "read_in_place: ..." or "read_decode: ...". */
    char route[128];
    uint64_t regions; /* images decoded only in the region that the row needs */
    /* Loaders of living processes that share the cache, including this one; 0 = not shared.
     * Counting takes about 10 us per loader. cache_bytes and cache_held_bytes then describe the
     * shared cache. */
    uint32_t cache_sharers;
    char share_reason[128]; /* why the cache is not shared; "" if it is or was not asked to be */
    /* options.decode: images decoded by a GPU, and bytes of their files, which cross the bus in
     * addition to copy_bytes. */
    uint64_t device_images, device_image_bytes;
    bool decodes_on_device;  /* a GPU decodes JPEG files */
    char decode_reason[192]; /* why not; "" if it does or was not asked to */
    /* With options.batch_values_max: sum of the lengths of all delivered samples, and the same with
     * padding: 1 - length_values / length_room is the share of padding. Else 0. */
    uint64_t length_values, length_room;
    /* Memory of what decoders noted about images, which makes later decodes of a part faster. */
    uint64_t notes_bytes;
    /* Host memory in use of what options.memory_bytes limits: slots, kept batches, what the cache
     * and notes hold, and their tables; and the limit, with AUTO the sum of what each may take. */
    uint64_t memory_bytes, memory_bytes_max;
    uint64_t block_memory_bytes; /* reserved for unpacked blocks */
} stoker_stats;

#define STOKER_STATS_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_stats))

STOKER_MAKER(stoker_stats, STOKER_STATS_DEFAULTS)
#define STOKER_STATS_INIT STOKER_INITIALIZER(stoker_stats, STOKER_STATS_DEFAULTS)
STOKER_API int stoker_stats_init_sized(stoker_stats *out, size_t struct_size);

/* Fill in *out, up to out->struct_size bytes. Any thread, any time between create and destroy.
 * Errors: STOKER_EINVAL (an argument is NULL, or struct_size is not set), STOKER_EFORKED. */
STOKER_API int stoker_loader_stats(const stoker_loader *loader, stoker_stats *out);

/* Set *out to the period between two snapshots of one loader: counts and times are differences,
 * limit and verdict judge that period only, and other members are those of `after`. Writes
 * after->struct_size bytes. out may be equal to before or after. Any thread. STOKER_EINVAL: an
 * argument is NULL, the sizes differ or are not set, or `before` is not the earlier one. */
STOKER_API int stoker_stats_between(const stoker_stats *before, const stoker_stats *after,
                                    stoker_stats *out);

/* Return "consumer", "read", "decode", "convert" or "handover"; "unknown" for any other value.
 * Static. Any thread. */
STOKER_API const char *stoker_limit_name(stoker_limit limit);

/* Return "auto", "none", "encoded", "decoded" or "device"; "unknown" for any other value. Static.
 * Any thread. */
STOKER_API const char *stoker_cache_name(stoker_cache cache);

STOKER_END_DECLS
#endif
