/* test_trace_write.c - events in, the Chrome trace event format out: to the letter, in the order
 * of time, and stopped by the first error of the callback that takes the text.
 */
#include <stoker/stoker.h>

#include "support/leaks.h"

struct text {
    char bytes[16384];
    size_t size;
    int calls;
    int fail_at; /* the call that fails; 0 = none */
};

static int keep(void *self, const char *bytes, size_t size)
{
    struct text *text = self;
    cr_assert_leq(size, 512);
    cr_assert_gt(size, 0);
    cr_assert(text->fail_at == 0 || text->calls < text->fail_at, "called after an error");
    text->calls++;
    if (text->calls == text->fail_at)
        return STOKER_EIO;
    cr_assert_lt(text->size + size, sizeof(text->bytes));
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = '\0';
    return 0;
}

/* One batch of two spans, made by two workers; out of order, as rings give them. */
static const stoker_trace_event batch_events[] = {
    { .begin_ns = 9000, .end_ns = 12345, .kind = STOKER_TRACE_WAIT, .batch = 7 },
    { .begin_ns = 12400, .end_ns = 12500, .kind = STOKER_TRACE_LEND, .batch = 7, .rows = 64 },
    { .begin_ns = 20000, .end_ns = 20001, .kind = STOKER_TRACE_RELEASE, .batch = 7 },
    { .begin_ns = 9001, .end_ns = 9001, .kind = STOKER_TRACE_CLAIM, .thread = 1, .batch = 7 },
    { .begin_ns = 12000, .end_ns = 12340, .kind = STOKER_TRACE_PUBLISH, .thread = 2, .batch = 7 },
    { .begin_ns = 10000,
      .end_ns = 2010000,
      .kind = STOKER_TRACE_READ,
      .thread = 256,
      .rows = 3,
      .batch = STOKER_TRACE_NO_BATCH },
};
enum { BATCH_EVENTS = sizeof(batch_events) / sizeof(batch_events[0]) };

static const char expected[] =
    "[\n"
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1000,\"tid\":1000,"
    "\"args\":{\"name\":\"a \\\"\\u000a\\\\\"}},\n"
    "{\"name\":\"process_labels\",\"ph\":\"M\",\"pid\":1000,\"tid\":1000,"
    "\"args\":{\"labels\":\"5 events dropped\"}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1000,\"tid\":1000,"
    "\"args\":{\"name\":\"consumer\"}},\n"
    "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1000,\"tid\":1000,"
    "\"args\":{\"sort_index\":0}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1000,\"tid\":1001,"
    "\"args\":{\"name\":\"worker 1\"}},\n"
    "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1000,\"tid\":1001,"
    "\"args\":{\"sort_index\":1}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1000,\"tid\":1002,"
    "\"args\":{\"name\":\"worker 2\"}},\n"
    "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1000,\"tid\":1002,"
    "\"args\":{\"sort_index\":2}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1000,\"tid\":1256,"
    "\"args\":{\"name\":\"worker 256\"}},\n"
    "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1000,\"tid\":1256,"
    "\"args\":{\"sort_index\":256}},\n"
    "{\"name\":\"wait for a batch\",\"cat\":\"consumer\",\"ph\":\"X\",\"pid\":1000,\"tid\":1000,"
    "\"ts\":0.000,\"dur\":3.345,\"args\":{\"batch\":7,\"row\":0,\"rows\":0}},\n"
    "{\"name\":\"claim\",\"cat\":\"worker\",\"ph\":\"X\",\"pid\":1000,\"tid\":1001,"
    "\"ts\":0.001,\"dur\":0.000,\"args\":{\"batch\":7,\"row\":0,\"rows\":0}},\n"
    "{\"name\":\"read\",\"cat\":\"worker\",\"ph\":\"X\",\"pid\":1000,\"tid\":1256,"
    "\"ts\":1.000,\"dur\":2000.000,\"args\":{\"rows\":3}},\n"
    "{\"name\":\"publish\",\"cat\":\"worker\",\"ph\":\"X\",\"pid\":1000,\"tid\":1002,"
    "\"ts\":3.000,\"dur\":0.340,\"args\":{\"batch\":7,\"row\":0,\"rows\":0}},\n"
    "{\"name\":\"ready\",\"cat\":\"batch\",\"ph\":\"b\",\"id2\":{\"local\":\"0x7\"},\"pid\":1000,"
    "\"tid\":1000,\"ts\":3.000,\"args\":{\"batch\":7}},\n"
    "{\"name\":\"ready slots\",\"ph\":\"C\",\"pid\":1000,\"tid\":1000,\"ts\":3.000,"
    "\"args\":{\"ready\":1}},\n"
    "{\"name\":\"lend\",\"cat\":\"consumer\",\"ph\":\"X\",\"pid\":1000,\"tid\":1000,"
    "\"ts\":3.400,\"dur\":0.100,\"args\":{\"batch\":7,\"row\":0,\"rows\":64}},\n"
    "{\"name\":\"ready\",\"cat\":\"batch\",\"ph\":\"e\",\"id2\":{\"local\":\"0x7\"},\"pid\":1000,"
    "\"tid\":1000,\"ts\":3.400,\"args\":{\"batch\":7}},\n"
    "{\"name\":\"ready slots\",\"ph\":\"C\",\"pid\":1000,\"tid\":1000,\"ts\":3.400,"
    "\"args\":{\"ready\":0}},\n"
    "{\"name\":\"lent\",\"cat\":\"batch\",\"ph\":\"b\",\"id2\":{\"local\":\"0x7\"},\"pid\":1000,"
    "\"tid\":1000,\"ts\":3.400,\"args\":{\"batch\":7}},\n"
    "{\"name\":\"release\",\"cat\":\"consumer\",\"ph\":\"X\",\"pid\":1000,\"tid\":1000,"
    "\"ts\":11.000,\"dur\":0.001,\"args\":{\"batch\":7,\"row\":0,\"rows\":0}},\n"
    "{\"name\":\"lent\",\"cat\":\"batch\",\"ph\":\"e\",\"id2\":{\"local\":\"0x7\"},\"pid\":1000,"
    "\"tid\":1000,\"ts\":11.000,\"args\":{\"batch\":7}}\n"
    "]\n";

CleanTest(trace_write, is_written_to_the_letter)
{
    stoker_trace_event events[BATCH_EVENTS];
    struct text text = { .size = 0 };
    memcpy(events, batch_events, sizeof(events));
    const stoker_trace_run run = {
        .name = "a \"\n\\", .events = events, .count = BATCH_EVENTS, .dropped = 5
    };
    cr_assert_eq(stoker_trace_write(&run, 1, keep, &text), STOKER_OK);
    cr_assert_str_eq(text.bytes, expected);
}

CleanTest(trace_write, of_nothing_is_an_array_still)
{
    struct text text = { .size = 0 };
    cr_assert_eq(stoker_trace_write(NULL, 0, keep, &text), STOKER_OK);
    cr_assert_str_eq(text.bytes, "[\n]\n");
    text.size = 0;
    const stoker_trace_run empty = { .name = NULL };
    cr_assert_eq(stoker_trace_write(&empty, 1, keep, &text), STOKER_OK);
    cr_assert_str_eq(text.bytes, "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1000,\"tid\":"
                                 "1000,\"args\":{\"name\":\"stoker\"}}\n]\n");
}

/* The second run begins earlier: its start is time 0 for both. */
CleanTest(trace_write, runs_share_one_clock_and_no_ids)
{
    stoker_trace_event late = { .begin_ns = 5000, .end_ns = 6000, .thread = 1 };
    stoker_trace_event early = { .begin_ns = 2000, .end_ns = 3000, .thread = 1 };
    const stoker_trace_run runs[] = { { .events = &late, .count = 1 },
                                      { .name = "gone" },
                                      { .events = &early, .count = 1 } };
    struct text text = { .size = 0 };
    cr_assert_eq(stoker_trace_write(runs, 3, keep, &text), STOKER_OK);
    cr_assert_not_null(strstr(text.bytes, "\"pid\":1000,\"tid\":1001,\"ts\":3.000,\"dur\":1.000"));
    cr_assert_not_null(strstr(text.bytes, "\"pid\":3000,\"tid\":3001,\"ts\":0.000,\"dur\":1.000"));
}

CleanTest(trace_write, stops_at_the_first_error_of_the_sink)
{
    stoker_trace_event events[BATCH_EVENTS];
    memcpy(events, batch_events, sizeof(events));
    const stoker_trace_run run = { .name = "x", .events = events, .count = BATCH_EVENTS };
    struct text whole = { .size = 0 };
    cr_assert_eq(stoker_trace_write(&run, 1, keep, &whole), STOKER_OK);
    for (int nth = 1; nth <= whole.calls; nth++) {
        struct text text = { .fail_at = nth };
        cr_assert_eq(stoker_trace_write(&run, 1, keep, &text), STOKER_EIO);
    }
}

CleanTest(trace_write, what_cannot_be_an_event_is_refused)
{
    stoker_trace_event event = { .begin_ns = 1, .end_ns = 2 };
    stoker_trace_run run = { .events = &event, .count = 1 };
    struct text text = { .size = 0 };
    cr_assert_eq(stoker_trace_write(&run, 1, NULL, &text), STOKER_EINVAL);
    cr_assert_eq(stoker_trace_write(NULL, 1, keep, &text), STOKER_EINVAL);
    cr_assert_eq(stoker_trace_write(&run, 1001, keep, &text), STOKER_EINVAL);
    run.events = NULL;
    cr_assert_eq(stoker_trace_write(&run, 1, keep, &text), STOKER_EINVAL);
    run.events = &event;
    event.end_ns = 0;
    cr_assert_eq(stoker_trace_write(&run, 1, keep, &text), STOKER_EINVAL);
    event.end_ns = 2;
    event.thread = 257;
    cr_assert_eq(stoker_trace_write(&run, 1, keep, &text), STOKER_EINVAL);
    event.thread = 256;
    event.kind = STOKER_TRACE_KIND_COUNT;
    cr_assert_eq(stoker_trace_write(&run, 1, keep, &text), STOKER_EINVAL);
    event.kind = 0;
    cr_assert_eq(text.calls, 0, "nothing is written before all is checked");
    cr_assert_eq(stoker_trace_write(&run, 1, keep, &text), STOKER_OK);
}
