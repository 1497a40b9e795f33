/* stoker/ranks.h - the rank of this process among the processes that a launcher started.
 *
 *   torchrun          RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
 *   Open MPI          OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
 *   MPICH, Intel MPI  PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
 *   Slurm's srun      SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID; the tasks of this node by
 *                     SLURM_NODEID and SLURM_STEP_TASKS_PER_NODE, or else SLURM_NTASKS_PER_NODE
 *
 * The processes of a node divide the CPUs that affinity and control groups leave them. Unless its
 * launcher has bound a process to fewer CPUs, its threads keep to an equal, consecutive part of
 * them. If each process has a GPU, they keep to CPUs of the GPU's NUMA node, on which the slots are
 * then allocated, too. This requires that every process sees all GPUs and uses the one whose number
 * is its local rank, and that no process gets fewer CPUs that way.
 */
#ifndef STOKER_RANKS_H
#define STOKER_RANKS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

/* The launcher that set the variables. */
typedef enum stoker_launcher {
    STOKER_LAUNCHER_NONE = 0, /* no variables: one process */
    STOKER_LAUNCHER_TORCHRUN = 1,
    STOKER_LAUNCHER_OPEN_MPI = 2,
    STOKER_LAUNCHER_PMI = 3, /* MPICH, Intel MPI and others that use Hydra; srun --mpi=pmi2 */
    STOKER_LAUNCHER_SLURM = 4
} stoker_launcher;

typedef struct stoker_ranks {
    size_t struct_size;        /* set by STOKER_RANKS_INIT; kept */
    uint32_t rank;             /* index of this process, 0..world_size - 1 */
    uint32_t world_size;       /* processes of the run, 1..2^20 */
    uint32_t local_rank;       /* index among the processes on this node; 0 if unknown */
    uint32_t local_world_size; /* processes on this node; 0 = unknown */
    stoker_launcher launcher;  /* default STOKER_LAUNCHER_NONE */
} stoker_ranks;

#define STOKER_RANKS_DEFAULTS                                                                      \
    STOKER_DEFAULT(struct_size, sizeof(stoker_ranks))                                              \
    STOKER_DEFAULT(world_size, 1)                                                                  \
    STOKER_DEFAULT(local_world_size, 1)

STOKER_MAKER(stoker_ranks, STOKER_RANKS_DEFAULTS)
#define STOKER_RANKS_INIT STOKER_INITIALIZER(stoker_ranks, STOKER_RANKS_DEFAULTS)
STOKER_API int stoker_ranks_init_sized(stoker_ranks *out, size_t struct_size);

/* Fill in *out from the environment; start it from STOKER_RANKS_INIT.
 *
 * The first launcher above that has set its rank and world size counts; without one this is the
 * only process. (Slurm counts only in a step: batch scripts have a rank, too.) Others must agree
 * with it, except for Slurm, since srun also starts other launchers, once per node. One that agrees
 * fills in a missing local world size. Of rank and world size one may be missing if another
 * launcher sets both and agrees. Without RANK, Lightning's NODE_RANK=0 makes LOCAL_RANK the rank. A
 * local world size without a local rank counts as unknown. A program with more rights than its
 * caller (setuid) ignores the environment.
 *
 * Returns STOKER_OK, or STOKER_EINVAL: out is NULL or was not initialized, a rank or a world size
 * is missing, a value is not a number or out of range, launchers contradict each other, or there is
 * no variable of those above, but PMIX_RANK, MV2_COMM_WORLD_RANK or FLUX_TASK_RANK is above 0. *out
 * is then unchanged, and *error, which may be NULL, names the variables. Any thread, as long as
 * none changes the environment. */
STOKER_API int stoker_ranks_from_environment(stoker_ranks *out, stoker_error *error);

/* Return "none", "torchrun", "Open MPI", "PMI" or "Slurm"; "unknown" for any other value. Static.
 * Any thread. */
STOKER_API const char *stoker_launcher_name(stoker_launcher launcher);

STOKER_END_DECLS
#endif
