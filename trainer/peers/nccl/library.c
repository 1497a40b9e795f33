/* library.c - see functions.h. */
#include "trainer/peers/nccl/functions.h"

#include <string.h>

#include "loader/base/error.h"
#include "loader/base/library.h"

static int missing(const char *why, stoker_error *error)
{
    return stk_refuse_option(
        error, STOKER_ENOTSUP,
        "several ranks on GPUs need NCCL 2.14 or later, libnccl.so.2 (STOKER_NCCL "
        "names another file): %.200s",
        why);
}

/* 2.10 and later: 21403 is 2.14.3; before: 2708 is 2.7.8. */
static int too_old(int version, stoker_error *error)
{
    const int major = version >= 10000 ? version / 10000 : version / 1000;
    const int minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
    return stk_refuse_option(
        error, STOKER_ENOTSUP,
        "several ranks on GPUs need NCCL 2.14 or later, libnccl.so.2 is %d.%d.%d "
        "(STOKER_NCCL names another file)",
        major, minor, version % 100);
}

int stk_nccl_load(struct stk_nccl_functions *out, stoker_error *error)
{
#define ROW(name) STK_FUNCTION(struct stk_nccl_functions, name)
    static const struct stk_function version[] = { ROW(ncclGetVersion) };
    static const struct stk_function others[] = {
        ROW(ncclGetErrorString) ROW(ncclGetLastError) ROW(ncclGetUniqueId)
            ROW(ncclCommInitRankConfig) ROW(ncclCommGetAsyncError) ROW(ncclCommFinalize)
                ROW(ncclCommDestroy) ROW(ncclCommAbort) ROW(ncclAllReduce) ROW(ncclAllGather)
                    ROW(ncclBroadcast)
    };
#undef ROW
    const char *why = "";
    struct stk_nccl_functions found;
    memset(&found, 0, sizeof(found));
    void *const library = stk_library_open("STOKER_NCCL", "libnccl.so.2", &why);
    if (library == NULL || !stk_library_fill(library, version, 1, &found, &why))
        return missing(why, error);
    if (found.ncclGetVersion(&found.version) != STK_NCCL_SUCCESS)
        return missing("ncclGetVersion fails", error);
    if (found.version < STK_NCCL_VERSION_MIN)
        return too_old(found.version, error);
    if (!stk_library_fill(library, others, sizeof(others) / sizeof(others[0]), &found, &why))
        return missing(why, error);
    *out = found;
    return STOKER_OK;
}
