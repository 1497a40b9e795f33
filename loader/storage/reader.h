/* reader.h - reads from several storages in one ring.
 *
 *   submit ──▶ a lane per storage ──┬─▶ files with a descriptor: io_uring or pread
 *                                   ├─▶ a storage's own reader
 *                                   └─▶ read() of a storage without one, called in reap
 *
 * Only loaders of data sets with files that have no descriptor use it: for all others, their reader
 * is the loader's.
 */
#ifndef STK_STORAGE_READER_H
#define STK_STORAGE_READER_H

#include <stoker/reader.h>

#include "loader/storage/storage.h"

struct stk_storage_reader {
    const stoker_reader *files;
    const stoker_reader *spare; /* if a ring of `files` does not open; NULL = none */
};

/* Make *out a reader, of which *self is a part: both must outlive its rings. */
void stk_storage_reader_init(struct stk_storage_reader *self, stoker_reader *out,
                             const stoker_reader *files, const stoker_reader *spare);

#endif
