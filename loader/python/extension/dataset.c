/* dataset.c - the type Dataset: a handle of the library, what it says of itself, one sample, and
 * views.
 *
 *   Dataset ──owns──▶ stoker_dataset ◀──shares── stoker_dataset of a view ◀──owns── Dataset
 *
 * So a view needs no reference to the Dataset that it was made of.
 */
#include "core.h"
#include <string.h>

const char *const core_field_kinds[4] = { "array", "image", "mask", "bytes" };

PyObject *core_wrap_dataset(core_state *state, stoker_dataset *handle, bool calls_python)
{
    core_dataset *self = PyObject_New(core_dataset, state->dataset_type);
    if (self == NULL) {
        stoker_dataset_close(&handle);
        return NULL;
    }
    self->handle = handle;
    self->calls_python = calls_python;
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    stoker_dataset_close(&((core_dataset *)object)->handle);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError,
                    "use Dataset.open(), arrays(), files(), python(), concat() or mix()");
    return NULL;
}

static stoker_dataset *handle_of(PyObject *object)
{
    return ((core_dataset *)object)->handle;
}

PyObject *core_open(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "spec",      "split",           "max_bytes", "storage",
                             "cache_dir", "cache_dir_bytes", NULL };
    core_state *state = PyModule_GetState(module);
    PyObject *spec, *split = Py_None, *max_bytes = Py_None, *storage = Py_None;
    PyObject *cache_dir = Py_None, *cache_dir_bytes = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOOOO:open", names, &spec, &split,
                                     &max_bytes, &storage, &cache_dir, &cache_dir_bytes))
        return NULL;
    PyObject *keep = PyList_New(0);
    stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
    const char *text = keep != NULL ? core_text(spec, "spec", keep) : NULL;
    if (text == NULL ||
        (split != Py_None && (options.split = core_text(split, "split", keep)) == NULL) ||
        (max_bytes != Py_None && core_u64(max_bytes, "max_bytes", &options.max_bytes) < 0) ||
        (cache_dir != Py_None &&
         (options.cache_dir = core_text(cache_dir, "cache_dir", keep)) == NULL) ||
        (cache_dir_bytes != Py_None &&
         core_u64(cache_dir_bytes, "cache_dir_bytes", &options.cache_dir_bytes) < 0) ||
        (storage != Py_None && core_storage(module, storage, &options.storage) < 0)) {
        Py_XDECREF(keep);
        return NULL;
    }
    stoker_dataset *handle = NULL;
    stoker_error error;
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = stoker_dataset_open(&handle, text, &options, &error);
    stoker_storage_close(&options.storage);
    Py_END_ALLOW_THREADS Py_DECREF(keep);
    return rc == 0 ? core_wrap_dataset(state, handle, storage != Py_None)
                   : core_raise(state, &error);
}

/* ---- views ---- */

/* What a call that makes a view returned, as a Dataset or an exception. */
static PyObject *view_of(PyObject *source, int rc, stoker_dataset *handle,
                         const stoker_error *error)
{
    core_state *state = core_state_of(Py_TYPE(source));
    if (rc < 0)
        return core_raise(state, error);
    return core_wrap_dataset(state, handle, ((core_dataset *)source)->calls_python);
}

static PyObject *select_ids(PyObject *self, PyObject *ids)
{
    uint64_t count;
    PyObject *bytes = core_numbers(ids, "ids", &count);
    if (bytes == NULL)
        return NULL;
    const uint64_t *numbers = (const uint64_t *)(const void *)PyBytes_AsString(bytes);
    stoker_dataset *handle = NULL;
    stoker_error error;
    int rc;
    Py_BEGIN_ALLOW_THREADS rc =
        stoker_dataset_select(&handle, handle_of(self), numbers, count, &error);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    return view_of(self, rc, handle, &error);
}

static PyObject *split(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "test", "seed", "side", "stratified", NULL };
    static const char *const sides[] = { "train", "test" };
    stoker_split how = STOKER_SPLIT_INIT;
    PyObject *test, *seed = NULL, *side = NULL, *stratified = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOO:split", names, &test, &seed, &side,
                                     &stratified) ||
        core_double(test, "test", &how.test) < 0 ||
        (seed != NULL && core_u64(seed, "seed", &how.seed) < 0) ||
        (stratified != NULL && core_bool(stratified, "stratified", &how.stratified) < 0))
        return NULL;
    const int found = side != NULL ? core_word(side, "side", sides, 2) : STOKER_SIDE_TRAIN;
    if (found < 0)
        return NULL;
    how.side = (stoker_side)found;
    stoker_dataset *handle = NULL;
    stoker_error error;
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = stoker_dataset_split(&handle, handle_of(self), &how, &error);
    Py_END_ALLOW_THREADS return view_of(self, rc, handle, &error);
}

static PyObject *balance(PyObject *self, PyObject *unused)
{
    (void)unused;
    stoker_dataset *handle = NULL;
    stoker_error error;
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = stoker_dataset_balance(&handle, handle_of(self), &error);
    Py_END_ALLOW_THREADS return view_of(self, rc, handle, &error);
}

static int read_handles(core_state *state, PyObject *list, core_handles *out)
{
    for (uint32_t i = 0; i < out->count; i++) {
        PyObject *item = PyList_GetItem(list, (Py_ssize_t)i);
        if (Py_TYPE(item) != state->dataset_type) {
            PyErr_Format(PyExc_TypeError, "datasets: a Dataset, not %R", item);
            return -1;
        }
        out->each[i] = handle_of(item);
        out->calls_python = out->calls_python || ((core_dataset *)item)->calls_python;
    }
    return 0;
}

int core_take_handles(core_state *state, PyObject *datasets, core_handles *out)
{
    *out = (core_handles){ .list = PySequence_List(datasets) };
    const size_t count = out->list != NULL ? (size_t)PyList_Size(out->list) : 0;
    if (out->list == NULL ||
        (out->each = core_zeroed((count + 1) * sizeof(stoker_dataset *))) == NULL)
        goto failed;
    if (count > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "datasets: %zu are too many", count);
        goto failed;
    }
    out->count = (uint32_t)count;
    if (read_handles(state, out->list, out) == 0)
        return 0;
failed:
    core_drop_handles(out);
    return -1;
}

void core_drop_handles(core_handles *handles)
{
    PyMem_Free(handles->each);
    Py_CLEAR(handles->list);
    handles->each = NULL;
}

PyObject *core_concat(PyObject *module, PyObject *datasets)
{
    core_state *state = PyModule_GetState(module);
    core_handles sources;
    if (core_take_handles(state, datasets, &sources) < 0)
        return NULL;
    stoker_dataset *handle = NULL;
    stoker_error error;
    const int rc = stoker_dataset_concat(&handle, sources.each, sources.count, &error);
    core_drop_handles(&sources);
    return rc == 0 ? core_wrap_dataset(state, handle, sources.calls_python)
                   : core_raise(state, &error);
}

/* ---- one sample ---- */

static PyObject *truncate_rows(const stoker_dataset *dataset, PyObject *arrays,
                               const stoker_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const stoker_field_info *field = stoker_dataset_field(dataset, i);
        if (!field->varies)
            continue;
        const size_t entry_bytes = stoker_dataset_field_bytes(dataset, i) / field->shape[0];
        if (PyByteArray_Resize(PyTuple_GetItem(arrays, (Py_ssize_t)i),
                               (Py_ssize_t)(entry_bytes * rows[i].length)) < 0)
            return NULL;
    }
    Py_INCREF(arrays);
    return arrays;
}

static PyObject *new_rows(const stoker_dataset *dataset, stoker_row *rows, uint32_t count)
{
    PyObject *arrays = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; arrays != NULL && i < count; i++) {
        rows[i].bytes_max = stoker_dataset_field_bytes(dataset, i);
        PyObject *array = core_array(rows[i].bytes_max);
        if (array == NULL || PyTuple_SetItem(arrays, (Py_ssize_t)i, array) < 0)
            Py_CLEAR(arrays);
        else
            rows[i].data = PyByteArray_AsString(array);
    }
    return arrays;
}

static PyObject *read_sample(PyObject *self, PyObject *number)
{
    const stoker_dataset *dataset = handle_of(self);
    const uint32_t count = stoker_dataset_get_info(dataset)->field_count;
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = NULL } };
    uint64_t id;
    if (core_u64(number, "id", &id) < 0)
        return NULL;
    PyObject *arrays = new_rows(dataset, rows, count);
    if (arrays == NULL)
        return NULL;
    stoker_error error;
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = stoker_dataset_read(dataset, id, rows, &error);
    Py_END_ALLOW_THREADS PyObject *result = NULL;
    if (rc == 0)
        result = truncate_rows(dataset, arrays, rows, count);
    else if (PyErr_Occurred() == NULL) /* else by the user's code: see maker.c */
        core_raise(core_state_of(Py_TYPE(self)), &error);
    Py_DECREF(arrays);
    return result;
}

/* ---- what it says of itself ---- */

static PyObject *text_or_none(const char *text)
{
    if (text != NULL)
        return PyUnicode_DecodeFSDefault(text);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *class_name(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "index", "field", NULL };
    PyObject *number, *field = Py_None;
    uint32_t index;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:class_name", names, &number, &field) ||
        core_u32(number, "index", &index) < 0)
        return NULL;
    const stoker_dataset *dataset = handle_of(self);
    if (field == Py_None)
        return text_or_none(stoker_dataset_class_name(
            dataset, (uint32_t)stoker_dataset_find_field(dataset, "label"), index));
    PyObject *keep = PyList_New(0);
    const char *text = keep != NULL ? core_text(field, "field", keep) : NULL;
    const int32_t found = text != NULL ? stoker_dataset_find_field(dataset, text) : -1;
    Py_XDECREF(keep);
    if (text == NULL)
        return NULL;
    if (found < 0)
        return PyErr_Format(PyExc_ValueError, "field: there is no %R", field);
    return text_or_none(stoker_dataset_class_name(dataset, (uint32_t)found, index));
}

static PyObject *field_dict(const stoker_field_info *field)
{
    PyObject *dict = PyDict_New();
    if (dict == NULL)
        return NULL;
    if (core_put(dict, "name", PyUnicode_FromString(field->name)) == 0 &&
        core_put(dict, "kind", PyUnicode_FromString(core_field_kinds[field->kind])) == 0 &&
        core_put(dict, "dtype", PyUnicode_FromString(stoker_dtype_name(field->dtype))) == 0 &&
        core_put(dict, "shape", core_shape(field->shape, field->rank)) == 0 &&
        core_put(dict, "varies", PyBool_FromLong(field->varies)) == 0 &&
        core_put(dict, "class_count", PyLong_FromUnsignedLong(field->class_count)) == 0 &&
        core_put(dict, "has_part", PyBool_FromLong(field->part != STOKER_NO_PART)) == 0 &&
        core_put(dict, "pixels_max", PyLong_FromUnsignedLongLong(field->pixels_max)) == 0 &&
        core_put(dict, "sizes_differ", PyBool_FromLong(field->sizes_differ)) == 0)
        return dict;
    Py_DECREF(dict);
    return NULL;
}

static PyObject *get_fields(PyObject *self, void *unused)
{
    (void)unused;
    const stoker_dataset *dataset = handle_of(self);
    const uint32_t count = stoker_dataset_get_info(dataset)->field_count;
    PyObject *fields = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; fields != NULL && i < count; i++) {
        PyObject *dict = field_dict(stoker_dataset_field(dataset, i));
        if (dict == NULL || PyTuple_SetItem(fields, (Py_ssize_t)i, dict) < 0)
            Py_CLEAR(fields);
    }
    return fields;
}

static PyObject *label_dtype(const stoker_dataset_info *info)
{
    return text_or_none(
        info->label_dtype == STOKER_DTYPE_NONE ? NULL : stoker_dtype_name(info->label_dtype));
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const stoker_dataset_info *info = stoker_dataset_get_info(handle_of(self));
    PyObject *dict = PyDict_New();
    if (dict == NULL)
        return NULL;
    const size_t row_bytes = stoker_dataset_field_bytes(handle_of(self), 0);
    if (core_put(dict, "count", PyLong_FromUnsignedLongLong(info->count)) == 0 &&
        core_put(dict, "field_count", PyLong_FromUnsignedLong(info->field_count)) == 0 &&
        core_put(dict, "part_count", PyLong_FromUnsignedLong(info->part_count)) == 0 &&
        core_put(dict, "is_image", PyBool_FromLong(info->is_image)) == 0 &&
        core_put(dict, "label_dtype", label_dtype(info)) == 0 &&
        core_put(dict, "class_count", PyLong_FromUnsignedLong(info->class_count)) == 0 &&
        core_put(dict, "file_count", PyLong_FromUnsignedLong(info->file_count)) == 0 &&
        core_put(dict, "encoded_bytes_max", PyLong_FromUnsignedLong(info->encoded_bytes_max)) ==
            0 &&
        core_put(dict, "has_paths", PyBool_FromLong(info->has_paths)) == 0 &&
        core_put(dict, "dense", PyBool_FromLong(info->dense)) == 0 &&
        core_put(dict, "in_memory", PyBool_FromLong(info->rows != NULL)) == 0 &&
        core_put(dict, "fingerprint", PyLong_FromUnsignedLongLong(info->fingerprint)) == 0 &&
        core_put(dict, "row_bytes", PyLong_FromSize_t(row_bytes)) == 0 &&
        core_put(dict, "description", text_or_none(info->description)) == 0)
        return dict;
    Py_DECREF(dict);
    return NULL;
}

static PyObject *get_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(stoker_dataset_get_info(handle_of(self))->count);
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(stoker_dataset_name(handle_of(self)));
}

static PyObject *get_fingerprint(PyObject *self, void *unused)
{
    (void)unused;
    uint64_t fingerprint;
    Py_BEGIN_ALLOW_THREADS fingerprint = stoker_dataset_fingerprint(handle_of(self));
    Py_END_ALLOW_THREADS return PyLong_FromUnsignedLongLong(fingerprint);
}

static PyObject *get_description(PyObject *self, void *unused)
{
    (void)unused;
    return text_or_none(stoker_dataset_get_info(handle_of(self))->description);
}

/* ---- the type ---- */

static PyMethodDef methods[] = {
    { "select", select_ids, METH_O, "The samples with these ids, in this order." },
    { "split", CORE_METHOD(split), METH_VARARGS | METH_KEYWORDS, "One side of a random split." },
    { "balance", balance, METH_NOARGS, "The same samples, all classes drawn equally often." },
    { "pack", CORE_METHOD(core_pack), METH_VARARGS | METH_KEYWORDS,
      "Rows of one length, packed from documents." },
    { "mix_source", core_mix_source, METH_O, "The source of a sample of a mix." },
    { "mix_counts", core_mix_counts, METH_O, "Samples of each source up to a position." },
    { "read", read_sample, METH_O, "One sample: the bytes of each field." },
    { "class_name", CORE_METHOD(class_name), METH_VARARGS | METH_KEYWORDS, "The name of a class." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef properties[] = {
    { "count", get_count, NULL, "Samples.", NULL },
    { "fields", get_fields, NULL, "One dictionary per field.", NULL },
    { "name", get_name, NULL, "The format.", NULL },
    { "fingerprint", get_fingerprint, NULL, "Identifies it in a loader's state.", NULL },
    { "description", get_description, NULL, "What opening found out.", NULL },
    { "info", get_info, NULL, "What it is, in numbers.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

/* Functions of the module that the type shows as static methods: a builtin function is no
 * descriptor. */
static PyMethodDef makers[] = {
    { "open", CORE_METHOD(core_open), METH_VARARGS | METH_KEYWORDS,
      "Open the data set that a spec names." },
    { "arrays", CORE_METHOD(core_arrays), METH_VARARGS | METH_KEYWORDS, "Samples in memory." },
    { "python", CORE_METHOD(core_python), METH_VARARGS | METH_KEYWORDS,
      "Samples that Python code makes." },
    { "concat", core_concat, METH_O, "Several data sets, one after the other." },
    { "files", CORE_METHOD(core_files), METH_VARARGS | METH_KEYWORDS,
      "Lists of files, and samples in memory." },
    { "mix", CORE_METHOD(core_mix), METH_VARARGS | METH_KEYWORDS,
      "Several data sets, each with its share of the order." },
    { NULL, NULL, 0, NULL },
};

static int add_makers(PyObject *module, PyObject *type)
{
    for (PyMethodDef *maker = makers; maker->ml_name != NULL; maker++) {
        PyObject *function = PyCFunction_NewEx(maker, module, NULL);
        const int rc =
            function != NULL ? PyObject_SetAttrString(type, maker->ml_name, function) : -1;
        Py_XDECREF(function);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int core_add_dataset(PyObject *module, core_state *state)
{
    PyType_Slot slots[] = {
        CORE_SLOT(Py_tp_new, refuse_new),
        CORE_SLOT(Py_tp_dealloc, dealloc),
        { Py_tp_methods, methods },
        { Py_tp_getset, properties },
        { Py_tp_doc, "A data set: immutable, for any number of loaders, views and threads." },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "stoker._core.Dataset",
                         .basicsize = sizeof(core_dataset),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = slots };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->dataset_type = (PyTypeObject *)type;
    if (type == NULL || add_makers(module, type) < 0)
        return -1;
    return PyObject_SetAttrString(module, "Dataset", type);
}
