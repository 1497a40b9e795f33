/* stoker/version.h - the version of the headers, and of the linked library. */
#ifndef STOKER_VERSION_H
#define STOKER_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/export.h>

#define STOKER_VERSION_MAJOR  1
#define STOKER_VERSION_MINOR  0
#define STOKER_VERSION_PATCH  0
#define STOKER_VERSION_STRING "1.0.0"
/* To compare versions: 10203 is 1.2.3. */
#define STOKER_VERSION_NUMBER                                                                      \
    (STOKER_VERSION_MAJOR * 10000 + STOKER_VERSION_MINOR * 100 + STOKER_VERSION_PATCH)

STOKER_BEGIN_DECLS

/* STOKER_VERSION_STRING of the linked library, to compare with the header's. */
STOKER_API const char *stoker_version(void);

/* STOKER_VERSION_NUMBER of the linked library. */
STOKER_API uint32_t stoker_version_number(void);

/* Optional parts of the linked library: png, jpeg, webp (image files), gzip, lz4, zstd, io_uring,
 * cuda (batches on a GPU) and cuda_kernels (images transformed there). Returns the name of part
 * number 0, 1, ..., a constant, and sets *present to whether this build has it; NULL after the
 * last. `present` may be NULL. A later version may add names. Any thread. */
STOKER_API const char *stoker_feature(uint32_t number, bool *present);

STOKER_END_DECLS
#endif
