/* fielded.h - shards of version 2 as a data set: samples of several fields. */
#ifndef STK_DATASETS_SHARDS_FIELDED_H
#define STK_DATASETS_SHARDS_FIELDED_H

#include <stdbool.h>
#include <stoker/dataset.h>

#include "datasets/opening.h"

/* Find out whether the folder opening->path has shards of version 2. Errors: those of reading one of them. */
int stk_fielded_look(const struct stk_opening *opening, bool *is);

/* Open the shards of base->path. partial: some may be missing. Errors as shards:. */
int stk_fielded_open(stoker_dataset **out, const struct stk_opening *base, bool partial,
                     uint64_t bytes_max);

#endif
