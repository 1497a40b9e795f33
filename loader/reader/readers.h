/* readers.h - the readers of the library, and how this process chooses one. */
#ifndef STK_READERS_H
#define STK_READERS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/reader.h>

/* io_uring; in a build without it, open returns STOKER_EREADER. */
extern const stoker_reader stk_reader_uring;
extern const stoker_reader stk_reader_pread;
extern const stoker_reader stk_reader_null;

/* *out = the reader that the environment variable STOKER_READER names (uring, pread); if it is not
 * set, io_uring if a ring opens and works here, else pread. reason gets one line that explains
 * the choice, cut to reason_bytes.
 *
 * Errors, with *out and reason untouched: STOKER_EINVAL (STOKER_READER names no reader),
 * STOKER_EREADER (it names uring, which is not available), STOKER_ENOMEM.
 *
 * A worker may still fail to open its own ring, when descriptors or locked memory run out: if its
 * open returns STOKER_EREADER, the worker takes pread. */
int stk_reader_choose(const stoker_reader **out, char *reason, size_t reason_bytes,
                      stoker_error *error);

/* `directory` is that of the setup or of the data set, whose files are `files`. */
static inline int stk_read_directory(int directory, const stoker_file *files, uint32_t file)
{
    return directory == STOKER_DIRECTORY_OF_FILE ? files[file].fd : directory;
}

/* Returns the bytes of the buffer at `base` if a ring of the io_uring reader has registered it with
 * the kernel, which locks them; 0 if not, or if the library is built without liburing. */
uint64_t stk_uring_registered_bytes(const void *ring, const void *base);

#endif
