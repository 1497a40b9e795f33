/* ranks.c - finds this process's rank in its launcher's environment variables (base/launcher.c). */
#include <stoker/ranks.h>

#include <assert.h>

#include "loader/base/error.h"
#include "loader/base/launcher.h"
#include "loader/base/struct_size.h"

static_assert((int)STK_LAUNCHER_NONE == STOKER_LAUNCHER_NONE, "one number in both");
static_assert((int)STK_LAUNCHER_TORCHRUN == STOKER_LAUNCHER_TORCHRUN, "one number in both");
static_assert((int)STK_LAUNCHER_OPEN_MPI == STOKER_LAUNCHER_OPEN_MPI, "one number in both");
static_assert((int)STK_LAUNCHER_PMI == STOKER_LAUNCHER_PMI, "one number in both");
static_assert((int)STK_LAUNCHER_SLURM == STOKER_LAUNCHER_SLURM, "one number in both");

static const struct stk_place nowhere = STK_NOWHERE;

const char *stoker_launcher_name(stoker_launcher launcher)
{
    switch (launcher) {
    case STOKER_LAUNCHER_NONE:
        return "none";
    case STOKER_LAUNCHER_TORCHRUN:
        return "torchrun";
    case STOKER_LAUNCHER_OPEN_MPI:
        return "Open MPI";
    case STOKER_LAUNCHER_PMI:
        return "PMI";
    case STOKER_LAUNCHER_SLURM:
        return "Slurm";
    }
    return "unknown";
}

int stoker_ranks_from_environment(stoker_ranks *out, stoker_error *error)
{
    struct stk_ranks read;
    if (out == NULL ||
        !stk_struct_size_fits(out->struct_size, STK_SIZE_UP_TO(stoker_ranks, launcher)))
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "ranks: start from STOKER_RANKS_INIT");
    const int rc = stk_ranks_read(&read, error);
    if (rc != STOKER_OK)
        return rc;
    const stoker_ranks ranks = { .struct_size = out->struct_size,
                                 .rank = read.rank,
                                 .world_size = read.world_size,
                                 .local_rank = read.local_rank,
                                 .local_world_size = read.local_world_size,
                                 .launcher = (stoker_launcher)read.launcher };
    stk_struct_write(out, out->struct_size, &ranks, sizeof(ranks));
    return STOKER_OK;
}
