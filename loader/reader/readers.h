/* readers.h - the readers of the library. */
#ifndef STK_READERS_H
#define STK_READERS_H

#include <stoker/reader.h>

/* io_uring; in a build without it, open returns STOKER_EREADER. */
extern const stoker_reader stk_reader_uring;
extern const stoker_reader stk_reader_pread;
extern const stoker_reader stk_reader_null;

#endif
