/* mix.c - mixes of data sets: making one, what each source has had, and other weights while a
 * loader runs.
 *
 * Weights are float64 values as bytes, or what memoryview() takes: one per source.
 */
#include <stoker/mix.h>

#include "loader.h"

/* The weights, in an object that `keep` holds; NULL: an exception. */
static const double *read_weights(PyObject *value, uint32_t source_count, PyObject *keep)
{
    uint64_t count;
    PyObject *bytes = core_numbers(value, "weights", &count);
    const double *numbers = NULL;
    if (bytes == NULL)
        return NULL;
    if (source_count != 0 && count != source_count) /* 0: no mix, which the library refuses */
        PyErr_Format(PyExc_ValueError, "weights: %llu for %u data sets", (unsigned long long)count,
                     source_count);
    else if (PyList_Append(keep, bytes) == 0)
        numbers = (const double *)(const void *)PyBytes_AsString(bytes);
    Py_DECREF(bytes);
    return numbers;
}

/* One (position, weights). */
static int read_change(PyObject *item, stoker_mix_change *change, uint32_t source_count,
                       PyObject *keep)
{
    PyObject *position, *weights;
    if (!PyTuple_Check(item)) {
        PyErr_Format(PyExc_TypeError, "changes: (position, weights), not %R", item);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "OO:changes", &position, &weights) ||
        core_u64(position, "changes: position", &change->position) < 0)
        return -1;
    change->weights = read_weights(weights, source_count, keep);
    return change->weights != NULL ? 0 : -1;
}

/* Free *out with PyMem_Free(), also on failure. */
static int read_changes(PyObject *changes, stoker_mix *mix, uint32_t source_count, PyObject *keep,
                        stoker_mix_change **out)
{
    PyObject *list = PySequence_List(changes);
    if (list == NULL)
        return -1;
    const Py_ssize_t count = PyList_Size(list);
    int rc = 0;
    if (count > STOKER_MIX_CHANGES_MAX) {
        PyErr_Format(PyExc_ValueError, "changes: %zd, more than %d", count, STOKER_MIX_CHANGES_MAX);
        rc = -1;
    } else if ((*out = core_zeroed(((size_t)count + 1) * sizeof(**out))) == NULL) {
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < count; i++)
        rc = read_change(PyList_GetItem(list, i), &(*out)[i], source_count, keep);
    mix->changes = *out;
    mix->change_count = (uint32_t)count;
    Py_DECREF(list);
    return rc;
}

static PyObject *make_mix(core_state *state, const core_handles *sources, const stoker_mix *mix)
{
    stoker_dataset *handle = NULL;
    stoker_error error;
    int rc;
    Py_BEGIN_ALLOW_THREADS rc =
        stoker_dataset_mix(&handle, sources->each, sources->count, mix, &error);
    Py_END_ALLOW_THREADS return rc == 0 ? core_wrap_dataset(state, handle, sources->calls_python)
                                        : core_raise(state, &error);
}

PyObject *core_mix(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "datasets", "weights", "epoch_samples", "changes", NULL };
    PyObject *datasets, *weights, *epoch_samples = Py_None, *changes = Py_None, *made = NULL;
    core_handles sources;
    stoker_mix mix = STOKER_MIX_INIT;
    stoker_mix_change *read = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|OO:mix", names, &datasets, &weights,
                                     &epoch_samples, &changes) ||
        (epoch_samples != Py_None &&
         core_u64(epoch_samples, "epoch_samples", &mix.epoch_samples) < 0) ||
        core_take_handles(PyModule_GetState(module), datasets, &sources) < 0)
        return NULL;
    PyObject *keep = PyList_New(0);
    if (keep != NULL && (mix.weights = read_weights(weights, sources.count, keep)) != NULL &&
        (changes == Py_None || read_changes(changes, &mix, sources.count, keep, &read) == 0))
        made = make_mix(PyModule_GetState(module), &sources, &mix);
    PyMem_Free(read);
    Py_XDECREF(keep);
    core_drop_handles(&sources);
    return made;
}

/* ---- what each source has had ---- */

PyObject *core_mix_source(PyObject *self, PyObject *number)
{
    const stoker_dataset *dataset = ((core_dataset *)self)->handle;
    uint64_t id, source_id;
    uint32_t source;
    if (core_u64(number, "id", &id) < 0)
        return NULL;
    if (stoker_mix_source(dataset, id, &source, &source_id) < 0)
        return PyErr_Format(PyExc_ValueError,
                            stoker_mix_source_count(dataset) == 0
                                ? "id: this data set is no mix"
                                : "id: %R is no sample of the mix",
                            number);
    return Py_BuildValue("(IK)", source, (unsigned long long)source_id);
}

static uint64_t *new_counts(uint32_t source_count)
{
    return core_zeroed(((size_t)source_count + 1) * sizeof(uint64_t));
}

/* counts[0..count) as a tuple, or the error if rc says so; frees counts. */
static PyObject *counts_or_error(core_state *state, int rc, uint64_t *counts, uint32_t count,
                                 const stoker_error *error)
{
    PyObject *tuple = rc < 0 ? core_raise(state, error) : core_shape(counts, count);
    PyMem_Free(counts);
    return tuple;
}

PyObject *core_mix_counts(PyObject *self, PyObject *position)
{
    const stoker_dataset *dataset = ((core_dataset *)self)->handle;
    const uint32_t count = stoker_mix_source_count(dataset);
    uint64_t *counts, at;
    stoker_error error;
    if (core_u64(position, "position", &at) < 0 || (counts = new_counts(count)) == NULL)
        return NULL;
    const int rc = stoker_mix_counts(dataset, at, counts, count, &error);
    return counts_or_error(core_state_of(Py_TYPE(self)), rc, counts, count, &error);
}

PyObject *core_loader_mix_counts(PyObject *object, PyObject *unused)
{
    (void)unused;
    core_loader *self = (core_loader *)object;
    const uint32_t count = stoker_mix_source_count(((core_dataset *)self->dataset)->handle);
    stoker_error error;
    uint64_t *counts = new_counts(count);
    if (counts == NULL)
        return NULL;
    if (core_enter_consumer(self) < 0) {
        PyMem_Free(counts);
        return NULL;
    }
    const int rc = stoker_loader_mix_counts(self->handle, counts, count, &error);
    core_leave_consumer(self);
    return counts_or_error(self->state, rc, counts, count, &error);
}

/* ---- other weights ---- */

PyObject *core_change_mix(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "position", "weights", NULL };
    core_loader *self = (core_loader *)object;
    const uint32_t count = stoker_mix_source_count(((core_dataset *)self->dataset)->handle);
    PyObject *position, *weights;
    stoker_mix_change change = { .position = 0 };
    stoker_error error;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:change_mix", names, &position, &weights) ||
        core_u64(position, "position", &change.position) < 0)
        return NULL;
    PyObject *keep = PyList_New(0);
    int rc = -1;
    if (keep != NULL && (change.weights = read_weights(weights, count, keep)) != NULL)
        rc = core_enter_consumer(self);
    if (rc == 0) {
        rc = stoker_loader_change_mix(self->handle, &change, &error);
        core_leave_consumer(self);
        if (rc < 0)
            core_raise(self->state, &error);
    }
    Py_XDECREF(keep);
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}
