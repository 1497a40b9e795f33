/* stoker/export.h - which names leave the shared library. */
#ifndef STOKER_EXPORT_H
#define STOKER_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define STOKER_API __attribute__((visibility("default")))
#else
#define STOKER_API
#endif

#ifdef __cplusplus
#define STOKER_BEGIN_DECLS extern "C" {
#define STOKER_END_DECLS   }
#else
#define STOKER_BEGIN_DECLS
#define STOKER_END_DECLS
#endif

#endif
