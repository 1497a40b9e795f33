/* library.h - a shared library loaded on demand, and a table of its functions.
 *
 * A library that is loaded, not linked, need not be installed; its absence can be reported; and a
 * program that has loaded it already shares it. */
#ifndef STK_BASE_LIBRARY_H
#define STK_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Where a function's address is written. */
struct stk_function {
    const char *name;
    size_t at; /* bytes into the table */
};

/* The row of one function, whose member in `table` has the same name. A name that a header maps to
 * another symbol (cudaGetDeviceProperties_v2) is looked up as that symbol. */
#define STK_FUNCTION(table, name)  { STK_FUNCTION_TEXT(name), offsetof(table, name) },
#define STK_FUNCTION_TEXT(name)    STK_FUNCTION_TEXT_OF(name)
#define STK_FUNCTION_TEXT_OF(name) #name

/* Load the file that the environment variable names (NULL = no variable; see environment.h), else
 * the library of that soname. It stays loaded until the program ends: GPU libraries have threads
 * and exit handlers of their own, and are slow to load again. A program with elevated rights loads
 * none: see environment.h. Returns NULL on failure, with the reason in *why, valid until this
 * thread's next such call. */
void *stk_library_open(const char *variable, const char *soname, const char **why);

/* Fill the table. False: the library lacks a function, named in *why as above. */
bool stk_library_fill(void *library, const struct stk_function *functions, size_t count,
                      void *table, const char **why);

#endif
