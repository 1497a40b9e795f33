/* functions.h - what is called of NCCL 2.14 and later, and the types of these functions as
 * nccl.h has them; a test compares them with it, if it is there. So no build needs NCCL.
 *
 * libnccl.so.2 is loaded by name when several ranks train on GPUs; STOKER_NCCL names another
 * file. */
#ifndef STK_TRAINER_PEERS_NCCL_FUNCTIONS_H
#define STK_TRAINER_PEERS_NCCL_FUNCTIONS_H

#include <stddef.h>
#include <stoker/error.h>

typedef struct ncclComm *stk_nccl_communicator;

enum { STK_NCCL_ID_BYTES = 128 };
struct stk_nccl_id {
    char internal[STK_NCCL_ID_BYTES];
};

enum stk_nccl_result {
    STK_NCCL_SUCCESS = 0,
    STK_NCCL_SYSTEM_ERROR = 2,
    STK_NCCL_INVALID_ARGUMENT = 4,
    STK_NCCL_INVALID_USAGE = 5,
    STK_NCCL_REMOTE_ERROR = 6,
    STK_NCCL_IN_PROGRESS = 7
};

enum { STK_NCCL_BYTES = 0, STK_NCCL_FLOAT32 = 7, STK_NCCL_FLOAT64 = 8, STK_NCCL_SUM = 0 };

/* 2.14.0. The library takes the members that this version has, by `size` and `version`. */
enum { STK_NCCL_VERSION_MIN = 21400 };
#define STK_NCCL_MAGIC 0xcafebeefU
struct stk_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
};

struct stk_nccl_functions {
    int (*ncclGetVersion)(int *version);
    const char *(*ncclGetErrorString)(int result);
    const char *(*ncclGetLastError)(stk_nccl_communicator communicator);
    int (*ncclGetUniqueId)(struct stk_nccl_id *id);
    int (*ncclCommInitRankConfig)(stk_nccl_communicator *out, int ranks, struct stk_nccl_id id,
                                  int rank, struct stk_nccl_config *config);
    int (*ncclCommGetAsyncError)(stk_nccl_communicator communicator, int *result);
    int (*ncclCommFinalize)(stk_nccl_communicator communicator);
    int (*ncclCommDestroy)(stk_nccl_communicator communicator);
    int (*ncclCommAbort)(stk_nccl_communicator communicator);
    int (*ncclAllReduce)(const void *from, void *to, size_t count, int type, int operation,
                         stk_nccl_communicator communicator, void *stream);
    int (*ncclAllGather)(const void *from, void *to, size_t count, int type,
                         stk_nccl_communicator communicator, void *stream);
    int (*ncclBroadcast)(const void *from, void *to, size_t count, int type, int root,
                         stk_nccl_communicator communicator, void *stream);
    int version;
};

/* Loads the library. STOKER_ENOTSUP: there is none, or it is too old. */
int stk_nccl_load(struct stk_nccl_functions *out, stoker_error *error);

#endif
