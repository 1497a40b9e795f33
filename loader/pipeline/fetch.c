/* fetch.c - see fetch.h. */
#include "loader/pipeline/fetch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/error.h"
#include "loader/base/open_beneath.h"
#include "loader/pipeline/row.h"
#include "loader/reader/directory.h"

enum {
    FETCHES_AHEAD = 8,     /* prefetch distance of fetches, */
    SAMPLES_AHEAD = 4,     /* and of their samples, once the fetch is in the cache */
    QUICK_RETRIES = 8,     /* without a pause; later ones wait */
    RETRY_WAIT_NS = 50000, /* 56 of them: 3 ms until the blocking read */
    LATE_RETRIES_MAX = 64, /* more, for a caller's own reader, which has no blocking read */
    LATE_RETRY_WAIT_NS = 2000000,
    RING_FAILURES_MAX = 3, /* in a row, without a finished read; then no ring is opened any more */
    RESTART_WAIT_NS = 1000000000 /* longest wait for the reads of a broken ring */
};

/* ---- where a read goes ---- */

static const stoker_extent *extent_of(const struct stk_fetch *fetch)
{
    return &fetch->span->samples[fetch->row].extent;
}

static bool is_whole_file(const struct stk_fetch *fetch)
{
    return fetch->read.path != NULL;
}

static bool fits_cache(const struct stk_worker *worker, const struct stk_fetch *fetch)
{
    const struct stk_cache *cache = &worker->pipeline->cache;
    const stoker_sample *sample = &fetch->span->samples[fetch->row];
    if (sample->codec != NULL && sample->codec->verify != NULL && cache->block_rows > 1)
        return false; /* its neighbours would not be verified */
    if (cache->kind == STOKER_CACHE_ENCODED)
        return sample->extent.bytes <= cache->stride_bytes;
    return cache->kind == STOKER_CACHE_DECODED && stk_row_is_stored(sample) &&
           !worker->pipeline->keeps_resized && sample->extent.bytes == cache->stride_bytes;
}

/* Let the fetch fill the cache block of its sample: one read for all rows of the block. */
static bool aim_at_cache(struct stk_worker *worker, struct stk_fetch *fetch)
{
    struct stk_pipeline *pipeline = worker->pipeline;
    struct stk_cache *cache = &pipeline->cache;
    const stoker_sample *sample = &fetch->span->samples[fetch->row];
    const uint64_t id = fetch->span->slot->ids[fetch->span->first_row + fetch->row];
    if (!fits_cache(worker, fetch) || !stk_pipeline_may_cache(pipeline, fetch->span->batch) ||
        !stk_cache_begin(cache, id))
        return false;

    const uint64_t first = stk_cache_block_first(cache, id);
    fetch->block_rows = stk_cache_block_rows(cache, id);
    fetch->start = stk_cache_row(cache, first);
    fetch->offset = sample->extent.offset - (id - first) * sample->extent.bytes;
    fetch->total_bytes = fetch->block_rows * sample->extent.bytes;
    return true;
}

static void aim(struct stk_worker *worker, struct stk_fetch *fetch)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    const struct stk_span *span = fetch->span;
    const stoker_sample *sample = &span->samples[fetch->row];
    fetch->block_rows = 0;
    fetch->done_bytes = 0;
    fetch->retries = 0;
    const bool whole = is_whole_file(fetch); /* only the scratch has room for the extra byte */
    if (!whole && aim_at_cache(worker, fetch))
        return;
    const bool in_place = pipeline->copies && !whole && stk_row_is_stored(sample) &&
                          sample->extent.bytes == pipeline->dataset->row_bytes;
    fetch->start = in_place ? stk_pipeline_row(pipeline, span->slot, span->first_row + fetch->row)
                            : fetch->scratch;
    fetch->offset = sample->extent.offset;
    fetch->total_bytes = sample->extent.bytes;
}

/* Queue a read of the missing bytes. */
static void enqueue(struct stk_worker *worker, struct stk_fetch *fetch)
{
    fetch->read.buffer = fetch->start + fetch->done_bytes;
    fetch->read.offset = fetch->offset + fetch->done_bytes;
    fetch->read.bytes = fetch->total_bytes - fetch->done_bytes + (is_whole_file(fetch) ? 1U : 0U);
    fetch->read.result = 0;
    worker->queue[worker->queued++] = &fetch->read;
}

static void free_fetch(struct stk_worker *worker, struct stk_fetch *fetch)
{
    fetch->span = NULL;
    fetch->next_free = worker->free_fetches;
    worker->free_fetches = fetch;
}

static bool is_announced(const struct stk_pipeline *pipeline, const stoker_extent *extent)
{
    const stoker_dataset_info *info = &pipeline->dataset->info;
    return extent->bytes <= pipeline->encoded_bytes_max &&
           (extent->path == NULL
                ? extent->file < info->file_count
                : info->has_paths && (info->directory != STOKER_DIRECTORY_OF_FILE ||
                                      extent->file < info->file_count));
}

/* Describe the lengths, if they are the cause. */
static void describe_lengths(const struct stk_fetch *fetch, int code, int os_errno, char *what,
                             size_t what_bytes)
{
    if (code == STOKER_ETRUNCATED)
        (void)snprintf(what, what_bytes, "%u of %u bytes read", fetch->done_bytes,
                       fetch->total_bytes);
    else if (code == STOKER_ECHANGED && os_errno == 0)
        (void)snprintf(what, what_bytes, "%s than the %u bytes at opening",
                       fetch->done_bytes > fetch->total_bytes ? "longer" : "shorter",
                       fetch->total_bytes);
}

/* The read of a cache block failed, perhaps because of another row: read this row alone. */
static void read_alone(struct stk_worker *worker, struct stk_fetch *fetch)
{
    const struct stk_span *span = fetch->span;
    const stoker_extent *extent = extent_of(fetch);
    stk_cache_cancel(&worker->pipeline->cache, span->slot->ids[span->first_row + fetch->row]);
    fetch->block_rows = 0;
    fetch->done_bytes = 0;
    fetch->retries = 0;
    fetch->start = fetch->scratch;
    fetch->offset = extent->offset;
    fetch->total_bytes = extent->bytes;
    enqueue(worker, fetch);
}

/* The read failed for good. `what`: details beyond the code, or "". */
static void fail(struct stk_worker *worker, struct stk_fetch *fetch, int code, int os_errno,
                 const char *what)
{
    struct stk_span *span = fetch->span;
    const uint32_t row = fetch->row;
    struct stk_place place = stk_row_place(worker, span, row);
    if (!is_whole_file(fetch))
        place.offset = fetch->offset + fetch->done_bytes;
    place.os_errno = os_errno;
    stoker_error error;
    (void)stk_error_set(&error, code, STOKER_STAGE_READ, &place, what[0] != '\0' ? "%s" : NULL,
                        what);
    free_fetch(worker, fetch);
    if (!worker->has_ring) /* nothing can be read any more, whatever the policy */
        stk_row_lose(span, row, &error);
    else
        stk_row_fail(worker, span, row, &error, what);
}

static void read_failed(struct stk_worker *worker, struct stk_fetch *fetch, int code, int os_errno)
{
    char what[STK_DETAIL_BYTES] = "";
    if (fetch->block_rows > 0) {
        read_alone(worker, fetch);
        return;
    }
    describe_lengths(fetch, code, os_errno, what, sizeof(what));
    fail(worker, fetch, code, os_errno, what);
}

void stk_fetch_queue(struct stk_worker *worker, struct stk_span *span, uint32_t row)
{
    struct stk_fetch *fetch = worker->free_fetches;
    const stoker_extent *extent = &span->samples[row].extent;
    assert(fetch != NULL);
    worker->free_fetches = fetch->next_free;
    __builtin_prefetch(worker->free_fetches, 1); /* the next one in use */
    fetch->span = span;
    fetch->row = row;
    fetch->read.path = extent->path;
    fetch->read.file = extent->file;
    if (!is_announced(worker->pipeline, extent)) {
        fetch->block_rows = 0;
        fetch->offset = extent->offset;
        fetch->done_bytes = 0;
        read_failed(worker, fetch, STOKER_ELIMIT, 0); /* longer than describe() announced */
        return;
    }
    aim(worker, fetch);
    enqueue(worker, fetch);
}

/* ---- broken rings ---- */

/* Open another ring: of the caller's own reader if there is one, else of pread, which reads the same bytes. */
static void reopen(struct stk_worker *worker)
{
    stoker_error why; /* unused: rows that fail report the ring */
    if (!worker->pipeline->reader_own && worker->reader != &stoker_reader_pread) {
        atomic_fetch_add(&worker->pipeline->pread_workers, 1U);
        worker->reader = &stoker_reader_pread;
    }
    (void)stk_worker_open_ring(worker, &why);
}

/* There is no ring: fail the row. */
static void lose(struct stk_worker *worker, struct stk_fetch *fetch)
{
    const struct stk_span *span = fetch->span;
    char what[STK_DETAIL_BYTES];
    if (fetch->block_rows > 0)
        stk_cache_cancel(&worker->pipeline->cache, span->slot->ids[span->first_row + fetch->row]);
    (void)snprintf(what, sizeof(what), "the ring of reader %.24s failed", worker->reader->name);
    fail(worker, fetch, STOKER_EIO, 0, what);
}

/* Close the ring and repeat all its reads with another one. */
static void replace_ring(struct stk_worker *worker)
{
    stk_worker_close_ring(worker, RESTART_WAIT_NS);
    if (!worker->stuck && worker->ring_failures++ < RING_FAILURES_MAX)
        reopen(worker);
    /* Part of a read may have arrived: read its bytes again. */
    worker->queued = 0;
    worker->in_flight = 0;
    worker->reaped_next = worker->reaped_count = 0;
    for (uint32_t i = 0; i < worker->fetch_count; i++) {
        struct stk_fetch *fetch = &worker->fetches[i];
        if (fetch->span == NULL)
            continue;
        if (worker->has_ring)
            enqueue(worker, fetch);
        else
            lose(worker, fetch);
    }
}

/* Submit the queue to the reader. Returns false if the ring broke. */
static bool submit(struct stk_worker *worker)
{
    const uint32_t count = worker->queued;
    const uint64_t begin_ns =
        stk_trace_begin(worker->trace, STOKER_TRACE_SUBMIT, STOKER_TRACE_NO_BATCH);
    stk_worker_enter_reader(worker);
    const bool taken =
        worker->has_ring && worker->reader->submit(worker->ring, worker->queue, count) >= 0;
    stk_worker_leave_reader(worker);
    stk_trace_end(worker->trace, STOKER_TRACE_SUBMIT, begin_ns, STOKER_TRACE_NO_BATCH, 0,
                  taken ? count : 0);
    /* Reads that hit the page cache complete in here. */
    stk_ledger_charge(&worker->ledger.read_ns, &worker->mark_ns);
    if (!taken)
        return false;
    worker->queued = 0;
    worker->in_flight += count;
    return true;
}

bool stk_fetch_submit(struct stk_worker *worker)
{
    while (worker->queued > 0) { /* ends: replace_ring gives up after RING_FAILURES_MAX */
        if (submit(worker))
            return true;
        replace_ring(worker);
    }
    return worker->has_ring;
}

/* ---- finished reads ---- */

/* Whole files are read into the scratch: copy the file to the cache if it fits. */
static void copy_to_cache(struct stk_worker *worker, const struct stk_fetch *fetch)
{
    struct stk_cache *cache = &worker->pipeline->cache;
    const uint64_t id = fetch->span->slot->ids[fetch->span->first_row + fetch->row];
    if (!fits_cache(worker, fetch) ||
        !stk_pipeline_may_cache(worker->pipeline, fetch->span->batch) ||
        !stk_cache_begin(cache, id))
        return;
    memcpy(stk_cache_row(cache, id), fetch->start, fetch->total_bytes);
    if (cache->kind == STOKER_CACHE_ENCODED)
        *stk_cache_size(cache, id) = fetch->total_bytes;
    stk_cache_commit(cache, id, fetch->total_bytes);
}

/* Publish the block that was read into the cache. */
static void commit(struct stk_worker *worker, const struct stk_fetch *fetch, uint64_t id)
{
    struct stk_cache *cache = &worker->pipeline->cache;
    const uint64_t first = stk_cache_block_first(cache, id);
    if (cache->kind == STOKER_CACHE_ENCODED)
        for (uint32_t i = 0; i < fetch->block_rows; i++)
            *stk_cache_size(cache, first + i) = extent_of(fetch)->bytes;
    stk_cache_commit(cache, id, fetch->total_bytes);
}

/* Let the consumer check the files that unverified bytes came from. */
static void note_unchecked(struct stk_pipeline *pipeline, const stoker_codec *codec)
{
    const bool verifies = codec != NULL && codec->verify != NULL;
    if (!verifies && !atomic_load_explicit(&pipeline->reads_unchecked, memory_order_relaxed))
        atomic_store_explicit(&pipeline->reads_unchecked, true, memory_order_relaxed);
}

/* All bytes are there: verify, cache, complete the row. Only verified bytes are cached. */
static void finish(struct stk_worker *worker, struct stk_fetch *fetch)
{
    struct stk_cache *cache = &worker->pipeline->cache;
    struct stk_span *span = fetch->span;
    const uint32_t row = fetch->row;
    const uint32_t bytes = extent_of(fetch)->bytes;
    const uint64_t id = span->slot->ids[span->first_row + row];
    const bool to_cache = fetch->block_rows > 0;
    const uint8_t *from = to_cache ? stk_cache_row(cache, id) : fetch->start;
    if (!is_whole_file(fetch))
        note_unchecked(worker->pipeline, span->samples[row].codec);
    if (stk_row_verify(worker, span, row, from, bytes)) {
        if (to_cache)
            commit(worker, fetch, id);
        else if (is_whole_file(fetch))
            copy_to_cache(worker, fetch);
        stk_row_finish(worker, span, row, from, bytes);
    } else if (to_cache) {
        stk_cache_cancel(cache, id);
    }
    free_fetch(worker, fetch);
}

/* The code for an errno; a link out of the tree is an access error. */
static int code_of(const struct stk_fetch *fetch, int os_errno)
{
    const bool stray = is_whole_file(fetch) && (os_errno == EXDEV || os_errno == ELOOP);
    return stray ? STOKER_EACCES : stk_error_from_errno(os_errno);
}

/* A whole file is in the scratch, with the extra byte if it grew. */
static void finish_file(struct stk_worker *worker, struct stk_fetch *fetch, uint32_t bytes)
{
    fetch->done_bytes = bytes;
    if (bytes == fetch->total_bytes)
        finish(worker, fetch);
    else
        read_failed(worker, fetch, STOKER_ECHANGED, 0);
}

/* For the built-in readers only. */
static void read_file_blocking(struct stk_worker *worker, struct stk_fetch *fetch)
{
    const ssize_t got =
        stk_read_all_beneath(stk_read_directory(worker->pipeline->dataset->info.directory,
                                                worker->pipeline->files, fetch->read.file),
                             extent_of(fetch)->path, fetch->start, (size_t)fetch->total_bytes + 1);
    if (got < 0)
        read_failed(worker, fetch, code_of(fetch, (int)-got), (int)-got);
    else
        finish_file(worker, fetch, (uint32_t)got);
}

/* The last resort: block in pread until all bytes are there or an error comes. */
static void read_blocking(struct stk_worker *worker, struct stk_fetch *fetch)
{
    const int fd = worker->pipeline->files[fetch->read.file].fd;
    while (fetch->done_bytes < fetch->total_bytes) {
        ssize_t got =
            pread(fd, fetch->start + fetch->done_bytes, fetch->total_bytes - fetch->done_bytes,
                  (off_t)(fetch->offset + fetch->done_bytes));
        if (got > 0) {
            fetch->done_bytes += (uint32_t)got;
        } else if (got == 0) {
            read_failed(worker, fetch, STOKER_ETRUNCATED, 0);
            return;
        } else if (errno != EINTR) {
            read_failed(worker, fetch, stk_error_from_errno(errno), errno);
            return;
        }
    }
    finish(worker, fetch);
}

static void pause_before_retry(uint32_t retries)
{
    const long wait_ns = retries > STK_RETRIES_MAX ? LATE_RETRY_WAIT_NS : RETRY_WAIT_NS;
    if (retries > QUICK_RETRIES)
        nanosleep(&(struct timespec){ .tv_nsec = wait_ns }, NULL);
}

/* Read the missing bytes again. os_errno: the cause, 0 = the read was short. The caller's own reader gets more
 * retries, since nothing else can read its bytes. */
static void try_again(struct stk_worker *worker, struct stk_fetch *fetch, int os_errno)
{
    const bool own = worker->pipeline->reader_own;
    stk_ledger_add(&worker->ledger.read_retries, 1);
    fetch->retries++;
    if (fetch->retries <= STK_RETRIES_MAX + (own ? LATE_RETRIES_MAX : 0)) {
        pause_before_retry(fetch->retries);
        enqueue(worker, fetch);
    } else if (own) {
        read_failed(worker, fetch, stk_error_from_errno(os_errno), os_errno);
    } else if (is_whole_file(fetch)) {
        read_file_blocking(worker, fetch);
    } else {
        read_blocking(worker, fetch);
    }
}

static bool passes(const struct stk_fetch *fetch, int os_errno)
{
    /* ECANCELED: the submitting thread has ended, and io_uring cancelled its reads. */
    if (os_errno == EINTR || os_errno == EAGAIN || os_errno == ECANCELED)
        return true;
    /* Descriptors become free, and a stale name is looked up again. */
    return is_whole_file(fetch) && (os_errno == EMFILE || os_errno == ENFILE || os_errno == ESTALE);
}

/* A short read of a whole file: it shrank, or this was only a part. */
static void handle_file(struct stk_worker *worker, struct stk_fetch *fetch, uint32_t bytes)
{
    const uint32_t done = fetch->done_bytes + bytes;
    stk_ledger_add(&worker->ledger.read_bytes, bytes);
    if (done >= fetch->total_bytes || (worker->pipeline->reader_own && bytes == 0)) {
        finish_file(worker, fetch, done);
    } else if (worker->pipeline->reader_own) {
        fetch->done_bytes = done;
        fetch->retries = 0;
        try_again(worker, fetch, 0);
    } else {
        read_file_blocking(worker, fetch);
    }
}

/* The reader reports more bytes than requested: it wrote past the buffer, or the number is wrong. */
static void refuse_result(struct stk_worker *worker, struct stk_fetch *fetch)
{
    char what[STK_DETAIL_BYTES];
    if (fetch->block_rows > 0)
        stk_cache_cancel(&worker->pipeline->cache,
                         fetch->span->slot->ids[fetch->span->first_row + fetch->row]);
    (void)snprintf(what, sizeof(what), "the reader reports %d bytes, %u were requested",
                   fetch->read.result, fetch->read.bytes);
    fail(worker, fetch, STOKER_EIO, 0, what);
}

static void handle_read(struct stk_worker *worker, struct stk_fetch *fetch)
{
    const int32_t result = fetch->read.result;
    if (result > 0 && (uint32_t)result > fetch->read.bytes) {
        refuse_result(worker, fetch);
    } else if (result >= 0 && is_whole_file(fetch)) {
        handle_file(worker, fetch, (uint32_t)result);
    } else if (result > 0) {
        fetch->done_bytes += (uint32_t)result;
        fetch->retries = 0;
        stk_ledger_add(&worker->ledger.read_bytes, (uint64_t)result);
        if (fetch->done_bytes == fetch->total_bytes)
            finish(worker, fetch);
        else
            try_again(worker, fetch, 0); /* only 0 is the end of the file */
    } else if (result == 0) {
        read_failed(worker, fetch, STOKER_ETRUNCATED, 0);
    } else if (passes(fetch, -result)) {
        try_again(worker, fetch, -result);
    } else {
        read_failed(worker, fetch, code_of(fetch, -result), -result);
    }
}

/* Call the reader: the number of finished reads, or < 0: the ring broke. */
static int reap_ring(struct stk_worker *worker, int64_t wait_ns)
{
    const uint64_t begin_ns =
        stk_trace_begin(worker->trace, STOKER_TRACE_READ, STOKER_TRACE_NO_BATCH);
    stk_worker_enter_reader(worker);
    int count =
        worker->reader->reap(worker->ring, worker->reaped, worker->pipeline->read_depth, wait_ns);
    stk_worker_leave_reader(worker);
    stk_trace_end(worker->trace, STOKER_TRACE_READ, begin_ns, STOKER_TRACE_NO_BATCH, 0,
                  count < 0 ? 0 : (uint32_t)count);
    return count;
}

/* Rows copied since a read was queued have evicted its fetch and sample from the L1 cache: prefetch them. */
static void prefetch_two(const struct stk_worker *worker, uint32_t i)
{
    const uint32_t count = worker->reaped_count;
    if (i + FETCHES_AHEAD < count) {
        const struct stk_fetch *fetch = (const void *)worker->reaped[i + FETCHES_AHEAD];
        __builtin_prefetch(fetch);
        __builtin_prefetch((const uint8_t *)fetch + STK_CACHE_LINE);
    }
    if (i + SAMPLES_AHEAD < count)
        __builtin_prefetch(extent_of((const void *)worker->reaped[i + SAMPLES_AHEAD]));
}

/* Handle the reaped reads, at least one; a later call handles the rest if this one must pause. */
static void handle_reaped(struct stk_worker *worker)
{
    const stoker_trace_kind kind =
        worker->pipeline->decodes ? STOKER_TRACE_DECODE : STOKER_TRACE_CONVERT;
    const uint32_t first = worker->reaped_next;
    const uint64_t begin_ns = stk_trace_begin(worker->trace, kind, STOKER_TRACE_NO_BATCH);
    do {
        const uint32_t i = worker->reaped_next++;
        prefetch_two(worker, i);
        worker->in_flight--;
        handle_read(worker, (struct stk_fetch *)(void *)worker->reaped[i]);
    } while (worker->reaped_next < worker->reaped_count && !stk_worker_must_pause(worker));
    stk_trace_end(worker->trace, kind, begin_ns, STOKER_TRACE_NO_BATCH, 0,
                  worker->reaped_next - first);
}

/* Get finished reads into reaped[]. Returns false if there are none yet or the ring broke. */
static bool fill_reaped(struct stk_worker *worker, int64_t wait_ns)
{
    if (worker->reaped_next < worker->reaped_count)
        return true;
    const int count = reap_ring(worker, wait_ns);
    stk_ledger_charge(&worker->ledger.read_ns, &worker->mark_ns);
    if (count < 0 || (uint32_t)count > worker->in_flight) {
        replace_ring(worker);
        return false;
    }
    worker->reaped_next = 0;
    worker->reaped_count = (uint32_t)count;
    if (count == 0)
        return false;
    worker->ring_failures = 0;
    stk_ledger_add(&worker->ledger.reads, (uint64_t)count);
    return true;
}

void stk_fetch_reap(struct stk_worker *worker, int64_t wait_ns)
{
    if (!fill_reaped(worker, wait_ns) || atomic_load(&worker->pipeline->slots.stopping))
        return; /* the loader is being destroyed */
    handle_reaped(worker);
    stk_ledger_charge(stk_worker_making_ns(worker, false), &worker->mark_ns);
}
