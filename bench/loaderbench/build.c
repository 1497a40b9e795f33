/* build.c - the commit and the compiler of this build. Only this file is recompiled for a new
 * commit. */
#include "bench/loaderbench/machine.h"

#include <bench_commit.h> /* commit.cmake writes it */

const char *bench_build_commit(void)
{
    return BENCH_COMMIT;
}

const char *bench_build_compiler(void)
{
#define TEXT_OF(number)              #number
#define VERSION(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#ifdef __clang__
    return "clang " VERSION(__clang_major__, __clang_minor__, __clang_patchlevel__);
#else
    return "gcc " VERSION(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}
