/* hooks.c - see hooks.h. */
#include <stdio.h>
#include <string.h>

#include "hooks.h"
#include "rows.h"

static int set_callable(PyObject **place, PyObject *call, const char *name)
{
    if (!PyCallable_Check(call)) {
        PyErr_Format(PyExc_TypeError, "%s: a callable, not %R", name, call);
        return -1;
    }
    Py_INCREF(call);
    Py_XDECREF(*place);
    *place = call;
    return 0;
}

bool core_hooks_exist(const struct core_hooks *hooks)
{
    return hooks->row != NULL || hooks->batch != NULL || hooks->order != NULL || hooks->log != NULL;
}

/* ---- what a call shows ---- */

/* End all views; an error of the call that made them if something keeps one. */
static int hide_rows(struct core_hooks *hooks, PyObject *shown, int rc, const char *what,
                     stoker_error *error)
{
    if (shown == NULL)
        return rc;
    if (!core_hide(hooks->state, shown)) {
        atomic_store_explicit(&hooks->kept, true, memory_order_relaxed);
        snprintf(error->message, sizeof(error->message),
                 "the %s keeps an array over rows after its call: copy what you keep", what);
        rc = error->code = STOKER_EINVAL;
    }
    Py_DECREF(shown);
    return rc;
}

static bool is_closed(const struct core_hooks *hooks, stoker_error *error)
{
    if (!atomic_load_explicit(&hooks->closed, memory_order_acquire))
        return false;
    snprintf(error->message, sizeof(error->message), "the loader is closed");
    return true;
}

/* ---- the row hook ---- */

static PyObject *sample_dict(const stoker_hook_sample *sample)
{
    return Py_BuildValue(
        "{s:K,s:K,s:(II),s:(IIII),s:(II),s:(ii),s:(II),s:O,s:d}", "id",
        (unsigned long long)sample->id, "epoch", (unsigned long long)sample->epoch, "source_size",
        sample->source_height, sample->source_width, "crop", sample->crop_top, sample->crop_left,
        sample->crop_height, sample->crop_width, "grid_size", sample->grid_height,
        sample->grid_width, "origin", sample->y, sample->x, "out_size", sample->out_height,
        sample->out_width, "flip", sample->flip ? Py_True : Py_False, "angle", sample->angle);
}

/* Lengths that the hook returned: None, or a sequence with a number or None per field. */
static int take_lengths(PyObject *result, stoker_row *rows, uint32_t count)
{
    if (result == Py_None)
        return 0;
    PyObject *list = PySequence_List(result);
    if (list == NULL)
        return -1;
    int rc = 0;
    if (PyList_Size(list) != (Py_ssize_t)count) {
        PyErr_Format(PyExc_ValueError, "the row hook returned %zd lengths for %u fields",
                     PyList_Size(list), count);
        rc = -1;
    }
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        PyObject *length = PyList_GetItem(list, (Py_ssize_t)i);
        if (length != Py_None)
            rc = core_u64(length, "length", &rows[i].length);
    }
    Py_DECREF(list);
    return rc;
}

static PyObject *row_views(struct core_hooks *hooks, const stoker_row *rows, uint32_t count,
                           PyObject *shown)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *view = core_show(hooks->state, shown, rows[i].data, rows[i].bytes_max, true);
        Py_XINCREF(view);
        if (view == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, view) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static int call_row(struct core_hooks *hooks, stoker_row *rows, uint32_t count,
                    const stoker_hook_sample *sample, unsigned long long seed, PyObject *shown)
{
    PyObject *fields = shown != NULL ? row_views(hooks, rows, count, shown) : NULL;
    PyObject *dict = fields != NULL ? sample_dict(sample) : NULL;
    PyObject *result =
        dict != NULL ? PyObject_CallFunction(hooks->row, "OOK", fields, dict, seed) : NULL;
    const int rc = result != NULL ? take_lengths(result, rows, count) : -1;
    Py_XDECREF(result);
    Py_XDECREF(dict);
    Py_XDECREF(fields);
    return rc;
}

static int apply_row(void *self, void *scratch, stoker_row *rows, uint32_t count,
                     const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *error)
{
    (void)scratch;
    struct core_hooks *hooks = self;
    const unsigned long long seed = stoker_rng_u64(rng);
    if (is_closed(hooks, error))
        return STOKER_EINVAL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *shown = PyList_New(0);
    int rc = call_row(hooks, rows, count, sample, seed, shown);
    if (rc < 0)
        rc = core_keep_exception(hooks->state, error);
    rc = hide_rows(hooks, shown, rc, "row hook", error);
    PyGILState_Release(gil);
    return rc;
}

int core_set_row_hook(struct core_hooks *hooks, PyObject *call, stoker_loader_options *options)
{
    hooks->row_hook = (stoker_row_hook){ .struct_size = sizeof(stoker_row_hook),
                                         .self = hooks,
                                         .apply = apply_row };
    options->row_hook = &hooks->row_hook;
    return set_callable(&hooks->row, call, "row_hook");
}

/* ---- the batch hook ---- */

/* A view of numbers of 8 bytes. New reference. */
static PyObject *numbers_view(struct core_hooks *hooks, void *numbers, uint32_t count,
                              bool writable, PyObject *shown)
{
    PyObject *bytes = core_show(hooks->state, shown, numbers, count * sizeof(uint64_t), writable);
    PyObject *view = bytes != NULL ? PyObject_CallMethod(bytes, "cast", "s", "Q") : NULL;
    if (view != NULL && PyList_Append(shown, view) < 0)
        Py_CLEAR(view);
    return view;
}

static PyObject *field_views(struct core_hooks *hooks, const stoker_hook_field *field,
                             uint32_t rows, PyObject *shown)
{
    PyObject *data = core_show(hooks->state, shown, field->data, rows * field->row_bytes, true);
    if (data == NULL)
        return NULL;
    if (field->lengths == NULL)
        return Py_BuildValue("(OnO)", data, (Py_ssize_t)field->row_bytes, Py_None);
    PyObject *lengths = numbers_view(hooks, field->lengths, rows, true, shown);
    if (lengths == NULL)
        return NULL;
    return Py_BuildValue("(OnN)", data, (Py_ssize_t)field->row_bytes, lengths);
}

static PyObject *batch_dict(struct core_hooks *hooks, const stoker_hook_batch *batch,
                            PyObject *shown)
{
    /* The view is for reading only, so the cast takes nothing away. */
    PyObject *ids = numbers_view(hooks, (void *)(uintptr_t)batch->ids, batch->rows, false, shown);
    if (ids == NULL)
        return NULL;
    return Py_BuildValue("{s:K,s:K,s:I,s:N}", "epoch", (unsigned long long)batch->epoch, "position",
                         (unsigned long long)batch->position, "rows", batch->rows, "ids", ids);
}

static int call_batch(struct core_hooks *hooks, stoker_hook_field *fields, uint32_t count,
                      const stoker_hook_batch *batch, unsigned long long seed, PyObject *shown)
{
    PyObject *tuple = shown != NULL ? PyTuple_New((Py_ssize_t)count) : NULL;
    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *each = field_views(hooks, &fields[i], batch->rows, shown);
        if (each == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, each) < 0)
            Py_CLEAR(tuple);
    }
    PyObject *dict = tuple != NULL ? batch_dict(hooks, batch, shown) : NULL;
    PyObject *result =
        dict != NULL ? PyObject_CallFunction(hooks->batch, "OOK", tuple, dict, seed) : NULL;
    Py_XDECREF(dict);
    Py_XDECREF(tuple);
    if (result == NULL)
        return -1;
    Py_DECREF(result);
    return 0;
}

static int apply_batch(void *self, void *scratch, stoker_hook_field *fields, uint32_t count,
                       const stoker_hook_batch *batch, stoker_rng *rng, stoker_error *error)
{
    (void)scratch;
    struct core_hooks *hooks = self;
    const unsigned long long seed = stoker_rng_u64(rng);
    if (is_closed(hooks, error))
        return STOKER_EINVAL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *shown = PyList_New(0);
    int rc = call_batch(hooks, fields, count, batch, seed, shown);
    if (rc < 0)
        rc = core_keep_exception(hooks->state, error);
    rc = hide_rows(hooks, shown, rc, "batch hook", error);
    PyGILState_Release(gil);
    return rc;
}

int core_set_batch_hook(struct core_hooks *hooks, PyObject *call, stoker_loader_options *options)
{
    hooks->batch_hook = (stoker_batch_hook){ .struct_size = sizeof(stoker_batch_hook),
                                             .self = hooks,
                                             .apply = apply_batch };
    options->batch_hook = &hooks->batch_hook;
    return set_callable(&hooks->batch, call, "batch_hook");
}

/* ---- the order ---- */

static int copy_ids(PyObject *bytes, uint32_t count, uint64_t *out)
{
    if (PyBytes_Size(bytes) != (Py_ssize_t)(count * sizeof(uint64_t))) {
        PyErr_Format(PyExc_ValueError, "the order returned %zd bytes for %u ids of 8 bytes",
                     PyBytes_Size(bytes), count);
        return -1;
    }
    memcpy(out, PyBytes_AsString(bytes), count * sizeof(uint64_t));
    return 0;
}

static int copy_list(PyObject *sequence, uint32_t count, uint64_t *out)
{
    PyObject *list = PySequence_List(sequence);
    if (list == NULL)
        return -1;
    int rc = 0;
    if (PyList_Size(list) != (Py_ssize_t)count) {
        PyErr_Format(PyExc_ValueError, "the order returned %zd ids for %u positions",
                     PyList_Size(list), count);
        rc = -1;
    }
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = core_u64(PyList_GetItem(list, (Py_ssize_t)i), "id", &out[i]);
    Py_DECREF(list);
    return rc;
}

static int take_ids(PyObject *result, uint32_t count, uint64_t *out)
{
    if (PyList_Check(result) || PyTuple_Check(result))
        return copy_list(result, count, out);
    PyObject *bytes = core_bytes(result, "the order's ids");
    if (bytes == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) { /* a range, say */
        PyErr_Clear();
        return copy_list(result, count, out);
    }
    const int rc = bytes != NULL ? copy_ids(bytes, count, out) : -1;
    Py_XDECREF(bytes);
    return rc;
}

static int call_order(void *self, uint64_t epoch, uint64_t position, uint64_t stride,
                      uint32_t count, uint64_t *ids_out, stoker_error *error)
{
    struct core_hooks *hooks = self;
    if (is_closed(hooks, error))
        return STOKER_EINVAL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *positions = PyObject_CallFunction(
        (PyObject *)&PyRange_Type, "KKK", (unsigned long long)position,
        (unsigned long long)position + stride * count, (unsigned long long)stride);
    PyObject *result =
        positions != NULL
            ? PyObject_CallFunction(hooks->order, "KO", (unsigned long long)epoch, positions)
            : NULL;
    int rc = result != NULL ? take_ids(result, count, ids_out) : -1;
    if (rc < 0)
        rc = core_keep_exception(hooks->state, error);
    Py_XDECREF(result);
    Py_XDECREF(positions);
    PyGILState_Release(gil);
    return rc;
}

int core_set_order(struct core_hooks *hooks, PyObject *call, stoker_order *order)
{
    order->ids = call_order;
    order->self = hooks;
    return set_callable(&hooks->order, call, "order: ids");
}

/* ---- the log ---- */

/* What the user's log raises has no call to fail: it is reported as Python reports exceptions of
 * destructors. */
static void call_log(void *self, stoker_log_level level, const char *message)
{
    struct core_hooks *hooks = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *done =
        text != NULL ? PyObject_CallFunction(hooks->log, "sO",
                                             level >= STOKER_LOG_WARNING ? "warning" : "info", text)
                     : NULL;
    if (done == NULL)
        PyErr_WriteUnraisable(hooks->log);
    Py_XDECREF(done);
    Py_XDECREF(text);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
}

int core_set_log(struct core_hooks *hooks, PyObject *call, stoker_loader_options *options)
{
    options->on_log = call_log;
    options->log_self = hooks;
    return set_callable(&hooks->log, call, "on_log");
}
