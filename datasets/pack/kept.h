/* kept.h - the bytes of a sample as the source stores them. */
#ifndef PACK_KEPT_H
#define PACK_KEPT_H

#include <stdbool.h>

#include "datasets/pack/sample.h"

/* Take over the bytes of a sample that is stored as a PNG or JPEG file, by itself, in an archive or
 * in a shard. False: it is none, or can no longer be read; then its row, which the loader has
 * decoded, is all there is. */
bool pack_kept(const stoker_dataset *source, struct pack_sample *sample);

#endif
