/* test_launcher.c - processes on this node: each launcher's variable, and Slurm's list of tasks per
 * node. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/launcher.h"

static const char *const names[] = { "LOCAL_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     "MPI_LOCALNRANKS",
                                     "SLURM_STEP_TASKS_PER_NODE",
                                     "SLURM_NTASKS_PER_NODE",
                                     "SLURM_STEP_NUM_TASKS",
                                     "SLURM_PROCID",
                                     "SLURM_LOCALID",
                                     "SLURM_NODEID",
                                     "RANK",
                                     "WORLD_SIZE",
                                     "PMI_RANK",
                                     "PMI_SIZE" };

static void clear(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unsetenv(names[i]);
}

static void set(const char *name, const char *value)
{
    (void)setenv(name, value, 1);
}

/* ---- Slurm's list ---- */

enum { UNTOUCHED = 77 };

/* Returns 0 if the list does not say. */
static uint32_t tasks_of(const char *list, uint32_t node)
{
    uint32_t tasks = UNTOUCHED;
    const bool says = stk_tasks_of_node(list, node, &tasks);
    cr_assert(says ? tasks > 0 : tasks == UNTOUCHED, "%s", list);
    return says ? tasks : 0;
}

Test(launcher, a_list_leaves_repetitions_out)
{
    static const uint32_t expected[] = { 2, 2, 2, 1, 16, 16, 0 };
    for (uint32_t node = 0; node < sizeof(expected) / sizeof(expected[0]); node++)
        cr_assert_eq(tasks_of("2(x3),1,16(x2)", node), expected[node], "node %u", node);
    cr_assert_eq(tasks_of("4", 0), 4);
    cr_assert_eq(tasks_of("4", 1), 0);
    cr_assert_eq(tasks_of("1048576(x1048576),3", 1048576), 3);
}

Test(launcher, one_entry_serves_a_node_without_a_number)
{
    cr_assert_eq(tasks_of("4", STK_NODE_UNKNOWN), 4);
    cr_assert_eq(tasks_of("4(x2)", STK_NODE_UNKNOWN), 4);
    cr_assert_eq(tasks_of("4(x2),4", STK_NODE_UNKNOWN), 0);
    cr_assert_eq(tasks_of("4,1", STK_NODE_UNKNOWN), 0);
}

/* Damage behind the node's own entry counts, too: what is damaged anywhere may be wrong
 * everywhere. */
Test(launcher, nonsense_says_nothing)
{
    static const char *const wrong[] = {
        "",       ",",      "x",        "-1",      "+1",       " 1",          "1 ",
        "0",      "2,0",    "2(x0)",    "2(x)",    "2()",      "2(",          "2(x3",
        "2(x3)4", "2(x3)(", "2(3)",     "2x3",     "2(X3)",    "(x3)",        "2(x-3)",
        "2(x 3)", "2,",     ",2",       "2,,1",    "2(x3),",   "2;1",         "1e3",
        "0x4",    "many",   "2(x3),1x", "1048577", "12345678", "2(x1048577)", "2(x3),1,\xff"
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_assert_eq(tasks_of(wrong[i], 0), 0, "\"%s\"", wrong[i]);
}

Test(launcher, each_prefix_is_a_list_or_nonsense)
{
    static const char list[] = "12(x30),4,16(x2)";
    static const char *const lists[] = { "1",           "12",           "12(x30)", "12(x30),4",
                                         "12(x30),4,1", "12(x30),4,16", list };
    for (size_t length = 0; length < sizeof(list); length++) {
        char *const prefix = strndup(list, length); /* no byte behind its end may be read */
        bool is_list = false;
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
            is_list = is_list || strcmp(prefix, lists[i]) == 0;
        const uint32_t expected = !is_list ? 0 : length == 1 ? 1 : 12;
        cr_assert_eq(tasks_of(prefix, 0), expected, "\"%s\"", prefix);
        free(prefix);
    }
}

Test(launcher, a_flipped_bit_never_makes_a_list_of_no_tasks)
{
    static const char list[] = "12(x30),4,16(x2)";
    for (size_t bit = 0; bit < 8 * (sizeof(list) - 1); bit++)
        for (uint32_t node = 0; node < 40; node++) {
            char damaged[sizeof(list)];
            memcpy(damaged, list, sizeof(list));
            damaged[bit / 8] = (char)(damaged[bit / 8] ^ (1 << bit % 8));
            (void)tasks_of(damaged, node);
        }
}

/* ---- processes on this node ---- */

Test(launcher, the_first_that_gives_a_number_counts)
{
    clear();
    cr_assert_eq(stk_local_ranks(), 1);
    for (int i = 2; i >= 0; i--) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%d", 2 + i);
        set(names[i], text);
        cr_assert_eq(stk_local_ranks(), 2U + (uint32_t)i, "%s", names[i]);
    }
    set(names[0], "0");
    cr_assert_eq(stk_local_ranks(), 3, "the next one");
    set(names[1], "-5");
    set(names[2], "many");
    cr_assert_eq(stk_local_ranks(), 1);
}

/* The process of a step; NULL leaves a variable out. */
static uint32_t in_step(const char *tasks, const char *local, const char *node,
                        const char *step_list, const char *asked)
{
    const char *const pairs[][2] = { { "SLURM_STEP_NUM_TASKS", tasks },
                                     { "SLURM_LOCALID", local },
                                     { "SLURM_NODEID", node },
                                     { "SLURM_STEP_TASKS_PER_NODE", step_list },
                                     { "SLURM_NTASKS_PER_NODE", asked } };
    clear();
    set("SLURM_PROCID", "0");
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (pairs[i][1] != NULL)
            set(pairs[i][0], pairs[i][1]);
    return stk_local_ranks();
}

Test(launcher, a_step_of_slurm)
{
    cr_assert_eq(in_step("7", "1", "0", "2(x3),1", "4"), 2, "the step, not what the job asked for");
    cr_assert_eq(in_step("7", "0", "3", "2(x3),1", "4"), 1);
    cr_assert_eq(in_step("8", "3", "1", NULL, "4"), 4);
    cr_assert_eq(in_step("8", "3", NULL, NULL, "4(x2)"), 4);
    cr_assert_eq(in_step("8", "3", "1", "many", "4(x2)"), 4, "the other variable");
    cr_assert_eq(in_step("7", "0", "4", "2(x3),1", NULL), 1, "no such node");
    cr_assert_eq(in_step("7", "2", "0", "2(x3),1", NULL), 1, "no such task on it");
    cr_assert_eq(in_step("2", "0", NULL, NULL, "4"), 1, "more than the step has");
    cr_assert_eq(in_step("7", "1", "zero", "2(x3),1", "4"), 1);
}

/* Its script has these variables as well, and is one process. */
Test(launcher, a_batch_job_of_slurm_is_no_step)
{
    struct stk_ranks ranks = { .rank = UNTOUCHED };
    cr_assert_eq(in_step(NULL, "0", "0", NULL, "4"), 1);
    cr_assert_eq(stk_ranks_read(&ranks, NULL), STOKER_OK);
    cr_assert_eq(ranks.rank, 0);
    cr_assert_eq(ranks.world_size, 1);
    cr_assert_eq(ranks.launcher, STK_LAUNCHER_NONE);
}

Test(launcher, slurm_knows_the_node_of_a_rank_that_another_names)
{
    struct stk_ranks ranks;
    (void)in_step("7", "1", "0", "2(x3),1", NULL);
    set("SLURM_PROCID", "1");
    set("PMI_RANK", "1");
    set("PMI_SIZE", "7");
    cr_assert_eq(stk_ranks_read(&ranks, NULL), STOKER_OK);
    cr_assert_eq(ranks.launcher, STK_LAUNCHER_PMI);
    cr_assert_eq(ranks.local_rank, 1);
    cr_assert_eq(ranks.local_world_size, 2);
    set("PMI_RANK", "5"); /* started by another launcher, of which srun started one a node */
    cr_assert_eq(stk_ranks_read(&ranks, NULL), STOKER_OK);
    cr_assert_eq(ranks.rank, 5);
    cr_assert_eq(ranks.local_world_size, 0, "unknown");
}
