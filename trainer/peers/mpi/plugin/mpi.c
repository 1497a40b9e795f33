/* mpi.c - libstoker_mpi.so: the functions of mpi_functions.h, by the MPI that it was compiled
 * with.
 *
 * The communicator of all processes is duplicated, so that a program's own messages never meet
 * ours. Errors are returned, not fatal. */
#include "trainer/peers/mpi/functions.h"

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stk_mpi_communicator {
    MPI_Comm comm;
};

_Static_assert(sizeof(MPI_Request) <= sizeof(struct stk_mpi_request), "a request fits");

/* MPI has one state per process, and so has this: a communicator was abandoned. */
static atomic_bool abandoned;

static void keep(struct stk_mpi_request *out, MPI_Request request)
{
    out->bits = 0;
    memcpy(&out->bits, &request, sizeof(request));
}

static MPI_Request kept(const struct stk_mpi_request *request)
{
    MPI_Request out;
    memcpy(&out, &request->bits, sizeof(out));
    return out;
}

/* MPI's components look for its symbols in the program, and a library that dlopen() loads hides
 * them: Open MPI 3 and earlier then fail. This makes them visible. */
static void show_symbols(void)
{
    Dl_info info;
    int (*const function)(int *, char ***) = MPI_Init;
    const void *address;
    memcpy(&address, &function, sizeof(address));
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* The program exits. What was abandoned would keep MPI_Finalize waiting for a rank that is gone. */
static void finish(void)
{
    int finalized = 1;
    if (!atomic_load(&abandoned) && MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized)
        (void)MPI_Finalize();
}

static int start(uint32_t *rank, uint32_t *world_size)
{
    int started = 0;
    int number = 0;
    int count = 1;
    int rc = MPI_Initialized(&started);
    if (rc == MPI_SUCCESS && !started) {
        int provided;
        show_symbols();
        rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
        if (rc == MPI_SUCCESS)
            (void)atexit(finish);
    }
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_rank(MPI_COMM_WORLD, &number);
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_size(MPI_COMM_WORLD, &count);
    *rank = (uint32_t)number;
    *world_size = (uint32_t)count;
    return rc;
}

static void describe(char text[STK_MPI_TEXT_BYTES])
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    (void)MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    (void)snprintf(text, STK_MPI_TEXT_BYTES, "%.200s", version);
}

static void error_text(int code, char text[STK_MPI_TEXT_BYTES])
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(code, words, &length);
    (void)snprintf(text, STK_MPI_TEXT_BYTES, "%.*s", STK_MPI_TEXT_BYTES - 1, words);
}

static int duplicate(struct stk_mpi_communicator *from, struct stk_mpi_communicator **out,
                     struct stk_mpi_request *request)
{
    MPI_Comm whole = from == NULL ? MPI_COMM_WORLD : from->comm;
    struct stk_mpi_communicator *const made = calloc(1, sizeof(*made));
    MPI_Request begun = MPI_REQUEST_NULL;
    if (made == NULL)
        return MPI_ERR_NO_MEM;
    int rc = MPI_Comm_set_errhandler(whole, MPI_ERRORS_RETURN); /* inherited */
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_idup(whole, &made->comm, &begun);
    if (rc != MPI_SUCCESS) {
        free(made);
        return rc;
    }
    keep(request, begun);
    *out = made;
    return MPI_SUCCESS;
}

static int release(struct stk_mpi_communicator *communicator, bool abandon)
{
    int rc = MPI_SUCCESS;
    if (abandon) {
        atomic_store(&abandoned, true);
        return rc; /* MPI may still write to it */
    }
    rc = MPI_Comm_free(&communicator->comm);
    free(communicator);
    return rc;
}

static void *allocate(size_t bytes)
{
    return calloc(1, bytes);
}

static int sum_floats(struct stk_mpi_communicator *communicator, const float *from, float *to,
                      uint64_t count, struct stk_mpi_request *request)
{
    MPI_Request begun = MPI_REQUEST_NULL;
    if (count > INT_MAX)
        return MPI_ERR_COUNT;
    const int rc =
        MPI_Iallreduce(from, to, (int)count, MPI_FLOAT, MPI_SUM, communicator->comm, &begun);
    keep(request, begun);
    return rc;
}

static int gather(struct stk_mpi_communicator *communicator, const void *from, void *to,
                  size_t bytes, struct stk_mpi_request *request)
{
    MPI_Request begun = MPI_REQUEST_NULL;
    if (bytes > INT_MAX)
        return MPI_ERR_COUNT;
    const int rc = MPI_Iallgather(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE,
                                  communicator->comm, &begun);
    keep(request, begun);
    return rc;
}

static int exchange(struct stk_mpi_communicator *communicator, const float *from,
                    const struct stk_mpi_parts *from_parts, float *to,
                    const struct stk_mpi_parts *to_parts, struct stk_mpi_request *request)
{
    MPI_Request begun = MPI_REQUEST_NULL;
    const int rc =
        MPI_Ialltoallv(from, from_parts->count, from_parts->at, MPI_FLOAT, to, to_parts->count,
                       to_parts->at, MPI_FLOAT, communicator->comm, &begun);
    keep(request, begun);
    return rc;
}

static int gather_parts(struct stk_mpi_communicator *communicator, float *floats,
                        const struct stk_mpi_parts *parts, struct stk_mpi_request *request)
{
    MPI_Request begun = MPI_REQUEST_NULL;
    const int rc = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, floats, parts->count,
                                   parts->at, MPI_FLOAT, communicator->comm, &begun);
    keep(request, begun);
    return rc;
}

static int broadcast(struct stk_mpi_communicator *communicator, void *memory, size_t bytes,
                     uint32_t root, struct stk_mpi_request *request)
{
    MPI_Request begun = MPI_REQUEST_NULL;
    if (bytes > INT_MAX)
        return MPI_ERR_COUNT;
    const int rc = MPI_Ibcast(memory, (int)bytes, MPI_BYTE, (int)root, communicator->comm, &begun);
    keep(request, begun);
    return rc;
}

static int send(struct stk_mpi_communicator *communicator, const void *from, size_t bytes,
                uint32_t to, int tag, struct stk_mpi_request *request)
{
    MPI_Request begun = MPI_REQUEST_NULL;
    const int rc = MPI_Isend(from, (int)bytes, MPI_BYTE, (int)to, tag, communicator->comm, &begun);
    keep(request, begun);
    return rc;
}

static int receive(struct stk_mpi_communicator *communicator, void *to, size_t bytes, int from,
                   int tag, struct stk_mpi_request *request)
{
    MPI_Request begun = MPI_REQUEST_NULL;
    const int rc =
        MPI_Irecv(to, (int)bytes, MPI_BYTE, from == STK_MPI_ANY_RANK ? MPI_ANY_SOURCE : from, tag,
                  communicator->comm, &begun);
    keep(request, begun);
    return rc;
}

static int test(struct stk_mpi_request *request, bool *done)
{
    MPI_Request under_way = kept(request);
    int flag = 0;
    const int rc = MPI_Test(&under_way, &flag, MPI_STATUS_IGNORE);
    keep(request, under_way);
    *done = flag != 0;
    return rc;
}

static int cancel(struct stk_mpi_request *request)
{
    MPI_Request under_way = kept(request);
    int rc = MPI_Cancel(&under_way);
    if (rc == MPI_SUCCESS)
        rc = MPI_Wait(&under_way, MPI_STATUS_IGNORE);
    keep(request, under_way);
    return rc;
}

__attribute__((visibility("default"))) const struct stk_mpi_functions *stoker_mpi_functions(void);

const struct stk_mpi_functions *stoker_mpi_functions(void)
{
    static const struct stk_mpi_functions functions = { .version = STK_MPI_TABLE_VERSION,
                                                        .start = start,
                                                        .describe = describe,
                                                        .error_text = error_text,
                                                        .duplicate = duplicate,
                                                        .release = release,
                                                        .allocate = allocate,
                                                        .free = free,
                                                        .sum_floats = sum_floats,
                                                        .gather = gather,
                                                        .exchange = exchange,
                                                        .gather_parts = gather_parts,
                                                        .broadcast = broadcast,
                                                        .send = send,
                                                        .receive = receive,
                                                        .test = test,
                                                        .cancel = cancel };
    return &functions;
}
