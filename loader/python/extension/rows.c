/* rows.c - see rows.h.
 *
 * The limited API declares the buffer protocol from 3.11 on. The interpreter has accepted its two
 * slots since 3.9, and the struct has the same layout in all versions, so both are declared here;
 * no function of the protocol is called.
 */
#include <stdatomic.h>

#include "rows.h"

/* Py_buffer, which never changes. */
struct buffer {
    void *data;
    PyObject *owner;
    Py_ssize_t bytes;
    Py_ssize_t item_bytes;
    int readonly;
    int rank;
    const char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
};

#if !defined(Py_LIMITED_API) || Py_LIMITED_API >= 0x030B0000
_Static_assert(sizeof(struct buffer) == sizeof(Py_buffer), "Py_buffer's ABI");
#endif

enum { SLOT_GETBUFFER = 1, SLOT_RELEASEBUFFER = 2 }; /* Py_bf_getbuffer, Py_bf_releasebuffer */
enum { WANTS_WRITABLE = 0x1, WANTS_FORMAT = 0x4, WANTS_SHAPE = 0x8, WANTS_STRIDES = 0x10 };

typedef struct rows {
    PyObject_HEAD void *data; /* NULL: the call is over */
    Py_ssize_t bytes;
    bool writable;
    atomic_int exports;
} rows;

static int get_buffer(PyObject *object, struct buffer *out, int wanted)
{
    rows *self = (rows *)object;
    out->owner = NULL;
    if (self->data == NULL || ((wanted & WANTS_WRITABLE) != 0 && !self->writable)) {
        PyErr_SetString(PyExc_BufferError, self->data == NULL
                                               ? "rows are shown during the call only"
                                               : "these rows cannot be written");
        return -1;
    }
    *out = (struct buffer){ .data = self->data,
                            .bytes = self->bytes,
                            .item_bytes = 1,
                            .readonly = !self->writable,
                            .rank = 1,
                            .format = (wanted & WANTS_FORMAT) != 0 ? "B" : NULL };
    out->shape = (wanted & WANTS_SHAPE) != 0 ? &out->bytes : NULL;
    out->strides = (wanted & WANTS_STRIDES) != 0 ? &out->item_bytes : NULL;
    Py_INCREF(object);
    out->owner = object;
    atomic_fetch_add_explicit(&self->exports, 1, memory_order_relaxed);
    return 0;
}

static void release_buffer(PyObject *object, struct buffer *buffer)
{
    (void)buffer;
    atomic_fetch_sub_explicit(&((rows *)object)->exports, 1, memory_order_relaxed);
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

PyObject *core_show(core_state *state, PyObject *shown, void *data, size_t bytes, bool writable)
{
    static char nothing[1]; /* an address, also of no bytes */
    rows *self = PyObject_New(rows, state->rows_type);
    if (self == NULL)
        return NULL;
    self->data = data != NULL ? data : nothing;
    self->bytes = (Py_ssize_t)bytes;
    self->writable = writable;
    atomic_init(&self->exports, 0);
    PyObject *view = PyMemoryView_FromObject((PyObject *)self);
    int rc = view != NULL ? PyList_Append(shown, (PyObject *)self) : -1;
    if (rc == 0)
        rc = PyList_Append(shown, view);
    if (rc < 0 && view != NULL)
        self->data = NULL;
    Py_DECREF((PyObject *)self);
    Py_XDECREF(view); /* the list holds it */
    return rc == 0 ? view : NULL;
}

static bool hide(PyObject *object, core_state *state)
{
    if (Py_TYPE(object) !=
        state->rows_type) { /* a view: what else uses it is an export of its own */
        PyObject *done = PyObject_CallMethod(object, "release", NULL);
        Py_XDECREF(done);
        PyErr_Clear();
        return true;
    }
    rows *self = (rows *)object;
    self->data = NULL;
    return atomic_load_explicit(&self->exports, memory_order_relaxed) == 0;
}

bool core_hide(core_state *state, PyObject *shown)
{
    bool hidden = true;
    for (Py_ssize_t i = PyList_Size(shown); i-- > 0;) /* views before their rows */
        hidden = hide(PyList_GetItem(shown, i), state) && hidden;
    return hidden;
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "Rows are shown to hooks");
    return NULL;
}

int core_add_rows(PyObject *module, core_state *state)
{
    PyType_Slot slots[] = {
        CORE_SLOT(Py_tp_new, refuse_new),
        CORE_SLOT(Py_tp_dealloc, dealloc),
        CORE_SLOT(SLOT_GETBUFFER, get_buffer),
        CORE_SLOT(SLOT_RELEASEBUFFER, release_buffer),
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "stoker._core.Rows",
                         .basicsize = sizeof(rows),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = slots };
    state->rows_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->rows_type != NULL ? 0 : -1;
}
