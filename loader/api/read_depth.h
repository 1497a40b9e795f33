/* read_depth.h - how many reads a worker keeps in flight where the user does not say. */
#ifndef STK_LOADER_READ_DEPTH_H
#define STK_LOADER_READ_DEPTH_H

#include "loader/api/dataset.h"

/* As many as bring a window of bytes, by the usual length of a sample; a single long one must not
 * make all others wait for each other. Bounded by the scratch, whose every place must take the
 * longest. */
uint32_t stk_read_depth(const stoker_dataset *dataset);

#endif
