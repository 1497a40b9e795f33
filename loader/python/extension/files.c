/* files.c - Dataset.files(): lists of files as a data set, and the user's memory beside them.
 *
 *   stoker_dataset ──copies──▶ paths
 *                  ──destroy──▶ list `keep` of arrays.c
 */
#include "core.h"

/* Pointers to the paths; both lie in objects that `keep` holds. */
static const char *const *read_paths(PyObject *paths, uint64_t count, PyObject *keep)
{
    PyObject *list = PySequence_List(paths), *room = NULL;
    const char **at = NULL;
    if (list == NULL)
        return NULL;
    if ((uint64_t)PyList_Size(list) != count) {
        PyErr_Format(PyExc_ValueError, "paths: %zd paths of %llu samples", PyList_Size(list),
                     (unsigned long long)count);
        goto out;
    }
    room = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(const char *)));
    if (room == NULL || PyList_Append(keep, room) < 0)
        goto out;
    at = (const char **)(void *)PyByteArray_AsString(room);
    for (uint64_t i = 0; i < count && at != NULL; i++)
        if ((at[i] = core_text(PyList_GetItem(list, (Py_ssize_t)i), "path", keep)) == NULL)
            at = NULL;
out:
    Py_XDECREF(room);
    Py_DECREF(list);
    return at;
}

/* One (name, paths, height, width, channels). */
static int read_list(PyObject *item, stoker_files *files, uint64_t count, PyObject *keep)
{
    PyObject *name, *paths, *height, *width, *channels;
    if (!PyTuple_Check(item)) {
        PyErr_Format(PyExc_TypeError, "files: a tuple, not %R", item);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "OOOOO:files", &name, &paths, &height, &width, &channels) ||
        (files->name = core_text(name, "name", keep)) == NULL ||
        core_u32(height, "height", &files->height) < 0 ||
        core_u32(width, "width", &files->width) < 0 ||
        core_u32(channels, "channels", &files->channels) < 0)
        return -1;
    files->paths = read_paths(paths, count, keep);
    return files->paths != NULL ? 0 : -1;
}

/* All lists, into files[0..STOKER_FILES_MAX). Returns their number; -1: an exception. */
static Py_ssize_t read_lists(PyObject *lists, stoker_files *files, uint64_t count, PyObject *keep)
{
    PyObject *list = PySequence_List(lists);
    if (list == NULL)
        return -1;
    const Py_ssize_t found = PyList_Size(list);
    int rc = 0;
    if (found > STOKER_FILES_MAX) {
        PyErr_Format(PyExc_ValueError, "files: %zd lists, more than %d", found, STOKER_FILES_MAX);
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < found; i++) {
        files[i] = (stoker_files)STOKER_FILES_INIT;
        rc = read_list(PyList_GetItem(list, i), &files[i], count, keep);
    }
    Py_DECREF(list);
    return rc == 0 ? found : -1;
}

/* `keep` holds the arrays; what only the paths need is let go at once. */
static PyObject *make_dataset(core_state *state, const stoker_files *files, uint32_t file_count,
                              const core_array_list *arrays, uint64_t count, uint64_t fingerprint,
                              PyObject *keep)
{
    stoker_arrays_options options = STOKER_ARRAYS_OPTIONS_INIT;
    options.destroy = core_let_go;
    options.context = keep;
    options.fingerprint = fingerprint;
    stoker_dataset *handle = NULL;
    stoker_error error;
    int rc;
    Py_INCREF(keep); /* core_let_go()'s */
    Py_BEGIN_ALLOW_THREADS rc = stoker_dataset_from_files(&handle, files, file_count, arrays->each,
                                                          arrays->count, count, &options, &error);
    Py_END_ALLOW_THREADS if (rc == 0) return core_wrap_dataset(state, handle, false);
    Py_DECREF(keep);
    return core_raise(state, &error);
}

PyObject *core_files(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "lists", "arrays", "count", "fingerprint", NULL };
    PyObject *lists, *fields, *number, *print = NULL, *made = NULL;
    uint64_t count, fingerprint = 0;
    stoker_files files[STOKER_FILES_MAX];
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|O:files", names, &lists, &fields, &number,
                                     &print) ||
        core_u64(number, "count", &count) < 0 ||
        (print != NULL && core_u64(print, "fingerprint", &fingerprint) < 0))
        return NULL;
    PyObject *keep = PyList_New(0), *texts = PyList_New(0);
    core_array_list *arrays = core_zeroed(sizeof(*arrays));
    if (keep != NULL && texts != NULL && arrays != NULL) {
        const Py_ssize_t file_count = read_lists(lists, files, count, texts);
        if (file_count >= 0 && core_read_arrays(fields, arrays, keep) == 0)
            made = make_dataset(PyModule_GetState(module), files, (uint32_t)file_count, arrays,
                                count, fingerprint, keep);
    }
    PyMem_Free(arrays);
    Py_XDECREF(texts);
    Py_XDECREF(keep);
    return made;
}
