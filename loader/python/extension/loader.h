/* loader.h - a loader of the library as a Python object, and the rules by which threads share it.
 *
 *   users       calls in flight, in any thread; close() waits until there is none, then destroys
 *               the handle
 *   consuming   one of them may be the consumer's (next, state, tensors): a second one is a
 *               RuntimeError
 *
 *   open ──close()──▶ closing: new calls are refused, the waiting one is interrupted ──users = 0──▶ closed
 *
 * A Batch has a reference to its Loader, so a Loader is freed after its batches. Their memory
 * outlives the handle and is returned after close(), too. Both words are
 * atomic since threads enter without a common lock on a Python without the GIL; in a forked child
 * they keep the values that other threads of the parent left, which is why close() asks the library
 * first if it is in a child.
 */
#ifndef STOKER_PYTHON_LOADER_H
#define STOKER_PYTHON_LOADER_H

#include <stdatomic.h>

#include "core.h"
#include "hooks.h"

typedef struct core_loader {
    PyObject_HEAD PyObject *weak; /* references from weakref.WeakSet */
    core_state *state;
    stoker_loader *handle; /* NULL: closed, or not made */
    PyObject *dataset;
    atomic_uint users;      /* calls in flight, and CORE_CLOSING */
    atomic_bool ended;      /* the handle is destroyed; release, acquire by what outlives it */
    atomic_bool consuming;  /* acquire by the call that enters, release by the one that leaves */
    unsigned long consumer; /* the thread that consumes; valid while it does */
    bool keeps_gil; /* a call that does not wait may keep the GIL: nobody else's code runs in it */
    bool grows;     /* options.on_lent is GROW */
    /* Of the consumer: calls of next() that will wait at once, without looking if a batch is ready;
     * and the index behind the epoch's last batch that next() returned, 0: none of it yet. */
    uint32_t looks_to_skip;
    uint64_t delivered;
    PyObject *runner; /* the Batches that runs, which clears this when it is freed; NULL: none */
    struct core_hooks hooks; /* the user's code, and what the library knows of it */
} core_loader;

int core_add_loader(PyObject *module, core_state *state);

/* Enter a call that any thread may make; RuntimeError if the loader is closed. Then leave it. */
int core_enter(core_loader *loader);
void core_leave(core_loader *loader);

/* The same without an exception: false if the loader is closed. */
bool core_try_enter(core_loader *loader);

/* Enter a call of the consumer; RuntimeError if another thread is in one. Then leave it. */
int core_enter_consumer(core_loader *loader);
void core_leave_consumer(core_loader *loader);

/* True from close() on. */
bool core_is_closing(const core_loader *loader);

/* The next batch; the consumer has entered. *stop is a normal stop, or 0: then `batch` is lent. -1:
 * an exception. */
int core_next(core_loader *self, stoker_batch *batch, int32_t timeout_ms, int *stop);

/* ---- options.c: a dictionary as stoker_loader_options ---- */

typedef struct core_options {
    stoker_loader_options c;
    PyObject *keep; /* texts and numbers that c points to */
    stoker_order order;
    float mean[STOKER_CHANNELS_MAX], std[STOKER_CHANNELS_MAX];
    stoker_field_options fields[STOKER_FIELDS_MAX];
} core_options;

/* Fill `options`, all zero before, from a dictionary; what calls the user's code goes to `hooks`.
 * Free options->keep after use, also on failure. */
int core_read_options(PyObject *dict, core_options *options, struct core_hooks *hooks);

/* ---- stats.c ---- */

PyObject *core_stats(PyObject *self, PyObject *unused);
PyObject *core_snapshot(PyObject *self, PyObject *unused);
PyObject *core_stats_between(PyObject *module, PyObject *args);
PyObject *core_take_trace(PyObject *object, PyObject *args, PyObject *keywords);
PyObject *core_trace_json(PyObject *module, PyObject *argument);

/* ---- mix.c ---- */

PyObject *core_loader_mix_counts(PyObject *object, PyObject *unused);
PyObject *core_change_mix(PyObject *object, PyObject *args, PyObject *keywords);

/* ---- batch.c ---- */

int core_add_batch(PyObject *module, core_state *state);

/* A new Batch of what next() delivered, which is given back on failure. */
PyObject *core_new_batch(core_loader *loader, stoker_batch *lent);

/* A tuple of a capsule per field, a pair of them for one that varies. The consumer has entered. */
PyObject *core_batch_capsules(PyObject *object, struct CUstream_st *stream, bool versioned);

/* ---- iterator.c ---- */

int core_add_iterator(PyObject *module, core_state *state);

/* The method run(). */
PyObject *core_run(PyObject *object, PyObject *args, PyObject *keywords);

/* ---- tensor.c ---- */

int core_add_tensor(PyObject *module, core_state *state);
PyObject *core_new_tensor(PyObject *batch, uint32_t part);

/* A stream as Python passes it: None or an int. */
int core_stream(PyObject *value, struct CUstream_st **out);

#endif
