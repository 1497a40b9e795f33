/* errors.c - an error of the library, or of the user's code, becomes a Python exception.
 *
 *   stoker_error ──▶ stoker._errors.make(code=..., message=..., ...) ──▶ raise
 *
 *   user's code raises ──▶ kept in state->raised ──▶ stoker_error, whose message has the exception's text ──▶ workers
 *                               └──────── found again by that text ◀──────── raise ◀──────── the loader's first error
 *
 * The way through the library holds only text, so the exception itself waits here. At most
 * CORE_RAISED_MAX wait: samples that are skipped leave theirs behind.
 */
#include "core.h"
#include <stdio.h>
#include <string.h>

enum { CORE_RAISED_MAX = 256 };

static PyObject *make_error(core_state *state)
{
    if (state->make_error != NULL)
        return state->make_error;
    PyObject *module = PyImport_ImportModule("stoker._errors");
    if (module == NULL)
        return NULL;
    state->make_error = PyObject_GetAttrString(module, "make");
    Py_DECREF(module);
    return state->make_error;
}

static PyObject *number_unless(uint64_t value, uint64_t none)
{
    if (value != none)
        return PyLong_FromUnsignedLongLong(value);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *path_of(const stoker_error *error)
{
    if (error->path[0] != '\0')
        return PyUnicode_DecodeFSDefault(error->path);
    Py_INCREF(Py_None);
    return Py_None;
}

PyObject *core_error_dict(const stoker_error *error)
{
    PyObject *dict = PyDict_New();
    if (dict == NULL)
        return NULL;
    if (core_put(dict, "code", PyLong_FromLong(error->code)) == 0 &&
        core_put(dict, "name", PyUnicode_FromString(stoker_error_name(error->code))) == 0 &&
        core_put(dict, "message",
                 PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message),
                                      "replace")) == 0 &&
        core_put(dict, "stage", PyUnicode_FromString(stoker_stage_name(error->stage))) == 0 &&
        core_put(dict, "path", path_of(error)) == 0 &&
        core_put(dict, "offset", number_unless(error->offset, STOKER_NO_OFFSET)) == 0 &&
        core_put(dict, "sample", number_unless(error->sample, STOKER_NO_SAMPLE)) == 0 &&
        core_put(dict, "os_errno", PyLong_FromLong(error->os_errno)) == 0)
        return dict;
    Py_DECREF(dict);
    return NULL;
}

/* One line that names an exception: "ValueError('no such word')"; in ASCII, since the library
 * replaces some other characters, and short enough for its message. Returns false if that raises,
 * too. */
static bool describe(PyObject *exception, char *out, size_t bytes)
{
    PyObject *text = PyUnicode_FromFormat("%R", exception);
    PyObject *utf8 =
        text != NULL ? PyUnicode_AsEncodedString(text, "ascii", "backslashreplace") : NULL;
    const char *from = utf8 != NULL ? PyBytes_AsString(utf8) : NULL;
    if (from != NULL)
        snprintf(out, bytes, "%s", from);
    Py_XDECREF(utf8);
    Py_XDECREF(text);
    PyErr_Clear();
    return from != NULL;
}

/* The kept exception whose text is in the error's message, taken out of the list; NULL if there is
 * none. New reference. */
static PyObject *take_exception(core_state *state, const stoker_error *error)
{
    for (Py_ssize_t i = PyList_Size(state->raised) - 1; i >= 0; i--) {
        PyObject *pair = PyList_GetItem(state->raised, i);
        if (pair == NULL) {
            PyErr_Clear(); /* another thread has shortened the list */
            continue;
        }
        Py_INCREF(pair);
        const char *text = PyBytes_AsString(PyTuple_GetItem(pair, 0));
        PyObject *exception = PyTuple_GetItem(pair, 1);
        if (text != NULL && strstr(error->message, text) != NULL) {
            Py_INCREF(exception);
            PySequence_DelItem(state->raised, i);
            PyErr_Clear();
            Py_DECREF(pair);
            return exception;
        }
        Py_DECREF(pair);
    }
    return NULL;
}

PyObject *core_raise(core_state *state, const stoker_error *error)
{
    PyObject *cause = take_exception(state, error);
    if (cause != NULL && !PyErr_GivenExceptionMatches(cause, PyExc_Exception)) {
        PyErr_SetObject((PyObject *)Py_TYPE(cause), cause); /* KeyboardInterrupt, SystemExit */
        Py_DECREF(cause);
        return NULL;
    }
    PyObject *make = make_error(state);
    PyObject *keywords = make != NULL ? core_error_dict(error) : NULL;
    PyObject *none = keywords != NULL ? PyTuple_New(0) : NULL;
    PyObject *exception = none != NULL ? PyObject_Call(make, none, keywords) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    if (exception == NULL) {
        Py_XDECREF(cause);
        return NULL;
    }
    if (cause != NULL)
        PyException_SetCause(exception, cause); /* takes the reference */
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return NULL;
}

PyObject *core_raise_code(core_state *state, int code, stoker_stage stage, const char *message)
{
    stoker_error error = {
        .code = code, .stage = stage, .offset = STOKER_NO_OFFSET, .sample = STOKER_NO_SAMPLE
    };
    snprintf(error.message, sizeof(error.message), "%s",
             message != NULL ? message : stoker_strerror(code));
    return core_raise(state, &error);
}

/* Local variables that the traceback keeps may be views of a row, which dies with the call. */
static void clear_frames(core_state *state, PyObject *traceback)
{
    if (traceback == NULL)
        return;
    PyObject *done = PyObject_CallFunctionObjArgs(state->clear_frames, traceback, NULL);
    Py_XDECREF(done);
    PyErr_Clear();
}

static void keep(core_state *state, PyObject *exception, const char *text)
{
    PyObject *pair = Py_BuildValue("(yO)", text, exception);
    if (pair != NULL && PyList_Append(state->raised, pair) == 0 &&
        PyList_Size(state->raised) > CORE_RAISED_MAX)
        PySequence_DelItem(state->raised, 0);
    Py_XDECREF(pair);
    PyErr_Clear();
}

int core_keep_exception(core_state *state, stoker_error *error)
{
    PyObject *type, *exception, *traceback;
    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    char text[160];
    if (exception == NULL || !describe(exception, text, sizeof(text)))
        snprintf(text, sizeof(text), "an exception that cannot be printed");
    if (exception != NULL) {
        if (traceback != NULL)
            PyException_SetTraceback(exception, traceback);
        clear_frames(state, traceback);
        keep(state, exception, text);
    }
    error->code = STOKER_EINVAL;
    snprintf(error->message, sizeof(error->message), "%s", text);
    Py_XDECREF(type);
    Py_XDECREF(exception);
    Py_XDECREF(traceback);
    return STOKER_EINVAL;
}
