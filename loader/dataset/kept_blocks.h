/* kept_blocks.h - reads of files that consist of blocks, without a loader: those that were used
 * last are kept, up to 64 MiB of them or one, so that reading in order unpacks each block once. */
#ifndef STK_DATASET_KEPT_BLOCKS_H
#define STK_DATASET_KEPT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/base/error.h"

struct stk_kept_blocks; /* one per data set; any thread may use it */

/* Check the tables of all files. *out stays NULL if none consists of blocks. Returns 0 or the code
 * that *error explains. */
int stk_kept_blocks_make(struct stk_kept_blocks **out, const stoker_dataset *dataset,
                         stoker_error *error);
void stk_kept_blocks_free(struct stk_kept_blocks **pointer); /* NULL is allowed */

/* Reads a file's own bytes at place->offset. */
typedef int stk_stored_read(const stoker_file *file, uint32_t number, void *to, size_t bytes,
                            struct stk_place *place, stoker_error *error);

/* Read `bytes` bytes at place->offset of the unpacked file. Returns 0, STOKER_ECORRUPT,
 * STOKER_ETRUNCATED (the file ends before), STOKER_ENOMEM, or what `read` returned. */
int stk_kept_blocks_read(struct stk_kept_blocks *kept, const stoker_file *file, uint32_t number,
                         void *to, size_t bytes, stk_stored_read *read, struct stk_place *place,
                         stoker_error *error);

#endif
