/* stoker/version.h - the version of the headers, and of the linked library. */
#ifndef STOKER_VERSION_H
#define STOKER_VERSION_H

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

STOKER_END_DECLS
#endif
