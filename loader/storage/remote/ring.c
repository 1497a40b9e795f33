/* ring.c - see ring.h. */
#include "loader/storage/remote/ring.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/remote/late.h"
#include "loader/storage/remote/transfer.h"
#include "loader/storage/storage.h"

enum {
    CONNECTIONS_MOST = 64, /* unless the caller wants more */
    MERGED_READS = 16,
    MERGED_BYTES = 1 << 20, /* more would leave connections without work */
    HEDGES = 4,             /* at once */
    HEDGE_BYTES = 4 << 20,  /* no more is asked for twice */
    AWAY_NS = 1000000000,   /* the worker was elsewhere for this long: the attempt does not count */
    FORGIVEN = 16           /* such attempts of a job */
};

struct job {
    struct stk_transfer transfer;
    struct ring *ring;
    struct job *next;
    struct hedge *hedge;     /* NULL = none */
    uint64_t started_ns;     /* this attempt; 0 = not active */
    uint64_t filled;         /* bytes in the reads' buffers */
    uint32_t count, current; /* reads; the one that is filled next, */
    uint64_t current_bytes;  /* and what it has */
    uint32_t forgiven;
    stoker_read *reads[MERGED_READS];
};

struct hedge {
    struct stk_transfer transfer;
    struct job *job; /* NULL = free */
    uint64_t from;   /* job->filled when it began */
    uint64_t filled;
    uint8_t *bytes;
};

struct reason {
    struct reason *next;
    char text[];
};

struct jobs {
    struct job *first, *last;
};

struct ring {
    struct stk_remote *remote;
    const struct stk_curl *curl;
    void *multi;
    const stoker_file *files;
    struct jobs free, waiting, later, active;
    uint32_t active_count, connections;
    void **idle; /* easy handles: connections + HEDGES at most */
    uint32_t idle_count;
    stoker_read **done; /* a ring buffer of `depth` reads */
    uint32_t done_first, done_count, depth;
    uint32_t done_failed;   /* of them with a reason */
    struct reason *reasons; /* of reads in done, or of the latest reap */
    struct stk_late late;
    uint64_t driven_ns, back_ns; /* last driven; last time after the worker was away */
    struct hedge hedges[HEDGES];
    struct stk_remote_address address; /* of the request that begins */
    char name[PATH_MAX];
    struct job jobs[];
};

/* ---- lists ---------------------------------------------------------------------- */

static void push(struct jobs *list, struct job *job)
{
    job->next = NULL;
    *(list->first == NULL ? &list->first : &list->last->next) = job;
    list->last = job;
}

/* Returns false if it is not in the list. */
static bool take_out(struct jobs *list, struct job *job)
{
    struct job *before = NULL;
    for (struct job *at = list->first; at != NULL; before = at, at = at->next) {
        if (at != job)
            continue;
        *(before == NULL ? &list->first : &before->next) = job->next;
        list->last = list->last == job ? before : list->last;
        return true;
    }
    return false;
}

static struct job *pop(struct jobs *list)
{
    struct job *job = list->first;
    assert(job != NULL);
    list->first = job->next;
    return job;
}

/* ---- reads that are done -------------------------------------------------------- */

static void add_done(struct ring *ring, stoker_read *read, int64_t result)
{
    read->result = result;
    read->reason = NULL;
    ring->done[(ring->done_first + ring->done_count++) % ring->depth] = read;
}

/* The bytes go to the reads, in order. The last read is done only once the answer has ended as it
 * should. */
static void take_job(void *context, const uint8_t *bytes, size_t count)
{
    struct job *job = context;
    job->filled += count;
    while (count > 0) {
        stoker_read *read = job->reads[job->current];
        const uint64_t room = read->bytes - job->current_bytes;
        const size_t taken = count < room ? count : (size_t)room;
        assert(room > 0);
        memcpy((uint8_t *)read->buffer + job->current_bytes, bytes, taken);
        job->current_bytes += taken;
        bytes += taken;
        count -= taken;
        if (job->current_bytes < read->bytes || job->current + 1 == job->count)
            continue;
        add_done(job->ring, read, (int64_t)read->bytes);
        job->current++;
        job->current_bytes = 0;
    }
}

static void free_reasons(struct ring *ring)
{
    for (struct reason *next; ring->reasons != NULL; ring->reasons = next) {
        next = ring->reasons->next;
        stk_free(ring->reasons);
    }
}

static void drop_hedge(struct ring *ring, struct hedge *hedge);

/* End the reads that are not done with a result, and the job. reason: NULL = none. */
static void end_job(struct ring *ring, struct job *job, int64_t failure, const char *reason)
{
    struct reason *kept = NULL;
    if (job->hedge != NULL)
        drop_hedge(ring, job->hedge);
    if (reason != NULL)
        kept = stk_calloc(1, sizeof(*kept) + strlen(reason) + 1);
    if (kept != NULL) {
        memcpy(kept->text, reason, strlen(reason) + 1);
        kept->next = ring->reasons;
        ring->reasons = kept;
    }
    for (; job->current < job->count; job->current++, job->current_bytes = 0) {
        stoker_read *read = job->reads[job->current];
        add_done(ring, read, failure < 0 ? failure : (int64_t)job->current_bytes);
        read->reason = kept != NULL ? kept->text : NULL;
        ring->done_failed += kept != NULL ? 1U : 0U;
    }
    stk_transfer_end(&job->transfer);
    push(&ring->free, job);
}

/* ---- requests ------------------------------------------------------------------- */

/* Hand a transfer to libcurl. Returns 0, or the code < 0 that *error explains. */
static int start(struct ring *ring, struct job *job, struct stk_transfer *transfer,
                 stoker_error *error)
{
    const stoker_read *read = job->reads[0];
    const stoker_file *file = &ring->files[read->file];
    if (read->path == NULL)
        (void)snprintf(ring->name, sizeof(ring->name), "%s", file->path);
    else if (!stk_storage_join(ring->name, file->path, read->path))
        return stk_refuse_spec(error, STOKER_ELIMIT, "its name is too long");
    void *easy = ring->idle_count > 0 ? ring->idle[--ring->idle_count] : ring->curl->easy_init();
    if (easy == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "a request");
    int rc = stk_transfer_begin(transfer, easy, ring->name, &ring->address, error);
    if (rc == STOKER_OK && ring->curl->multi_add_handle(ring->multi, easy) != STK_CURLE_OK)
        rc = stk_refuse_spec(error, STOKER_ENOMEM, "a request");
    if (rc != STOKER_OK)
        ring->idle[ring->idle_count++] = easy;
    return rc;
}

static void stop(struct ring *ring, struct stk_transfer *transfer)
{
    assert(ring->idle != NULL);
    (void)ring->curl->multi_remove_handle(ring->multi, transfer->easy);
    ring->idle[ring->idle_count++] = transfer->easy;
}

static int errno_of(int code)
{
    return code == STOKER_ENOENT ? ENOENT : code == STOKER_EACCES ? EACCES : EIO;
}

static void start_job(struct ring *ring, struct job *job)
{
    stoker_error error;
    const int rc = start(ring, job, &job->transfer, &error);
    if (rc != STOKER_OK) {
        end_job(ring, job, -errno_of(rc), error.message);
        return;
    }
    job->started_ns = stk_now_ns();
    push(&ring->active, job);
    ring->active_count++;
}

static void stop_job(struct ring *ring, struct job *job)
{
    (void)take_out(&ring->active, job);
    ring->active_count--;
    job->started_ns = 0;
    stop(ring, &job->transfer);
}

/* An attempt of a job has ended. */
static void settle_job(struct ring *ring, struct job *job, int result)
{
    const uint64_t began_ns = job->started_ns;
    char reason[STK_LINE_BYTES];
    stop_job(ring, job);
    if (began_ns < ring->back_ns && job->forgiven++ < FORGIVEN)
        job->transfer.attempts--;
    if (!stk_transfer_settle(&job->transfer, result)) {
        push(&ring->later, job);
        return;
    }
    const enum stk_verdict verdict = job->transfer.verdict;
    if (verdict == STK_VERDICT_TAKE || verdict == STK_VERDICT_END) {
        stk_late_note(&ring->late, stk_now_ns() - began_ns);
        end_job(ring, job, 0, NULL);
        return;
    }
    const int os_errno = stk_transfer_reason(&job->transfer, reason, sizeof(reason));
    end_job(ring, job, -os_errno, reason);
}

/* ---- hedges --------------------------------------------------------------------- */

static void take_hedge(void *context, const uint8_t *bytes, size_t count)
{
    struct hedge *hedge = context;
    memcpy(hedge->bytes + hedge->filled, bytes, count);
    hedge->filled += count;
}

static void free_hedge(struct hedge *hedge)
{
    stk_transfer_end(&hedge->transfer);
    stk_free(hedge->bytes);
    hedge->job->hedge = NULL;
    hedge->job = NULL;
}

static void drop_hedge(struct ring *ring, struct hedge *hedge)
{
    stop(ring, &hedge->transfer);
    free_hedge(hedge);
}

static void start_hedge(struct ring *ring, struct job *job)
{
    struct hedge *hedge = ring->hedges;
    const struct stk_wanted *asked = &job->transfer.asked;
    const uint64_t missing = asked->bytes - job->filled;
    while (hedge < ring->hedges + HEDGES && hedge->job != NULL)
        hedge++;
    if (hedge == ring->hedges + HEDGES || missing > HEDGE_BYTES || missing == 0)
        return;
    *hedge = (struct hedge){ .job = job, .from = job->filled, .bytes = stk_calloc(1, missing) };
    hedge->transfer = (struct stk_transfer){ .remote = ring->remote,
                                             .wanted = *asked,
                                             .take = take_hedge,
                                             .context = hedge,
                                             .fresh = true };
    hedge->transfer.wanted.offset += job->filled;
    hedge->transfer.wanted.bytes = missing;
    job->hedge = hedge;
    ring->late.hedges++;
    if (hedge->bytes == NULL || start(ring, job, &hedge->transfer, NULL) != STOKER_OK)
        free_hedge(hedge); /* it was only an attempt to be faster */
}

/* A redirect is followed; other failures are left to the job itself. */
static void settle_hedge(struct ring *ring, struct hedge *hedge, int result)
{
    struct job *job = hedge->job;
    stop(ring, &hedge->transfer);
    const bool done = stk_transfer_settle(&hedge->transfer, result);
    const enum stk_verdict verdict = hedge->transfer.verdict;
    if (!done && verdict == STK_VERDICT_REDIRECT &&
        start(ring, job, &hedge->transfer, NULL) == STOKER_OK)
        return;
    const bool won = done && (verdict == STK_VERDICT_TAKE || verdict == STK_VERDICT_END);
    if (won) {
        if (job->started_ns != 0)
            stop_job(ring, job);
        else
            (void)take_out(&ring->later, job);
        const uint64_t known = job->filled - hedge->from; /* the job itself went on */
        if (known < hedge->filled)
            take_job(job, hedge->bytes + known, hedge->filled - known);
    }
    free_hedge(hedge);
    if (won)
        end_job(ring, job, 0, NULL);
}

/* ---- drive ---------------------------------------------------------------------- */

static void settle_messages(struct ring *ring)
{
    int left;
    for (struct stk_curl_message *message;
         (message = ring->curl->multi_info_read(ring->multi, &left)) != NULL;) {
        struct stk_transfer *transfer = NULL;
        if (message->msg != STK_CURLMSG_DONE)
            continue;
        const int result = message->data.result;
        (void)ring->curl->easy_getinfo(message->easy_handle, STK_CURLINFO_PRIVATE, &transfer);
        if (transfer->take == take_job)
            settle_job(ring, transfer->context, result);
        else
            settle_hedge(ring, transfer->context, result);
    }
}

/* Start what can be started: what is due again first. Returns the time until more can be. */
static uint64_t start_jobs(struct ring *ring, uint64_t now_ns)
{
    uint64_t until_ns = UINT64_MAX;
    for (struct job *job = ring->later.first, *next; job != NULL; job = next) {
        next = job->next;
        if (job->transfer.due_ns > now_ns) {
            until_ns = job->transfer.due_ns < until_ns ? job->transfer.due_ns : until_ns;
        } else if (ring->active_count < ring->connections) {
            (void)take_out(&ring->later, job);
            start_job(ring, job);
        }
    }
    while (ring->waiting.first != NULL && ring->active_count < ring->connections)
        start_job(ring, pop(&ring->waiting));
    for (struct job *job = ring->active.first; job != NULL; job = job->next) {
        if (!stk_late_may_hedge(&ring->late))
            break;
        const uint64_t late_ns = job->started_ns + ring->late.after_ns;
        if (job->hedge != NULL)
            continue;
        if (late_ns <= now_ns)
            start_hedge(ring, job);
        else
            until_ns = late_ns < until_ns ? late_ns : until_ns;
    }
    return until_ns == UINT64_MAX ? until_ns : until_ns - now_ns;
}

/* Returns the time until something can be started, or < 0 if libcurl fails. */
static int drive(struct ring *ring, uint64_t *idle_ns)
{
    int running;
    const uint64_t now_ns = stk_now_ns();
    if (now_ns - ring->driven_ns > AWAY_NS)
        ring->back_ns = now_ns;
    (void)start_jobs(ring, now_ns);
    if (ring->curl->multi_perform(ring->multi, &running) != STK_CURLE_OK)
        return STOKER_EIO;
    settle_messages(ring);
    *idle_ns = start_jobs(ring, stk_now_ns());
    ring->driven_ns = stk_now_ns();
    return STOKER_OK;
}

/* ---- the reader ----------------------------------------------------------------- */

static int ring_submit(void *self, stoker_read *const *reads, uint32_t count)
{
    struct ring *ring = self;
    struct job *job = NULL;
    uint64_t idle_ns;
    for (uint32_t i = 0; i < count; i++) {
        stoker_read *read = reads[i];
        const struct stk_wanted *before = job == NULL ? NULL : &job->transfer.wanted;
        if (job != NULL && read->path == NULL && job->reads[0]->path == NULL &&
            read->file == job->reads[0]->file && job->count < MERGED_READS &&
            read->offset == before->offset + before->bytes &&
            before->bytes + read->bytes <= MERGED_BYTES) {
            job->transfer.wanted.bytes += read->bytes;
            job->reads[job->count++] = read;
            continue;
        }
        const stoker_file *file = &ring->files[read->file];
        const bool sized = read->path == NULL && file->size > 0;
        job = pop(&ring->free);
        *job = (struct job){ .ring = ring, .count = 1, .reads = { read } };
        job->transfer = (struct stk_transfer){
            .remote = ring->remote,
            .wanted = { .offset = read->offset,
                        .bytes = read->bytes,
                        .size = sized ? file->size : STK_UNKNOWN,
                        .version = read->path == NULL ? file->version : read->version },
            .take = take_job,
            .context = job
        };
        push(&ring->waiting, job);
    }
    return drive(ring, &idle_ns);
}

static int give(struct ring *ring, stoker_read **done, uint32_t max)
{
    uint32_t count = 0;
    for (; count < max && ring->done_count > 0; count++, ring->done_count--) {
        done[count] = ring->done[ring->done_first];
        ring->done_first = (ring->done_first + 1) % ring->depth;
        ring->done_failed -= done[count]->reason != NULL ? 1U : 0U;
    }
    return (int)count;
}

static int ring_reap(void *self, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct ring *ring = self;
    const uint64_t begin_ns = stk_now_ns();
    if (ring->done_failed == 0)
        free_reasons(ring);
    for (;;) {
        uint64_t idle_ns, left_ns = UINT64_MAX;
        if (drive(ring, &idle_ns) != STOKER_OK)
            return STOKER_EIO;
        const uint64_t passed_ns = stk_now_ns() - begin_ns;
        if (wait_ns >= 0)
            left_ns = passed_ns < (uint64_t)wait_ns ? (uint64_t)wait_ns - passed_ns : 0;
        const bool none =
            ring->active_count == 0 && ring->waiting.first == NULL && ring->later.first == NULL;
        if (ring->done_count > 0 || left_ns == 0 || none)
            return give(ring, done, max);
        const uint64_t poll_ms = (idle_ns < left_ns ? idle_ns : left_ns) / 1000000 + 1;
        if (ring->curl->multi_poll(ring->multi, NULL, 0, poll_ms < 1000 ? (int)poll_ms : 1000,
                                   NULL) != STK_CURLE_OK)
            return STOKER_EIO;
    }
}

/* Requests in flight are cut off at once. */
static int ring_close(void *self, int64_t wait_ns)
{
    struct ring *ring = self;
    (void)wait_ns;
    for (uint32_t i = 0; i < HEDGES; i++)
        if (ring->hedges[i].job != NULL)
            drop_hedge(ring, &ring->hedges[i]);
    while (ring->active.first != NULL) {
        struct job *job = ring->active.first;
        stop_job(ring, job);
        stk_transfer_end(&job->transfer);
    }
    for (struct job *job = ring->later.first; job != NULL; job = job->next)
        stk_transfer_end(&job->transfer);
    for (uint32_t i = 0; i < ring->idle_count; i++)
        ring->curl->easy_cleanup(ring->idle[i]);
    if (ring->multi != NULL)
        (void)ring->curl->multi_cleanup(ring->multi);
    free_reasons(ring);
    stk_free(ring->idle);
    stk_free(ring->done);
    stk_free(ring);
    return STOKER_OK;
}

static int ring_open(void *self, void **out, const stoker_reader_setup *setup, stoker_error *error)
{
    struct stk_remote *remote = self;
    const uint32_t wanted = remote->options.connections;
    const uint32_t most = wanted != 0 ? wanted : CONNECTIONS_MOST;
    const int rc = stk_remote_ready(remote, error);
    if (rc != STOKER_OK)
        return rc;
    struct ring *ring = stk_calloc(1, sizeof(*ring) + setup->depth * sizeof(ring->jobs[0]));
    if (ring == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "a ring");
    ring->remote = remote;
    ring->curl = remote->curl;
    ring->files = setup->files;
    ring->connections = setup->depth < most ? setup->depth : most;
    ring->depth = setup->depth;
    ring->late.after_ns = UINT64_MAX;
    ring->idle = stk_calloc(ring->connections + HEDGES, sizeof(ring->idle[0]));
    ring->done = stk_calloc(setup->depth, sizeof(ring->done[0]));
    ring->multi = ring->curl->multi_init();
    if (ring->idle == NULL || ring->done == NULL || ring->multi == NULL) {
        (void)ring_close(ring, 0);
        return stk_refuse_option(error, STOKER_ENOMEM, "a ring");
    }
    (void)ring->curl->multi_setopt(ring->multi, STK_CURLMOPT_MAXCONNECTS,
                                   (long)ring->connections + HEDGES);
    for (uint32_t i = 0; i < setup->depth; i++)
        push(&ring->free, &ring->jobs[i]);
    *out = ring;
    return STOKER_OK;
}

void stk_remote_reader_init(struct stk_remote *remote)
{
    remote->reader = (stoker_reader){ .struct_size = sizeof(remote->reader),
                                      .name = "curl",
                                      .self = remote,
                                      .open = ring_open,
                                      .submit = ring_submit,
                                      .reap = ring_reap,
                                      .close = ring_close };
}
