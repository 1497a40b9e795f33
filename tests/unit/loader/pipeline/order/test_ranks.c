/* test_ranks.c - ranks read from the variables of each launcher; half-set, wild and contradicting
 * ones refused. */
#include <stoker/ranks.h>

#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

/* In the order rank, world_size, local_rank, local_world_size. */
static const char *const names[][4] = {
    { "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE" },
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE" },
    { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
    { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE" },
};
enum { LAUNCHERS = 4 };

/* Read beside them. */
static const char *const others[] = { "NODE_RANK", "SLURM_NODEID", "PMIX_RANK",
                                      "MV2_COMM_WORLD_RANK", "FLUX_TASK_RANK" };

static void clear(void)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        (void)unsetenv(others[i]);
    for (int l = 0; l < LAUNCHERS; l++)
        for (int i = 0; i < 4; i++)
            (void)unsetenv(names[l][i]);
}

/* NULL leaves a variable out. */
static void set(int launcher, const char *rank, const char *size, const char *local_rank,
                const char *local_size)
{
    const char *const values[4] = { rank, size, local_rank, local_size };
    for (int i = 0; i < 4; i++)
        if (values[i] != NULL)
            (void)setenv(names[launcher][i], values[i], 1);
}

static stoker_ranks found(void)
{
    stoker_ranks ranks = STOKER_RANKS_INIT;
    stoker_error error = { 0 };
    cr_assert_eq(stoker_ranks_from_environment(&ranks, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(ranks.struct_size, sizeof(ranks));
    return ranks;
}

static void expect(uint32_t rank, uint32_t size, uint32_t local_rank, uint32_t local_size,
                   stoker_launcher launcher)
{
    const stoker_ranks ranks = found();
    cr_assert_eq(ranks.rank, rank);
    cr_assert_eq(ranks.world_size, size);
    cr_assert_eq(ranks.local_rank, local_rank);
    cr_assert_eq(ranks.local_world_size, local_size);
    cr_assert_eq(ranks.launcher, launcher, "%s", stoker_launcher_name(ranks.launcher));
}

/* Every one of `words` is in the message, and *out is unchanged. */
static void refuse(const char *const *words)
{
    stoker_ranks ranks = STOKER_RANKS_INIT;
    stoker_error error = { 0 };
    ranks.rank = 77;
    cr_assert_eq(stoker_ranks_from_environment(&ranks, &error), STOKER_EINVAL, "%s", words[0]);
    cr_assert_eq(ranks.rank, 77);
    for (int i = 0; words[i] != NULL; i++)
        cr_assert_not_null(strstr(error.message, words[i]), "\"%s\" is not in: %s", words[i],
                           error.message);
}
#define REFUSE(...) refuse((const char *const[]){ __VA_ARGS__, NULL })

Test(ranks, one_process_without_variables)
{
    clear();
    expect(0, 1, 0, 1, STOKER_LAUNCHER_NONE);
    set(0, "", "", "", ""); /* empty is unset */
    expect(0, 1, 0, 1, STOKER_LAUNCHER_NONE);
}

Test(ranks, each_launcher)
{
    for (int l = 0; l < LAUNCHERS; l++) {
        clear();
        set(l, "5", "8", "1", "4");
        expect(5, 8, 1, 4, (stoker_launcher)(l + 1));
        clear();
        set(l, "0", "1048576", NULL, NULL);
        expect(0, 1048576, 0, 0, (stoker_launcher)(l + 1));
    }
}

Test(ranks, half_set_variables_are_named)
{
    for (int l = 0; l < LAUNCHERS; l++) {
        clear();
        set(l, "5", NULL, NULL, NULL);
        if (l + 1 == STOKER_LAUNCHER_SLURM) /* a batch script */
            expect(0, 1, 0, 1, STOKER_LAUNCHER_NONE);
        else
            REFUSE(names[l][0], names[l][1], "5");
        clear();
        set(l, NULL, "8", NULL, NULL);
        REFUSE(names[l][0], names[l][1], "8");
        clear();
        set(l, "5", "8", "1", NULL); /* the place in the node is optional */
        expect(5, 8, 1, 0, (stoker_launcher)(l + 1));
        clear();
        set(l, "5", "8", NULL, "4");
        expect(5, 8, 0, 0, (stoker_launcher)(l + 1));
    }
}

/* "NAME=VALUE NAME=VALUE" */
static void set_all(const char *assignments)
{
    char copy[256];
    char *rest = copy;
    (void)snprintf(copy, sizeof(copy), "%s", assignments);
    clear();
    for (char *each = strtok_r(copy, " ", &rest); each != NULL; each = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(each, '=');
        *value = '\0';
        (void)setenv(each, value + 1, 1);
    }
}

#define SLURM                                                                                      \
    " SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=4(x2)"
#define SLURM_NODE SLURM " SLURM_NODEID=1"

/* What launchers leave out, alone and beside Slurm's variables. */
Test(ranks, variables_that_launchers_leave_out)
{
    static const struct {
        const char *variables;
        stoker_ranks ranks; /* world_size 0: refused */
        const char *named;  /* by the error */
    } rows[] = {
        /* srun's wrappers, DeepSpeed */
        { "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1", { 0, 5, 8, 1, 0, STOKER_LAUNCHER_TORCHRUN }, NULL },
        { "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1" SLURM_NODE,
          { 0, 5, 8, 1, 4, STOKER_LAUNCHER_TORCHRUN },
          NULL },
        { "RANK=5 WORLD_SIZE=8 LOCAL_RANK=8", { .world_size = 0 }, "LOCAL_RANK=8" },
        { "RANK=5 WORLD_SIZE=9 LOCAL_RANK=1 PMI_RANK=5 PMI_SIZE=8",
          { .world_size = 0 },
          "PMI_SIZE=8" },
        /* Lightning: a rank follows on the first node only */
        { "WORLD_SIZE=8 LOCAL_RANK=3 NODE_RANK=0",
          { 0, 3, 8, 3, 0, STOKER_LAUNCHER_TORCHRUN },
          NULL },
        { "WORLD_SIZE=8 LOCAL_RANK=3 NODE_RANK=1", { .world_size = 0 }, "RANK is not" },
        { "WORLD_SIZE=8 LOCAL_RANK=9 NODE_RANK=0", { .world_size = 0 }, "LOCAL_RANK=9" },
        { "WORLD_SIZE=8 LOCAL_RANK=1 NODE_RANK=1" SLURM_NODE,
          { 0, 5, 8, 1, 4, STOKER_LAUNCHER_SLURM },
          NULL },
        { "WORLD_SIZE=16 LOCAL_RANK=1 NODE_RANK=1" SLURM_NODE,
          { .world_size = 0 },
          "WORLD_SIZE=16" },
        { "RANK=5" SLURM_NODE, { 0, 5, 8, 1, 4, STOKER_LAUNCHER_SLURM }, NULL },
        { "RANK=4" SLURM_NODE, { .world_size = 0 }, "RANK=4" },
        /* nobody says how many there are */
        { "PMIX_RANK=0", { 0, 0, 1, 0, 1, STOKER_LAUNCHER_NONE }, NULL },
        { "PMIX_RANK=1", { .world_size = 0 }, "PMIX_RANK=1" },
        { "PMIX_RANK=1 RANK=1 WORLD_SIZE=2", { 0, 1, 2, 0, 0, STOKER_LAUNCHER_TORCHRUN }, NULL },
        { "MV2_COMM_WORLD_RANK=2", { .world_size = 0 }, "MV2_COMM_WORLD_RANK=2" },
        { "FLUX_TASK_RANK=2", { .world_size = 0 }, "FLUX_TASK_RANK=2" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const stoker_ranks *ranks = &rows[i].ranks;
        set_all(rows[i].variables);
        if (ranks->world_size == 0)
            REFUSE(rows[i].named);
        else
            expect(ranks->rank, ranks->world_size, ranks->local_rank, ranks->local_world_size,
                   ranks->launcher);
    }
}

Test(ranks, wild_values_are_named)
{
    static const char *const wild[] = { "-1",  "+1",      " 1",
                                        "1 ",  "1.5",     "one",
                                        "0x1", "1048577", "99999999999999999999" };
    for (int l = 0; l < LAUNCHERS; l++)
        for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
            clear();
            set(l, wild[i], "8", NULL, NULL);
            REFUSE(names[l][0], wild[i]);
            clear();
            set(l, "0", wild[i], NULL, NULL);
            REFUSE(names[l][1], wild[i]);
        }
    clear();
    set(0, "2", "2", NULL, NULL);
    REFUSE("RANK=2", "WORLD_SIZE=2");
    set(0, "0", "0", NULL, NULL);
    REFUSE("RANK=0", "WORLD_SIZE=0");
    set(0, "1", "4", "2", "2");
    REFUSE("LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2");
    set(0, "1", "4", "1", "5");
    REFUSE("LOCAL_WORLD_SIZE=5", "WORLD_SIZE=4");
}

Test(ranks, launchers_must_agree)
{
    clear();
    set(0, "1", "4", "1", "2");
    set(1, "1", "4", "1", "4");
    expect(1, 4, 1, 2, STOKER_LAUNCHER_TORCHRUN);
    set(1, "2", "4", NULL, NULL);
    REFUSE("RANK=1", "OMPI_COMM_WORLD_RANK=2");
    set(1, "1", "5", NULL, NULL);
    REFUSE("WORLD_SIZE=4", "OMPI_COMM_WORLD_SIZE=5");
    clear();
    set(1, "1", "4", "1", "4");
    set(3, "0", "2", "0", NULL); /* srun started one launcher a node */
    expect(1, 4, 1, 4, STOKER_LAUNCHER_OPEN_MPI);
    set(3, "0", "many", "0", NULL);
    REFUSE("SLURM_STEP_NUM_TASKS", "many");
}

Test(ranks, a_struct_of_unknown_size_is_refused)
{
    clear();
    stoker_ranks ranks = { 0 };
    cr_assert_eq(stoker_ranks_from_environment(&ranks, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_ranks_from_environment(NULL, NULL), STOKER_EINVAL);
}

Test(ranks, launchers_have_names)
{
    for (int l = 0; l <= LAUNCHERS; l++)
        cr_assert_str_neq(stoker_launcher_name((stoker_launcher)l), "unknown");
    cr_assert_str_eq(stoker_launcher_name((stoker_launcher)(LAUNCHERS + 1)), "unknown");
}

/* ---- the loader ------------------------------------------------------------------ */

/* The ids of one epoch's first batch. */
static uint64_t first_id(const stoker_dataset *dataset, stoker_loader_options options)
{
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    const uint64_t id = batch.ids[0];
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    return id;
}

CleanTest(ranks, a_loader_takes_its_share)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=4x4x3");
    stoker_loader_options options = stk_small_options(.shuffle = false);
    stoker_error error = { 0 };
    stoker_loader *loader = NULL;
    clear();
    set(1, "2", "3", NULL, NULL);
    cr_assert_eq(first_id(dataset, options), 0); /* not asked for */
    options.rank = STOKER_RANK_AUTO;
    cr_assert_eq(first_id(dataset, options), 2);
    options.world_size = 3;
    cr_assert_eq(first_id(dataset, options), 2);
    options.world_size = 4;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "world_size 4"), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "Open MPI"), "%s", error.message);
    clear();
    options.world_size = 1;
    cr_assert_eq(first_id(dataset, options), 0);
    set(2, "1", NULL, NULL, NULL);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "PMI_SIZE"), "%s", error.message);
    stoker_dataset_close(&dataset);
}
