/* file_pieces.h - files whose rows cost little more than to copy, held in memory of our own.
 *
 *   file 0   |===================|        piece 0   |===========|
 *   file 1   |======|                     piece 1             |=========|
 *                                         piece 2   |======|
 *
 * A piece begins every STK_PIECE_BYTES of a file. It overlaps the next piece by the length of the
 * longest sample, so every sample lies within the piece where it begins.
 *
 * The cache holds pieces, by number, instead of samples. When a sample is needed, its piece is
 * copied from the page cache; if that would have to wait for a disk, the sample is read as without
 * a cache. Samples in order are read in runs, which is nearly as fast, so their first epoch fills
 * nothing: the copy would cost more than that epoch saves.
 */
#ifndef STK_PIPELINE_FILE_PIECES_H
#define STK_PIPELINE_FILE_PIECES_H

#include "loader/pipeline/rows/worker_scratch.h"

#define STK_PIECE_BYTES (UINT64_C(2) << 20)

/* Bytes of a whole piece. A multiple of a cache line: then samples in memory are aligned as they
 * are in their file. */
static inline uint64_t stk_file_pieces_stride(uint64_t sample_bytes_max)
{
    return STK_PIECE_BYTES +
           (sample_bytes_max + STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
}

/* Point the samples of a located span into the pieces that hold them, and fill missing pieces. A
 * sample whose piece is not held stays in its file, and a failing read of it is reported there. */
void stk_file_pieces_find(struct stk_row_maker *maker, const struct stk_span *span);

#endif
