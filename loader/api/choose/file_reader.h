/* file_reader.h - chooses what reads the data set's files (the caller's reader, or the best
 * built-in one) and how many reads it keeps in flight, and lists the files. */
#ifndef STK_API_FILE_READER_H
#define STK_API_FILE_READER_H

#include "loader/api/loader.h"

/* Returns which reader may replace the chosen one if it fails. */
enum stk_reader_rule stk_file_reader_rule(const stoker_loader *loader);

/* Choose the reader: sets pipeline.reader, files and read_depth. Returns 0 or a stoker_err, with
 * the cause in *error. */
int stk_file_reader_make(stoker_loader *loader, stoker_error *error);

/* Make the memory for blocks, if files consist of them, once the number of workers is known.
 * Returns 0 or a stoker_err, with the cause in *error. */
int stk_file_reader_make_blocks(stoker_loader *loader, stoker_error *error);

#endif
