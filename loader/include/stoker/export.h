/* stoker/export.h - symbol visibility, and what C and C++ spell differently. */
#ifndef STOKER_EXPORT_H
#define STOKER_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define STOKER_API __attribute__((visibility("default")))
#else
#define STOKER_API
#endif

/* STOKER_DEFAULT lists a struct's defaults once: as an initialiser in C, as assignments in C++, which has no
 * designated initialisers before C++20. */
#ifdef __cplusplus
#define STOKER_BEGIN_DECLS         extern "C" {
#define STOKER_END_DECLS           }
#define STOKER_DEFAULT(field, ...) made.field = __VA_ARGS__;
#else
#define STOKER_BEGIN_DECLS
#define STOKER_END_DECLS
#define STOKER_DEFAULT(field, ...) .field = __VA_ARGS__,
#endif

#endif
