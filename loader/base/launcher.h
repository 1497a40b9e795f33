/* launcher.h - finds this process's rank among those that a launcher started, from the environment
 * variables that the launcher set.
 *
 *   for each launcher: read ─▶ in range? ─▶ the first that says rank and number, if all agree
 *
 * Everything here reads the environment: any thread, as long as none changes it.
 */
#ifndef STK_BASE_LAUNCHER_H
#define STK_BASE_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

/* In the order in which they are asked; the numbers are those of stoker_launcher. */
enum stk_launcher {
    STK_LAUNCHER_NONE,
    STK_LAUNCHER_TORCHRUN,
    STK_LAUNCHER_OPEN_MPI,
    STK_LAUNCHER_PMI,
    STK_LAUNCHER_SLURM,
    STK_LAUNCHERS
};

/* As in stoker_ranks (stoker/ranks.h). */
struct stk_ranks {
    uint32_t rank;
    uint32_t world_size;
    uint32_t local_rank;
    uint32_t local_world_size; /* 0 = unknown */
    enum stk_launcher launcher;
};

/* The rules and errors of stoker_ranks_from_environment(). *out is written on success only. */
int stk_ranks_read(struct stk_ranks *out, stoker_error *error);

/* Processes of one job on this node, >= 1: what the first launcher says that gives a number in
 * 1..2^20, whatever is wrong with other variables; 1 if none does. */
uint32_t stk_local_ranks(void);

enum { STK_NODE_UNKNOWN = UINT32_MAX >> 1 };

/* Tasks of a node in Slurm's list, which leaves repetitions out: in "2(x3),1" nodes 0 to 2 have two
 * tasks, node 3 has one (srun(1), SLURM_TASKS_PER_NODE). A list of one entry serves for
 * STK_NODE_UNKNOWN, too. Returns false, and leaves *out alone, if the list is damaged anywhere, or
 * does not reach `node`. */
bool stk_tasks_of_node(const char *list, uint32_t node, uint32_t *out);

#endif
