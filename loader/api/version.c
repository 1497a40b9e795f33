/* version.c - the version this library was built as. */
#include <stoker/version.h>

const char *stoker_version(void)
{
    return STOKER_VERSION_STRING;
}

uint32_t stoker_version_number(void)
{
    return STOKER_VERSION_NUMBER;
}
