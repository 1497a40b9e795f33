/* hooks.h - the user's code in a loader: row hook, batch hook, order and log.
 *
 * The library calls it in workers, or in the thread that calls create or next(); each call takes
 * the GIL for itself.
 *
 * Hooks change rows in place, through memoryviews that are released when the call ends. If one
 * cannot be released, since the user's code keeps an array over it, that array points to memory
 * that the loader will refill and free. Then the call is an error, and `kept` says that the loader
 * must never be destroyed: its memory stays until the process ends.
 */
#ifndef STOKER_PYTHON_HOOKS_H
#define STOKER_PYTHON_HOOKS_H

#include <stdatomic.h>

#include "core.h"

struct core_hooks {
    core_state *state;
    PyObject *row, *batch, *order, *log; /* callables, or NULL */
    stoker_row_hook row_hook;
    stoker_batch_hook batch_hook;
    atomic_bool kept;   /* a view of a row outlives its call */
    atomic_bool closed; /* the loader is closed but, with `kept`, not destroyed: call nothing */
};

/* Take a callable for a hook, the order or the log, and point the options to it. */
int core_set_row_hook(struct core_hooks *hooks, PyObject *call, stoker_loader_options *options);
int core_set_batch_hook(struct core_hooks *hooks, PyObject *call, stoker_loader_options *options);
int core_set_order(struct core_hooks *hooks, PyObject *call, stoker_order *order);
int core_set_log(struct core_hooks *hooks, PyObject *call, stoker_loader_options *options);

bool core_hooks_exist(const struct core_hooks *hooks);

#endif
