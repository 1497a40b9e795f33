/* tensor.h - what batch.c and tensor.c know of each other. */
#ifndef STOKER_PYTHON_TENSOR_H
#define STOKER_PYTHON_TENSOR_H

#include "loader.h"
#include "share.h"

/* A part of a batch. It takes its share at the first __dlpack__(), and then no longer needs the
 * batch to be lent. */
typedef struct core_tensor {
    PyObject_HEAD PyObject *batch;
    uint32_t part;
    _Atomic(struct core_share *) share; /* NULL, then one for good: set by compare and exchange */
} core_tensor;

/* Make a capsule that owns a DLManagedTensorVersioned, or a DLManagedTensor. On failure the tensor
 * is deleted, and an exception is set. managed NULL: MemoryError. */
PyObject *core_capsule_of(void *managed, bool versioned);

/* A capsule of a share, which stays the caller's. */
PyObject *core_capsule(struct core_share *share, bool versioned, bool copy);

/* The share of a part, with a user for the caller; the batch keeps one, too. NULL: an exception.
 * Enters as the consumer. */
struct core_share *core_batch_share(PyObject *object, uint32_t part, struct CUstream_st *stream);

/* The part's array in a lent batch, which stays valid until core_batch_end(). False: an
 * exception. */
bool core_batch_begin(PyObject *batch);
void core_batch_end(PyObject *batch);
int core_batch_array(PyObject *object, uint32_t part, stoker_tensor *out);
DLDevice core_batch_device(PyObject *object);

#endif
