/* arrays.c - Dataset.arrays(): the user's memory as a data set, without a copy.
 *
 *   stoker_dataset and its views ──destroy──▶ list `keep` ──▶ the user's objects, names of classes as bytes
 *
 * The library calls destroy() when the last of them is closed, in any thread; only then may the
 * memory go.
 */
#include "core.h"

void core_let_go(void *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)context);
    PyGILState_Release(gil);
}

/* Pointers to the names; both lie in objects that `keep` holds. */
static const char *const *class_names(PyObject *names, uint32_t count, PyObject *keep)
{
    PyObject *list = PySequence_List(names);
    PyObject *room = list != NULL ? core_array(count * sizeof(const char *)) : NULL;
    const char **at = NULL;
    if (room == NULL || PyList_Append(keep, room) < 0)
        goto out;
    if (PyList_Size(list) != (Py_ssize_t)count) {
        PyErr_Format(PyExc_ValueError, "class names: %zd names of %u classes", PyList_Size(list),
                     count);
        goto out;
    }
    at = (const char **)(void *)PyByteArray_AsString(room);
    for (uint32_t i = 0; i < count && at != NULL; i++)
        if ((at[i] = core_text(PyList_GetItem(list, (Py_ssize_t)i), "class name", keep)) == NULL)
            at = NULL;
out:
    Py_XDECREF(room);
    Py_XDECREF(list);
    return at;
}

static int read_shape(PyObject *shape, stoker_array *array)
{
    PyObject *list = PySequence_List(shape);
    if (list == NULL)
        return -1;
    int rc = 0;
    if (PyList_Size(list) >= STOKER_RANK_MAX) {
        PyErr_Format(PyExc_ValueError, "shape: %R has more than %d axes", shape,
                     STOKER_RANK_MAX - 1);
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_Size(list); i++)
        rc = core_u64(PyList_GetItem(list, i), "shape", &array->shape[i]);
    array->rank = (uint32_t)PyList_Size(list);
    Py_DECREF(list);
    return rc;
}

static int read_address(PyObject *value, const char *name, const void **out)
{
    uint64_t address;
    if (core_u64(value, name, &address) < 0)
        return -1;
    *out = (const void *)(uintptr_t)address;
    return 0;
}

/* One (name, kind, dtype, shape, address, keepalive[, offsets, class_count, class_names]). */
static int read_array(PyObject *item, stoker_array *array, PyObject *keep)
{
    PyObject *name, *kind, *dtype, *shape, *address, *alive;
    PyObject *offsets = NULL, *classes = NULL, *names = Py_None;
    const void *offsets_at = NULL;
    if (!PyTuple_Check(item)) {
        PyErr_Format(PyExc_TypeError, "fields: a tuple, not %R", item);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "OOOOOO|OOO:field", &name, &kind, &dtype, &shape, &address, &alive,
                          &offsets, &classes, &names) ||
        (array->name = core_text(name, "name", keep)) == NULL ||
        core_dtype(dtype, "dtype", &array->dtype) < 0 || read_shape(shape, array) < 0 ||
        read_address(address, "address", &array->data) < 0 ||
        (offsets != NULL && read_address(offsets, "offsets", &offsets_at) < 0) ||
        (classes != NULL && core_u32(classes, "class_count", &array->class_count) < 0) ||
        PyList_Append(keep, alive) < 0)
        return -1;
    array->offsets = offsets_at;
    const int word = core_word(kind, "kind", core_field_kinds, 4);
    if (word < 0)
        return -1;
    array->kind = (stoker_field_kind)word;
    if (names != Py_None &&
        (array->class_names = class_names(names, array->class_count, keep)) == NULL)
        return -1;
    return 0;
}

int core_read_arrays(PyObject *fields, core_array_list *out, PyObject *keep)
{
    PyObject *list = PySequence_List(fields);
    if (list == NULL)
        return -1;
    const Py_ssize_t count = PyList_Size(list);
    int rc = 0;
    if (count > STOKER_FIELDS_MAX) {
        PyErr_Format(PyExc_ValueError, "fields: %zd, more than %d", count, STOKER_FIELDS_MAX);
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < count; i++) {
        out->each[i] = (stoker_array)STOKER_ARRAY_INIT;
        rc = read_array(PyList_GetItem(list, i), &out->each[i], keep);
    }
    out->count = (uint32_t)count;
    Py_DECREF(list);
    return rc;
}

static PyObject *make_dataset(core_state *state, const core_array_list *arrays, uint64_t count,
                              uint64_t fingerprint, PyObject *keep)
{
    stoker_arrays_options options = STOKER_ARRAYS_OPTIONS_INIT;
    options.destroy = core_let_go;
    options.context = keep;
    options.fingerprint = fingerprint;
    stoker_dataset *handle = NULL;
    stoker_error error;
    if (stoker_dataset_from_arrays(&handle, arrays->each, arrays->count, count, &options, &error) <
        0)
        return core_raise(state, &error);
    Py_INCREF(keep); /* core_let_go()'s */
    return core_wrap_dataset(state, handle, false);
}

PyObject *core_arrays(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "fields", "count", "fingerprint", NULL };
    PyObject *fields, *number, *print = NULL, *made = NULL;
    uint64_t count, fingerprint = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|O:arrays", names, &fields, &number,
                                     &print) ||
        core_u64(number, "count", &count) < 0 ||
        (print != NULL && core_u64(print, "fingerprint", &fingerprint) < 0))
        return NULL;
    PyObject *keep = PyList_New(0);
    core_array_list *arrays = core_zeroed(sizeof(*arrays));
    if (keep != NULL && arrays != NULL && core_read_arrays(fields, arrays, keep) == 0)
        made = make_dataset(PyModule_GetState(module), arrays, count, fingerprint, keep);
    PyMem_Free(arrays);
    Py_XDECREF(keep);
    return made;
}
