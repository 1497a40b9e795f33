/* stoker/export.h - which names leave the shared library, and what C and C++ each write for the same thing. */
#ifndef STOKER_EXPORT_H
#define STOKER_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define STOKER_API __attribute__((visibility("default")))
#else
#define STOKER_API
#endif

/* A struct's defaults are listed once, by STOKER_DEFAULT: as an initialiser in C, and in C++ as a function, since
 * C++ before 20 has no designated initialisers. */
#ifdef __cplusplus
#define STOKER_BEGIN_DECLS           extern "C" {
#define STOKER_END_DECLS             }
#define STOKER_DEFAULT(field, value) made.field = value;
#else
#define STOKER_BEGIN_DECLS
#define STOKER_END_DECLS
#define STOKER_DEFAULT(field, value) .field = value,
#endif

#endif
