/* test_nccl_library.c - the real NCCL, if it is here: every function that is loaded exists, and
 * nccl.h has the types and numbers of trainer/peers/nccl/functions.h. Without a GPU nothing of it
 * can run, but for its version and texts. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "trainer/peers/nccl/functions.h"

#ifdef STOKER_TEST_NCCL_HEADER
#include <limits.h>
#include <nccl.h>

_Static_assert(NCCL_UNIQUE_ID_BYTES == STK_NCCL_ID_BYTES, "");
_Static_assert(sizeof(ncclUniqueId) == sizeof(struct stk_nccl_id), "");
_Static_assert(sizeof(ncclConfig_t) >= sizeof(struct stk_nccl_config), "");
_Static_assert(offsetof(ncclConfig_t, size) == offsetof(struct stk_nccl_config, size), "");
_Static_assert(offsetof(ncclConfig_t, magic) == offsetof(struct stk_nccl_config, magic), "");
_Static_assert(offsetof(ncclConfig_t, version) == offsetof(struct stk_nccl_config, version), "");
_Static_assert(offsetof(ncclConfig_t, blocking) == offsetof(struct stk_nccl_config, blocking), "");
_Static_assert(NCCL_VERSION(2, 14, 0) == STK_NCCL_VERSION_MIN, "");
_Static_assert((int)ncclSuccess == STK_NCCL_SUCCESS, "");
_Static_assert((int)ncclSystemError == STK_NCCL_SYSTEM_ERROR, "");
_Static_assert((int)ncclInvalidArgument == STK_NCCL_INVALID_ARGUMENT, "");
_Static_assert((int)ncclInvalidUsage == STK_NCCL_INVALID_USAGE, "");
_Static_assert((int)ncclRemoteError == STK_NCCL_REMOTE_ERROR, "");
_Static_assert((int)ncclInProgress == STK_NCCL_IN_PROGRESS, "");
_Static_assert((int)ncclInt8 == STK_NCCL_BYTES, "");
_Static_assert((int)ncclFloat32 == STK_NCCL_FLOAT32, "");
_Static_assert((int)ncclFloat64 == STK_NCCL_FLOAT64, "");
_Static_assert((int)ncclSum == STK_NCCL_SUM, "");

/* The functions take what the table says. Unevaluated: nothing is linked. */
#define IS(function, type) _Static_assert(_Generic(&(function), type : 1, default : 0), #function)
IS(ncclGetVersion, ncclResult_t (*)(int *));
IS(ncclGetErrorString, const char *(*)(ncclResult_t));
IS(ncclGetLastError, const char *(*)(ncclComm_t));
IS(ncclGetUniqueId, ncclResult_t (*)(ncclUniqueId *));
IS(ncclCommInitRankConfig, ncclResult_t (*)(ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *));
IS(ncclCommGetAsyncError, ncclResult_t (*)(ncclComm_t, ncclResult_t *));
IS(ncclCommFinalize, ncclResult_t (*)(ncclComm_t));
IS(ncclCommDestroy, ncclResult_t (*)(ncclComm_t));
IS(ncclCommAbort, ncclResult_t (*)(ncclComm_t));
IS(ncclAllReduce, ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t));
IS(ncclAllGather,
   ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t));
IS(ncclBroadcast,
   ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
#undef IS
#endif

/* *nccl is filled in, or the test is skipped, and says so. */
static void load(struct stk_nccl_functions *nccl)
{
    stoker_error error = { .message = "" };
    if (stk_nccl_load(nccl, &error) != STOKER_OK)
        cr_skip_test("SKIPPED, no NCCL (`pip install nvidia-nccl-cu13` has it): %s", error.message);
}

Test(nccl_library, has_every_function)
{
    struct stk_nccl_functions nccl;
    load(&nccl);
    cr_assert_geq(nccl.version, STK_NCCL_VERSION_MIN);
    cr_assert_str_eq(nccl.ncclGetErrorString(STK_NCCL_SUCCESS), "no error");
    cr_assert_not_null(strstr(nccl.ncclGetErrorString(STK_NCCL_INVALID_USAGE), "invalid usage"));
}

/* The header was compiled above. */
Test(nccl_library, header_is_the_library_s)
{
#ifdef STOKER_TEST_NCCL_HEADER
    struct stk_nccl_functions nccl;
    load(&nccl);
    cr_assert_geq(nccl.version, 22000);
    cr_assert_geq(NCCL_VERSION_CODE, STK_NCCL_VERSION_MIN);
#else
    cr_skip_test("SKIPPED, no nccl.h (`pip install nvidia-nccl-cu13` has it)");
#endif
}
