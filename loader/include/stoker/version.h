/* stoker/version.h - the version of the headers, and of the linked library. */
#ifndef STOKER_VERSION_H
#define STOKER_VERSION_H

#include <stoker/export.h>

#define STOKER_VERSION_MAJOR  0
#define STOKER_VERSION_MINOR  1
#define STOKER_VERSION_PATCH  0
#define STOKER_VERSION_STRING "0.1.0"

STOKER_BEGIN_DECLS

/* STOKER_VERSION_STRING of the linked library, to compare with the header's. */
STOKER_API const char *stoker_version(void);

STOKER_END_DECLS
#endif
