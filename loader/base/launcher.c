/* launcher.c - see launcher.h. */
#include "loader/base/launcher.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/environment.h"
#include "loader/base/error.h"

enum { RANKS_MAX = 1 << 20, DIGITS_MAX = 7 };

#define UNKNOWN UINT32_MAX

static const struct stk_place nowhere = STK_NOWHERE;

/* In the order of stk_ranks. */
enum { RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NUMBERS };

/* NULL: no variable of one number says it. SLURM_NTASKS is also set in a batch script, which srun
 * did not start. */
static const char *const variables[STK_LAUNCHERS][NUMBERS] = {
    [STK_LAUNCHER_TORCHRUN] = { "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE" },
    [STK_LAUNCHER_OPEN_MPI] = { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE" },
    [STK_LAUNCHER_PMI] = { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
    [STK_LAUNCHER_SLURM] = { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL },
};

/* ---- numbers ---- */

/* Reads the digits at the start of `text`; strtoul would accept a sign and spaces. Returns what
 * follows, or NULL: no digit, too many, or a number above RANKS_MAX. */
static const char *digits(const char *text, uint32_t *out)
{
    size_t length = 0;
    while (isdigit((unsigned char)text[length]))
        length++;
    if (length == 0 || length > DIGITS_MAX)
        return NULL;
    const unsigned long number = strtoul(text, NULL, 10);
    if (number > RANKS_MAX)
        return NULL;
    *out = (uint32_t)number;
    return text + length;
}

static bool read_number(const char *text, uint32_t *out)
{
    uint32_t number = 0;
    const char *const rest = digits(text, &number);
    if (rest == NULL || *rest != '\0')
        return false;
    *out = number;
    return true;
}

static bool is_set(const char *name)
{
    return name != NULL && stk_environment(name) != NULL;
}

/* Returns 0 for a variable that is not set, or not a number. */
static uint32_t number_or_0(const char *name)
{
    const char *const text = name == NULL ? NULL : stk_environment(name);
    uint32_t number = 0;
    return text != NULL && read_number(text, &number) ? number : 0;
}

/* ---- Slurm ---- */

/* One entry: "TASKS" or "TASKS(xNODES)", both at least 1. Returns what follows, or NULL. */
static const char *read_entry(const char *text, uint32_t *tasks, uint32_t *nodes)
{
    const char *rest = digits(text, tasks);
    *nodes = 1;
    if (rest != NULL && strncmp(rest, "(x", 2) == 0) {
        rest = digits(rest + 2, nodes);
        rest = rest != NULL && *rest == ')' ? rest + 1 : NULL;
    }
    return rest != NULL && *tasks > 0 && *nodes > 0 ? rest : NULL;
}

bool stk_tasks_of_node(const char *list, uint32_t node, uint32_t *out)
{
    uint64_t first = 0; /* node of this entry */
    uint32_t found = 0;
    const char *rest = list;
    for (;;) {
        uint32_t tasks = 0;
        uint32_t nodes = 0;
        rest = read_entry(rest, &tasks, &nodes);
        if (rest == NULL || (*rest != ',' && *rest != '\0'))
            return false;
        const bool alone = first == 0 && *rest == '\0';
        if (node == STK_NODE_UNKNOWN ? alone : node >= first && node < first + nodes)
            found = tasks;
        first += nodes;
        if (*rest == '\0')
            break;
        rest++;
    }
    if (found == 0)
        return false;
    *out = found;
    return true;
}

/* srun gives each of its processes the number of processes of its step. A batch script has
 * SLURM_PROCID, too. */
static bool is_slurm_step(void)
{
    return is_set(variables[STK_LAUNCHER_SLURM][WORLD_SIZE]);
}

/* Returns the tasks of this node, 0 = unknown: the step's list, or what --ntasks-per-node asked
 * for, a number for each node (some that start Slurm's jobs write a list there, too). What does not
 * fit the step is not its own. */
static uint32_t slurm_local_ranks(void)
{
    const uint32_t step = number_or_0(variables[STK_LAUNCHER_SLURM][WORLD_SIZE]);
    const uint32_t own = number_or_0(variables[STK_LAUNCHER_SLURM][LOCAL_RANK]);
    const char *const list = stk_environment("SLURM_STEP_TASKS_PER_NODE");
    const char *const asked = stk_environment("SLURM_NTASKS_PER_NODE");
    const char *const id = stk_environment("SLURM_NODEID");
    uint32_t node = STK_NODE_UNKNOWN;
    uint32_t tasks = 0;
    if (id != NULL && !read_number(id, &node))
        return 0;
    if ((list != NULL && stk_tasks_of_node(list, node, &tasks)) ||
        (asked != NULL && (read_number(asked, &tasks) || stk_tasks_of_node(asked, node, &tasks))))
        return own < tasks && tasks <= step ? tasks : 0;
    return 0;
}

/* ---- one launcher ---- */

/* Returns 0 = unknown. */
static uint32_t local_ranks_by(enum stk_launcher launcher)
{
    return launcher == STK_LAUNCHER_SLURM ? slurm_local_ranks()
                                          : number_or_0(variables[launcher][LOCAL_WORLD_SIZE]);
}

uint32_t stk_local_ranks(void)
{
    for (int i = STK_LAUNCHER_TORCHRUN; i < STK_LAUNCHERS; i++) {
        const uint32_t ranks = local_ranks_by((enum stk_launcher)i);
        if (ranks > 0)
            return ranks;
    }
    return 1;
}

static int read_variable(const char *name, uint32_t *out, stoker_error *error)
{
    const char *const text = stk_environment(name);
    if (text == NULL || read_number(text, out))
        return STOKER_OK;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=\"%.40s\" is not a number in 0..%d", name, text, RANKS_MAX);
}

static int below(const char *const *variable, const uint32_t *value, int at, int limit,
                 stoker_error *error)
{
    if (value[at] < value[limit])
        return STOKER_OK;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=%" PRIu32 " is not below %s=%" PRIu32, variable[at], value[at],
                         variable[limit], value[limit]);
}

/* A rank or number that is not set is UNKNOWN. */
static int check_values(const char *const *variable, const uint32_t *value, stoker_error *error)
{
    int rc = STOKER_OK;
    if (value[RANK] != UNKNOWN)
        rc = below(variable, value, RANK, WORLD_SIZE, error);
    if (rc != STOKER_OK || value[LOCAL_RANK] == UNKNOWN)
        return rc;
    if (value[LOCAL_WORLD_SIZE] == UNKNOWN)
        return below(variable, value, LOCAL_RANK, WORLD_SIZE, error);
    rc = below(variable, value, LOCAL_RANK, LOCAL_WORLD_SIZE, error);
    if (rc == STOKER_OK && value[LOCAL_WORLD_SIZE] > value[WORLD_SIZE])
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "%s=%" PRIu32 " is above %s=%" PRIu32, variable[LOCAL_WORLD_SIZE],
                             value[LOCAL_WORLD_SIZE], variable[WORLD_SIZE], value[WORLD_SIZE]);
    return rc;
}

/* Lightning gives its processes all but RANK; on the first node that is LOCAL_RANK. */
static bool is_first_node(enum stk_launcher launcher)
{
    const char *const node = stk_environment("NODE_RANK");
    return launcher == STK_LAUNCHER_TORCHRUN && node != NULL && strcmp(node, "0") == 0;
}

/* Leaves *out unchanged if the launcher did not start this process. Of rank and world_size one may
 * be unknown. */
static int read_launcher(struct stk_ranks *out, enum stk_launcher launcher, stoker_error *error)
{
    const char *const *const variable = variables[launcher];
    uint32_t value[NUMBERS];
    int rc = STOKER_OK;
    if ((launcher == STK_LAUNCHER_SLURM && !is_slurm_step()) ||
        (!is_set(variable[RANK]) && !is_set(variable[WORLD_SIZE])))
        return STOKER_OK;
    for (int i = 0; i < NUMBERS && rc == STOKER_OK; i++) {
        value[i] = UNKNOWN;
        if (variable[i] != NULL)
            rc = read_variable(variable[i], &value[i], error);
    }
    if (rc == STOKER_OK)
        rc = check_values(variable, value, error);
    if (rc != STOKER_OK)
        return rc;
    const bool has_local = value[LOCAL_RANK] != UNKNOWN;
    if (value[RANK] == UNKNOWN && has_local && is_first_node(launcher))
        value[RANK] = value[LOCAL_RANK];
    *out = (struct stk_ranks){ .rank = value[RANK],
                               .world_size = value[WORLD_SIZE],
                               .local_rank = has_local ? value[LOCAL_RANK] : 0,
                               .local_world_size = has_local ? local_ranks_by(launcher) : 0,
                               .launcher = launcher };
    return STOKER_OK;
}

/* ---- all launchers ---- */

static int contradict(const struct stk_ranks *a, const struct stk_ranks *b, stoker_error *error)
{
    const char *const *const of_a = variables[a->launcher];
    const char *const *const of_b = variables[b->launcher];
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=%" PRIu32 ", %s=%" PRIu32 " and %s=%" PRIu32 ", %s=%" PRIu32
                         " contradict each other: unset those of the launcher that did not start "
                         "this process",
                         of_a[RANK], a->rank, of_a[WORLD_SIZE], a->world_size, of_b[RANK], b->rank,
                         of_b[WORLD_SIZE], b->world_size);
}

/* srun describes its own processes: one per node if another launcher starts the ranks there. */
static bool may_differ(const struct stk_ranks *found)
{
    return found->launcher == STK_LAUNCHER_SLURM;
}

/* Takes what the first launcher left open from one that says the same (srun --mpi=pmi2 sets both
 * kinds). */
static int join_ranks(struct stk_ranks *first, const struct stk_ranks *found, stoker_error *error)
{
    if (found->rank != first->rank || found->world_size != first->world_size)
        return may_differ(found) ? STOKER_OK : contradict(first, found, error);
    if (first->local_world_size == 0 && found->local_world_size > 0) {
        first->local_rank = found->local_rank;
        first->local_world_size = found->local_world_size;
    }
    return STOKER_OK;
}

static bool is_whole(const struct stk_ranks *found)
{
    return found->rank != UNKNOWN && found->world_size != UNKNOWN;
}

/* Rank or number of processes is missing: another launcher must give both. */
static int complete(const struct stk_ranks *first, const struct stk_ranks *found,
                    stoker_error *error)
{
    const bool has_rank = found->rank != UNKNOWN;
    const char *const set = variables[found->launcher][has_rank ? RANK : WORLD_SIZE];
    if (first->launcher != STK_LAUNCHER_NONE &&
        (has_rank ? found->rank == first->rank : found->world_size == first->world_size))
        return STOKER_OK;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=%.40s is set, but %s is not: set both, or neither", set,
                         stk_environment(set),
                         variables[found->launcher][has_rank ? WORLD_SIZE : RANK]);
}

/* Variables of launchers that do not say how many processes there are, or in a way that is not
 * known here. */
static int check_strangers(stoker_error *error)
{
    static const char *const names[] = { "PMIX_RANK", "MV2_COMM_WORLD_RANK", "FLUX_TASK_RANK" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (number_or_0(names[i]) > 0)
            return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                                 "%s=%" PRIu32 " is set, but no variable that gives the number of "
                                 "processes: set RANK and WORLD_SIZE",
                                 names[i], number_or_0(names[i]));
    return STOKER_OK;
}

int stk_ranks_read(struct stk_ranks *out, stoker_error *error)
{
    struct stk_ranks found[STK_LAUNCHERS] = { { .launcher = STK_LAUNCHER_NONE } };
    struct stk_ranks first = { .world_size = 1, .local_world_size = 1 };
    int rc = STOKER_OK;
    for (int i = STK_LAUNCHER_TORCHRUN; i < STK_LAUNCHERS && rc == STOKER_OK; i++) {
        rc = read_launcher(&found[i], (enum stk_launcher)i, error);
        if (rc != STOKER_OK || found[i].launcher == STK_LAUNCHER_NONE || !is_whole(&found[i]))
            continue;
        if (first.launcher == STK_LAUNCHER_NONE)
            first = found[i];
        else
            rc = join_ranks(&first, &found[i], error);
    }
    for (int i = STK_LAUNCHER_TORCHRUN; i < STK_LAUNCHERS && rc == STOKER_OK; i++)
        if (found[i].launcher != STK_LAUNCHER_NONE && !is_whole(&found[i]))
            rc = complete(&first, &found[i], error);
    if (rc == STOKER_OK && first.launcher == STK_LAUNCHER_NONE)
        rc = check_strangers(error);
    if (rc == STOKER_OK)
        *out = first;
    return rc;
}
