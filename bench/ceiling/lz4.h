/* lz4.h - a record of a shard without its checksum: a raw row copied, an LZ4 block unpacked. */
#ifndef BENCH_CEILING_LZ4_H
#define BENCH_CEILING_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stoker/codec.h>

/* Which of the two it is follows from its size: a block is shorter than its row. False if it does not
 * give a whole row, or this build has no LZ4. */
bool bench_unpack(const stoker_encoded *record, void *row, size_t row_bytes);

#endif
