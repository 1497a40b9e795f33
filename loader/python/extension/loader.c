/* loader.c - the type Loader: made from options, used by one consumer at a time, closed by any
 * thread. See loader.h. */
#include <string.h>
#include <time.h>

#include "loader.h"

#define CORE_CLOSING 0x80000000U /* in users */

enum {
    SLICE_MS = 50,   /* signal handlers run at least that often while next() waits */
    LOOKS = 16,      /* calls that wait without looking first, after one that looked in vain */
    LENT_MS = 10000, /* with GROW and no memory left: wait this long for a batch to be freed */
};

/* ---- which calls may be at once ---- */

bool core_try_enter(core_loader *loader)
{
    /* acquire: pairs with the release of a call that left; close() sees all of them done */
    if ((atomic_fetch_add_explicit(&loader->users, 1, memory_order_acquire) & CORE_CLOSING) == 0)
        return true;
    core_leave(loader);
    return false;
}

int core_enter(core_loader *loader)
{
    if (core_try_enter(loader))
        return 0;
    core_raise_code(loader->state, STOKER_EINVAL, STOKER_STAGE_WAIT, "the loader is closed");
    return -1;
}

void core_leave(core_loader *loader)
{
    atomic_fetch_sub_explicit(&loader->users, 1, memory_order_release);
}

static bool is_forked(const core_loader *loader)
{
    stoker_stats stats = STOKER_STATS_INIT; /* the call that does nothing else */
    return stoker_loader_stats(loader->handle, &stats) == STOKER_EFORKED;
}

static int refuse_second_consumer(core_loader *loader)
{
    if (is_forked(loader))
        core_raise_code(loader->state, STOKER_EFORKED, STOKER_STAGE_WAIT, NULL);
    else
        core_raise_code(loader->state, STOKER_BUSY, STOKER_STAGE_WAIT,
                        "another thread is in a call of this loader: one thread at a time uses it");
    core_leave(loader);
    return -1;
}

int core_enter_consumer(core_loader *loader)
{
    if (core_enter(loader) < 0)
        return -1;
    /* acquire: what the consumer before this one did in the library happened before */
    if (atomic_exchange_explicit(&loader->consuming, true, memory_order_acquire))
        return refuse_second_consumer(loader);
    loader->consumer = PyThread_get_thread_ident();
    return 0;
}

void core_leave_consumer(core_loader *loader)
{
    atomic_store_explicit(&loader->consuming, false, memory_order_release);
    core_leave(loader);
}

/* ---- closing ---- */

/* Wait for the calls in flight, which see CORE_CLOSING within a slice. Without the GIL, since they
 * need it. */
static void await_calls(core_loader *self)
{
    const struct timespec pause = { .tv_nsec = 200000 };
    while (atomic_load_explicit(&self->users, memory_order_acquire) != CORE_CLOSING) {
        (void)stoker_loader_interrupt(self->handle);
        (void)nanosleep(&pause, NULL);
    }
}

/* Destroy the handle, once nothing uses it. */
static void destroy(core_loader *self)
{
    stoker_loader *handle = self->handle;
    self->handle = NULL;
    if (handle == NULL)
        return;
    if (atomic_load_explicit(&self->hooks.kept, memory_order_relaxed)) { /* see hooks.h */
        atomic_store_explicit(&self->hooks.closed, true, memory_order_release);
        Py_INCREF((PyObject *)self);
        return;
    }
    Py_BEGIN_ALLOW_THREADS stoker_loader_destroy(&handle);
    atomic_store_explicit(&self->ended, true, memory_order_release);
    Py_END_ALLOW_THREADS
}

/* Refuse new calls and wait for those in flight. 1: the caller destroys the handle; 0: another call
 * does, or has; -1: an exception. */
static int end_calls(core_loader *self)
{
    if (atomic_load_explicit(&self->consuming, memory_order_acquire) &&
        self->consumer == PyThread_get_thread_ident() && !is_forked(self)) {
        core_raise_code(self->state, STOKER_BUSY, STOKER_STAGE_WAIT,
                        "close() inside of a call of the same loader");
        return -1;
    }
    if ((atomic_fetch_or_explicit(&self->users, CORE_CLOSING, memory_order_acq_rel) &
         CORE_CLOSING) != 0)
        return 0;
    if (self->handle != NULL && !is_forked(self)) {
        Py_BEGIN_ALLOW_THREADS await_calls(self);
        Py_END_ALLOW_THREADS
    }
    return 1;
}

static int close_loader(core_loader *self)
{
    const int rc = end_calls(self);
    if (rc == 1)
        destroy(self);
    return rc < 0 ? -1 : 0;
}

/* Close a loader, but leave its handle, of which another loader is made. NULL without an exception:
 * there is none. */
static int take_handle(core_loader *self, stoker_loader **handle)
{
    *handle = NULL;
    const int rc = end_calls(self);
    if (rc == 1 && atomic_load_explicit(&self->hooks.kept, memory_order_relaxed)) {
        destroy(self);
    } else if (rc == 1) {
        *handle = self->handle;
        self->handle = NULL;
    }
    return rc < 0 ? -1 : 0;
}

static PyObject *close_method(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (close_loader((core_loader *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *leave_with(PyObject *self, PyObject *unused)
{
    return close_method(self, unused);
}

static PyObject *enter_with(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

/* ---- making one ---- */

static int create(core_loader *self, const core_options *options, core_loader *previous)
{
    const stoker_dataset *dataset = ((core_dataset *)self->dataset)->handle;
    stoker_loader *handle = NULL;
    stoker_error error;
    int rc;
    if (previous != NULL && take_handle(previous, &handle) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS rc = handle != NULL
                                    ? stoker_loader_restart(&handle, &options->c, &error)
                                    : stoker_loader_create(&handle, dataset, &options->c, &error);
    if (rc < 0)
        stoker_loader_destroy(&handle); /* restart leaves it if an option is refused */
    if (previous != NULL)
        atomic_store_explicit(&previous->ended, true, memory_order_release);
    Py_END_ALLOW_THREADS if (rc < 0)
    {
        core_raise(self->state, &error);
        return -1;
    }
    self->handle = handle;
    /* Without workers next() does their work, and the user's code needs the GIL in other
     * threads. */
    self->keeps_gil = options->c.num_workers != 0 && !core_hooks_exist(&self->hooks) &&
                      !((core_dataset *)self->dataset)->calls_python;
    self->grows = options->c.on_lent == STOKER_ON_LENT_GROW;
    atomic_store_explicit(&self->users, 0, memory_order_release);
    return 0;
}

/* Known to the module, so that it is closed when the interpreter exits. */
static int add_live(core_loader *self)
{
    PyObject *done = PyObject_CallMethod(self->state->live, "add", "O", (PyObject *)self);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

static int set_up(core_loader *self, PyObject *dict, core_loader *previous)
{
    core_options *options = core_zeroed(sizeof(*options));
    if (options == NULL)
        return -1;
    int rc = core_read_options(dict, options, &self->hooks);
    if (rc == 0)
        rc = add_live(self);
    if (rc == 0)
        rc = create(self, options, previous);
    Py_XDECREF(options->keep);
    PyMem_Free(options);
    return rc;
}

static PyObject *new_loader(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "dataset", "options", "previous", NULL };
    core_state *state = core_state_of(type);
    PyObject *dataset, *options = NULL, *previous = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO!:Loader", names, &dataset, &options,
                                     type, &previous))
        return NULL;
    if (Py_TYPE(dataset) != state->dataset_type)
        return PyErr_Format(PyExc_TypeError, "dataset: a Dataset, not %R", dataset);
    if (previous != NULL && ((core_loader *)previous)->dataset != dataset) {
        PyErr_SetString(PyExc_ValueError, "previous: a Loader of the same Dataset is expected");
        return NULL;
    }
    allocfunc allocate = (allocfunc)(uintptr_t)PyType_GetSlot(type, Py_tp_alloc);
    core_loader *self = (core_loader *)allocate(type, 0); /* all zero */
    if (self == NULL)
        return NULL;
    self->state = state;
    self->hooks.state = state;
    atomic_init(&self->users, CORE_CLOSING); /* until there is a handle */
    Py_INCREF(dataset);
    self->dataset = dataset;
    if (set_up(self, options, (core_loader *)previous) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* ---- the next batch ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int wait_slice(core_loader *self, stoker_batch *batch, int32_t timeout_ms)
{
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = stoker_loader_next(self->handle, batch, timeout_ms);
    Py_END_ALLOW_THREADS return rc;
}

bool core_is_closing(const core_loader *self)
{
    return (atomic_load_explicit(&self->users, memory_order_relaxed) & CORE_CLOSING) != 0;
}

/* Wait in slices, so that signal handlers run and close() is seen. *rc is what the library
 * returned; -1: an exception. */
static int wait_next(core_loader *self, stoker_batch *batch, int32_t timeout_ms, int *rc)
{
    int64_t start = 0, left = timeout_ms;
    for (;;) {
        const int32_t slice = timeout_ms < 0 || left > SLICE_MS ? SLICE_MS : (int32_t)left;
        *rc = wait_slice(self, batch, slice);
        if (*rc == STOKER_INTERRUPTED &&
            PyErr_Occurred() != NULL) /* raised by the user's code: see maker.c */
            return -1;
        if (*rc != STOKER_TIMEOUT && *rc != STOKER_BUSY && *rc != STOKER_INTERRUPTED)
            return 0;
        if (core_is_closing(self)) {
            core_raise_code(self->state, STOKER_EINVAL, STOKER_STAGE_WAIT,
                            "the loader was closed during the call");
            return -1;
        }
        if (*rc == STOKER_INTERRUPTED)
            return 0;
        if (PyErr_CheckSignals() < 0)
            return -1;
        const int64_t now = now_ms();
        if (start == 0) /* most waits need no clock; BUSY may come before the slice has passed */
            start = now - (*rc == STOKER_TIMEOUT ? slice : 0);
        left = timeout_ms - (now - start);
        if ((timeout_ms >= 0 && left <= 0) ||
            (*rc == STOKER_BUSY && self->grows && now - start >= LENT_MS))
            return 0;
    }
}

/* The library's own error if it has failed for good, else one made of the code. */
static void raise_next(core_loader *self, int rc)
{
    const stoker_error *error = stoker_loader_error(self->handle);
    if (error != NULL && error->code == rc)
        core_raise(self->state, error);
    else
        core_raise_code(self->state, rc, STOKER_STAGE_WAIT, NULL);
}

/* Take a batch that is ready without a handover of the GIL. Where batches come later than they are
 * wanted, looking first costs more than the GIL: then only every LOOKS-th call looks. */
static int look(core_loader *self, stoker_batch *batch)
{
    if (!self->keeps_gil || self->looks_to_skip > 0) {
        self->looks_to_skip -= self->looks_to_skip > 0;
        return STOKER_TIMEOUT;
    }
    const int rc = stoker_loader_next(self->handle, batch, 0);
    if (rc == STOKER_TIMEOUT)
        self->looks_to_skip = LOOKS;
    return rc;
}

int core_next(core_loader *self, stoker_batch *batch, int32_t timeout_ms, int *stop)
{
    if (timeout_ms < -1) {
        PyErr_SetString(PyExc_ValueError, "timeout_ms: at least -1");
        return -1;
    }
    *batch = (stoker_batch)STOKER_BATCH_INIT;
    int rc = look(self, batch);
    if ((rc == STOKER_TIMEOUT || rc == STOKER_BUSY) && wait_next(self, batch, timeout_ms, &rc) < 0)
        return -1;
    if (rc < 0 || rc == STOKER_TIMEOUT || rc == STOKER_BUSY) {
        raise_next(self, rc);
        return -1;
    }
    self->delivered = rc == 0 ? batch->index + 1 : rc == STOKER_EPOCH_END ? 0 : self->delivered;
    *stop = rc;
    return 0;
}

static int read_timeout(PyObject *value, int32_t *out)
{
    *out = -1;
    return value != NULL ? core_i32(value, "timeout_ms", out) : 0;
}

static PyObject *next_method(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "timeout_ms", NULL };
    core_loader *self = (core_loader *)object;
    PyObject *timeout = NULL, *result = NULL;
    int32_t timeout_ms;
    stoker_batch batch;
    int stop;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:next", names, &timeout) ||
        read_timeout(timeout, &timeout_ms) < 0 || core_enter_consumer(self) < 0)
        return NULL;
    if (core_next(self, &batch, timeout_ms, &stop) == 0)
        result = stop > 0 ? PyLong_FromLong(stop) : core_new_batch(self, &batch);
    core_leave_consumer(self);
    return result;
}

/* ---- what it says of itself ---- */

static PyObject *interrupt(PyObject *object, PyObject *unused)
{
    (void)unused;
    core_loader *self = (core_loader *)object;
    if (core_enter(self) < 0)
        return NULL;
    const int rc = stoker_loader_interrupt(self->handle);
    core_leave(self);
    if (rc < 0)
        return core_raise_code(self->state, rc, STOKER_STAGE_WAIT, NULL);
    Py_RETURN_NONE;
}

static PyObject *get_state(PyObject *object, PyObject *unused)
{
    (void)unused;
    core_loader *self = (core_loader *)object;
    stoker_error error;
    if (core_enter_consumer(self) < 0)
        return NULL;
    size_t size = 0;
    PyObject *bytes = NULL;
    int rc = stoker_loader_state(self->handle, NULL, 0, &size, &error);
    if (rc == 0)
        bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes != NULL) {
        char *at = PyBytes_AsString(bytes);
        Py_BEGIN_ALLOW_THREADS rc = stoker_loader_state(self->handle, at, size, NULL, &error);
        Py_END_ALLOW_THREADS
    }
    core_leave_consumer(self);
    if (rc == 0)
        return bytes;
    Py_XDECREF(bytes);
    return core_raise(self->state, &error);
}

static PyObject *bad_sample(PyObject *object, PyObject *number)
{
    core_loader *self = (core_loader *)object;
    uint64_t index;
    stoker_error report;
    if (core_u64(number, "index", &index) < 0 || core_enter(self) < 0)
        return NULL;
    const int rc = stoker_loader_bad_sample(self->handle, index, &report);
    core_leave(self);
    if (rc == STOKER_EINVAL)
        Py_RETURN_NONE;
    return rc == 0 ? core_error_dict(&report)
                   : core_raise_code(self->state, rc, STOKER_STAGE_WAIT, NULL);
}

static PyObject *fileno_method(PyObject *object, PyObject *unused)
{
    (void)unused;
    core_loader *self = (core_loader *)object;
    stoker_error error;
    int fd = -1;
    if (core_enter_consumer(self) < 0)
        return NULL;
    const int rc = stoker_loader_fd(self->handle, &fd, &error);
    core_leave_consumer(self);
    return rc == 0 ? PyLong_FromLong(fd) : core_raise(self->state, &error);
}

static PyObject *field_index(PyObject *object, PyObject *name)
{
    core_loader *self = (core_loader *)object;
    PyObject *keep = PyList_New(0);
    const char *text = keep != NULL ? core_text(name, "name", keep) : NULL;
    PyObject *index = NULL;
    if (text != NULL && core_enter(self) == 0) {
        index = PyLong_FromLong(stoker_loader_find_field(self->handle, text));
        core_leave(self);
    }
    Py_XDECREF(keep);
    return index;
}

static int add_name(PyObject *list, const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    const int rc = text != NULL ? PyList_Append(list, text) : -1;
    Py_XDECREF(text);
    return rc;
}

/* The data set's fields, then those of a blend. */
static PyObject *names_of(core_loader *self)
{
    static const char *const mixed[] = { "label_b", "partner", "lambda" };
    const stoker_dataset *dataset = ((core_dataset *)self->dataset)->handle;
    const uint32_t count = stoker_dataset_get_info(dataset)->field_count;
    PyObject *list = PyList_New(0), *tuple = NULL;
    int rc = list != NULL ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = add_name(list, stoker_dataset_field(dataset, i)->name);
    for (size_t i = 0; rc == 0 && i < 3; i++)
        if (stoker_loader_find_field(self->handle, mixed[i]) >= (int32_t)count)
            rc = add_name(list, mixed[i]);
    if (rc == 0)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyObject *get_fields(PyObject *object, void *unused)
{
    (void)unused;
    if (core_enter((core_loader *)object) < 0)
        return NULL;
    PyObject *names = names_of((core_loader *)object);
    core_leave((core_loader *)object);
    return names;
}

static PyObject *get_batches(PyObject *object, void *unused)
{
    (void)unused;
    core_loader *self = (core_loader *)object;
    if (core_enter(self) < 0)
        return NULL;
    const uint64_t batches = stoker_loader_batches_per_epoch(self->handle);
    core_leave(self);
    return PyLong_FromUnsignedLongLong(batches);
}

static PyObject *get_delivered(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((core_loader *)object)->delivered);
}

static PyObject *halt(PyObject *object, PyObject *unused)
{
    (void)unused;
    ((core_loader *)object)->runner = NULL;
    Py_RETURN_NONE;
}

static PyObject *get_dataset(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *dataset = ((core_loader *)object)->dataset;
    Py_INCREF(dataset);
    return dataset;
}

static PyObject *get_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(core_is_closing((core_loader *)object));
}

/* ---- the type ---- */

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    core_loader *self = (core_loader *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->dataset);
    Py_VISIT(self->hooks.row);
    Py_VISIT(self->hooks.batch);
    Py_VISIT(self->hooks.order);
    Py_VISIT(self->hooks.log);
    return 0;
}

/* Before the collector clears what the workers may still call. */
static void finalize(PyObject *object)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (close_loader((core_loader *)object) < 0)
        PyErr_WriteUnraisable(object);
    PyErr_Restore(type, value, traceback);
}

static int clear(PyObject *object)
{
    core_loader *self = (core_loader *)object;
    if (self->handle != NULL || atomic_load_explicit(&self->hooks.kept, memory_order_relaxed))
        return 0; /* workers may need what follows */
    Py_CLEAR(self->dataset);
    Py_CLEAR(self->hooks.row);
    Py_CLEAR(self->hooks.batch);
    Py_CLEAR(self->hooks.order);
    Py_CLEAR(self->hooks.log);
    return 0;
}

static void dealloc(PyObject *object)
{
    core_loader *self = (core_loader *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak != NULL)
        PyObject_ClearWeakRefs(object);
    finalize(object);
    if (atomic_load_explicit(&self->hooks.kept, memory_order_relaxed))
        return; /* see hooks.h: the library still points to it */
    clear(object);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    { "next", CORE_METHOD(next_method), METH_VARARGS | METH_KEYWORDS,
      "The next batch, or EPOCH_END, FINISHED or INTERRUPTED." },
    { "run", CORE_METHOD(core_run), METH_VARARGS | METH_KEYWORDS,
      "Let a Batches make the batches from here on." },
    { "halt", halt, METH_NOARGS, "Let the Batches that run call _next() from here on." },
    { "interrupt", interrupt, METH_NOARGS, "Let the call of next() that waits return." },
    { "state", get_state, METH_NOARGS, "The position after the last batch." },
    { "stats", core_stats, METH_NOARGS, "What it did so far." },
    { "snapshot", core_snapshot, METH_NOARGS, "The same for stats_between()." },
    { "bad_sample", bad_sample, METH_O, "A report of a bad sample." },
    { "take_trace", CORE_METHOD(core_take_trace), METH_VARARGS | METH_KEYWORDS,
      "Events since the last call." },
    { "fileno", fileno_method, METH_NOARGS, "Readable while next() would not wait." },
    { "field", field_index, METH_O, "The index of a field." },
    { "mix_counts", core_loader_mix_counts, METH_NOARGS, "What each source of a mix has had." },
    { "change_mix", CORE_METHOD(core_change_mix), METH_VARARGS | METH_KEYWORDS,
      "Other weights from a position on." },
    { "close", close_method, METH_NOARGS, "Stop the workers and free the memory." },
    { "__enter__", enter_with, METH_NOARGS, NULL },
    { "__exit__", leave_with, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef properties[] = {
    { "fields", get_fields, NULL, "Names of the batches' fields.", NULL },
    { "batches_per_epoch", get_batches, NULL, "Batches per epoch.", NULL },
    { "delivered", get_delivered, NULL, "Index behind the epoch's last batch so far.", NULL },
    { "dataset", get_dataset, NULL, "The data set.", NULL },
    { "closed", get_closed, NULL, "True after close().", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

int core_add_loader(PyObject *module, core_state *state)
{
    PyMemberDef members[] = {
        { "__weaklistoffset__", T_PYSSIZET, offsetof(core_loader, weak), READONLY, NULL },
        { NULL, 0, 0, 0, NULL },
    };
    PyType_Slot slots[] = {
        CORE_SLOT(Py_tp_new, new_loader),
        CORE_SLOT(Py_tp_dealloc, dealloc),
        CORE_SLOT(Py_tp_finalize, finalize),
        CORE_SLOT(Py_tp_traverse, traverse),
        CORE_SLOT(Py_tp_clear, clear),
        { Py_tp_methods, methods },
        { Py_tp_getset, properties },
        { Py_tp_members, members },
        { Py_tp_doc, "Batches in order, prepared ahead by worker threads." },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "stoker._core.Loader",
                         .basicsize = sizeof(core_loader),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                         .slots = slots };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->loader_type = (PyTypeObject *)type;
    return type != NULL ? PyObject_SetAttrString(module, "Loader", type) : -1;
}
