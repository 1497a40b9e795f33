/* core.h - what the files of stoker._core share: the module's state, errors, and conversions.
 *
 *   module.c      the module: state, constants, what happens at exit
 *   errors.c      an error of the library, or of the user's code, becomes a Python exception
 *   values.c      Python objects as numbers, words and bytes
 *   dataset.c     the type Dataset, and views of it
 *   arrays.c      Dataset.arrays(): the user's memory as a data set
 *   files.c       Dataset.files(): lists of files, and the user's memory beside them
 *   mix.c         mixes: Dataset.mix(), what each source has had, other weights while a loader runs
 *   pack.c        Dataset.pack(): rows packed from documents
 *   maker.c       Dataset.python(): samples that the user's code makes
 *   storage.c     names that the user's code lists and reads
 *   loader.c      the type Loader: next, state, close; what may happen at once
 *   options.c     a dictionary as stoker_loader_options
 *   hooks.c       the user's code in a loader: hooks, order, log
 *   rows.c        memory of the loader shown to the user's code for the length of a call
 *   iterator.c    the type Batches: batches as named tuples, in a loop without Python code
 *   stats.c       stoker_stats as a dictionary; traces
 *   batch.c       the type Batch: lent memory, and its return
 *   tensor.c      the type Tensor, and capsules
 *   share.c       one tensor of the library for any number of consumers
 *
 * Every function that takes or returns a PyObject needs the GIL (or an attached thread, without
 * one). Functions that return an int return 0, or -1 with a Python exception set. README.md draws
 * the ownership.
 */
#ifndef STOKER_PYTHON_CORE_H
#define STOKER_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/stoker.h>
#include <structmember.h>

/* One per module object. Python frees it with the module; the objects are references that the
 * module owns. */
typedef struct core_state {
    PyTypeObject *dataset_type, *loader_type, *batch_type, *tensor_type, *rows_type, *iterator_type;
    PyObject *make_error; /* stoker._errors.make; NULL until the first failure */
    PyObject *live;       /* a weakref.WeakSet of the loaders that exist */
    PyObject *raised;     /* a list of exceptions of the user's code that no call has raised yet */
    PyObject *clear_frames; /* traceback.clear_frames */
} core_state;

/* PyBUF_WRITE, which the limited API before 3.11 does not declare; the value never changes. */
enum { CORE_BUFFER_WRITE = 0x200 };

/* A slot of a type: ISO C knows no conversion of a function's address to void *. */
#define CORE_SLOT(id, function)                                                                    \
    {                                                                                              \
        (id), (void *)(uintptr_t)(function)                                                        \
    }
/* A method with keywords, as the table of methods wants it. */
#define CORE_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* The state of the module that `type`, one of its types, belongs to. */
core_state *core_state_of(PyTypeObject *type);

/* ---- dataset.c ---- */

/* A data set. It never changes, so any thread may use it. */
typedef struct core_dataset {
    PyObject_HEAD stoker_dataset *handle; /* owned; not NULL */
    bool calls_python; /* it, or a data set that it wraps, calls the user's code */
} core_dataset;

int core_add_dataset(PyObject *module, core_state *state);

/* Wrap a handle, which is closed on failure. New reference. */
PyObject *core_wrap_dataset(core_state *state, stoker_dataset *handle, bool calls_python);

extern const char *const core_field_kinds[4]; /* words of stoker_field_kind */

/* Functions that return a new Dataset; `module` is the module. */
PyObject *core_open(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *core_arrays(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *core_python(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *core_concat(PyObject *module, PyObject *datasets);
PyObject *core_files(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *core_mix(PyObject *module, PyObject *args, PyObject *keywords);

/* The data sets of a sequence of Datasets. */
typedef struct core_handles {
    stoker_dataset **each; /* [count]; valid while `list` lives */
    PyObject *list;
    uint32_t count;
    bool calls_python; /* one of them does */
} core_handles;

/* TypeError if one is no Dataset. Then drop them; that also holds after a failure. */
int core_take_handles(core_state *state, PyObject *datasets, core_handles *out);
void core_drop_handles(core_handles *handles);

/* ---- arrays.c ---- */

/* Arrays of Dataset.arrays(); what they point to lives as long as the list `keep`. */
typedef struct core_array_list {
    stoker_array each[STOKER_FIELDS_MAX];
    uint32_t count;
} core_array_list;

int core_read_arrays(PyObject *fields, core_array_list *out, PyObject *keep);

/* stoker_arrays_options.destroy of a data set; the context is a list, of which the data set has a
 * reference. */
void core_let_go(void *context);

/* ---- storage.c ---- */

/* Make a storage that calls the methods of a Python object; it holds a reference to the object. */
int core_storage(PyObject *module, PyObject *object, stoker_storage **out);

/* ---- mix.c, pack.c: methods of Dataset ---- */

PyObject *core_pack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *core_mix_source(PyObject *self, PyObject *number);
PyObject *core_mix_counts(PyObject *self, PyObject *position);

/* ---- errors.c ---- */

/* Raise what stoker._errors.make() returns for this error. Returns NULL. */
PyObject *core_raise(core_state *state, const stoker_error *error);

/* The same for a call that returned `code` (< 0) without a stoker_error. */
PyObject *core_raise_code(core_state *state, int code, stoker_stage stage, const char *message);

/* The user's code has raised: take the exception, keep it for the call that will fail of it, and
 * describe it in *error. Returns the code, which `error` holds as well. */
int core_keep_exception(core_state *state, stoker_error *error);

/* An error as a new dictionary: the keywords of make(). */
PyObject *core_error_dict(const stoker_error *error);

/* ---- values.c ---- */

/* Numbers; `name` is for messages. A bool is no number. */
int core_u64(PyObject *value, const char *name, uint64_t *out);
int core_u32(PyObject *value, const char *name, uint32_t *out);
int core_i32(PyObject *value, const char *name, int32_t *out);
int core_double(PyObject *value, const char *name, double *out);
int core_bool(PyObject *value, const char *name, bool *out);

/* Text as the file system's names are encoded, valid while `keep`, a list, lives; ValueError if it
 * holds a NUL. */
const char *core_text(PyObject *value, const char *name, PyObject *keep);

/* The index of the word that `value` is, in words[0..count); NULL entries match nothing. -1: a
 * ValueError that lists them. */
int core_word(PyObject *value, const char *name, const char *const *words, size_t count);

/* An element type by its name. */
int core_dtype(PyObject *value, const char *name, stoker_dtype *out);

/* The bytes of an object: itself if it is bytes, else a copy of what memoryview() takes. New
 * reference. */
PyObject *core_bytes(PyObject *value, const char *name);

/* The same, as numbers of 8 bytes: a TypeError if the length is no multiple. *count becomes their
 * number. */
PyObject *core_numbers(PyObject *value, const char *name, uint64_t *count);

/* A tuple of ints. New reference. */
PyObject *core_shape(const uint64_t *shape, uint32_t rank);

/* Memory for PyMem_Free(), all zero. */
void *core_zeroed(size_t bytes);

/* A new bytearray. By way of an empty one: without memory, CPython's own call prints an error of
 * its own. */
PyObject *core_array(size_t bytes);

/* Put a value, whose reference is taken also on failure, into a dictionary. NULL: an exception is
 * set already. */
int core_put(PyObject *dict, const char *key, PyObject *value);

#endif
