/* choose.c - see choose.h. */
#include "trainer/peers/choose.h"

#include "loader/base/environment.h"
#include "trainer/peers/mpi/mpi.h"
#include "trainer/peers/threads/threads.h"

/* torchrun starts processes that know each other's address, but no MPI; mpirun may pass its
 * variables on, too. */
static bool brings_mpi(const stoker_ranks *ranks)
{
    return ranks->launcher != STOKER_LAUNCHER_TORCHRUN ||
           stk_environment("OMPI_COMM_WORLD_SIZE") != NULL || stk_environment("PMI_SIZE") != NULL ||
           stk_environment("PMIX_RANK") != NULL;
}

/* Without MPI the user may have said where rank 0 is. */
static int join_launched(struct stk_peers **out, const stoker_ranks *ranks,
                         const struct stk_peers_options *options, stoker_error *error)
{
    const struct stk_mpi_functions *mpi = NULL;
    if (!brings_mpi(ranks))
        return STOKER_OK;
    const int rc = stk_mpi_load(&mpi, error);
    if (rc == STOKER_OK)
        return stk_mpi_join(out, mpi, options, ranks->world_size, error);
    return stk_environment("MASTER_ADDR") == NULL ? rc : STOKER_OK;
}

static int join_mpi(struct stk_peers **out, uint32_t expected_size,
                    const struct stk_peers_options *options, stoker_error *error)
{
    const struct stk_mpi_functions *mpi = NULL;
    const int rc = stk_mpi_load(&mpi, error);
    return rc == STOKER_OK ? stk_mpi_join(out, mpi, options, expected_size, error) : rc;
}

int stk_peers_join(struct stk_peers **out, stoker_ranks *ranks, stoker_peers kind,
                   const struct stk_peers_options *options, stoker_error *error)
{
    *out = NULL;
    if (kind == STOKER_PEERS_NONE)
        return stk_peers_alone(out, error);
    if (kind == STOKER_PEERS_THREADS)
        return stk_threads_join(out, options, error);
    const int rc = stoker_ranks_from_environment(ranks, error);
    if (rc != STOKER_OK)
        return rc;
    if (kind == STOKER_PEERS_MPI)
        return join_mpi(out, ranks->launcher == STOKER_LAUNCHER_NONE ? 0 : ranks->world_size,
                        options, error);
    if (ranks->world_size == 1)
        return stk_peers_alone(out, error);
    return join_launched(out, ranks, options, error);
}
