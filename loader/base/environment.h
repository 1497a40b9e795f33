/* environment.h - the variables of the environment that the libraries read.
 *
 * STOKER_CUDART names a file whose code then runs. In a program that has more rights than its caller (setuid,
 * setgid, file capabilities) the environment is the caller's, so no variable counts there.
 */
#ifndef STK_BASE_ENVIRONMENT_H
#define STK_BASE_ENVIRONMENT_H

#include <stddef.h>
#include <stdlib.h>

/* Returns the variable's value; NULL if it is unset or empty, or if the program has more rights than its
 * caller. */
static inline const char *stk_environment(const char *name)
{
    const char *value = secure_getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

#endif
