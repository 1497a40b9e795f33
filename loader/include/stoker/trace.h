/* stoker/trace.h - what every thread of a loader did, when, and with which batch.
 *
 *   worker threads ──▶ a ring each ──▶ stoker_loader_trace() ──▶ your array ──▶ stoker_trace_write()
 *   your thread    ──▶ its ring                                                 JSON for Perfetto
 *
 * Recording is asked for by stoker_loader_options.trace_events; without it no clock is read
 * and no memory taken. Whatever it says, where the library was built with NVTX and a tool
 * such as Nsight Systems is attached, the same stages are NVTX ranges of the domain "stoker".
 */
#ifndef STOKER_TRACE_H
#define STOKER_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

/* X(name, text, what it tells of). New ones are added at the end. Rows are those of the batch
 * unless it says otherwise. */
#define STOKER_TRACE_KINDS(X)                                                                      \
    X(CLAIM, "claim", "worker: a span taken; its samples named and found")                         \
    X(SUBMIT, "submit", "worker: reads handed to the reader; rows: how many reads")                \
    X(READ, "read", "worker: waiting for reads; rows: how many reads came back")                   \
    X(DECODE, "decode", "worker: rows decoded, and converted if that is asked for")                \
    X(CONVERT, "convert", "worker: rows gathered, copied or converted")                            \
    X(PUBLISH, "publish", "worker: the last span is done, the batch ready")                        \
    X(CREDIT, "wait for a slot", "worker: every slot is full or lent")                             \
    X(REST, "rest", "worker: not needed for now, by what the tuner found")                         \
    X(WAIT, "wait for a batch", "consumer, in next: the batch is not ready")                       \
    X(LEND, "lend", "consumer, in next: the batch delivered")                                      \
    X(RELEASE, "release", "consumer: the batch given back")                                        \
    X(SEND, "send", "consumer, in next or release: its copy to the GPU begun")                     \
    X(RETIRE, "retire", "consumer, in next or release: that copy is done, its slot free")

#define STOKER_TRACE_ENUM(name, text, what) STOKER_TRACE_##name,
typedef enum stoker_trace_kind {
    STOKER_TRACE_KINDS(STOKER_TRACE_ENUM) STOKER_TRACE_KIND_COUNT
} stoker_trace_kind;
#undef STOKER_TRACE_ENUM

enum { STOKER_TRACE_EVENTS_MAX = 1 << 24 };

#define STOKER_TRACE_NO_BATCH UINT64_MAX

/* Something that a thread did. Events of one thread come in the order of their ends; two of
 * them lie apart, or one lies within the other. */
typedef struct stoker_trace_event {
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t end_ns;
    uint64_t batch;     /* 0, 1, ... from create on, over all epochs; STOKER_TRACE_NO_BATCH where
                           it is about none or several */
    uint32_t first_row; /* in the batch */
    uint32_t rows;      /* 0 = about no rows */
    uint16_t kind;      /* a stoker_trace_kind */
    uint16_t thread;    /* 0 = the consumer's, n = worker n, from 1. A consumer that does the work
                           of a worker records that as its own */
    uint32_t reserved;  /* 0 */
} stoker_trace_event;

/* What stoker_loader_trace() fills. */
typedef struct stoker_trace {
    size_t struct_size;         /* set by STOKER_TRACE_INIT */
    stoker_trace_event *events; /* in: the caller's, room for `capacity`; NULL with 0 */
    size_t capacity;            /* in: events */
    size_t count;               /* out: events written */
    uint64_t recorded;          /* out: since create, by all threads; the dropped not counted */
    uint64_t dropped;           /* out: since create; their ring was full */
} stoker_trace;

#define STOKER_TRACE_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_trace))

#ifdef __cplusplus
static inline stoker_trace stoker_trace_made(void)
{
    stoker_trace made = {};
    STOKER_TRACE_DEFAULTS
    return made;
}
#define STOKER_TRACE_INIT stoker_trace_made()
#else
#define STOKER_TRACE_INIT                                                                          \
    {                                                                                              \
        STOKER_TRACE_DEFAULTS                                                                      \
    }
#endif

/* Take the events recorded since the last call, thread by thread, up to trace->capacity: if
 * count == capacity there may be more. A thread whose ring is full drops what comes until
 * there is room again, so call often enough. Any thread, any time between create and destroy;
 * calls of several threads wait for each other, the loader's threads for none.
 * Errors: STOKER_EINVAL (struct_size is not set, events is NULL although there is a capacity,
 * or options.trace_events was 0), STOKER_EFORKED. *trace is written only on STOKER_OK. */
STOKER_API int stoker_loader_trace(stoker_loader *loader, stoker_trace *trace);

/* "claim", "submit", ...; "unknown". Static. */
STOKER_API const char *stoker_trace_name(stoker_trace_kind kind);

/* What one loader recorded, to be shown as one process. */
typedef struct stoker_trace_run {
    const char *name;           /* UTF-8, shown as the name of the process */
    stoker_trace_event *events; /* all of them, in any order; the caller's, sorted by the call */
    size_t count;
    uint64_t dropped; /* shown beside the name, if there are any */
} stoker_trace_run;

/* Where text goes: 0, or an error < 0, which ends the writing and is returned by it. */
typedef int stoker_trace_sink(void *self, const char *text, size_t bytes);

/* Tell runs in the Chrome trace event format, a JSON array that Perfetto (ui.perfetto.dev) and
 * chrome://tracing open: a track for each thread, how many batches stood ready, and when each
 * was ready, copied to a GPU, and lent. Times are microseconds from the first event of all runs. At most 1000
 * runs. The library writes no file: the text goes to `sink` in pieces of at most 512 bytes.
 * Any thread. Errors: STOKER_EINVAL, and what the sink returned. */
STOKER_API int stoker_trace_write(const stoker_trace_run *runs, size_t count,
                                  stoker_trace_sink *sink, void *self);

STOKER_END_DECLS
#endif
