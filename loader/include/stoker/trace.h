/* stoker/trace.h - record the events of every thread of a loader, and write them for Perfetto.
 *
 *   worker threads ──▶ a ring each ──▶ stoker_loader_trace() ──▶ your array ──▶ stoker_trace_write()
 *   your thread    ──▶ its ring                                                 JSON for Perfetto
 *
 * stoker_loader_options.trace_events turns recording on. Without it the loader reads no clock and
 * allocates no memory for events. Independently of it, a library built with NVTX emits the same
 * events as NVTX ranges of the domain "stoker" if a tool such as Nsight Systems is attached.
 */
#ifndef STOKER_TRACE_H
#define STOKER_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

/* X(name, text, meaning). New kinds are added at the end. An event's rows are rows of the batch
 * unless noted. */
#define STOKER_TRACE_KINDS(X)                                                                      \
    X(CLAIM, "claim", "worker: claims a span of rows and locates its samples")                     \
    X(SUBMIT, "submit", "worker: submits reads; rows: number of reads")                            \
    X(READ, "read", "worker: waits for reads; rows: number of reads finished")                     \
    X(DECODE, "decode", "worker: decodes rows, and converts them if asked for")                    \
    X(CONVERT, "convert", "worker: gathers, copies or converts rows")                              \
    X(PUBLISH, "publish", "worker: the last span is done: the batch is ready")                     \
    X(CREDIT, "wait for a slot", "worker: every slot is full or lent")                             \
    X(REST, "rest", "worker: idle by decision of the tuner")                                       \
    X(WAIT, "wait for a batch", "consumer, in next: the batch is not ready")                       \
    X(LEND, "lend", "consumer, in next: delivers the batch")                                       \
    X(RELEASE, "release", "consumer: releases the batch")                                          \
    X(SEND, "send", "consumer, in next or release: starts its copy to the GPU")                    \
    X(RETIRE, "retire", "consumer, in next or release: the copy is done, its slot free")

#define STOKER_TRACE_ENUM(name, text, what) STOKER_TRACE_##name,
typedef enum stoker_trace_kind {
    STOKER_TRACE_KINDS(STOKER_TRACE_ENUM) STOKER_TRACE_KIND_COUNT
} stoker_trace_kind;
#undef STOKER_TRACE_ENUM

enum { STOKER_TRACE_EVENTS_MAX = 1 << 24 };

#define STOKER_TRACE_NO_BATCH UINT64_MAX

/* An interval of one thread's time; 40 bytes in every version. The events of a thread are ordered
 * by end_ns; any two are disjoint or nested. */
typedef struct stoker_trace_event {
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t end_ns;
    /* Number of the batch since create, 0, 1, ..., over all epochs; STOKER_TRACE_NO_BATCH = none or
     * several */
    uint64_t batch;
    uint32_t first_row; /* in the batch */
    uint32_t rows;      /* 0 = none */
    uint16_t kind;      /* a stoker_trace_kind */
    /* 0 = the consumer, also when it works as a worker; n >= 1 = worker n */
    uint16_t thread;
    uint32_t reserved; /* 0 */
} stoker_trace_event;

/* Input and output of stoker_loader_trace(). Start from STOKER_TRACE_INIT. */
typedef struct stoker_trace {
    size_t struct_size;         /* set by STOKER_TRACE_INIT */
    stoker_trace_event *events; /* in: the caller's array; may be NULL if capacity is 0 */
    size_t capacity;            /* in: length of that array */
    size_t count;               /* out: events written */
    uint64_t recorded;          /* out: events recorded since create, without dropped ones */
    uint64_t dropped;           /* out: events dropped since create, because a ring was full */
} stoker_trace;

#define STOKER_TRACE_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_trace))

STOKER_MAKER(stoker_trace, STOKER_TRACE_DEFAULTS)
#define STOKER_TRACE_INIT STOKER_INITIALIZER(stoker_trace, STOKER_TRACE_DEFAULTS)
STOKER_API int stoker_trace_init_sized(stoker_trace *out, size_t struct_size);

/* Move the events recorded since the last call to trace->events, thread by thread, until it is
 * full: if count == capacity, there may be more. A thread whose ring is full drops new events, so
 * call often enough. Any thread, any time between create and destroy; concurrent calls wait for
 * each other, but never for the loader's threads. *trace is written only on STOKER_OK. Errors:
 * STOKER_EINVAL (an argument is NULL, struct_size is not set, events is NULL with capacity > 0, or
 * options.trace_events was 0), STOKER_EFORKED. */
STOKER_API int stoker_loader_trace(stoker_loader *loader, stoker_trace *trace);

/* Return "claim", "submit", ...; "unknown" for any other value. Static. Any thread. */
STOKER_API const char *stoker_trace_name(stoker_trace_kind kind);

/* The events of one loader, shown as one process. */
typedef struct stoker_trace_run {
    const char *name;           /* UTF-8, the name of the process */
    stoker_trace_event *events; /* the caller's array, in any order; the call sorts it */
    size_t count;
    uint64_t dropped;     /* shown with the name if > 0 */
    uint64_t reserved[2]; /* 0; for new members: the size never changes */
} stoker_trace_run;

/* Receive text. Return 0, or an error < 0, which stoker_trace_write() then returns. */
typedef int stoker_trace_sink(void *self, const char *text, size_t bytes);

/* Write `count` runs, at most 1000, in the Chrome trace event format: a JSON array that Perfetto
 * (ui.perfetto.dev) and chrome://tracing open. It has a track per thread, the number of ready
 * batches, and the times when each batch was ready, copied to a GPU, and lent, in microseconds
 * since the first event of all runs. `sink` receives the text in pieces of at most 512 bytes, with
 * `self`. Any thread. Errors: STOKER_EINVAL, or the sink's. */
STOKER_API int stoker_trace_write(const stoker_trace_run *runs, size_t count,
                                  stoker_trace_sink *sink, void *self);

STOKER_END_DECLS
#endif
