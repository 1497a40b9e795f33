/* storage.c - a storage whose names the user's code lists and reads: open(spec, storage=object).
 *
 *   thread of the library ──▶ takes the GIL ──▶ look(name), list(prefix), read(name, ...)
 *
 * If a method raises an OSError with an errno, the library receives the errno. Any other exception
 * is kept, and raised again by the Python call that fails because of it.
 */
#include "core.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* `self` of the callbacks. */
struct storage {
    PyObject *module; /* the state below lies in it */
    core_state *state;
    PyObject *object; /* the user's */
};

static void free_storage(struct storage *storage)
{
    Py_XDECREF(storage->object);
    Py_XDECREF(storage->module);
    PyMem_Free(storage);
}

static void destroy(void *self)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    free_storage(self);
    PyGILState_Release(gil);
}

/* Take the pending exception. Returns its errno, EIO if it has none. */
static int failed(core_state *state, stoker_error *error)
{
    long os_errno = 0;
    PyObject *type, *exception, *traceback;
    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    if (exception != NULL && PyErr_GivenExceptionMatches(exception, PyExc_OSError)) {
        PyObject *number = PyObject_GetAttrString(exception, "errno");
        os_errno = number != NULL && PyLong_Check(number) ? PyLong_AsLong(number) : 0;
        Py_XDECREF(number);
        PyErr_Clear();
    }
    PyErr_Restore(type, exception, traceback);
    (void)core_keep_exception(state, error);
    return os_errno > 0 && os_errno < 4096 ? (int)os_errno : EIO;
}

/* What look() and list() return for an errno. */
static int code_of(int os_errno)
{
    return os_errno == ENOENT ? STOKER_ENOENT : os_errno == EACCES ? STOKER_EACCES : STOKER_EIO;
}

/* (size, version) of a file; size None: a folder. */
static int read_object(PyObject *size, PyObject *version, stoker_object *out)
{
    out->kind = size == Py_None ? STOKER_OBJECT_KIND_FOLDER : STOKER_OBJECT_KIND_FILE;
    if (size == Py_None)
        return 0;
    return core_u64(size, "size", &out->size) < 0 || core_u64(version, "version", &out->version) < 0
               ? -1
               : 0;
}

/* Returns 0, 1 if nothing has that name, or -1 with an exception. */
static int look_up(const struct storage *storage, const char *name, stoker_object *out)
{
    PyObject *text = PyUnicode_DecodeFSDefault(name);
    PyObject *found = text != NULL ? PyObject_CallMethod(storage->object, "look", "O", text) : NULL;
    PyObject *size, *version;
    int rc = found == Py_None ? 1 : -1;
    if (found != NULL && rc < 0 && !PyTuple_Check(found))
        PyErr_Format(PyExc_TypeError, "look() returned %R, not (size, version) or None", found);
    else if (found != NULL && rc < 0 && PyArg_ParseTuple(found, "OO:look", &size, &version))
        rc = read_object(size, version, out);
    Py_XDECREF(found);
    Py_XDECREF(text);
    return rc;
}

static int look(void *self, const char *name, stoker_object *out, stoker_error *error)
{
    const struct storage *storage = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = look_up(storage, name, out);
    if (rc != 0)
        rc = rc > 0 ? STOKER_ENOENT : code_of(failed(storage->state, error));
    PyGILState_Release(gil);
    return rc;
}

/* One (name, size, version). Returns what found() returns, or -1 with an exception and *raised. */
static int take_entry(PyObject *entry, stoker_object_found *found, void *context, bool *raised)
{
    PyObject *name, *size, *version;
    stoker_object object = { .name = NULL };
    PyObject *keep = PyList_New(0);
    int rc = -1;
    *raised = true;
    if (keep != NULL && !PyTuple_Check(entry))
        PyErr_Format(PyExc_TypeError, "list() yielded %R, not (name, size, version)", entry);
    else if (keep != NULL && PyArg_ParseTuple(entry, "OOO:list", &name, &size, &version) &&
             (object.name = core_text(name, "name", keep)) != NULL &&
             read_object(size, version, &object) == 0) {
        *raised = false;
        rc = found(context, &object);
    }
    Py_XDECREF(keep);
    return rc;
}

static int list(void *self, const char *prefix, stoker_object_found *found, void *context,
                stoker_error *error)
{
    const struct storage *storage = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *text = PyUnicode_DecodeFSDefault(prefix);
    PyObject *all = text != NULL ? PyObject_CallMethod(storage->object, "list", "O", text) : NULL;
    PyObject *entries = all != NULL ? PyObject_GetIter(all) : NULL;
    PyObject *entry = NULL;
    bool raised = entries == NULL;
    int rc = raised ? -1 : STOKER_OK;
    while (rc == STOKER_OK && (entry = PyIter_Next(entries)) != NULL) {
        rc = take_entry(entry, found, context, &raised);
        Py_DECREF(entry);
    }
    raised = raised || PyErr_Occurred() != NULL;
    if (raised)
        rc = code_of(failed(storage->state, error));
    Py_XDECREF(entries);
    Py_XDECREF(all);
    Py_XDECREF(text);
    PyGILState_Release(gil);
    return rc;
}

/* Copy what read() returned. Returns the bytes, or -1 with an exception. */
static int64_t copy_bytes(PyObject *value, void *buffer, uint64_t bytes)
{
    PyObject *plain = core_bytes(value, "read()");
    const Py_ssize_t size = plain != NULL ? PyBytes_Size(plain) : -1;
    if (size >= 0 && (uint64_t)size <= bytes)
        memcpy(buffer, PyBytes_AsString(plain), (size_t)size);
    else if (size >= 0)
        PyErr_Format(PyExc_ValueError, "read() returned %zd bytes of %llu", size,
                     (unsigned long long)bytes);
    Py_XDECREF(plain);
    return size >= 0 && (uint64_t)size <= bytes ? (int64_t)size : -1;
}

static int64_t read_bytes(void *self, const char *name, uint64_t version, uint64_t offset,
                          void *buffer, uint64_t bytes, stoker_error *error)
{
    const struct storage *storage = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *text = PyUnicode_DecodeFSDefault(name);
    PyObject *value =
        text != NULL ? PyObject_CallMethod(storage->object, "read", "OKKK", text,
                                           (unsigned long long)version, (unsigned long long)offset,
                                           (unsigned long long)bytes)
                     : NULL;
    int64_t rc = value != NULL ? copy_bytes(value, buffer, bytes) : -1;
    if (rc < 0)
        rc = -failed(storage->state, error);
    Py_XDECREF(value);
    Py_XDECREF(text);
    PyGILState_Release(gil);
    return rc;
}

int core_storage(PyObject *module, PyObject *object, stoker_storage **out)
{
    static const stoker_storage_ops ops = { .struct_size = sizeof(ops),
                                            .name = "python",
                                            .look = look,
                                            .list = list,
                                            .read = read_bytes,
                                            .destroy = destroy };
    struct storage *storage = core_zeroed(sizeof(*storage));
    stoker_error error;
    if (storage == NULL)
        return -1;
    storage->state = PyModule_GetState(module);
    Py_INCREF(module);
    storage->module = module;
    Py_INCREF(object);
    storage->object = object;
    if (stoker_storage_create(out, &ops, storage, &error) == STOKER_OK)
        return 0;
    core_state *state = storage->state;
    free_storage(storage);
    (void)core_raise(state, &error);
    return -1;
}
