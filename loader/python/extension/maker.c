/* maker.c - Dataset.python(): a data set whose samples the user's code makes.
 *
 *   worker ──make(id, rng)──▶ takes the GIL ──▶ make(id, seed) ──▶ one object per field ──copied──▶ rows
 *
 * The user's code returns what it has, and this file copies it: no view of a row's memory ever
 * leaves it, so nothing that is kept can point to memory that the loader refills.
 *
 * KeyboardInterrupt, SystemExit and MemoryError are no faults of the sample. Inside next(), which
 * without workers makes the samples in its own thread, such an exception stays set:
 * STOKER_INTERRUPTED makes the call return, which raises it, and the sample is made by a later
 * call. In a worker's thread it ends the run.
 */
#include "core.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct made_field {
    char name[STOKER_FIELD_NAME_BYTES];
    stoker_field_info info; /* its name is the one above */
    size_t entry_bytes;     /* one entry of the first axis if it varies, else the sample */
};

/* What the library's data set owns: `self` of its callbacks. */
struct maker {
    PyObject *module; /* the state below lies in it */
    core_state *state;
    PyObject *make;
    uint64_t count, fingerprint;
    uint32_t field_count;
    struct made_field fields[];
};

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct maker *maker = self;
    out->count = maker->count;
    out->field_count = maker->field_count;
    out->part_count = 0;
    out->fingerprint = maker->fingerprint;
    return 0;
}

static int field(const void *self, uint32_t index, stoker_field_info *out)
{
    const struct made_field *field = &((const struct maker *)self)->fields[index];
    const size_t struct_size = out->struct_size;
    *out = field->info;
    out->struct_size = struct_size;
    out->name = field->name;
    return 0;
}

static void free_maker(struct maker *maker)
{
    Py_XDECREF(maker->make);
    Py_XDECREF(maker->module);
    PyMem_Free(maker);
}

static void destroy(void *self)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    free_maker(self);
    PyGILState_Release(gil);
}

/* ---- a sample ---- */

static int wrong_size(const struct made_field *field, Py_ssize_t bytes, const stoker_row *row)
{
    PyErr_Format(PyExc_ValueError, "make() returned %zd bytes for the field \"%s\", not %s%zu%s",
                 bytes, field->name, field->info.varies ? "entries of " : "", field->entry_bytes,
                 field->info.varies && (size_t)bytes > row->bytes_max ? " that fit" : "");
    return -1;
}

static int check_size(const struct made_field *field, Py_ssize_t bytes, stoker_row *row)
{
    const size_t size = (size_t)bytes;
    const bool fits = field->info.varies ? size <= row->bytes_max && size % field->entry_bytes == 0
                                         : size == field->entry_bytes;
    if (!fits)
        return wrong_size(field, bytes, row);
    row->length = field->info.varies ? size / field->entry_bytes : 0;
    return 0;
}

/* row->data[0..bytes) = the bytes of view. Without the buffer protocol, a memoryview that nobody
 * else sees does it. */
static int copy_view(PyObject *view, Py_ssize_t bytes, void *data)
{
    PyObject *from = PyObject_CallMethod(view, "cast", "s", "B");
    PyObject *to = from != NULL ? PyMemoryView_FromMemory(data, bytes, CORE_BUFFER_WRITE) : NULL;
    PyObject *all = to != NULL ? PySlice_New(NULL, NULL, NULL) : NULL;
    const int rc = all != NULL ? PyObject_SetItem(to, all, from) : -1;
    Py_XDECREF(all);
    Py_XDECREF(to);
    Py_XDECREF(from);
    return rc;
}

static int fill_from_view(const struct made_field *field, PyObject *value, stoker_row *row)
{
    PyObject *view = PyMemoryView_FromObject(value);
    PyObject *size = view != NULL ? PyObject_GetAttrString(view, "nbytes") : NULL;
    const Py_ssize_t bytes = size != NULL ? PyLong_AsSsize_t(size) : -1;
    int rc = bytes >= 0 ? check_size(field, bytes, row) : -1;
    if (rc == 0 && bytes > 0)
        rc = copy_view(view, bytes, row->data);
    Py_XDECREF(size);
    Py_XDECREF(view);
    return rc;
}

static int fill(const struct made_field *field, PyObject *value, stoker_row *row)
{
    if (!PyBytes_Check(value))
        return fill_from_view(field, value, row);
    if (check_size(field, PyBytes_Size(value), row) < 0)
        return -1;
    if (row->data != NULL)
        memcpy(row->data, PyBytes_AsString(value), (size_t)PyBytes_Size(value));
    return 0;
}

static int fill_all(const struct maker *maker, PyObject *values, stoker_row *rows)
{
    const Py_ssize_t count = PySequence_Size(values);
    if (count >= 0 && count != (Py_ssize_t)maker->field_count)
        PyErr_Format(PyExc_ValueError, "make() returned %zd objects for %u fields", count,
                     maker->field_count);
    if (count != (Py_ssize_t)maker->field_count)
        return -1;
    for (uint32_t i = 0; i < maker->field_count; i++) {
        PyObject *value = PySequence_GetItem(values, (Py_ssize_t)i);
        const int rc = value != NULL ? fill(&maker->fields[i], value, &rows[i]) : -1;
        Py_XDECREF(value);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Convert the pending exception to make()'s return code. `in_call`: a Python call made by this
 * thread raises what stays set. */
static int failed_by_exception(core_state *state, bool in_call, stoker_error *error)
{
    const bool no_memory = PyErr_ExceptionMatches(PyExc_MemoryError) != 0;
    const bool stops = no_memory || PyErr_ExceptionMatches(PyExc_Exception) == 0;
    if (stops && in_call)
        return STOKER_INTERRUPTED;
    const int rc = core_keep_exception(state, error);
    return !stops ? rc : no_memory ? STOKER_ENOMEM : STOKER_INTERRUPTED;
}

static int make_sample(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                       stoker_error *error)
{
    const struct maker *maker = self;
    const unsigned long long seed = stoker_rng_u64(rng);
    const bool in_call = PyGILState_GetThisThreadState() != NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *values = PyObject_CallFunction(maker->make, "KK", (unsigned long long)id, seed);
    int rc = values != NULL ? fill_all(maker, values, rows) : -1;
    if (rc < 0)
        rc = failed_by_exception(maker->state, in_call, error);
    Py_XDECREF(values);
    PyGILState_Release(gil);
    return rc;
}

static const stoker_dataset_ops ops = {
    .struct_size = sizeof(ops),
    .name = "python",
    .describe = describe,
    .field = field,
    .make = make_sample,
    .destroy = destroy,
};

/* ---- making it ---- */

static int read_axes(PyObject *shape, stoker_field_info *info)
{
    PyObject *list = PySequence_List(shape);
    if (list == NULL)
        return -1;
    const Py_ssize_t rank = PyList_Size(list);
    int rc = 0;
    if (rank >= STOKER_RANK_MAX) {
        PyErr_Format(PyExc_ValueError, "shape: %R has more than %d axes", shape,
                     STOKER_RANK_MAX - 1);
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < rank; i++)
        rc = core_u64(PyList_GetItem(list, i), "shape", &info->shape[i]);
    info->rank = (uint32_t)rank;
    Py_DECREF(list);
    return rc;
}

/* The product of the axes that an entry has; an overflow is left to the library, which checks the
 * shape. */
static size_t entry_bytes(const stoker_field_info *info)
{
    size_t bytes = stoker_dtype_bytes(info->dtype);
    for (uint32_t i = info->varies ? 1 : 0; i < info->rank; i++)
        bytes *= (size_t)info->shape[i];
    return bytes;
}

/* One (name, kind, dtype, shape, varies, class_count). */
static int read_field(PyObject *item, struct made_field *field, PyObject *keep)
{
    PyObject *name, *kind, *dtype, *shape, *varies, *classes;
    stoker_field_info *info = &field->info;
    const char *text;
    if (!PyTuple_Check(item)) {
        PyErr_Format(PyExc_TypeError, "fields: a tuple, not %R", item);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "OOOOOO:field", &name, &kind, &dtype, &shape, &varies, &classes) ||
        (text = core_text(name, "name", keep)) == NULL ||
        core_dtype(dtype, "dtype", &info->dtype) < 0 || read_axes(shape, info) < 0 ||
        core_bool(varies, "varies", &info->varies) < 0 ||
        core_u32(classes, "class_count", &info->class_count) < 0)
        return -1;
    if (strlen(text) >= sizeof(field->name)) {
        PyErr_Format(PyExc_ValueError, "name: %R has more than %zu bytes", name,
                     sizeof(field->name) - 1);
        return -1;
    }
    snprintf(field->name, sizeof(field->name), "%s", text);
    const int word = core_word(kind, "kind", core_field_kinds, 4);
    info->kind = (stoker_field_kind)word;
    info->part = STOKER_NO_PART;
    field->entry_bytes = entry_bytes(info);
    return word < 0 ? -1 : 0;
}

static struct maker *new_maker(PyObject *module, PyObject *list, PyObject *make, PyObject *keep)
{
    const Py_ssize_t count = PyList_Size(list);
    if (count > STOKER_FIELDS_MAX) {
        PyErr_Format(PyExc_ValueError, "fields: %zd, more than %d", count, STOKER_FIELDS_MAX);
        return NULL;
    }
    struct maker *maker = core_zeroed(sizeof(*maker) + (size_t)count * sizeof(maker->fields[0]));
    if (maker == NULL)
        return NULL;
    maker->field_count = (uint32_t)count;
    maker->state = PyModule_GetState(module);
    Py_INCREF(module);
    maker->module = module;
    Py_INCREF(make);
    maker->make = make;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_field(PyList_GetItem(list, i), &maker->fields[i], keep) < 0) {
            free_maker(maker);
            return NULL;
        }
    return maker;
}

PyObject *core_python(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "fields", "count", "make", "fingerprint", NULL };
    PyObject *fields, *number, *make, *print = NULL;
    uint64_t count, fingerprint = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|O:python", names, &fields, &number, &make,
                                     &print) ||
        core_u64(number, "count", &count) < 0 ||
        (print != NULL && core_u64(print, "fingerprint", &fingerprint) < 0))
        return NULL;
    if (!PyCallable_Check(make))
        return PyErr_Format(PyExc_TypeError, "make: a callable, not %R", make);
    PyObject *list = PySequence_List(fields);
    PyObject *keep = list != NULL ? PyList_New(0) : NULL;
    struct maker *maker = keep != NULL ? new_maker(module, list, make, keep) : NULL;
    Py_XDECREF(keep);
    Py_XDECREF(list);
    if (maker == NULL)
        return NULL;
    maker->count = count;
    maker->fingerprint = fingerprint;
    core_state *state = maker->state;
    stoker_dataset *handle = NULL;
    stoker_error error;
    if (stoker_dataset_create(&handle, &ops, maker, &error) < 0) {
        free_maker(maker);
        return core_raise(state, &error);
    }
    return core_wrap_dataset(state, handle, true);
}
