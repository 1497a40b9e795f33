/* npy.h - the elements of a field as an NPY file. */
#ifndef PACK_NPY_H
#define PACK_NPY_H

#include "datasets/pack/item.h"

/* Returns true if NPY has the element type. */
bool pack_npy_has(stoker_dtype dtype);

/* Replace the elements in piece->bytes by an NPY file in its room, which is empty; `length` is that
 * of the first axis if the field varies. Returns NULL, or the reason of a failure. */
const char *pack_npy(const struct stk_shard_field *field, uint64_t length,
                     struct pack_piece *piece);

#endif
