/* share.h - one tensor of the library for any number of consumers.
 *
 *   stoker_batch_to_dlpack() ──▶ DLManagedTensorVersioned ◀──owns── share ◀── users: the Batch, Tensors,
 *   (one per part of a batch) capsules and what took them
 *
 * The library makes one tensor per part; Python asks for several. Each of those has a struct of its
 * own, whose shape and strides are those of the library's tensor. The last user calls the library's
 * deleter. Users come and go in any thread, without the GIL: the count is atomic, and the memory is
 * malloc's.
 */
#ifndef STOKER_PYTHON_SHARE_H
#define STOKER_PYTHON_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/dlpack.h>

#include "dlpack_abi.h"

struct core_share;

/* Make the tensor of a part, with one user. Consumer. Returns 0, or an error of
 * stoker_batch_to_dlpack() or STOKER_ENOMEM. */
int core_share_make(struct core_share **out, const stoker_batch *batch, uint32_t part,
                    struct CUstream_st *stream);

/* Add a user. Any thread that is one. Returns share. */
struct core_share *core_share_use(struct core_share *share);

/* Remove a user; NULL is allowed. Any thread. */
void core_share_drop(struct core_share *share);

const DLTensor *core_share_tensor(const struct core_share *share);
struct CUstream_st *core_share_stream(const struct core_share *share);

/* A struct for a consumer, which is a user until it calls the deleter; NULL: no memory. Either
 * kind. With `copy` (only in host memory) it has bytes of its own. */
DLManagedTensorVersioned *core_share_versioned(struct core_share *share, bool copy);
DLManagedTensor *core_share_unversioned(struct core_share *share, bool copy);

#endif
