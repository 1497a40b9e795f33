/* trace_json.c - a trace in the Chrome trace event format.
 *
 *   [ { process and thread names }, { "X" what a thread did } ..., { "C" batches ready } ...,
 *     { "b" "e" a batch is ready, is copied to a GPU, is lent } ... ]
 *
 * Written in the order of the start times. A batch counts as ready from the start of PUBLISH,
 * before it can be taken: so the count never falls below zero, even if a thread recorded late.
 *
 * The format: "Trace Event Format", Google, as read by chrome://tracing and Perfetto.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/stoker.h>

enum {
    RUNS_MAX = 1000,
    PIECE_BYTES = 512,
    THREADS_MAX = 1 + STOKER_WORKERS_MAX,
    IDS_PER_RUN = 1000 /* process n has the id n * 1000, its threads the following ones */
};

_Static_assert((int)THREADS_MAX < (int)IDS_PER_RUN, "a thread's id belongs to one run");

struct writer {
    stoker_trace_sink *sink;
    void *self;
    int rc; /* the first error */
    bool begun;
    uint64_t origin_ns; /* time 0 */
    uint64_t process;
    bool sends; /* this run's batches go to a GPU before they are lent */
};

/* Write one object of the array. What each caller puts in is short enough to fit. */
__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *format,
                                                      ...)
{
    char text[PIECE_BYTES];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (writer->rc == STOKER_OK && length > 0)
        writer->rc = writer->sink(writer->self, text, (size_t)length);
}

static const char *comma(struct writer *writer)
{
    const bool begun = writer->begun;
    writer->begun = true;
    return begun ? ",\n" : "\n";
}

/* Nanoseconds as microseconds, exactly: what follows "%" PRIu64 ".%03u". */
#define MICROSECONDS(ns)    (ns) / 1000, (unsigned)((ns) % 1000)
#define MICROSECONDS_FORMAT "%" PRIu64 ".%03u"

/* ---- names of processes and threads ---- */

static void put_quoted(struct writer *writer, const char *text)
{
    put(writer, "\"");
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte == 0x7F)
            put(writer, "\\u%04x", byte);
        else
            put(writer, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
    }
    put(writer, "\"");
}

static void put_process(struct writer *writer, const stoker_trace_run *run)
{
    put(writer,
        "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
        ",\"args\":{\"name\":",
        comma(writer), writer->process, writer->process);
    put_quoted(writer, run->name == NULL ? "stoker" : run->name);
    put(writer, "}}");
    if (run->dropped > 0)
        put(writer,
            ",\n{\"name\":\"process_labels\",\"ph\":\"M\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
            ",\"args\":{\"labels\":\"%" PRIu64 " events dropped\"}}",
            writer->process, writer->process, run->dropped);
}

static void put_threads(struct writer *writer, const stoker_trace_run *run)
{
    bool seen[THREADS_MAX] = { false };
    for (size_t i = 0; i < run->count; i++)
        seen[run->events[i].thread] = true;
    for (unsigned thread = 0; thread < THREADS_MAX; thread++) {
        char name[24] = "consumer";
        if (!seen[thread])
            continue;
        if (thread > 0)
            (void)snprintf(name, sizeof(name), "worker %u", thread);
        put(writer,
            ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
            ",\"args\":{\"name\":\"%s\"}}",
            writer->process, writer->process + thread, name);
        put(writer,
            ",\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
            ",\"args\":{\"sort_index\":%u}}",
            writer->process, writer->process + thread, thread);
    }
}

/* ---- events ---- */

static void put_slice(struct writer *writer, const stoker_trace_event *event)
{
    put(writer,
        "%s{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
        ",\"ts\":" MICROSECONDS_FORMAT ",\"dur\":" MICROSECONDS_FORMAT,
        comma(writer), stoker_trace_name((stoker_trace_kind)event->kind),
        event->kind < STOKER_TRACE_WAIT ? "worker" : "consumer", writer->process,
        writer->process + event->thread, MICROSECONDS(event->begin_ns - writer->origin_ns),
        MICROSECONDS(event->end_ns - event->begin_ns));
    if (event->batch != STOKER_TRACE_NO_BATCH)
        put(writer, ",\"args\":{\"batch\":%" PRIu64 ",\"row\":%" PRIu32 ",\"rows\":%" PRIu32 "}}",
            event->batch, event->first_row, event->rows);
    else
        put(writer, ",\"args\":{\"rows\":%" PRIu32 "}}", event->rows);
}

/* A state of a batch begins ("b") or ends ("e"). */
static void put_state(struct writer *writer, const stoker_trace_event *event, const char *name,
                      char phase)
{
    put(writer,
        "%s{\"name\":\"%s\",\"cat\":\"batch\",\"ph\":\"%c\",\"id2\":{\"local\":\"0x%" PRIx64
        "\"},\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"ts\":" MICROSECONDS_FORMAT
        ",\"args\":{\"batch\":%" PRIu64 "}}",
        comma(writer), name, phase, event->batch, writer->process, writer->process,
        MICROSECONDS(event->begin_ns - writer->origin_ns), event->batch);
}

static void put_ready(struct writer *writer, uint64_t at_ns, int64_t ready)
{
    put(writer,
        "%s{\"name\":\"ready slots\",\"ph\":\"C\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
        ",\"ts\":" MICROSECONDS_FORMAT ",\"args\":{\"ready\":%" PRIu64 "}}",
        comma(writer), writer->process, writer->process, MICROSECONDS(at_ns - writer->origin_ns),
        ready > 0 ? (uint64_t)ready : 0);
}

/* The effect of an event on its batch and on the number of ready batches. */
static void put_batch(struct writer *writer, const stoker_trace_event *event, int64_t *ready)
{
    switch (event->kind) {
    case STOKER_TRACE_PUBLISH:
        put_state(writer, event, "ready", 'b');
        put_ready(writer, event->begin_ns, ++*ready);
        break;
    case STOKER_TRACE_SEND:
        put_state(writer, event, "ready", 'e');
        put_state(writer, event, "copied", 'b');
        put_ready(writer, event->begin_ns, --*ready);
        break;
    case STOKER_TRACE_RETIRE:
        put_state(writer, event, "copied", 'e');
        break;
    case STOKER_TRACE_LEND:
        if (!writer->sends) {
            put_state(writer, event, "ready", 'e');
            put_ready(writer, event->begin_ns, --*ready);
        }
        put_state(writer, event, "lent", 'b');
        break;
    case STOKER_TRACE_RELEASE:
        put_state(writer, event, "lent", 'e');
        break;
    default:
        break;
    }
}

/* Order by start time; of two events that start together the longer one is first, since it encloses
 * the other. */
static int compare(const void *a, const void *b)
{
    const stoker_trace_event *left = a, *right = b;
    if (left->begin_ns != right->begin_ns)
        return left->begin_ns < right->begin_ns ? -1 : 1;
    if (left->end_ns != right->end_ns)
        return left->end_ns > right->end_ns ? -1 : 1;
    return 0;
}

static bool has_sends(const stoker_trace_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i].kind == STOKER_TRACE_SEND)
            return true;
    return false;
}

static void put_run(struct writer *writer, const stoker_trace_run *run)
{
    int64_t ready =
        0; /* < 0: LEND sorts before a PUBLISH of the same time, or PUBLISH was dropped */
    writer->sends = has_sends(run);
    put_process(writer, run);
    put_threads(writer, run);
    for (size_t i = 0; i < run->count && writer->rc == STOKER_OK; i++) {
        put_slice(writer, &run->events[i]);
        put_batch(writer, &run->events[i], &ready);
    }
}

static bool is_event(const stoker_trace_event *event)
{
    return event->kind < STOKER_TRACE_KIND_COUNT && event->thread < THREADS_MAX &&
           event->begin_ns <= event->end_ns;
}

static bool is_run(const stoker_trace_run *run)
{
    bool good = run->events != NULL || run->count == 0;
    for (size_t i = 0; good && i < run->count; i++)
        good = is_event(&run->events[i]);
    return good;
}

int stoker_trace_write(const stoker_trace_run *runs, size_t count, stoker_trace_sink *sink,
                       void *self)
{
    if ((runs == NULL && count > 0) || count > RUNS_MAX || sink == NULL)
        return STOKER_EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!is_run(&runs[i]))
            return STOKER_EINVAL;

    struct writer writer = { .sink = sink, .self = self, .origin_ns = UINT64_MAX };
    for (size_t i = 0; i < count; i++) {
        if (runs[i].count == 0)
            continue;
        qsort(runs[i].events, runs[i].count, sizeof(runs[i].events[0]), compare);
        if (runs[i].events[0].begin_ns < writer.origin_ns)
            writer.origin_ns = runs[i].events[0].begin_ns;
    }
    put(&writer, "[");
    for (size_t i = 0; i < count; i++) {
        writer.process = (i + 1) * IDS_PER_RUN;
        put_run(&writer, &runs[i]);
    }
    put(&writer, "\n]\n");
    return writer.rc;
}
