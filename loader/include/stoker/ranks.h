/* stoker/ranks.h - the place of this process among those that a launcher started together.
 *
 *   torchrun          RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
 *   Open MPI          OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
 *   MPICH, Intel MPI  PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
 *   Slurm's srun      SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID; the tasks of this node by
 *                     SLURM_NODEID and SLURM_STEP_TASKS_PER_NODE, or else SLURM_NTASKS_PER_NODE
 *
 * Processes of a node divide its CPUs, those that affinity and control groups leave. The threads of
 * a process that its launcher has not bound to fewer CPUs keep to an equal, consecutive part of
 * them; with a GPU each, to CPUs of the NUMA node of their GPU, and the memory of the slots comes
 * from there as well. For that each process must see all GPUs, use the one with the number of its
 * local rank, and find enough CPUs on every node.
 */
#ifndef STOKER_RANKS_H
#define STOKER_RANKS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

/* Whose variables they are. */
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
    uint32_t local_rank;       /* index among those of this node; 0 if unknown */
    uint32_t local_world_size; /* processes on this node; 0 = unknown */
    stoker_launcher launcher;
} stoker_ranks;

#define STOKER_RANKS_DEFAULTS                                                                      \
    STOKER_DEFAULT(struct_size, sizeof(stoker_ranks))                                              \
    STOKER_DEFAULT(world_size, 1)                                                                  \
    STOKER_DEFAULT(local_world_size, 1)

STOKER_MAKER(stoker_ranks, STOKER_RANKS_DEFAULTS)
#define STOKER_RANKS_INIT STOKER_INITIALIZER(stoker_ranks, STOKER_RANKS_DEFAULTS)
STOKER_API int stoker_ranks_init_sized(stoker_ranks *out, size_t struct_size);

/* Read the variables of the first launcher above that has set its rank or its number of processes
 * (Slurm: the latter; batch scripts have a rank, too); none: one process. If several have set them
 * they must say the same; Slurm's may differ, since srun also starts other launchers (one per
 * node). If the first says nothing about this node, another that agrees with it may. A local rank
 * or local number without the other counts as unknown. Of a rank and a number of processes one may
 * be missing if another launcher says both and agrees; without RANK, Lightning's NODE_RANK=0 makes
 * LOCAL_RANK the rank. A program with more rights than its caller (setuid) ignores the environment
 * and is one process. On success *out is filled in; start it from STOKER_RANKS_INIT. STOKER_EINVAL
 * (*out is unchanged, and *error, which may be NULL, names the variables): rank or number of
 * processes is missing, a value is not a number or out of range, two launchers contradict each
 * other, or PMIX_RANK, MV2_COMM_WORLD_RANK or FLUX_TASK_RANK is above 0 and there is no variable of
 * those above. Any thread, as long as none changes the environment. */
STOKER_API int stoker_ranks_from_environment(stoker_ranks *out, stoker_error *error);

/* "none", "torchrun", "Open MPI", "PMI" or "Slurm"; "unknown" for any other value. Static; any
 * thread. */
STOKER_API const char *stoker_launcher_name(stoker_launcher launcher);

STOKER_END_DECLS
#endif
