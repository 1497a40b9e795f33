/* fetch_ring.c - see fetch_ring.h. */
#include "loader/pipeline/reads/fetch_ring.h"

#include <fcntl.h>

#include "loader/reader/lock_limit.h"
#include "loader/reader/readers.h"

/* A ring that registers more holds all of it in memory; without registration only the used pages
 * are. */
enum { FIXED_SCRATCH_BYTES = 16 << 20 };

int stk_fetch_ring_open(struct stk_fetcher *fetcher, stoker_error *error)
{
    struct stk_pipeline *pipeline = fetcher->pipeline;
    const struct stk_region *slots = &pipeline->slots.memory;
    if (pipeline->encoded_bytes_max == 0)
        return 0; /* nothing will ever be read */
    const bool fixed = fetcher->scratch.bytes <= FIXED_SCRATCH_BYTES;
    /* A read into registered memory takes 5 to 20 % less of the processor. If nothing limits it,
     * slots that are not page-locked for a GPU are registered, too. */
    const bool straight =
        pipeline->plan.finish == STK_FINISH_COPY &&
        (slots->locked || (!stk_fetch_ring_is_own(fetcher) && stk_lock_is_unlimited()));
    const stoker_reader_setup setup = {
        .struct_size = sizeof(setup),
        .files = pipeline->files,
        .file_count = pipeline->dataset->info.file_count,
        .directory =
            pipeline->dataset->info.has_paths ? pipeline->dataset->info.directory : AT_FDCWD,
        .depth = fetcher->count,
        .scratch = fixed ? fetcher->scratch.base : NULL,
        .scratch_bytes = fixed ? fetcher->scratch.bytes : 0,
        .slots = straight ? slots->base : NULL,
        .slots_bytes = straight ? slots->bytes : 0,
        .any_thread = !pipeline->plan.threads,
    };
    int rc = fetcher->reader->open(fetcher->reader->self, &fetcher->ring, &setup, error);
    if (rc < 0 && pipeline->plan.reader == STK_READER_ANY && fetcher->reader != &stk_reader_pread) {
        /* A ring can fail on one thread although the others opened theirs. */
        fetcher->reader = &stk_reader_pread;
        atomic_fetch_add(&pipeline->pread_workers, 1U); /* once: pread has no fallback */
        if (stk_messages_once(&pipeline->messages, STK_SAID_NO_RING))
            stk_messages_put(&pipeline->messages, STOKER_LOG_WARNING,
                             "a worker got no ring, and reads with pread: %s", error->message);
        rc = fetcher->reader->open(fetcher->reader->self, &fetcher->ring, &setup, error);
    }
    fetcher->has_ring = rc == 0;
    if (rc == 0 && fetcher->reader == &stk_reader_uring) {
        atomic_store_explicit(&fetcher->locked_bytes,
                              stk_uring_registered_bytes(fetcher->ring, fetcher->scratch.base),
                              memory_order_relaxed);
        atomic_store_explicit(&fetcher->locked_slot_bytes,
                              stk_uring_registered_bytes(fetcher->ring, slots->base),
                              memory_order_relaxed);
    }
    return rc > 0 ? STOKER_EREADER : rc; /* open() knows no normal stop */
}

void stk_fetch_ring_close(struct stk_fetcher *fetcher, int64_t wait_ns)
{
    if (!fetcher->has_ring)
        return;
    stk_fetch_ring_enter(fetcher);
    if (fetcher->reader->close(fetcher->ring, wait_ns) != 0)
        fetcher->stuck = true;
    stk_fetch_ring_leave(fetcher);
    fetcher->has_ring = false;
    fetcher->ring = NULL;
    atomic_store_explicit(&fetcher->locked_bytes, 0U, memory_order_relaxed);
    atomic_store_explicit(&fetcher->locked_slot_bytes, 0U, memory_order_relaxed);
}

void stk_fetch_ring_reopen(struct stk_fetcher *fetcher)
{
    stoker_error why; /* unused: rows that fail report the ring */
    if (!stk_fetch_ring_is_own(fetcher) && fetcher->reader != &stk_reader_pread) {
        struct stk_messages *messages = &fetcher->pipeline->messages;
        atomic_fetch_add(&fetcher->pipeline->pread_workers, 1U);
        fetcher->reader = &stk_reader_pread;
        if (stk_messages_once(messages, STK_SAID_LOST_RING))
            stk_messages_put(messages, STOKER_LOG_WARNING,
                             "the ring of a worker failed: its reads are repeated with pread");
    }
    (void)stk_fetch_ring_open(fetcher, &why);
}
