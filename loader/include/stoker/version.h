/* stoker/version.h - the version of the headers, and that of the linked library. */
#ifndef STOKER_VERSION_H
#define STOKER_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/export.h>

#define STOKER_VERSION_MAJOR  1
#define STOKER_VERSION_MINOR  0
#define STOKER_VERSION_PATCH  0
#define STOKER_VERSION_STRING "1.0.0"
/* For comparisons: 1.2.3 is 10203. */
#define STOKER_VERSION_NUMBER                                                                      \
    (STOKER_VERSION_MAJOR * 10000 + STOKER_VERSION_MINOR * 100 + STOKER_VERSION_PATCH)

STOKER_BEGIN_DECLS

/* Return STOKER_VERSION_STRING of the linked library. Any thread. */
STOKER_API const char *stoker_version(void);

/* Return STOKER_VERSION_NUMBER of the linked library. Any thread. */
STOKER_API uint32_t stoker_version_number(void);

/* Return the name of optional part `number` = 0, 1, ... of the linked library, and set *present,
 * unless NULL, to true if this build has it. NULL after the last part. The parts are png, jpeg,
 * webp (image files), gzip, lz4, zstd, io_uring, cuda (batches on a GPU) and cuda_kernels (images
 * transformed on a GPU); a later version may add some. Static. Any thread. */
STOKER_API const char *stoker_feature(uint32_t number, bool *present);

STOKER_END_DECLS
#endif
