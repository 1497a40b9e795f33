/* block_reader.h - serves reads of files that consist of blocks, on top of any other reader.
 *
 *   submit ──┬─ other reads ─────────────────────────────────▶ the reader below ──▶ reap
 *            └─ reads of a block ─▶ wait ─▶ READY: copied ───────────────────────▶ reap
 *                                    │ EMPTY: load it
 *                                    └──▶ its stored bytes ──▶ the reader below ──▶ unpack ─▶ READY
 *
 * A read ends short at the end of its block; the loader continues it in the next one. The reads of
 * a block whose load fails end with the errno of that, EBADMSG if the block is damaged, and the
 * reason; each is then the loader's to repeat or to report.
 */
#ifndef STK_STORAGE_BLOCK_READER_H
#define STK_STORAGE_BLOCK_READER_H

#include <stdbool.h>
#include <stoker/reader.h>

#include "loader/storage/block_store.h"

struct stk_block_reader {
    stoker_reader below;
    struct stk_block_store *store; /* made by the caller before a ring opens */
};

/* Put a block reader on top of *reader, which is copied: *reader becomes one, of which *self is a
 * part, and both must outlive its rings. */
void stk_block_reader_init(struct stk_block_reader *self, stoker_reader *reader);

#endif
