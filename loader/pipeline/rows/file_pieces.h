/* file_pieces.h - files whose rows cost little more than to copy, held in memory of our own.
 *
 *   files    | file 0            | file 1   |        a piece begins every STK_PIECE_BYTES of a file,
 *   pieces   | 0       | 1       | 2        |        and goes on for the bytes of the longest
 *                      ├──┤                          sample, so that a sample lies in the piece
 *            both pieces hold these bytes            where it begins
 *
 * The cache holds pieces instead of samples, by their number. A piece that is needed is copied from
 * the page cache, without waiting for a disk, and then serves all its samples. Samples in order are
 * read in runs, nearly as fast: their first epoch goes without, since a copy costs more than an
 * epoch saves.
 */
#ifndef STK_PIPELINE_FILE_PIECES_H
#define STK_PIPELINE_FILE_PIECES_H

#include "loader/pipeline/rows/worker_scratch.h"

#define STK_PIECE_BYTES (UINT64_C(2) << 20)

/* Let the samples of a located span that lie in pieces point there, and fill pieces that are
 * missing. Others stay in their files, where a read that fails is reported. */
void stk_file_pieces_find(struct stk_row_maker *maker, const struct stk_span *span);

#endif
