/* ranks.c - reads this process's rank from the variables of its launcher.
 *
 *   for each launcher: read ─▶ complete? in range? ─▶ the first that is set, if all agree
 */
#include <stoker/ranks.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/environment.h"
#include "loader/base/error.h"
#include "loader/base/struct_size.h"

enum { WORLD_SIZE_MAX = 1 << 20, NUMBERS = 4 };

static const struct stk_place nowhere = STK_NOWHERE;

/* In the order of stoker_ranks. */
enum { RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE };

struct launcher {
    const char *variable[NUMBERS]; /* NULL: the launcher does not say */
};

static const struct launcher launchers[] = {
    [STOKER_LAUNCHER_TORCHRUN] = { { "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE" } },
    [STOKER_LAUNCHER_OPEN_MPI] = { { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE" } },
    [STOKER_LAUNCHER_PMI] = { { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS" } },
    /* SLURM_NTASKS is also set in a batch script, which srun did not start. */
    [STOKER_LAUNCHER_SLURM] = { { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL } },
};

enum { LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]) };

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

/* Only digits: strtoul would accept a sign and spaces. */
static bool read_number(const char *text, uint32_t *out)
{
    enum { DIGITS_MAX = 7 };
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    if (length == 0 || length > DIGITS_MAX)
        return false;
    *out = (uint32_t)strtoul(text, NULL, 10);
    return *out <= WORLD_SIZE_MAX;
}

static int read_variable(const char *name, uint32_t *out, stoker_error *error)
{
    const char *const text = stk_environment(name);
    if (text == NULL || read_number(text, out))
        return STOKER_OK;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=\"%.40s\" is not a number in 0..%d", name, text, WORLD_SIZE_MAX);
}

static bool is_set(const char *name)
{
    return name != NULL && stk_environment(name) != NULL;
}

/* Of two variables that belong together one is missing. */
static int half(const char *set, const char *missing, stoker_error *error)
{
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=%.40s is set, but %s is not: set both, or neither", set,
                         stk_environment(set), missing);
}

static int check_pair(const char *a, const char *b, stoker_error *error)
{
    if (a == NULL || b == NULL || is_set(a) == is_set(b))
        return STOKER_OK;
    return is_set(a) ? half(a, b, error) : half(b, a, error);
}

static int below(const char *const *variable, const uint32_t *value, int at, stoker_error *error)
{
    if (value[at] < value[at + 1])
        return STOKER_OK;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=%" PRIu32 " is not below %s=%" PRIu32, variable[at], value[at],
                         variable[at + 1], value[at + 1]);
}

static int check_values(const char *const *variable, const uint32_t *value, stoker_error *error)
{
    int rc = below(variable, value, RANK, error);
    if (rc != STOKER_OK || !is_set(variable[LOCAL_WORLD_SIZE]))
        return rc;
    rc = below(variable, value, LOCAL_RANK, error);
    if (rc == STOKER_OK && value[LOCAL_WORLD_SIZE] > value[WORLD_SIZE])
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "%s=%" PRIu32 " is above %s=%" PRIu32, variable[LOCAL_WORLD_SIZE],
                             value[LOCAL_WORLD_SIZE], variable[WORLD_SIZE], value[WORLD_SIZE]);
    return rc;
}

/* Leaves *out unchanged if the launcher has set neither a rank nor a size. */
static int read_launcher(stoker_ranks *out, stoker_launcher launcher, stoker_error *error)
{
    const char *const *const variable = launchers[launcher].variable;
    uint32_t value[NUMBERS] = { 0 };
    int rc = check_pair(variable[RANK], variable[WORLD_SIZE], error);
    if (rc == STOKER_OK && !is_set(variable[RANK]))
        return STOKER_OK;
    if (rc == STOKER_OK)
        rc = check_pair(variable[LOCAL_RANK], variable[LOCAL_WORLD_SIZE], error);
    for (int i = 0; i < NUMBERS && rc == STOKER_OK; i++)
        if (variable[i] != NULL)
            rc = read_variable(variable[i], &value[i], error);
    if (rc == STOKER_OK)
        rc = check_values(variable, value, error);
    if (rc != STOKER_OK)
        return rc;
    out->rank = value[RANK];
    out->world_size = value[WORLD_SIZE];
    out->local_rank = value[LOCAL_RANK];
    out->local_world_size = value[LOCAL_WORLD_SIZE];
    out->launcher = launcher;
    return STOKER_OK;
}

static int contradict(const stoker_ranks *a, const stoker_ranks *b, stoker_error *error)
{
    const char *const *const of_a = launchers[a->launcher].variable;
    const char *const *const of_b = launchers[b->launcher].variable;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=%" PRIu32 ", %s=%" PRIu32 " and %s=%" PRIu32 ", %s=%" PRIu32
                         " contradict each other: unset those of the launcher that did not start "
                         "this process",
                         of_a[RANK], a->rank, of_a[WORLD_SIZE], a->world_size, of_b[RANK], b->rank,
                         of_b[WORLD_SIZE], b->world_size);
}

/* srun describes its own processes: one per node if another launcher starts the ranks there. */
static bool may_differ(const stoker_ranks *found)
{
    return found->launcher == STOKER_LAUNCHER_SLURM;
}

int stoker_ranks_from_environment(stoker_ranks *out, stoker_error *error)
{
    if (out == NULL ||
        !stk_struct_size_fits(out->struct_size, STK_SIZE_UP_TO(stoker_ranks, launcher)))
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "ranks: start from STOKER_RANKS_INIT");
    stoker_ranks first = STOKER_RANKS_INIT;
    for (int i = STOKER_LAUNCHER_TORCHRUN; i < LAUNCHERS; i++) {
        stoker_ranks found = STOKER_RANKS_INIT;
        const int rc = read_launcher(&found, (stoker_launcher)i, error);
        if (rc != STOKER_OK)
            return rc;
        if (first.launcher == STOKER_LAUNCHER_NONE)
            first = found;
        else if (found.launcher != STOKER_LAUNCHER_NONE && !may_differ(&found) &&
                 (found.rank != first.rank || found.world_size != first.world_size))
            return contradict(&first, &found, error);
    }
    stk_struct_write(out, out->struct_size, &first, sizeof(first));
    return STOKER_OK;
}
