/* values.c - Python objects as numbers, words and bytes, with errors that name the value. */
#include "core.h"
#include <string.h>

static int refuse_bool(PyObject *value, const char *name)
{
    if (!PyBool_Check(value))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: a number, not %R", name, value);
    return -1;
}

/* An int, also of a type that only has __index__ (a NumPy scalar). New reference. */
static PyObject *index_of(PyObject *value, const char *name)
{
    if (refuse_bool(value, name) < 0)
        return NULL;
    PyObject *number = PyNumber_Index(value);
    if (number == NULL && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s: an int, not %R", name, value);
    return number;
}

static int out_of_range(PyObject *value, const char *name)
{
    PyErr_Format(PyExc_ValueError, "%s: %R is out of its range", name, value);
    return -1;
}

int core_u64(PyObject *value, const char *name, uint64_t *out)
{
    PyObject *number = index_of(value, name);
    if (number == NULL)
        return -1;
    unsigned long long found = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (found == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return out_of_range(value, name);
    }
    *out = found;
    return 0;
}

int core_u32(PyObject *value, const char *name, uint32_t *out)
{
    uint64_t found;
    if (core_u64(value, name, &found) < 0)
        return -1;
    if (found > UINT32_MAX)
        return out_of_range(value, name);
    *out = (uint32_t)found;
    return 0;
}

int core_i32(PyObject *value, const char *name, int32_t *out)
{
    PyObject *number = index_of(value, name);
    if (number == NULL)
        return -1;
    int overflow = 0;
    long found = PyLong_AsLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0 || found < INT32_MIN || found > INT32_MAX)
        return out_of_range(value, name);
    *out = (int32_t)found;
    return 0;
}

int core_double(PyObject *value, const char *name, double *out)
{
    if (refuse_bool(value, name) < 0)
        return -1;
    double found = PyFloat_AsDouble(value);
    if (found == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s: a number, not %R", name, value);
        return -1;
    }
    *out = found;
    return 0;
}

int core_bool(PyObject *value, const char *name, bool *out)
{
    if (!PyBool_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s: True or False, not %R", name, value);
        return -1;
    }
    *out = value == Py_True;
    return 0;
}

const char *core_text(PyObject *value, const char *name, PyObject *keep)
{
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s: a str, not %R", name, value);
        return NULL;
    }
    PyObject *bytes = PyUnicode_EncodeFSDefault(value);
    int rc = bytes != NULL ? PyList_Append(keep, bytes) : -1;
    Py_XDECREF(bytes);
    if (rc < 0)
        return NULL;
    const char *text = PyBytes_AsString(bytes);
    if ((Py_ssize_t)strlen(text) == PyBytes_Size(bytes))
        return text;
    PyErr_Format(PyExc_ValueError, "%s: a NUL in %R", name, value);
    return NULL;
}

static int no_such_word(PyObject *value, const char *name, const char *const *words, size_t count)
{
    char known[256] = "";
    for (size_t i = 0; i < count; i++) {
        if (words[i] == NULL)
            continue;
        if (known[0] != '\0')
            strncat(known, ", ", sizeof(known) - strlen(known) - 1);
        strncat(known, words[i], sizeof(known) - strlen(known) - 1);
    }
    PyErr_Format(PyExc_ValueError, "%s: %R is none of %s", name, value, known);
    return -1;
}

int core_word(PyObject *value, const char *name, const char *const *words, size_t count)
{
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s: a str, not %R", name, value);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        if (words[i] != NULL && PyUnicode_CompareWithASCIIString(value, words[i]) == 0)
            return (int)i;
    return no_such_word(value, name, words, count);
}

int core_dtype(PyObject *value, const char *name, stoker_dtype *out)
{
    const char *words[STOKER_DTYPE_BOOL + 1] = { NULL };
    for (int i = STOKER_DTYPE_UINT8; i <= STOKER_DTYPE_BOOL; i++)
        words[i] = stoker_dtype_name((stoker_dtype)i);
    int found = core_word(value, name, words, sizeof(words) / sizeof(words[0]));
    if (found < 0)
        return -1;
    *out = (stoker_dtype)found;
    return 0;
}

PyObject *core_bytes(PyObject *value, const char *name)
{
    if (PyBytes_Check(value)) {
        Py_INCREF(value);
        return value;
    }
    PyObject *view = PyMemoryView_FromObject(value);
    PyObject *bytes = view != NULL ? PyObject_CallMethod(view, "tobytes", NULL) : NULL;
    Py_XDECREF(view);
    if (bytes == NULL && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s: bytes, or what memoryview() takes, not %R", name, value);
    return bytes;
}

PyObject *core_numbers(PyObject *value, const char *name, uint64_t *count)
{
    PyObject *bytes = core_bytes(value, name);
    if (bytes == NULL)
        return NULL;
    Py_ssize_t size = PyBytes_Size(bytes);
    if (size % 8 != 0) {
        Py_DECREF(bytes);
        return PyErr_Format(PyExc_TypeError, "%s: numbers of 8 bytes, not %zd bytes", name, size);
    }
    *count = (uint64_t)size / 8;
    return bytes;
}

PyObject *core_shape(const uint64_t *shape, uint32_t rank)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)rank);
    for (uint32_t i = 0; tuple != NULL && i < rank; i++) {
        PyObject *length = PyLong_FromUnsignedLongLong(shape[i]);
        if (length == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, length) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *core_array(size_t bytes)
{
    PyObject *array = PyByteArray_FromStringAndSize(NULL, 0);
    if (array != NULL && PyByteArray_Resize(array, (Py_ssize_t)bytes) < 0)
        Py_CLEAR(array);
    return array;
}

int core_put(PyObject *dict, const char *key, PyObject *value)
{
    if (value == NULL)
        return -1;
    int rc = PyDict_SetItemString(dict, key, value);
    Py_DECREF(value);
    return rc;
}

void *core_zeroed(size_t bytes)
{
    void *memory = PyMem_Malloc(bytes);
    if (memory == NULL)
        return PyErr_NoMemory();
    return memset(memory, 0, bytes);
}
