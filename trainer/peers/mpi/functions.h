/* functions.h - what the trainer calls of MPI, without an MPI type: the table that
 * libstoker_mpi.so exports.
 *
 *   libstoker_trainer.so ──dlopen──▶ libstoker_mpi.so ──linked──▶ libmpi
 *   peers/mpi/mpi.c          table       peers/mpi/plugin/mpi.c           Open MPI, MPICH, ...
 *
 * The binary interfaces of MPI libraries differ, so only the plugin is compiled with one. All
 * communication is non-blocking: it is begun, then tested until it is done. One thread calls at
 * a time. Functions return 0 or MPI's code, whose text is error_text(). */
#ifndef STK_TRAINER_PEERS_MPI_FUNCTIONS_H
#define STK_TRAINER_PEERS_MPI_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Grows whenever the table changes; the plugin's must be the same. */
enum { STK_MPI_TABLE_VERSION = 2 };

/* An MPI_Request, which is a pointer or an int. */
struct stk_mpi_request {
    uint64_t bits;
};

struct stk_mpi_communicator;

/* Part r of an array, for each rank r: count[r] floats from at[r]. Must stay until the request
 * is done. */
struct stk_mpi_parts {
    int *count, *at;
};

enum { STK_MPI_TEXT_BYTES = 256, STK_MPI_ANY_RANK = -1 };

struct stk_mpi_functions {
    uint32_t version; /* STK_MPI_TABLE_VERSION */

    /* Starts MPI, unless it runs, and reports the place of this process. MPI is finished when
     * the program exits, unless some communicator was abandoned. */
    int (*start)(uint32_t *rank, uint32_t *world_size);
    /* The name and version of the library, one line. */
    void (*describe)(char text[STK_MPI_TEXT_BYTES]);
    void (*error_text)(int code, char text[STK_MPI_TEXT_BYTES]);

    /* Begins a communicator of the same processes as `from` (NULL: all); collective. Test the
     * request before its use. */
    int (*duplicate)(struct stk_mpi_communicator *from, struct stk_mpi_communicator **out,
                     struct stk_mpi_request *request);
    /* Frees it: collective, after all that was begun is done; or abandons it, with what is still
     * under way. */
    int (*release)(struct stk_mpi_communicator *communicator, bool abandon);

    /* Memory for what is sent and received; NULL: out of memory. Abandoned communicators keep
     * theirs. */
    void *(*allocate)(size_t bytes);
    void (*free)(void *memory);

    /* Memory must stay until the request is done. Bytes and counts: at most 2^31 - 1. */
    int (*sum_floats)(struct stk_mpi_communicator *communicator, const float *from, float *to,
                      uint64_t count, struct stk_mpi_request *request);
    /* to: world_size pieces of `bytes`, in the order of ranks. */
    int (*gather)(struct stk_mpi_communicator *communicator, const void *from, void *to,
                  size_t bytes, struct stk_mpi_request *request);
    /* Part r of `from` goes to rank r, whose part arrives as part r of `to`. */
    int (*exchange)(struct stk_mpi_communicator *communicator, const float *from,
                    const struct stk_mpi_parts *from_parts, float *to,
                    const struct stk_mpi_parts *to_parts, struct stk_mpi_request *request);
    /* Part r is rank r's: all get those of the others, in place. */
    int (*gather_parts)(struct stk_mpi_communicator *communicator, float *floats,
                        const struct stk_mpi_parts *parts, struct stk_mpi_request *request);
    int (*broadcast)(struct stk_mpi_communicator *communicator, void *memory, size_t bytes,
                     uint32_t root, struct stk_mpi_request *request);
    int (*send)(struct stk_mpi_communicator *communicator, const void *from, size_t bytes,
                uint32_t to, int tag, struct stk_mpi_request *request);
    int (*receive)(struct stk_mpi_communicator *communicator, void *to, size_t bytes, int from,
                   int tag, struct stk_mpi_request *request);

    int (*test)(struct stk_mpi_request *request, bool *done);
    /* Gives up a receive that has not matched a message. */
    int (*cancel)(struct stk_mpi_request *request);
};

/* The plugin's only symbol; the type of what STK_MPI_SYMBOL is. */
#define STK_MPI_SYMBOL "stoker_mpi_functions"
typedef const struct stk_mpi_functions *stk_mpi_functions_getter(void);

#endif
