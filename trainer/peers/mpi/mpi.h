/* mpi.h - ranks that are processes of MPI, and whose arrays lie in host memory.
 *
 * libstoker_mpi.so is loaded by name when ranks are asked for: an ordinary build needs no MPI,
 * and programs run without. STOKER_MPI names another file. */
#ifndef STK_TRAINER_PEERS_MPI_H
#define STK_TRAINER_PEERS_MPI_H

#include "trainer/peers/mpi/functions.h"
#include "trainer/peers/peers.h"

/* Loads the plugin. STOKER_ENOTSUP: there is none, or it is of another version. */
int stk_mpi_load(const struct stk_mpi_functions **out, stoker_error *error);

/* Waits for all ranks. expected_size: processes that the launcher has started; 0 = unknown.
 * STOKER_ENOMEM; STOKER_EPEER: MPI failed, ranks are missing, or MPI sees another number of
 * processes. */
int stk_mpi_join(struct stk_peers **out, const struct stk_mpi_functions *mpi,
                 const struct stk_peers_options *options, uint32_t expected_size,
                 stoker_error *error);

#endif
