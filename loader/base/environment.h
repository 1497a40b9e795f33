/* environment.h - reads an environment variable, unless that would be unsafe.
 *
 * STOKER_CUDART names a file whose code then runs. In a program with more rights than its caller (setuid, setgid,
 * file capabilities) the caller controls the environment, so every variable is ignored.
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
