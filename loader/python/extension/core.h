/* core.h - what the files of stoker._core share: the module's state, errors, and conversions.
 *
 *   module.c      the module: state, constants, what happens at exit
 *   errors.c      an error of the library, or of the user's code, becomes a Python exception
 *   values.c      Python objects as numbers, words and bytes
 *
 * Every function that takes or returns a PyObject needs the GIL (or an attached thread, without one). Functions that return
 * an int return 0, or -1 with a Python exception set. README.md draws the ownership.
 */
#ifndef STOKER_PYTHON_CORE_H
#define STOKER_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/stoker.h>

/* One per module object. Python frees it with the module; the objects are references that the module owns. */
typedef struct core_state {
    PyTypeObject *dataset_type, *loader_type, *batch_type, *tensor_type;
    PyObject *make_error; /* stoker._errors.make; NULL until the first failure */
    PyObject *live;       /* a weakref.WeakSet of the loaders that exist */
    PyObject *raised;     /* a list of exceptions of the user's code that no call has raised yet */
    PyObject *clear_frames; /* traceback.clear_frames */
} core_state;

/* A slot of a type: ISO C knows no conversion of a function's address to void *. */
#define CORE_SLOT(id, function)                                                                    \
    {                                                                                              \
        (id), (void *)(uintptr_t)(function)                                                        \
    }
/* A method with keywords, as the table of methods wants it. */
#define CORE_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* The state of the module that `type`, one of its types, belongs to. */
core_state *core_state_of(PyTypeObject *type);

/* ---- errors.c ---- */

/* Raise what stoker._errors.make() returns for this error. Returns NULL. */
PyObject *core_raise(core_state *state, const stoker_error *error);

/* The same for a call that returned `code` (< 0) without a stoker_error. */
PyObject *core_raise_code(core_state *state, int code, stoker_stage stage, const char *message);

/* The user's code has raised: take the exception, keep it for the call that will fail of it, and describe it in *error.
 * Returns the code, which `error` holds as well. */
int core_keep_exception(core_state *state, const char *what, stoker_error *error);

/* An error as a new dictionary: the keywords of make(). */
PyObject *core_error_dict(const stoker_error *error);

/* ---- values.c ---- */

/* Numbers; `name` is for messages. A bool is no number. */
int core_u64(PyObject *value, const char *name, uint64_t *out);
int core_u32(PyObject *value, const char *name, uint32_t *out);
int core_i32(PyObject *value, const char *name, int32_t *out);
int core_double(PyObject *value, const char *name, double *out);
int core_bool(PyObject *value, const char *name, bool *out);

/* Text as the file system's names are encoded, valid while `keep`, a list, lives; ValueError if it holds a NUL. */
const char *core_text(PyObject *value, const char *name, PyObject *keep);

/* The index of the word that `value` is, in words[0..count); NULL entries match nothing. -1: a ValueError that lists them. */
int core_word(PyObject *value, const char *name, const char *const *words, size_t count);

/* An element type by its name. */
int core_dtype(PyObject *value, const char *name, stoker_dtype *out);

/* The bytes of an object: itself if it is bytes, else a copy of what memoryview() takes. New reference. */
PyObject *core_bytes(PyObject *value, const char *name);

/* The same, as numbers of 8 bytes: a TypeError if the length is no multiple. *count becomes their number. */
PyObject *core_numbers(PyObject *value, const char *name, uint64_t *count);

/* A tuple of ints. New reference. */
PyObject *core_shape(const uint64_t *shape, uint32_t rank);

/* Put a value, whose reference is taken also on failure, into a dictionary. NULL: an exception is set already. */
int core_put(PyObject *dict, const char *key, PyObject *value);

#endif
