/* rows.h - memory of the loader shown to the user's code for the length of a call.
 *
 *   memory ◀── Rows ◀── memoryview ◀── what the user's code makes of it: casts, slices, NumPy arrays
 *
 * Each of those is an export of Rows while it lives. When the call ends the memoryview is released,
 * and a count of exports above zero means that the user's code keeps something that points to
 * memory which the loader will refill and free.
 */
#ifndef STOKER_PYTHON_ROWS_H
#define STOKER_PYTHON_ROWS_H

#include "core.h"

int core_add_rows(PyObject *module, core_state *state);

/* A memoryview of bytes at `data`, writable or not; the list `shown` holds it and its Rows.
 * Borrowed. */
PyObject *core_show(core_state *state, PyObject *shown, void *data, size_t bytes, bool writable);

/* End all views of a list. False: something keeps one. */
bool core_hide(core_state *state, PyObject *shown);

#endif
