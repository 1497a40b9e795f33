/* library.h - a shared library that is loaded when it is wanted, and a table of its functions.
 *
 * What is not linked but loaded need not be installed, its absence can be told, and a program that has
 * it already shares it. */
#ifndef STK_BASE_LIBRARY_H
#define STK_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Where the address of a function goes. */
struct stk_function {
    const char *name;
    size_t at; /* bytes into the table */
};

/* The row of one function, which has a member of its name in `table`. A name that its header makes
 * another symbol of (cudaGetDeviceProperties_v2) is looked up as that, in both. */
#define STK_FUNCTION(table, name)  { STK_FUNCTION_TEXT(name), offsetof(table, name) },
#define STK_FUNCTION_TEXT(name)    STK_FUNCTION_TEXT_OF(name)
#define STK_FUNCTION_TEXT_OF(name) #name

/* The file that the environment variable names (NULL = none is asked; see environment.h), else the library of that soname. It
 * stays loaded until the program ends: libraries of GPUs have threads and exit handlers of their own, and what
 * was slow to load is at hand for who opens it again.
 * NULL: *why tells, until the thread's next call of this kind. */
void *stk_library_open(const char *variable, const char *soname, const char **why);

/* Fill the table. False: the library lacks one, which *why tells as above. */
bool stk_library_fill(void *library, const struct stk_function *functions, size_t count,
                      void *table, const char **why);

#endif
