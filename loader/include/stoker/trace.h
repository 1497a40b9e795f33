/* stoker/trace.h - what every thread of a loader did, when, and with which batch.
 *
 *   worker threads ──▶ a ring each ──▶ stoker_loader_trace() ──▶ your array ──▶ stoker_trace_write()
 *   your thread    ──▶ its ring                                                 JSON for Perfetto
 *
 * stoker_loader_options.trace_events turns recording on; without it no clock is read and no memory
 * allocated. Independently of it, a library built with NVTX emits the same stages as NVTX ranges of
 * the domain "stoker" if a tool such as Nsight Systems is attached.
 */
#ifndef STOKER_TRACE_H
#define STOKER_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

/* X(name, text, meaning). New ones are added at the end. Rows are rows of the batch unless
 * noted. */
#define STOKER_TRACE_KINDS(X)                                                                      \
    X(CLAIM, "claim", "worker: takes a span and locates its samples")                              \
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

/* Something that a thread did: 40 bytes in every version. Events of one thread are ordered by their
 * ends; two of them are disjoint or nested. */
typedef struct stoker_trace_event {
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t end_ns;
    /* 0, 1, ... since create, over all epochs; STOKER_TRACE_NO_BATCH: none or several */
    uint64_t batch;
    uint32_t first_row; /* in the batch */
    uint32_t rows;      /* 0 = none */
    uint16_t kind;      /* a stoker_trace_kind */
    /* 0 = the consumer, also when it does a worker's share; n = worker n, from 1 */
    uint16_t thread;
    uint32_t reserved; /* 0 */
} stoker_trace_event;

/* In and out of stoker_loader_trace(). */
typedef struct stoker_trace {
    size_t struct_size;         /* set by STOKER_TRACE_INIT */
    stoker_trace_event *events; /* in: the caller's array; may be NULL if capacity is 0 */
    size_t capacity;            /* in: events */
    size_t count;               /* out: events written */
    uint64_t recorded;          /* out: since create, by all threads, without the dropped ones */
    uint64_t dropped;           /* out: since create, because a ring was full */
} stoker_trace;

#define STOKER_TRACE_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_trace))

STOKER_MAKER(stoker_trace, STOKER_TRACE_DEFAULTS)
#define STOKER_TRACE_INIT STOKER_INITIALIZER(stoker_trace, STOKER_TRACE_DEFAULTS)
STOKER_API int stoker_trace_init_sized(stoker_trace *out, size_t struct_size);

/* Take the events recorded since the last call, thread by thread, up to trace->capacity: count ==
 * capacity means that there may be more. A thread with a full ring drops new events, so call often
 * enough. Any thread, any time between create and destroy; concurrent calls wait for each other,
 * but never for the loader's threads. Errors: STOKER_EINVAL (struct_size is not set, events is NULL
 * with capacity > 0, or options.trace_events was 0), STOKER_EFORKED. *trace is written only on
 * STOKER_OK. */
STOKER_API int stoker_loader_trace(stoker_loader *loader, stoker_trace *trace);

/* "claim", "submit", ...; "unknown" for any other value. Static. */
STOKER_API const char *stoker_trace_name(stoker_trace_kind kind);

/* The events of one loader, shown as one process. */
typedef struct stoker_trace_run {
    const char *name;           /* UTF-8, the name of the process */
    stoker_trace_event *events; /* in any order; the caller's array, which the call sorts */
    size_t count;
    uint64_t dropped;     /* shown with the name if > 0 */
    uint64_t reserved[2]; /* 0: runs are an array, so that their size stays */
} stoker_trace_run;

/* Receives text. Returns 0, or an error < 0 that stops stoker_trace_write(), which returns it. */
typedef int stoker_trace_sink(void *self, const char *text, size_t bytes);

/* Write runs in the Chrome trace event format, a JSON array that Perfetto (ui.perfetto.dev) and
 * chrome://tracing open: a track per thread, the number of ready batches, and when each batch was
 * ready, copied to a GPU, and lent. Times are microseconds since the first event of all runs. At
 * most 1000 runs. The library writes no file: the text goes to `sink` in pieces of at most 512
 * bytes. Any thread. Errors: STOKER_EINVAL, and what the sink returned. */
STOKER_API int stoker_trace_write(const stoker_trace_run *runs, size_t count,
                                  stoker_trace_sink *sink, void *self);

STOKER_END_DECLS
#endif
