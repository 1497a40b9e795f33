/* iterator.c - the type Batches: what a for loop over a DataLoader calls for every batch.
 *
 * EpochIterator, in Python, is a class of this type. It makes the first batch of an epoch, and
 * knows what to do at its end; in between a batch takes no Python code but the framework's:
 *
 *          Loader.run()                           a stop, halt(), another iterator's run(), close()
 *   resting ────────▶ running: batches made here ─────────────────────────────────────────────▶ resting
 *      └─▶ self._next()             └─▶ at a stop self._end(reason)
 *
 * The loader points to the iterator that runs: one at a time.
 */
#include <string.h>

#include "tensor.h"

typedef struct core_iterator {
    PyObject_HEAD core_loader *loader; /* NULL: it never ran */
    int32_t timeout_ms;
    bool versioned;
    PyObject *kind;      /* the class of the batches: named tuples */
    allocfunc new_tuple; /* makes one, without values */
    PyObject *extras;    /* the name of their attribute for what is beside the fields */
    PyObject *take;      /* capsule -> value, or NULL */
    int (*to_object)(DLManagedTensorVersioned *tensor, void **value); /* used instead, or NULL */
    PyObject *make;   /* capsules of all fields -> values, or NULL; without both: Tensors */
    PyObject *stream; /* the stream that uses the next batch, as a function; or NULL */
    PyObject *change; /* batch -> what is delivered, or NULL */
} core_iterator;

/* ---- one batch ---- */

/* A named tuple whose values are still to be set. Not by a call of its class, which would take
 * longer than all the rest. */
static PyObject *empty_tuple(const core_iterator *self, Py_ssize_t count)
{
    return self->new_tuple((PyTypeObject *)self->kind, count);
}

/* Takes the reference to `value`; NULL: an exception is set, and the tuple is freed. */
static void put(PyObject **tuple, Py_ssize_t at, PyObject *value)
{
    if (value == NULL || PyTuple_SetItem(*tuple, at, value) < 0)
        Py_CLEAR(*tuple);
}

static PyObject *tensors(const core_iterator *self, PyObject *batch, uint32_t count)
{
    PyObject *made = empty_tuple(self, (Py_ssize_t)count);
    for (uint32_t i = 0; made != NULL && i < count; i++)
        put(&made, (Py_ssize_t)i, core_new_tensor(batch, i));
    return made;
}

/* The library's tensor of a field, of the kind that the consumer takes, or NULL: an exception. */
static void *tensor_of(const core_iterator *self, const stoker_batch *lent, uint32_t field,
                       struct CUstream_st *stream)
{
    DLManagedTensorVersioned *versioned = NULL;
    DLManagedTensor *unversioned = NULL;
    const int rc = self->versioned
                       ? stoker_batch_to_dlpack(lent, field, stream, &versioned)
                       : stoker_batch_to_dlpack_unversioned(lent, field, stream, &unversioned);
    if (rc < 0)
        core_raise_code(self->loader->state, rc, STOKER_STAGE_TRANSFER,
                        rc == STOKER_EINVAL ? "dlpack: the CUDA stream cannot be used" : NULL);
    return self->versioned ? (void *)versioned : (void *)unversioned;
}

/* The framework's array of a tensor, which it then owns, also on failure. */
static PyObject *taken(const core_iterator *self, void *managed)
{
    void *value = NULL;
    if (self->to_object != NULL)
        return self->to_object(managed, &value) == 0 ? value : NULL;
    PyObject *capsule = core_capsule_of(managed, self->versioned);
    if (capsule != NULL)
        value = PyObject_CallFunctionObjArgs(self->take, capsule, NULL);
    Py_XDECREF(capsule);
    return value;
}

/* Delete a tensor that no array was made of. */
static void drop(const core_iterator *self, void *managed)
{
    DLManagedTensorVersioned *versioned = managed;
    DLManagedTensor *unversioned = managed;
    if (self->versioned)
        versioned->deleter(versioned);
    else
        unversioned->deleter(unversioned);
}

/* Arrays of all fields, without a Batch in between. The consumer has entered, and leaves here. */
static PyObject *arrays(const core_iterator *self, stoker_batch *lent, struct CUstream_st *stream)
{
    void *parts[STOKER_FIELDS_MAX];
    const uint32_t count = lent->field_count;
    uint32_t had = 0, used = 0;
    while (had < count && (parts[had] = tensor_of(self, lent, had, stream)) != NULL)
        had++;
    stoker_batch_release(lent); /* the tensors hold its memory */
    core_leave_consumer(self->loader);
    PyObject *made = had == count ? empty_tuple(self, (Py_ssize_t)count) : NULL;
    for (; made != NULL && used < count; used++)
        put(&made, (Py_ssize_t)used, taken(self, parts[used]));
    while (used < had)
        drop(self, parts[used++]);
    return made;
}

static PyObject *made_together(const core_iterator *self, PyObject *capsules)
{
    PyObject *values = PyObject_CallFunctionObjArgs(self->make, capsules, NULL);
    const Py_ssize_t count = values != NULL ? PySequence_Size(values) : -1;
    PyObject *made = count >= 0 ? empty_tuple(self, count) : NULL;
    for (Py_ssize_t i = 0; made != NULL && i < count; i++)
        put(&made, i, PySequence_GetItem(values, i));
    Py_XDECREF(values);
    return made;
}

/* Tensors, which keep the Batch, or what `make` makes of its capsules. The consumer has entered,
 * and leaves here. */
static PyObject *of_batch(const core_iterator *self, stoker_batch *lent, struct CUstream_st *stream)
{
    PyObject *capsules = NULL, *made = NULL;
    PyObject *batch = core_new_batch(self->loader, lent);
    if (batch != NULL && self->make != NULL)
        capsules = core_batch_capsules(batch, stream, self->versioned);
    core_leave_consumer(self->loader);
    if (batch != NULL && self->make == NULL)
        made = tensors(self, batch, lent->field_count);
    Py_XDECREF(batch); /* capsules need it no more */
    if (capsules != NULL)
        made = made_together(self, capsules);
    Py_XDECREF(capsules);
    return made;
}

/* Epoch, index, padded rows and the ids, as uint64: see BatchExtras. In one object: one for each
 * would take longer than all the rest. */
static PyObject *extras_of(const stoker_batch *lent)
{
    const uint64_t numbers[] = { lent->epoch, lent->index, lent->padded };
    const size_t bytes = lent->count * sizeof(lent->ids[0]);
    PyObject *extras = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(sizeof(numbers) + bytes));
    if (extras == NULL)
        return NULL;
    memcpy(PyBytes_AsString(extras), numbers, sizeof(numbers));
    if (bytes > 0)
        memcpy(PyBytes_AsString(extras) + sizeof(numbers), lent->ids, bytes);
    return extras;
}

/* What is delivered. The consumer has entered, and leaves here: what follows may be the user's
 * code. */
static PyObject *deliver(core_iterator *self, stoker_batch *lent, struct CUstream_st *stream)
{
    PyObject *extras = extras_of(lent), *made = NULL;
    if (extras == NULL) {
        stoker_batch_release(lent);
        core_leave_consumer(self->loader);
        return NULL;
    }
    made = self->take != NULL && self->make == NULL ? arrays(self, lent, stream)
                                                    : of_batch(self, lent, stream);
    if (made != NULL && PyObject_SetAttr(made, self->extras, extras) < 0)
        Py_CLEAR(made);
    Py_DECREF(extras);
    if (made == NULL || self->change == NULL)
        return made;
    PyObject *result = PyObject_CallFunctionObjArgs(self->change, made, NULL);
    Py_DECREF(made);
    return result;
}

static int read_stream(core_iterator *self, struct CUstream_st **stream)
{
    *stream = NULL;
    if (self->stream == NULL)
        return 0;
    PyObject *number = PyObject_CallFunctionObjArgs(self->stream, NULL);
    const int rc = number != NULL ? core_stream(number, stream) : -1;
    Py_XDECREF(number);
    return rc;
}

static PyObject *next_running(core_iterator *self)
{
    core_loader *loader = self->loader;
    struct CUstream_st *stream;
    stoker_batch lent;
    int stop = 0;
    if (read_stream(self, &stream) < 0 || core_enter_consumer(loader) < 0)
        return NULL;
    const int rc = core_next(loader, &lent, self->timeout_ms, &stop);
    if (rc == 0 && stop == 0)
        return deliver(self, &lent, stream);
    if (rc == 0 && stop > 0 && stop != STOKER_INTERRUPTED)
        loader->runner = NULL;
    core_leave_consumer(loader);
    return rc == 0 && stop > 0 ? PyObject_CallMethod((PyObject *)self, "_end", "i", stop) : NULL;
}

static PyObject *next_batch(PyObject *object)
{
    core_iterator *self = (core_iterator *)object;
    if (self->loader == NULL || self->loader->runner != object || core_is_closing(self->loader))
        return PyObject_CallMethod(object, "_next", NULL);
    return next_running(self);
}

/* ---- beginning ---- */

static void set(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = value != Py_None ? value : NULL;
    Py_XINCREF(*place);
    Py_XDECREF(before);
}

/* A framework's function that makes its arrays of tensors of DLPack 1, or NULL. */
static int (*exchange_of(PyObject *capsule))(DLManagedTensorVersioned *, void **)
{
    const DLPackExchangeAPI *api = NULL;
    if (PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    while (api != NULL && api->major != 1)
        api = api->previous;
    return api != NULL ? api->to_object : NULL;
}

PyObject *core_run(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "batches", "timeout_ms", "kind",      "take",     "make",
                             "stream",  "change",     "versioned", "exchange", NULL };
    core_loader *loader = (core_loader *)object;
    PyObject *batches, *kind, *take, *make, *stream, *change, *exchange = Py_None;
    int timeout_ms, versioned;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!iO!OOOOp|O:run", names,
                                     loader->state->iterator_type, &batches, &timeout_ms,
                                     &PyType_Type, &kind, &take, &make, &stream, &change,
                                     &versioned, &exchange))
        return NULL;
    core_iterator *self = (core_iterator *)batches;
    if (!PyType_IsSubtype((PyTypeObject *)kind, &PyTuple_Type)) {
        PyErr_Format(PyExc_TypeError, "kind: a class of tuples, not %R", kind);
        return NULL;
    }
    self->new_tuple = (allocfunc)(uintptr_t)PyType_GetSlot((PyTypeObject *)kind, Py_tp_alloc);
    if (self->extras == NULL && (self->extras = PyUnicode_InternFromString("_extras")) == NULL)
        return NULL;
    self->timeout_ms = timeout_ms;
    self->to_object = make == Py_None ? exchange_of(exchange) : NULL;
    self->versioned = versioned != 0 || self->to_object != NULL;
    set(&self->kind, kind);
    set(&self->take, take);
    set(&self->make, make);
    set(&self->stream, stream);
    set(&self->change, change);
    set((PyObject **)&self->loader, object);
    loader->runner = batches;
    Py_RETURN_NONE;
}

/* ---- the type ---- */

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    core_iterator *self = (core_iterator *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->loader);
    Py_VISIT(self->kind);
    Py_VISIT(self->take);
    Py_VISIT(self->make);
    Py_VISIT(self->stream);
    Py_VISIT(self->change);
    return 0;
}

static int clear(PyObject *object)
{
    core_iterator *self = (core_iterator *)object;
    if (self->loader != NULL && self->loader->runner == object)
        self->loader->runner = NULL;
    Py_CLEAR(self->loader);
    Py_CLEAR(self->kind);
    Py_CLEAR(self->extras);
    Py_CLEAR(self->take);
    Py_CLEAR(self->make);
    Py_CLEAR(self->stream);
    Py_CLEAR(self->change);
    return 0;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    (void)clear(object);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

int core_add_iterator(PyObject *module, core_state *state)
{
    PyType_Slot slots[] = {
        CORE_SLOT(Py_tp_dealloc, dealloc),
        CORE_SLOT(Py_tp_traverse, traverse),
        CORE_SLOT(Py_tp_clear, clear),
        CORE_SLOT(Py_tp_iter, PyObject_SelfIter),
        CORE_SLOT(Py_tp_iternext, next_batch),
        { Py_tp_doc, "Batches as named tuples, made without Python code." },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "stoker._core.Batches",
                         .basicsize = sizeof(core_iterator),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                         .slots = slots };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->iterator_type = (PyTypeObject *)type;
    return type != NULL ? PyObject_SetAttrString(module, "Batches", type) : -1;
}
