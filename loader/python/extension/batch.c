/* batch.c - the type Batch: memory that a loader has lent, and its return.
 *
 *   lent ──release(), or the last reference──▶ returning ──the last use ends──▶ returned to the loader
 *
 * `uses` counts calls that look at the batch, in any thread, and has RETURNING once it is to be
 * returned: the one that finds both true returns it, so that happens exactly once. The batch's own
 * shares (share.h) are dropped before.
 *
 *   Batch ──▶ Loader (a reference)        a returned batch keeps it no longer than itself
 *     └─────▶ shares of its parts, made by the first ask: fields, offsets, ids
 */
#include <stoker/cuda.h>
#include <string.h>

#include "tensor.h"

#define RETURNING 0x80000000U

typedef struct core_batch {
    PyObject_VAR_HEAD core_loader *loader;
    stoker_batch lent;
    atomic_uint uses;
    bool on_stream; /* return it after the work that is on `stream` */
    struct CUstream_st *stream;
    uint32_t count, padded, device_index; /* copies: they stay after the return */
    stoker_device device;
    uint64_t epoch, index;
    struct core_share *shares[]; /* 2 x fields + 1; only the consumer writes them */
} core_batch;

static size_t share_count(const core_batch *self)
{
    return 2 * (size_t)self->lent.field_count + 1;
}

PyObject *core_new_batch(core_loader *loader, stoker_batch *lent)
{
    const Py_ssize_t parts = 2 * (Py_ssize_t)lent->field_count + 1;
    core_batch *self = PyObject_NewVar(core_batch, loader->state->batch_type, parts);
    if (self == NULL) {
        stoker_batch_release(lent);
        return NULL;
    }
    Py_INCREF((PyObject *)loader);
    self->loader = loader;
    self->lent = *lent;
    atomic_init(&self->uses, 0);
    self->on_stream = false;
    self->stream = NULL;
    self->count = lent->count;
    self->padded = lent->padded;
    self->device = lent->device;
    self->device_index = lent->device_index;
    self->epoch = lent->epoch;
    self->index = lent->index;
    memset(self->shares, 0, (size_t)parts * sizeof(self->shares[0]));
    return (PyObject *)self;
}

/* ---- lending and returning ---- */

/* Return it to the loader, or free it if that is destroyed. Returns 0, or an error of the stream:
 * then it is still lent. While another thread destroys the loader only WAIT and GROW let a second
 * one return a batch, so then its memory stays. */
static int give_back(core_batch *self)
{
    int rc = 0;
    for (size_t i = 0; i < share_count(self); i++) {
        core_share_drop(self->shares[i]);
        self->shares[i] = NULL;
    }
    const bool open = core_try_enter(self->loader);
    if (!open && !atomic_load_explicit(&self->loader->ended, memory_order_acquire))
        return 0;
    if (self->on_stream)
        rc = stoker_batch_release_on(&self->lent, self->stream);
    else
        stoker_batch_release(&self->lent);
    if (open)
        core_leave(self->loader);
    return rc;
}

static bool try_begin(core_batch *self)
{
    unsigned uses = atomic_load_explicit(&self->uses, memory_order_relaxed);
    do {
        if ((uses & RETURNING) != 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&self->uses, &uses, uses + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

static void end(core_batch *self)
{
    /* acq_rel: the call that returns the batch comes after all others */
    if (atomic_fetch_sub_explicit(&self->uses, 1, memory_order_acq_rel) == (RETURNING | 1U))
        (void)give_back(self);
}

bool core_batch_begin(PyObject *batch)
{
    core_batch *self = (core_batch *)batch;
    if (!try_begin(self)) {
        PyErr_SetString(PyExc_RuntimeError, "the batch was released");
        return false;
    }
    if (core_enter(self->loader) == 0)
        return true;
    end(self);
    return false;
}

void core_batch_end(PyObject *batch)
{
    core_leave(((core_batch *)batch)->loader);
    end((core_batch *)batch);
}

static int release_now(core_batch *self)
{
    if (atomic_fetch_or_explicit(&self->uses, RETURNING, memory_order_acq_rel) != 0)
        return 0; /* it is returned, or will be by the last use */
    const int rc = give_back(self);
    if (rc == STOKER_EINVAL && self->on_stream) {
        self->on_stream = false;
        atomic_store_explicit(&self->uses, 0, memory_order_release); /* still lent */
    }
    return rc;
}

static PyObject *release_on(core_batch *self, PyObject *stream)
{
    if (core_stream(stream, &self->stream) < 0 || core_enter_consumer(self->loader) < 0)
        return NULL;
    self->on_stream = true;
    const int rc = release_now(self);
    core_leave_consumer(self->loader);
    if (rc < 0)
        return core_raise_code(self->loader->state, rc, STOKER_STAGE_TRANSFER,
                               "release: the CUDA stream cannot be used");
    Py_RETURN_NONE;
}

static PyObject *release(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "stream", NULL };
    core_batch *self = (core_batch *)object;
    PyObject *stream = Py_None;
    if ((PyTuple_Size(args) > 0 || keywords != NULL) &&
        !PyArg_ParseTupleAndKeywords(args, keywords, "|O:release", names, &stream))
        return NULL;
    if (stream != Py_None &&
        (atomic_load_explicit(&self->uses, memory_order_acquire) & RETURNING) == 0)
        return release_on(self, stream);
    (void)release_now(self);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    core_batch *self = (core_batch *)object;
    PyTypeObject *type = Py_TYPE(object);
    (void)release_now(self);
    Py_DECREF((PyObject *)self->loader);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* ---- its parts ---- */

/* The place of a part's share; -1: there is no such part. Labels are a field. */
static Py_ssize_t place_of(const core_batch *self, uint32_t part)
{
    const uint32_t fields = self->lent.field_count;
    if (part < fields)
        return (Py_ssize_t)part;
    if (part >= STOKER_TENSOR_OFFSETS && part < STOKER_TENSOR_OFFSETS + fields)
        return self->lent.fields[part - STOKER_TENSOR_OFFSETS].offsets != NULL
                   ? (Py_ssize_t)(fields + part - STOKER_TENSOR_OFFSETS)
                   : -1;
    if (part == STOKER_TENSOR_IDS)
        return 2 * (Py_ssize_t)fields;
    return -1;
}

static uint32_t without_labels(const core_batch *self, uint32_t part)
{
    if (part != STOKER_TENSOR_LABELS || self->lent.labels.dtype == STOKER_DTYPE_NONE)
        return part;
    for (uint32_t i = 0; i < self->lent.field_count; i++)
        if (strcmp(self->lent.fields[i].name, "label") == 0)
            return i;
    return part;
}

static int no_such_part(uint32_t part)
{
    PyErr_Format(PyExc_ValueError, "part: the batch has no part %u", part);
    return -1;
}

/* The batch is lent and the consumer has entered. Borrowed; NULL: an exception. */
static struct core_share *share_of(core_batch *self, uint32_t part, struct CUstream_st *stream)
{
    part = without_labels(self, part);
    const Py_ssize_t place = place_of(self, part);
    if (place < 0) {
        (void)no_such_part(part);
        return NULL;
    }
    struct core_share *share = self->shares[place];
    if (share == NULL) {
        const int rc = core_share_make(&share, &self->lent, part, stream);
        if (rc < 0) {
            core_raise_code(self->loader->state, rc, STOKER_STAGE_TRANSFER,
                            rc == STOKER_EINVAL ? "dlpack: the CUDA stream cannot be used" : NULL);
            return NULL;
        }
        self->shares[place] = share;
    } else if (self->device == STOKER_DEVICE_CUDA && core_share_stream(share) != stream) {
        PyErr_SetString(PyExc_BufferError,
                        "a tensor of this part was made for another CUDA stream: use that one");
        return NULL;
    }
    return share;
}

struct core_share *core_batch_share(PyObject *object, uint32_t part, struct CUstream_st *stream)
{
    core_batch *self = (core_batch *)object;
    struct core_share *share = NULL;
    if (core_enter_consumer(self->loader) < 0)
        return NULL;
    if (core_batch_begin(object)) {
        share = share_of(self, part, stream);
        if (share != NULL)
            share = core_share_use(share);
        core_batch_end(object);
    }
    core_leave_consumer(self->loader);
    return share;
}

int core_batch_array(PyObject *object, uint32_t part, stoker_tensor *out)
{
    const core_batch *self = (const core_batch *)object;
    const stoker_batch *lent = &self->lent;
    part = without_labels(self, part);
    if (place_of(self, part) < 0)
        return no_such_part(part);
    if (part < lent->field_count) {
        *out = lent->fields[part].values;
        return 0;
    }
    *out = (stoker_tensor){ .rank = 1, .dtype = STOKER_DTYPE_UINT64, .shape = { lent->count } };
    const bool on_gpu = lent->device == STOKER_DEVICE_CUDA;
    if (part == STOKER_TENSOR_IDS) {
        out->data = (void *)(uintptr_t)(on_gpu ? lent->device_ids : lent->ids);
        return 0;
    }
    const stoker_field *field = &lent->fields[part - STOKER_TENSOR_OFFSETS];
    out->data = (void *)(uintptr_t)(on_gpu ? field->device_offsets : field->offsets);
    out->dtype = STOKER_DTYPE_INT64;
    out->shape[0] += 1;
    return 0;
}

DLDevice core_batch_device(PyObject *object)
{
    const core_batch *self = (const core_batch *)object;
    switch (self->device) {
    case STOKER_DEVICE_CUDA:
        return (DLDevice){ .type = DLPACK_CUDA, .index = (int32_t)self->device_index };
    case STOKER_DEVICE_CUDA_HOST:
        return (DLDevice){ .type = DLPACK_CUDA_HOST, .index = 0 };
    case STOKER_DEVICE_CPU:
    case STOKER_DEVICE_AUTO:
        break;
    }
    return (DLDevice){ .type = DLPACK_CPU, .index = 0 };
}

static PyObject *field_capsules(core_batch *self, uint32_t field, struct CUstream_st *stream,
                                bool versioned)
{
    struct core_share *share = share_of(self, field, stream);
    PyObject *values = share != NULL ? core_capsule(share, versioned, false) : NULL;
    if (values == NULL || self->lent.fields[field].offsets == NULL)
        return values;
    share = share_of(self, STOKER_TENSOR_OFFSETS + field, stream);
    PyObject *offsets = share != NULL ? core_capsule(share, versioned, false) : NULL;
    PyObject *both = offsets != NULL ? PyTuple_Pack(2, values, offsets) : NULL;
    Py_XDECREF(offsets);
    Py_DECREF(values);
    return both;
}

PyObject *core_batch_capsules(PyObject *object, struct CUstream_st *stream, bool versioned)
{
    core_batch *self = (core_batch *)object;
    PyObject *capsules = PyTuple_New((Py_ssize_t)self->lent.field_count);
    for (uint32_t i = 0; capsules != NULL && i < self->lent.field_count; i++) {
        PyObject *each = field_capsules(self, i, stream, versioned);
        if (each == NULL || PyTuple_SetItem(capsules, (Py_ssize_t)i, each) < 0)
            Py_CLEAR(capsules);
    }
    return capsules;
}

static PyObject *capsules(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "stream", "versioned", NULL };
    core_batch *self = (core_batch *)object;
    PyObject *stream = Py_None, *result = NULL;
    struct CUstream_st *on;
    int versioned = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|Op:capsules", names, &stream, &versioned) ||
        core_stream(stream, &on) < 0 || core_enter_consumer(self->loader) < 0)
        return NULL;
    if (core_batch_begin(object)) {
        result = core_batch_capsules(object, on, versioned != 0);
        core_batch_end(object);
    }
    core_leave_consumer(self->loader);
    return result;
}

static PyObject *capsule(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "part", "stream", "versioned", NULL };
    PyObject *number, *stream = Py_None;
    struct CUstream_st *on;
    int versioned = 1;
    uint32_t part;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|Op:capsule", names, &number, &stream,
                                     &versioned) ||
        core_u32(number, "part", &part) < 0 || core_stream(stream, &on) < 0)
        return NULL;
    struct core_share *share = core_batch_share(object, part, on);
    PyObject *result = share != NULL ? core_capsule(share, versioned != 0, false) : NULL;
    core_share_drop(share);
    return result;
}

static PyObject *tensor(PyObject *object, PyObject *number)
{
    uint32_t part;
    stoker_tensor array;
    if (core_u32(number, "part", &part) < 0 || !core_batch_begin(object))
        return NULL;
    const int rc = core_batch_array(object, part, &array);
    core_batch_end(object);
    return rc == 0 ? core_new_tensor(object, part) : NULL;
}

static PyObject *wait_on(PyObject *object, PyObject *args)
{
    core_batch *self = (core_batch *)object;
    PyObject *stream = Py_None;
    struct CUstream_st *on;
    int rc = 0;
    if (!PyArg_ParseTuple(args, "|O:wait_on", &stream) || core_stream(stream, &on) < 0 ||
        core_enter_consumer(self->loader) < 0)
        return NULL;
    const bool lent = core_batch_begin(object);
    if (lent) {
        rc = stoker_batch_wait_on(&self->lent, on);
        core_batch_end(object);
    }
    core_leave_consumer(self->loader);
    if (rc < 0)
        return core_raise_code(self->loader->state, rc, STOKER_STAGE_TRANSFER, NULL);
    if (!lent)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- what it says of itself ---- */

static PyObject *get_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((core_batch *)self)->count);
}

static PyObject *get_padded(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((core_batch *)self)->padded);
}

static PyObject *get_epoch(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((core_batch *)self)->epoch);
}

static PyObject *get_index(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((core_batch *)self)->index);
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)unused;
    static const char *const names[] = { "auto", "cpu", "cuda", "cuda_host" };
    return PyUnicode_FromString(names[((core_batch *)self)->device]);
}

static PyObject *get_device_index(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((core_batch *)self)->device_index);
}

static PyObject *get_field_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((core_batch *)self)->lent.field_count);
}

static PyObject *field_tuple(const stoker_field *field)
{
    PyObject *shape = core_shape(field->values.shape, field->values.rank);
    if (shape == NULL)
        return NULL;
    return Py_BuildValue("(ssNO)", field->name, stoker_dtype_name(field->values.dtype), shape,
                         field->offsets != NULL ? Py_True : Py_False);
}

static PyObject *get_fields(PyObject *object, void *unused)
{
    (void)unused;
    core_batch *self = (core_batch *)object;
    if (!core_batch_begin(object))
        return NULL;
    PyObject *fields = PyTuple_New((Py_ssize_t)self->lent.field_count);
    for (uint32_t i = 0; fields != NULL && i < self->lent.field_count; i++) {
        PyObject *field = field_tuple(&self->lent.fields[i]);
        if (field == NULL || PyTuple_SetItem(fields, (Py_ssize_t)i, field) < 0)
            Py_CLEAR(fields);
    }
    core_batch_end(object);
    return fields;
}

static PyObject *get_ids(PyObject *object, void *unused)
{
    (void)unused;
    core_batch *self = (core_batch *)object;
    if (!core_batch_begin(object))
        return NULL;
    PyObject *ids = PyBytes_FromStringAndSize((const char *)self->lent.ids,
                                              (Py_ssize_t)(self->count * sizeof(uint64_t)));
    core_batch_end(object);
    return ids;
}

static PyObject *get_released(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(
        (atomic_load_explicit(&((core_batch *)self)->uses, memory_order_acquire) & RETURNING) != 0);
}

static PyObject *get_loader(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *loader = (PyObject *)((core_batch *)self)->loader;
    Py_INCREF(loader);
    return loader;
}

/* ---- the type ---- */

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "a Batch comes from Loader.next()");
    return NULL;
}

static PyMethodDef methods[] = {
    { "tensor", tensor, METH_O, "A part, with the DLPack protocol." },
    { "capsule", CORE_METHOD(capsule), METH_VARARGS | METH_KEYWORDS,
      "A DLPack capsule of a part." },
    { "capsules", CORE_METHOD(capsules), METH_VARARGS | METH_KEYWORDS,
      "A capsule for every field." },
    { "wait_on", wait_on, METH_VARARGS, "Let a CUDA stream wait for the batch's copy." },
    { "release", CORE_METHOD(release), METH_VARARGS | METH_KEYWORDS, "Give the batch back." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef properties[] = {
    { "count", get_count, NULL, "Rows.", NULL },
    { "padded", get_padded, NULL, "Rows at the end that were added to fill it.", NULL },
    { "epoch", get_epoch, NULL, "The epoch.", NULL },
    { "index", get_index, NULL, "Its index in the epoch.", NULL },
    { "device", get_device, NULL, "The device that holds it.", NULL },
    { "device_index", get_device_index, NULL, "The GPU.", NULL },
    { "field_count", get_field_count, NULL, "Fields.", NULL },
    { "fields", get_fields, NULL, "(name, dtype, shape, has offsets) of each field.", NULL },
    { "ids", get_ids, NULL, "A copy of the sample ids.", NULL },
    { "released", get_released, NULL, "True after release().", NULL },
    { "loader", get_loader, NULL, "The loader.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

int core_add_batch(PyObject *module, core_state *state)
{
    PyType_Slot slots[] = {
        CORE_SLOT(Py_tp_new, refuse_new),
        CORE_SLOT(Py_tp_dealloc, dealloc),
        { Py_tp_methods, methods },
        { Py_tp_getset, properties },
        { Py_tp_doc, "One batch in memory of the loader." },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "stoker._core.Batch",
                         .basicsize = sizeof(core_batch),
                         .itemsize = sizeof(struct core_share *),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = slots };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->batch_type = (PyTypeObject *)type;
    return type != NULL ? PyObject_SetAttrString(module, "Batch", type) : -1;
}
