/* stoker/export.h - macros for exported symbols, C linkage, and initializers in C and C++. */
#ifndef STOKER_EXPORT_H
#define STOKER_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define STOKER_API __attribute__((visibility("default")))
#else
#define STOKER_API
#endif

/* STOKER_DEFAULT lists a struct's defaults once: as an initializer in C, as assignments in C++,
 * which has no designated initializers before C++20. */
#ifdef __cplusplus
#define STOKER_BEGIN_DECLS         extern "C" {
#define STOKER_END_DECLS           }
#define STOKER_DEFAULT(field, ...) made.field = __VA_ARGS__;
#else
#define STOKER_BEGIN_DECLS
#define STOKER_END_DECLS
#define STOKER_DEFAULT(field, ...) .field = __VA_ARGS__,
#endif

/* Structs with defaults begin with their size, set by an initializer:
 *
 *   C, C++   stoker_order order = STOKER_ORDER_INIT;
 *   others   stoker_order_init_sized(&order, sizeof(order)): sets the first struct_size bytes of
 *            *out. Returns STOKER_OK, or STOKER_EINVAL if out is NULL or no version has that size.
 *            Any thread.
 */
#ifdef __cplusplus
#define STOKER_MAKER(type, ...)                                                                    \
    inline type type##_made()                                                                      \
    {                                                                                              \
        type made = {};                                                                            \
        __VA_ARGS__ return made;                                                                   \
    }
#define STOKER_INITIALIZER(type, ...) type##_made()
#else
#define STOKER_MAKER(type, ...)
#define STOKER_INITIALIZER(type, ...)                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#endif

#endif
