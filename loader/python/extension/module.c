/* module.c - the module stoker._core: its state, its constants, and what happens when the
 * interpreter exits.
 *
 * One module object per process: callbacks from the library's threads go by PyGILState_Ensure(),
 * which knows only the main interpreter, so import fails in any other.
 */
#include <string.h>

#include "loader.h"
#include "rows.h"

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(stoker_version());
}

static PyObject *features(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *dict = PyDict_New();
    const char *name;
    bool present;
    for (uint32_t i = 0; dict != NULL && (name = stoker_feature(i, &present)) != NULL; i++)
        if (core_put(dict, name, PyBool_FromLong(present)) < 0)
            Py_CLEAR(dict);
    return dict;
}

static PyObject *ranks(PyObject *module, PyObject *unused)
{
    (void)unused;
    stoker_ranks found = STOKER_RANKS_INIT;
    stoker_error error;
    if (stoker_ranks_from_environment(&found, &error) < 0)
        return core_raise(PyModule_GetState(module), &error);
    return Py_BuildValue("{s:I,s:I,s:I,s:I,s:s}", "rank", found.rank, "world_size",
                         found.world_size, "local_rank", found.local_rank, "local_world_size",
                         found.local_world_size, "launcher", stoker_launcher_name(found.launcher));
}

static PyObject *seek(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "state", "epoch", "position", NULL };
    PyObject *state, *epoch, *position;
    uint64_t to_epoch, to_position;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "SOO:seek", names, &state, &epoch,
                                     &position) ||
        core_u64(epoch, "epoch", &to_epoch) < 0 || core_u64(position, "position", &to_position) < 0)
        return NULL;
    const Py_ssize_t size = PyBytes_Size(state);
    PyObject *moved = PyBytes_FromStringAndSize(PyBytes_AsString(state), size);
    if (moved == NULL)
        return NULL;
    stoker_error error;
    if (stoker_state_seek(PyBytes_AsString(moved), (size_t)size, to_epoch, to_position, &error) ==
        0)
        return moved;
    Py_DECREF(moved);
    return core_raise(PyModule_GetState(module), &error);
}

/* Workers that call the user's code must have ended before the interpreter forgets how to run
 * it. */
static PyObject *close_all(PyObject *module, PyObject *unused)
{
    (void)unused;
    core_state *state = PyModule_GetState(module);
    PyObject *loaders = PySequence_List(state->live);
    for (Py_ssize_t i = 0; loaders != NULL && i < PyList_Size(loaders); i++) {
        PyObject *done = PyObject_CallMethod(PyList_GetItem(loaders, i), "close", NULL);
        if (done == NULL)
            PyErr_WriteUnraisable(PyList_GetItem(loaders, i));
        Py_XDECREF(done);
    }
    Py_XDECREF(loaders);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "version", version, METH_NOARGS, "The version of the linked library." },
    { "features", features, METH_NOARGS, "What the linked library was built with." },
    { "ranks", ranks, METH_NOARGS,
      "The place of this process among those that a launcher started." },
    { "seek", CORE_METHOD(seek), METH_VARARGS | METH_KEYWORDS,
      "The state of the same run at another position." },
    { "stats_between", core_stats_between, METH_VARARGS, "What happened between two snapshots." },
    { "trace_json", core_trace_json, METH_O, "Events as text that Perfetto opens." },
    { "_close_all", close_all, METH_NOARGS, "Close every loader that exists: called at exit." },
    { NULL, NULL, 0, NULL },
};

static int add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        { "EPOCH_END", STOKER_EPOCH_END },     { "FINISHED", STOKER_FINISHED },
        { "INTERRUPTED", STOKER_INTERRUPTED }, { "PART_OFFSETS", STOKER_TENSOR_OFFSETS },
        { "PART_IDS", STOKER_TENSOR_IDS },     { "PART_LABELS", STOKER_TENSOR_LABELS },
    };
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0)
            return -1;
    return 0;
}

static int add_dtypes(PyObject *module)
{
    PyObject *names = PyTuple_New(STOKER_DTYPE_BOOL);
    if (names == NULL)
        return -1;
    for (int i = STOKER_DTYPE_UINT8; i <= STOKER_DTYPE_BOOL; i++) {
        PyObject *name = PyUnicode_FromString(stoker_dtype_name((stoker_dtype)i));
        if (name == NULL || PyTuple_SetItem(names, i - STOKER_DTYPE_UINT8, name) < 0) {
            Py_DECREF(names);
            return -1;
        }
    }
    int rc = PyObject_SetAttrString(module, "DTYPES", names);
    Py_DECREF(names);
    return rc;
}

/* *out becomes `name` of a module of the standard library. */
static int import_from(PyObject **out, const char *from, const char *name)
{
    PyObject *module = PyImport_ImportModule(from);
    *out = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return *out != NULL ? 0 : -1;
}

static int close_at_exit(PyObject *module)
{
    PyObject *by = NULL;
    PyObject *function = PyObject_GetAttrString(module, "_close_all");
    PyObject *done = NULL;
    if (function != NULL && import_from(&by, "atexit", "register") == 0)
        done = PyObject_CallFunctionObjArgs(by, function, NULL);
    Py_XDECREF(function);
    Py_XDECREF(by);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

static int set_up(PyObject *module)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "stoker works in the main interpreter only, not in a subinterpreter");
        return -1;
    }
    core_state *state = PyModule_GetState(module);
    PyObject *weak_set = NULL;
    if (import_from(&weak_set, "weakref", "WeakSet") < 0 ||
        import_from(&state->clear_frames, "traceback", "clear_frames") < 0 ||
        (state->raised = PyList_New(0)) == NULL) {
        Py_XDECREF(weak_set);
        return -1;
    }
    state->live = PyObject_CallFunctionObjArgs(weak_set, NULL);
    Py_DECREF(weak_set);
    if (state->live == NULL)
        return -1;
    if (core_add_dataset(module, state) < 0 || core_add_loader(module, state) < 0 ||
        core_add_batch(module, state) < 0 || core_add_tensor(module, state) < 0 ||
        core_add_rows(module, state) < 0 || core_add_iterator(module, state) < 0)
        return -1;
    if (add_constants(module) < 0 || add_dtypes(module) < 0 || close_at_exit(module) < 0)
        return -1;
    return 0;
}

static int visit_state(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);
    Py_VISIT(state->dataset_type);
    Py_VISIT(state->loader_type);
    Py_VISIT(state->batch_type);
    Py_VISIT(state->tensor_type);
    Py_VISIT(state->rows_type);
    Py_VISIT(state->iterator_type);
    Py_VISIT(state->make_error);
    Py_VISIT(state->live);
    Py_VISIT(state->raised);
    Py_VISIT(state->clear_frames);
    return 0;
}

static int clear_state(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    Py_CLEAR(state->dataset_type);
    Py_CLEAR(state->loader_type);
    Py_CLEAR(state->batch_type);
    Py_CLEAR(state->tensor_type);
    Py_CLEAR(state->rows_type);
    Py_CLEAR(state->iterator_type);
    Py_CLEAR(state->make_error);
    Py_CLEAR(state->live);
    Py_CLEAR(state->raised);
    Py_CLEAR(state->clear_frames);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    CORE_SLOT(Py_mod_exec, set_up),
#if defined(Py_GIL_DISABLED) && !defined(Py_LIMITED_API)
    { Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stoker._core",
    .m_doc = "libstoker for Python: see _core.pyi.",
    .m_size = sizeof(core_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = visit_state,
    .m_clear = clear_state,
};

core_state *core_state_of(PyTypeObject *type)
{
    return PyType_GetModuleState(type);
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
