/* open_named_library.c - opens the library that STOKER_CUDART names, for check_environment.sh.
 *
 * usage: STOKER_CUDART=FILE open_named_library
 * Prints whether this program has more rights than its caller, then "opened" or the reason why
 * not. */
#include <stdio.h>
#include <sys/auxv.h>

#include "loader/base/library.h"

int main(void)
{
    const char *why = "";
    const void *library = stk_library_open("STOKER_CUDART", "libm.so.6", &why);
    printf("%s %s\n", getauxval(AT_SECURE) != 0 ? "privileged" : "plain",
           library != NULL ? "opened" : why);
    return 0;
}
