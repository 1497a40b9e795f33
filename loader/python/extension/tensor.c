/* tensor.c - the type Tensor, and the capsules of DLPack.
 *
 *   __dlpack__() ──▶ capsule "dltensor[_versioned]" ──taken──▶ "used_dltensor[_versioned]": the consumer calls the deleter
 *                        └──collected untaken──▶ its destructor calls it
 */
#include "tensor.h"

/* ---- capsules ---- */

static void end_versioned(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned"))
        return; /* a consumer has taken it */
    DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    managed->deleter(managed);
}

static void end_unversioned(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return;
    DLManagedTensor *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

static PyObject *versioned_capsule(DLManagedTensorVersioned *managed)
{
    PyObject *capsule = PyCapsule_New(managed, "dltensor_versioned", end_versioned);
    if (capsule == NULL)
        managed->deleter(managed);
    return capsule;
}

static PyObject *unversioned_capsule(DLManagedTensor *managed)
{
    PyObject *capsule = PyCapsule_New(managed, "dltensor", end_unversioned);
    if (capsule == NULL)
        managed->deleter(managed);
    return capsule;
}

PyObject *core_capsule_of(void *managed, bool versioned)
{
    if (managed == NULL)
        return PyErr_NoMemory();
    return versioned ? versioned_capsule(managed) : unversioned_capsule(managed);
}

PyObject *core_capsule(struct core_share *share, bool versioned, bool copy)
{
    return core_capsule_of(versioned ? (void *)core_share_versioned(share, copy)
                                     : (void *)core_share_unversioned(share, copy),
                           versioned);
}

int core_stream(PyObject *value, struct CUstream_st **out)
{
    *out = NULL;
    if (value == NULL || value == Py_None)
        return 0;
    PyObject *number = PyNumber_Index(value);
    if (number == NULL)
        return -1;
    const long long stream = PyLong_AsLongLong(number); /* -1 and addresses */
    Py_DECREF(number);
    if (stream == -1 && PyErr_Occurred())
        return -1;
    *out = (struct CUstream_st *)(intptr_t)stream;
    return 0;
}

/* ---- the protocol ---- */

PyObject *core_new_tensor(PyObject *batch, uint32_t part)
{
    core_state *state = core_state_of(Py_TYPE(batch));
    core_tensor *self = PyObject_New(core_tensor, state->tensor_type);
    if (self == NULL)
        return NULL;
    Py_INCREF(batch);
    self->batch = batch;
    self->part = part;
    atomic_init(&self->share, NULL);
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    core_tensor *self = (core_tensor *)object;
    PyTypeObject *type = Py_TYPE(object);
    core_share_drop(atomic_load_explicit(&self->share, memory_order_acquire));
    Py_DECREF(self->batch);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* The tensor's share, made by the first ask. Borrowed. */
static struct core_share *take_share(core_tensor *self, struct CUstream_st *stream)
{
    struct core_share *share = atomic_load_explicit(&self->share, memory_order_acquire);
    if (share != NULL) {
        if (core_share_tensor(share)->device.type != DLPACK_CUDA ||
            core_share_stream(share) == stream)
            return share;
        PyErr_SetString(PyExc_BufferError,
                        "a tensor of this part was made for another CUDA stream: use that one");
        return NULL;
    }
    struct core_share *made = core_batch_share(self->batch, self->part, stream);
    if (made == NULL)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&self->share, &share, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    core_share_drop(made); /* another thread was faster, with the same one */
    return share;
}

/* Set *versioned by max_version: None, or a pair of ints. */
static int read_version(PyObject *value, bool *versioned)
{
    long major, minor;
    *versioned = false;
    if (value == Py_None)
        return 0;
    if (!PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "max_version: a pair of ints, not %R", value);
        return -1;
    }
    if (!PyArg_ParseTuple(value, "ll:max_version", &major, &minor))
        return -1;
    *versioned = major >= 1;
    return 0;
}

/* Refuse another device, and a copy on a GPU. */
static int check_wishes(core_tensor *self, PyObject *dl_device, bool copy)
{
    const DLDevice here = core_batch_device(self->batch);
    long type, index;
    if (copy && here.type == DLPACK_CUDA) {
        PyErr_SetString(PyExc_BufferError, "copy=True: no copy is made on a GPU");
        return -1;
    }
    if (dl_device == Py_None)
        return 0;
    if (!PyTuple_Check(dl_device)) {
        PyErr_Format(PyExc_TypeError, "dl_device: a pair of ints, not %R", dl_device);
        return -1;
    }
    if (!PyArg_ParseTuple(dl_device, "ll:dl_device", &type, &index))
        return -1;
    if ((type == here.type && index == here.index) ||
        (type == DLPACK_CPU && here.type == DLPACK_CUDA_HOST))
        return 0;
    PyErr_Format(PyExc_BufferError, "dl_device: the tensor lies on (%d, %d), not on (%ld, %ld)",
                 (int)here.type, (int)here.index, type, index);
    return -1;
}

static PyObject *dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    core_tensor *self = (core_tensor *)object;
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    struct CUstream_st *on;
    bool versioned;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy) ||
        core_stream(stream, &on) < 0 || read_version(version, &versioned) < 0)
        return NULL;
    const int copies = PyObject_IsTrue(copy);
    if (copies < 0 || check_wishes(self, device, copies != 0) < 0)
        return NULL;
    struct core_share *share = take_share(self, on);
    return share != NULL ? core_capsule(share, versioned, copies != 0) : NULL;
}

static PyObject *dlpack_device(PyObject *object, PyObject *unused)
{
    (void)unused;
    const DLDevice device = core_batch_device(((core_tensor *)object)->batch);
    return Py_BuildValue("(ii)", (int)device.type, (int)device.index);
}

/* ---- what it says of itself ---- */

static int array_of(PyObject *object, stoker_tensor *array)
{
    const core_tensor *self = (const core_tensor *)object;
    if (!core_batch_begin(self->batch))
        return -1;
    const int rc = core_batch_array(self->batch, self->part, array);
    core_batch_end(self->batch);
    return rc;
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    stoker_tensor array;
    return array_of(self, &array) == 0 ? PyUnicode_FromString(stoker_dtype_name(array.dtype))
                                       : NULL;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    stoker_tensor array;
    return array_of(self, &array) == 0 ? core_shape(array.shape, array.rank) : NULL;
}

static PyObject *get_address(PyObject *self, void *unused)
{
    (void)unused;
    stoker_tensor array;
    return array_of(self, &array) == 0 ? PyLong_FromVoidPtr(array.data) : NULL;
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "a Tensor comes from Batch.tensor()");
    return NULL;
}

static PyMethodDef methods[] = {
    { "__dlpack__", CORE_METHOD(dlpack), METH_VARARGS | METH_KEYWORDS, "A capsule." },
    { "__dlpack_device__", dlpack_device, METH_NOARGS, "(type, index) of the device." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef properties[] = {
    { "dtype", get_dtype, NULL, "The element type.", NULL },
    { "shape", get_shape, NULL, "The lengths of the axes.", NULL },
    { "address", get_address, NULL, "Of the first element.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

int core_add_tensor(PyObject *module, core_state *state)
{
    PyType_Slot slots[] = {
        CORE_SLOT(Py_tp_new, refuse_new),
        CORE_SLOT(Py_tp_dealloc, dealloc),
        { Py_tp_methods, methods },
        { Py_tp_getset, properties },
        { Py_tp_doc, "A part of a batch, with the DLPack protocol." },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "stoker._core.Tensor",
                         .basicsize = sizeof(core_tensor),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = slots };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->tensor_type = (PyTypeObject *)type;
    return type != NULL ? PyObject_SetAttrString(module, "Tensor", type) : -1;
}
