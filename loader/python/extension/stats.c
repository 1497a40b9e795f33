/* stats.c - stoker_stats as a dictionary, one row of a table per member; events of a trace as
 * bytes. */
#include <string.h>

#include "loader.h"

enum kind { U64, U32, BOOL, TEXT, LIMIT, CACHE };

struct member {
    const char *name;
    enum kind kind;
    size_t at;
};

#define MEMBER(kind, name)                                                                         \
    {                                                                                              \
#name, (kind), offsetof(stoker_stats, name)                                                \
    }

static const struct member members[] = {
    MEMBER(U64, batches),
    MEMBER(U64, samples),
    MEMBER(U64, bytes),
    MEMBER(U64, bad_samples),
    MEMBER(U64, elapsed_ns),
    MEMBER(U64, first_batch_ns),
    MEMBER(U64, read_ns),
    MEMBER(U64, decode_ns),
    MEMBER(U64, convert_ns),
    MEMBER(U64, slot_wait_ns),
    MEMBER(U64, stall_ns),
    MEMBER(U64, stalls),
    MEMBER(U64, reads),
    MEMBER(U64, read_bytes),
    MEMBER(U64, read_retries),
    MEMBER(U64, cache_hits),
    MEMBER(U64, blocks),
    MEMBER(U64, blocks_again),
    MEMBER(U64, block_bytes),
    MEMBER(U32, workers),
    MEMBER(U32, workers_max),
    MEMBER(U32, cpus),
    MEMBER(U32, slots),
    MEMBER(U32, slots_ready),
    MEMBER(U32, read_depth),
    MEMBER(U64, slot_bytes),
    MEMBER(U64, cache_bytes),
    MEMBER(U64, cache_held_bytes),
    MEMBER(U64, scratch_bytes),
    MEMBER(U64, locked_bytes),
    MEMBER(CACHE, cache),
    MEMBER(BOOL, pinned),
    MEMBER(BOOL, huge_pages),
    MEMBER(TEXT, reader),
    MEMBER(TEXT, reader_reason),
    MEMBER(TEXT, pin_reason),
    MEMBER(LIMIT, limit),
    MEMBER(TEXT, verdict),
    MEMBER(TEXT, device),
    MEMBER(TEXT, device_reason),
    MEMBER(U64, device_bytes),
    MEMBER(U64, copies),
    MEMBER(U64, copy_bytes),
    MEMBER(BOOL, converts_on_device),
    MEMBER(TEXT, convert_reason),
    MEMBER(U64, copy_waits),
    MEMBER(U64, trace_bytes),
    MEMBER(TEXT, cache_reason),
    MEMBER(BOOL, cache_paused),
    MEMBER(U64, cpu_ns),
    MEMBER(U32, lent_slots),
    MEMBER(U64, lent_bytes),
    MEMBER(TEXT, lent_reason),
    MEMBER(TEXT, route),
    MEMBER(U64, regions),
    MEMBER(U32, cache_sharers),
    MEMBER(TEXT, share_reason),
    MEMBER(U64, device_images),
    MEMBER(U64, device_image_bytes),
    MEMBER(BOOL, decodes_on_device),
    MEMBER(TEXT, decode_reason),
    MEMBER(U64, length_values),
    MEMBER(U64, length_room),
    MEMBER(U64, notes_bytes),
    MEMBER(U64, memory_bytes),
    MEMBER(U64, memory_bytes_max),
    MEMBER(U64, block_memory_bytes),
};

static PyObject *value_of(const struct member *member, const void *at)
{
    switch (member->kind) {
    case U64:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    case U32:
        return PyLong_FromUnsignedLong(*(const uint32_t *)at);
    case BOOL:
        return PyBool_FromLong(*(const bool *)at);
    case LIMIT:
        return PyUnicode_FromString(stoker_limit_name(*(const stoker_limit *)at));
    case CACHE:
        return PyUnicode_FromString(stoker_cache_name(*(const stoker_cache *)at));
    case TEXT:
        break;
    }
    return PyUnicode_DecodeUTF8(at, (Py_ssize_t)strlen(at), "replace");
}

static PyObject *stats_dict(const stoker_stats *stats)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < sizeof(members) / sizeof(members[0]); i++) {
        const void *at = (const char *)stats + members[i].at;
        if (core_put(dict, members[i].name, value_of(&members[i], at)) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static int read_stats(PyObject *object, stoker_stats *stats)
{
    core_loader *self = (core_loader *)object;
    *stats = (stoker_stats)STOKER_STATS_INIT;
    if (core_enter(self) < 0)
        return -1;
    const int rc = stoker_loader_stats(self->handle, stats);
    core_leave(self);
    if (rc < 0)
        core_raise_code(self->state, rc, STOKER_STAGE_WAIT, NULL);
    return rc < 0 ? -1 : 0;
}

PyObject *core_stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    stoker_stats stats;
    return read_stats(self, &stats) == 0 ? stats_dict(&stats) : NULL;
}

PyObject *core_snapshot(PyObject *self, PyObject *unused)
{
    (void)unused;
    stoker_stats stats;
    if (read_stats(self, &stats) < 0)
        return NULL;
    return PyBytes_FromStringAndSize((const char *)&stats, sizeof(stats));
}

static int copy_snapshot(PyObject *bytes, stoker_stats *out)
{
    if (PyBytes_Size(bytes) != (Py_ssize_t)sizeof(*out)) {
        PyErr_SetString(PyExc_ValueError, "not a result of Loader.snapshot()");
        return -1;
    }
    memcpy(out, PyBytes_AsString(bytes), sizeof(*out));
    return 0;
}

PyObject *core_stats_between(PyObject *module, PyObject *args)
{
    PyObject *first, *second;
    stoker_stats before, after, between;
    if (!PyArg_ParseTuple(args, "SS:stats_between", &first, &second) ||
        copy_snapshot(first, &before) < 0 || copy_snapshot(second, &after) < 0)
        return NULL;
    between = after;
    const int rc = stoker_stats_between(&before, &after, &between);
    if (rc < 0)
        return core_raise_code(PyModule_GetState(module), rc, STOKER_STAGE_OPTIONS,
                               "stats_between: before is not the earlier one of the same loader");
    return stats_dict(&between);
}

/* ---- traces ---- */

PyObject *core_take_trace(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "capacity", NULL };
    core_loader *self = (core_loader *)object;
    PyObject *number = NULL;
    uint32_t capacity = 65536;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:take_trace", names, &number) ||
        (number != NULL && core_u32(number, "capacity", &capacity) < 0))
        return NULL;
    PyObject *room =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(capacity * sizeof(stoker_trace_event)));
    if (room == NULL || core_enter(self) < 0) {
        Py_XDECREF(room);
        return NULL;
    }
    stoker_trace trace = STOKER_TRACE_INIT;
    trace.events = (stoker_trace_event *)(void *)PyBytes_AsString(room);
    trace.capacity = capacity;
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = stoker_loader_trace(self->handle, &trace);
    Py_END_ALLOW_THREADS core_leave(self);
    PyObject *result = NULL;
    if (rc < 0)
        core_raise_code(self->state, rc, STOKER_STAGE_OPTIONS,
                        rc == STOKER_EINVAL ? "trace: the option trace_events is 0" : NULL);
    else
        result =
            Py_BuildValue("(y#KK)", (const char *)trace.events,
                          (Py_ssize_t)(trace.count * sizeof(stoker_trace_event)),
                          (unsigned long long)trace.recorded, (unsigned long long)trace.dropped);
    Py_DECREF(room);
    return result;
}

static int append_text(void *self, const char *text, size_t bytes)
{
    PyObject *piece = PyBytes_FromStringAndSize(text, (Py_ssize_t)bytes);
    const int rc = piece != NULL ? PyList_Append(self, piece) : -1;
    Py_XDECREF(piece);
    return rc < 0 ? STOKER_ENOMEM : 0;
}

/* One (name, events, dropped); the library sorts the events, so it gets a copy, which `keep`
 * holds. */
static int read_run(PyObject *item, stoker_trace_run *run, PyObject *keep)
{
    PyObject *name, *events, *dropped;
    if (!PyTuple_Check(item)) {
        PyErr_Format(PyExc_TypeError, "runs: a tuple, not %R", item);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "OSO:run", &name, &events, &dropped) ||
        (run->name = core_text(name, "name", keep)) == NULL ||
        core_u64(dropped, "dropped", &run->dropped) < 0)
        return -1;
    PyObject *copy = PyByteArray_FromObject(events);
    const int rc = copy != NULL ? PyList_Append(keep, copy) : -1;
    Py_XDECREF(copy);
    if (rc < 0)
        return -1;
    const size_t bytes = (size_t)PyByteArray_Size(copy);
    if (bytes % sizeof(stoker_trace_event) != 0) {
        PyErr_SetString(PyExc_ValueError, "events: not a result of Loader.take_trace()");
        return -1;
    }
    run->events = (stoker_trace_event *)(void *)PyByteArray_AsString(copy);
    run->count = bytes / sizeof(stoker_trace_event);
    return 0;
}

static PyObject *write_runs(core_state *state, const stoker_trace_run *runs, size_t count)
{
    PyObject *pieces = PyList_New(0);
    if (pieces == NULL)
        return NULL;
    PyObject *text = NULL;
    const int rc = stoker_trace_write(runs, count, append_text, pieces);
    if (rc < 0 && !PyErr_Occurred())
        core_raise_code(state, rc, STOKER_STAGE_OPTIONS, NULL);
    PyObject *empty = rc == 0 ? PyBytes_FromStringAndSize("", 0) : NULL;
    PyObject *all = empty != NULL ? PyObject_CallMethod(empty, "join", "O", pieces) : NULL;
    if (all != NULL)
        text = PyUnicode_DecodeUTF8(PyBytes_AsString(all), PyBytes_Size(all), "replace");
    Py_XDECREF(all);
    Py_XDECREF(empty);
    Py_DECREF(pieces);
    return text;
}

PyObject *core_trace_json(PyObject *module, PyObject *argument)
{
    PyObject *list = PySequence_List(argument);
    PyObject *keep = list != NULL ? PyList_New(0) : NULL;
    const size_t count = keep != NULL ? (size_t)PyList_Size(list) : 0;
    stoker_trace_run *runs = keep != NULL ? core_zeroed((count + 1) * sizeof(*runs)) : NULL;
    int rc = runs != NULL ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = read_run(PyList_GetItem(list, (Py_ssize_t)i), &runs[i], keep);
    PyObject *text = rc == 0 ? write_runs(PyModule_GetState(module), runs, count) : NULL;
    PyMem_Free(runs);
    Py_XDECREF(keep);
    Py_XDECREF(list);
    return text;
}
