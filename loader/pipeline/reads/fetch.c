/* fetch.c - see fetch.h. */
#include "loader/pipeline/reads/fetch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/error.h"
#include "loader/base/io/open_beneath.h"
#include "loader/base/memory/memory.h"
#include "loader/pipeline/reads/fetch_ring.h"
#include "loader/reader/readers.h"

enum {
    FETCHES_AHEAD = 8,     /* prefetch distance of fetches, */
    PARTS_AHEAD = 4,       /* and of the parts they read, once the fetch is in the cache */
    QUICK_RETRIES = 8,     /* without a pause; later ones wait */
    RETRY_WAIT_NS = 50000, /* 56 of them: 3 ms until the blocking read */
    LATE_RETRIES_MAX = 64, /* more, for a caller's own reader, which has no blocking read */
    LATE_RETRY_WAIT_NS = 2000000,
    RING_FAILURES_MAX = 3, /* in a row, without a finished read; then no ring is opened any more */
    RESTART_WAIT_NS = 1000000000 /* longest wait for the reads of a broken ring */
};

/* Memory for as many runs as the window of reads has bytes, and one more. */
enum { WIDE_MIN = 2, WIDE_MAX = 16 };

/* A read in flight. */
struct stk_fetch {
    stoker_read read; /* first member: the reader returns its address */
    struct stk_fetch *next;
    struct stk_read_order order; /* span is NULL if the fetch is free */
    uint8_t *start;              /* destination of byte 0 */
    uint32_t done_bytes;
    uint32_t retries; /* in a row, without progress */
    uint8_t *scratch; /* this fetch's own, pipeline->encoded_bytes_max bytes and one more */
};

/* ---- memory ---- */

static void push(struct stk_fetch **list, struct stk_fetch *fetch)
{
    fetch->next = *list;
    *list = fetch;
}

static struct stk_fetch *pop(struct stk_fetch **list)
{
    struct stk_fetch *fetch = *list;
    *list = fetch->next;
    return fetch;
}

/* Number of runs that can be read at once to memory of fetch. */
static uint32_t wide_count(const struct stk_pipeline *pipeline, uint32_t count)
{
    const size_t longest = pipeline->encoded_bytes_max;
    if (!pipeline->plan.runs || count == 0 || longest > STK_RUN_BYTES_MAX / 2)
        return 0;
    const uint32_t wide = (uint32_t)(count * longest / STK_RUN_BYTES_MAX) + 1;
    return wide < WIDE_MIN ? WIDE_MIN : wide > WIDE_MAX ? WIDE_MAX : wide;
}

int stk_fetcher_init(struct stk_fetcher *fetcher, struct stk_pipeline *pipeline,
                     struct stk_ledger_entry *ledger, bool reads)
{
    memset(fetcher, 0, sizeof(*fetcher));
    fetcher->pipeline = pipeline;
    fetcher->ledger = ledger;
    fetcher->reader = pipeline->reader;
    /* A whole file is read with one extra byte, to notice that it has grown. */
    const size_t longest = pipeline->encoded_bytes_max + pipeline->dataset->info.has_paths;
    const size_t room = reads ? (longest + 63) / 64 * 64 : 0;
    /* The last row that starts may exceed the window by all its parts but one. */
    if (room > 0 && pipeline->part_count > 0)
        fetcher->count = pipeline->read_depth + pipeline->part_count - 1;
    const uint32_t wide = wide_count(pipeline, fetcher->count);
    fetcher->wide = stk_calloc((size_t)wide + 1, sizeof(fetcher->wide[0]));
    fetcher->fetches = stk_calloc((size_t)fetcher->count + 1, sizeof(fetcher->fetches[0]));
    fetcher->queue = stk_calloc((size_t)fetcher->count + 1, sizeof(fetcher->queue[0]));
    fetcher->reaped = stk_calloc((size_t)fetcher->count + 1, sizeof(fetcher->reaped[0]));
    if (fetcher->wide == NULL || fetcher->fetches == NULL || fetcher->queue == NULL ||
        fetcher->reaped == NULL)
        return STOKER_ENOMEM;
    if (fetcher->count == 0)
        return 0;
    int rc = stk_region_map(&fetcher->scratch, fetcher->count * room);
    if (rc == 0 && wide > 0)
        rc = stk_region_map(&fetcher->wide_memory, (size_t)wide * STK_RUN_BYTES_MAX);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < wide; i++)
        fetcher->wide[fetcher->wide_free++] =
            (uint8_t *)fetcher->wide_memory.base + (size_t)i * STK_RUN_BYTES_MAX;
    for (uint32_t i = 0; i < fetcher->count; i++) {
        fetcher->fetches[i].scratch = (uint8_t *)fetcher->scratch.base + i * room;
        push(&fetcher->free, &fetcher->fetches[i]);
    }
    return 0;
}

void stk_fetcher_destroy(struct stk_fetcher *fetcher)
{
    assert(!fetcher->stuck); /* the kernel may still write to the scratch */
    stk_region_unmap(&fetcher->scratch);
    stk_region_unmap(&fetcher->wide_memory);
    stk_free(fetcher->wide);
    stk_free(fetcher->fetches);
    stk_free(fetcher->queue);
    stk_free(fetcher->reaped);
    memset(fetcher, 0, sizeof(*fetcher));
}

/* ---- queue and submit ---- */

static const stoker_extent *extent_of(const struct stk_fetch *fetch)
{
    const struct stk_read_order *order = &fetch->order;
    return &stk_span_part(order->span, order->row, order->part)->extent;
}

/* A named file: the whole one, or a range of it, which is read with one extra byte as well. */
static bool is_whole_file(const struct stk_fetch *fetch)
{
    return fetch->read.path != NULL;
}

/* Returns true if only the ring may deliver the bytes: the reader is the caller's own, or they lie
 * in a storage or in blocks. */
static bool is_own(const struct stk_fetcher *fetcher, const struct stk_fetch *fetch)
{
    const struct stk_pipeline *pipeline = fetcher->pipeline;
    const bool numbered =
        !is_whole_file(fetch) || pipeline->dataset->info.directory == STOKER_DIRECTORY_OF_FILE;
    const stoker_file *file = numbered ? &pipeline->files[fetch->read.file] : NULL;
    return pipeline->plan.reader == STK_READER_STORAGES
               ? file != NULL && (file->fd < 0 || (file->blocks != NULL && !is_whole_file(fetch)))
               : stk_fetch_ring_is_own(fetcher);
}

static bool is_range(const struct stk_fetch *fetch)
{
    const struct stk_read_order *order = &fetch->order;
    return stk_part_is_range(stk_span_part(order->span, order->row, order->part));
}

/* Queue a read of the missing bytes. */
static void enqueue(struct stk_fetcher *fetcher, struct stk_fetch *fetch)
{
    fetch->read.buffer = fetch->start + fetch->done_bytes;
    fetch->read.offset = fetch->order.offset + fetch->done_bytes;
    fetch->read.bytes = fetch->order.bytes - fetch->done_bytes + (is_whole_file(fetch) ? 1U : 0U);
    fetch->read.result = 0;
    fetch->read.reason = NULL;
    fetcher->queue[fetcher->queued++] = &fetch->read;
}

static void begin_run(struct stk_fetcher *fetcher, struct stk_fetch *fetch)
{
    fetcher->run_rows += fetch->order.run_rows - 1;
    if (fetch->order.to != NULL)
        return;
    assert(fetcher->wide_free > 0 && fetch->order.bytes <= STK_RUN_BYTES_MAX);
    fetch->start = fetcher->wide[--fetcher->wide_free];
}

static void end_run(struct stk_fetcher *fetcher, const struct stk_fetch *fetch)
{
    fetcher->run_rows -= fetch->order.run_rows - 1;
    if (fetch->order.to == NULL)
        fetcher->wide[fetcher->wide_free++] = fetch->start;
}

void stk_fetch_queue(struct stk_fetcher *fetcher, const struct stk_read_order *order)
{
    assert(fetcher->free != NULL);
    struct stk_fetch *fetch = pop(&fetcher->free);
    __builtin_prefetch(fetcher->free, 1); /* the next one in use */
    fetch->order = *order;
    const stoker_part *part = stk_span_part(order->span, order->row, order->part);
    fetch->read.path = part->extent.path;
    fetch->read.file = part->extent.file;
    fetch->read.version = part->version;
    fetch->start = order->to != NULL ? order->to : fetch->scratch;
    if (order->run_rows > 1)
        begin_run(fetcher, fetch);
    fetch->done_bytes = 0;
    fetch->retries = 0;
    enqueue(fetcher, fetch);
}

void stk_fetch_give_back(struct stk_fetcher *fetcher, struct stk_fetch *fetch)
{
    if (fetch->order.run_rows > 1)
        end_run(fetcher, fetch);
    fetch->order.span = NULL;
    push(&fetcher->free, fetch);
}

/* Close the ring and repeat all its reads with another one. */
static void replace_ring(struct stk_fetcher *fetcher)
{
    stk_fetch_ring_close(fetcher, RESTART_WAIT_NS);
    if (!fetcher->stuck && fetcher->ring_failures++ < RING_FAILURES_MAX)
        stk_fetch_ring_reopen(fetcher);
    /* Part of a read may have arrived: read its bytes again. */
    fetcher->queued = 0;
    fetcher->in_flight = 0;
    fetcher->reaped_next = fetcher->reaped_count = 0;
    fetcher->lost = NULL;
    for (uint32_t i = 0; i < fetcher->count; i++) {
        struct stk_fetch *fetch = &fetcher->fetches[i];
        if (fetch->order.span == NULL)
            continue;
        if (fetcher->has_ring) {
            enqueue(fetcher, fetch);
        } else {
            push(&fetcher->lost, fetch);
            fetcher->in_flight++;
        }
    }
}

/* Submit the queue to the reader. Returns false if the ring broke. */
static bool submit(struct stk_fetcher *fetcher)
{
    stk_fetch_ring_enter(fetcher);
    const bool taken = fetcher->has_ring &&
                       fetcher->reader->submit(fetcher->ring, fetcher->queue, fetcher->queued) >= 0;
    stk_fetch_ring_leave(fetcher);
    return taken;
}

uint32_t stk_fetch_submit(struct stk_fetcher *fetcher)
{
    uint32_t submitted = 0;
    while (fetcher->queued > 0) { /* ends: replace_ring gives up after RING_FAILURES_MAX */
        if (submit(fetcher)) {
            submitted = fetcher->queued;
            fetcher->in_flight += fetcher->queued;
            fetcher->queued = 0;
        } else {
            replace_ring(fetcher);
        }
    }
    return submitted;
}

/* ---- completions ---- */

/* The completion of a read whose bytes are all there. Returns true. */
static bool complete(const struct stk_fetch *fetch, struct stk_completion *out)
{
    out->span = fetch->order.span;
    out->row = fetch->order.row;
    out->part = fetch->order.part;
    out->block_rows = fetch->order.block_rows;
    out->run_rows = fetch->order.run_rows;
    out->run_step = fetch->order.run_step;
    out->bytes = fetch->start;
    out->size = fetch->order.bytes;
    out->code = 0;
    return true;
}

/* The completion of a read that failed for good. `what`: details beyond the code, or "". Returns
 * true. */
static bool fail_read(const struct stk_fetch *fetch, int code, int os_errno,
                      struct stk_completion *out)
{
    (void)complete(fetch, out);
    out->code = code;
    out->os_errno = os_errno;
    out->offset = fetch->order.offset + fetch->done_bytes;
    out->alone_may_work = fetch->order.block_rows > 0 || fetch->order.run_rows > 1;
    out->nothing_is_read = false;
    out->what[0] = '\0';
    return true;
}

/* The completion of a read that failed for good, with the lengths in `what` if they are the cause.
 * Returns true. */
static bool read_failed(const struct stk_fetch *fetch, int code, int os_errno,
                        struct stk_completion *out)
{
    (void)fail_read(fetch, code, os_errno, out);
    if (code == STOKER_ETRUNCATED)
        (void)snprintf(out->what, sizeof(out->what), "%u of %u bytes read", fetch->done_bytes,
                       fetch->order.bytes);
    else if (code == STOKER_ECHANGED && os_errno == 0)
        (void)snprintf(out->what, sizeof(out->what), "%s than its %u bytes at opening",
                       fetch->done_bytes > fetch->order.bytes ? "longer" : "shorter",
                       fetch->order.bytes);
    else if (fetch->read.reason != NULL)
        (void)snprintf(out->what, sizeof(out->what), "%s", fetch->read.reason);
    return true;
}

/* The reader reports more bytes than requested: it wrote past the buffer, or the number is
 * wrong. */
static bool refuse_result(const struct stk_fetch *fetch, struct stk_completion *out)
{
    (void)fail_read(fetch, STOKER_EIO, 0, out);
    out->alone_may_work = false;
    (void)snprintf(out->what, sizeof(out->what), "the reader reports %llu bytes of %u",
                   (unsigned long long)fetch->read.result, (unsigned)fetch->read.bytes);
    return true;
}

static void lose(const struct stk_fetcher *fetcher, const struct stk_fetch *fetch,
                 struct stk_completion *out)
{
    (void)fail_read(fetch, STOKER_EIO, 0, out);
    out->alone_may_work = false;
    out->nothing_is_read = true;
    (void)snprintf(out->what, sizeof(out->what), "the ring of reader %.24s failed",
                   fetcher->reader->name);
}

/* ---- finished reads; each function returns false if the read continues ---- */

/* The code for an errno; a link out of the tree is an access error. */
static int code_of(const struct stk_fetch *fetch, int os_errno)
{
    const bool stray = is_whole_file(fetch) && (os_errno == EXDEV || os_errno == ELOOP);
    return stray ? STOKER_EACCES : stk_error_from_errno(os_errno);
}

/* A whole file is in the scratch, with the extra byte if it grew; or a range, with the byte behind
 * it. */
static bool finish_file(struct stk_fetch *fetch, uint32_t bytes, struct stk_completion *out)
{
    fetch->done_bytes = bytes;
    if (is_range(fetch))
        return bytes >= fetch->order.bytes ? complete(fetch, out)
                                           : read_failed(fetch, STOKER_ETRUNCATED, 0, out);
    return bytes == fetch->order.bytes ? complete(fetch, out)
                                       : read_failed(fetch, STOKER_ECHANGED, 0, out);
}

/* Read the whole file again, with blocking calls. Built-in readers only. */
static bool read_file_blocking(const struct stk_fetcher *fetcher, struct stk_fetch *fetch,
                               struct stk_completion *out)
{
    const ssize_t got = stk_read_all_beneath(
        stk_read_directory(fetcher->pipeline->dataset->info.directory, fetcher->pipeline->files,
                           fetch->read.file),
        fetch->read.path, fetch->start, (size_t)fetch->order.bytes + 1, fetch->order.offset);
    return got < 0 ? read_failed(fetch, code_of(fetch, (int)-got), (int)-got, out)
                   : finish_file(fetch, (uint32_t)got, out);
}

/* The last resort: block in pread until all bytes are there or an error comes. */
static bool read_blocking(const struct stk_fetcher *fetcher, struct stk_fetch *fetch,
                          struct stk_completion *out)
{
    const int fd = fetcher->pipeline->files[fetch->read.file].fd;
    while (fetch->done_bytes < fetch->order.bytes) {
        ssize_t got =
            pread(fd, fetch->start + fetch->done_bytes, fetch->order.bytes - fetch->done_bytes,
                  (off_t)(fetch->order.offset + fetch->done_bytes));
        if (got > 0)
            fetch->done_bytes += (uint32_t)got;
        else if (got == 0)
            return read_failed(fetch, STOKER_ETRUNCATED, 0, out);
        else if (errno != EINTR)
            return read_failed(fetch, stk_error_from_errno(errno), errno, out);
    }
    return complete(fetch, out);
}

static void pause_before_retry(uint32_t retries)
{
    const long wait_ns = retries > STK_RETRIES_MAX ? LATE_RETRY_WAIT_NS : RETRY_WAIT_NS;
    if (retries > QUICK_RETRIES)
        nanosleep(&(struct timespec){ .tv_nsec = wait_ns }, NULL);
}

/* Read the missing bytes again. os_errno: the cause, 0 = the read was short. The caller's own
 * reader gets more retries, since nothing else can read its bytes. */
static bool try_again(struct stk_fetcher *fetcher, struct stk_fetch *fetch, int os_errno,
                      struct stk_completion *out)
{
    const bool own = is_own(fetcher, fetch);
    struct stk_messages *messages = &fetcher->pipeline->messages;
    stk_ledger_add(&fetcher->ledger->read_retries, 1);
    if ((os_errno == EMFILE || os_errno == ENFILE) &&
        stk_messages_once(messages, STK_SAID_OPEN_FILES))
        stk_messages_put(messages, STOKER_LOG_WARNING,
                         "too many open files: reads are repeated until some are closed; raise the "
                         "limit (ulimit -n) or lower read_depth");
    fetch->retries++;
    if (fetch->retries <= STK_RETRIES_MAX + (own ? LATE_RETRIES_MAX : 0)) {
        pause_before_retry(fetch->retries);
        enqueue(fetcher, fetch);
        return false;
    }
    if (own)
        return read_failed(fetch, stk_error_from_errno(os_errno), os_errno, out);
    return is_whole_file(fetch) ? read_file_blocking(fetcher, fetch, out)
                                : read_blocking(fetcher, fetch, out);
}

static bool passes(const struct stk_fetch *fetch, int os_errno)
{
    /* ECANCELED: the submitting thread has ended, and io_uring canceled its reads. */
    if (os_errno == EINTR || os_errno == EAGAIN || os_errno == ECANCELED)
        return true;
    /* Descriptors become free, and a stale name is looked up again. If a version was wanted, ESTALE
     * means that the object has changed. */
    const bool stale = os_errno == ESTALE && fetch->read.version == 0;
    return is_whole_file(fetch) && (os_errno == EMFILE || os_errno == ENFILE || stale);
}

/* A short read of a whole file: it shrank, or this was only a part. */
static bool handle_file(struct stk_fetcher *fetcher, struct stk_fetch *fetch, uint32_t bytes,
                        struct stk_completion *out)
{
    const uint32_t done = fetch->done_bytes + bytes;
    const bool own = is_own(fetcher, fetch);
    stk_ledger_add(&fetcher->ledger->read_bytes, bytes);
    if (done >= fetch->order.bytes || (own && bytes == 0))
        return finish_file(fetch, done, out);
    if (!own)
        return read_file_blocking(fetcher, fetch, out);
    fetch->done_bytes = done;
    fetch->retries = 0;
    return try_again(fetcher, fetch, 0, out);
}

static bool handle_read(struct stk_fetcher *fetcher, struct stk_fetch *fetch,
                        struct stk_completion *out)
{
    const int64_t result = fetch->read.result;
    const int os_errno = result < 0 && result >= -INT_MAX ? (int)-result : EIO;
    if (result > 0 && (uint64_t)result > fetch->read.bytes)
        return refuse_result(fetch, out);
    if (result >= 0 && is_whole_file(fetch))
        return handle_file(fetcher, fetch, (uint32_t)result, out);
    if (result == 0)
        return read_failed(fetch, STOKER_ETRUNCATED, 0, out);
    if (result < 0 && passes(fetch, os_errno))
        return try_again(fetcher, fetch, os_errno, out);
    if (result < 0) /* EBADMSG has no text worth adding to the reason */
        return read_failed(fetch, code_of(fetch, os_errno), os_errno == EBADMSG ? 0 : os_errno,
                           out);
    fetch->done_bytes += (uint32_t)result;
    fetch->retries = 0;
    stk_ledger_add(&fetcher->ledger->read_bytes, (uint64_t)result);
    return fetch->done_bytes == fetch->order.bytes
               ? complete(fetch, out)
               : try_again(fetcher, fetch, 0, out); /* only 0 is the end of the file */
}

/* Rows copied since a read was queued have evicted its fetch and part from the L1 cache: prefetch
 * them. Must be inlined: gcc removes calls of a function that only prefetches. */
static inline __attribute__((always_inline)) void prefetch_two(const struct stk_fetcher *fetcher,
                                                               uint32_t i)
{
    const uint32_t count = fetcher->reaped_count;
    if (i + FETCHES_AHEAD < count) {
        const struct stk_fetch *fetch = (const void *)fetcher->reaped[i + FETCHES_AHEAD];
        __builtin_prefetch(fetch);
        __builtin_prefetch((const uint8_t *)fetch + STK_CACHE_LINE);
    }
    if (i + PARTS_AHEAD < count)
        __builtin_prefetch(extent_of((const void *)fetcher->reaped[i + PARTS_AHEAD]));
}

bool stk_fetch_next(struct stk_fetcher *fetcher, struct stk_completion *completion)
{
    if (fetcher->lost != NULL) {
        fetcher->in_flight--;
        completion->fetch = pop(&fetcher->lost);
        lose(fetcher, completion->fetch, completion);
        return true;
    }
    if (fetcher->reaped_next == fetcher->reaped_count)
        return false;
    const uint32_t i = fetcher->reaped_next++;
    prefetch_two(fetcher, i);
    fetcher->in_flight--;
    struct stk_fetch *fetch = (struct stk_fetch *)(void *)fetcher->reaped[i];
    completion->fetch = fetch;
    if (!handle_read(fetcher, fetch, completion))
        completion->span = NULL;
    return true;
}

/* Call the reader. Returns the number of finished reads, or < 0 if the ring broke. */
static int reap_ring(struct stk_fetcher *fetcher, int64_t wait_ns)
{
    stk_fetch_ring_enter(fetcher);
    int count = fetcher->reader->reap(fetcher->ring, fetcher->reaped, fetcher->count, wait_ns);
    stk_fetch_ring_leave(fetcher);
    return count;
}

bool stk_fetch_reap(struct stk_fetcher *fetcher, int64_t wait_ns, uint32_t *reaped)
{
    *reaped = 0;
    if (fetcher->reaped_next < fetcher->reaped_count || fetcher->lost != NULL)
        return true;
    const int count = reap_ring(fetcher, wait_ns);
    if (count < 0 || (uint32_t)count > fetcher->in_flight) {
        replace_ring(fetcher);
        return fetcher->lost != NULL;
    }
    *reaped = (uint32_t)count;
    fetcher->reaped_next = 0;
    fetcher->reaped_count = (uint32_t)count;
    if (count == 0)
        return false;
    fetcher->ring_failures = 0;
    stk_ledger_add(&fetcher->ledger->reads, (uint64_t)count);
    return true;
}
