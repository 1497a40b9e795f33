/* test_worker_cpus.c - workers of one of two processes keep to half of the CPUs; of a single
 * process to none. */
#include <dirent.h>
#include <sched.h>

#include "support/leaks.h"
#include "support/runs/opened_loader.h"

/* The CPUs of all threads with the workers' name together; how many such threads in *count. */
static cpu_set_t cpus_of_workers(int *count)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    *count = 0;
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    while ((entry = readdir(threads)) != NULL) {
        char path[64];
        char name[32] = "";
        (void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        cpu_set_t own;
        if (fgets(name, sizeof(name), file) != NULL && strcmp(name, "stoker-worker\n") == 0 &&
            sched_getaffinity(atoi(entry->d_name), sizeof(own), &own) == 0) {
            CPU_OR(&all, &all, &own);
            ++*count;
        }
        (void)fclose(file);
    }
    closedir(threads);
    return all;
}

static uint32_t run_one_epoch(cpu_set_t *workers_cpus, uint32_t local_rank,
                              uint32_t local_world_size)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?shape=10&count=1000");
    stoker_loader_options options =
        stk_default_options(.num_workers = 2, .device = STOKER_DEVICE_CPU, .local_rank = local_rank,
                            .local_world_size = local_world_size);
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    for (int i = 0; i < 50; i++)
        if (stoker_loader_next(loader, &batch, -1) == STOKER_OK)
            stoker_batch_release(&batch);
    int workers;
    *workers_cpus = cpus_of_workers(&workers);
    cr_assert_eq(workers, 2);
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return stats.cpus;
}

CleanTest(worker_cpus, are_divided_among_the_processes_of_a_node)
{
    cpu_set_t own;
    cpu_set_t found[3];
    cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
    const uint32_t all = run_one_epoch(&found[2], 0, 0);
    cr_assert(CPU_EQUAL(&found[2], &own), "a single process: no thread is bound");
    if (CPU_COUNT(&own) < 2)
        cr_skip("one CPU cannot be divided");
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    for (int rank = 0; rank < 2; rank++) {
        setenv("RANK", rank == 0 ? "0" : "1", 1);
        setenv("LOCAL_RANK", rank == 0 ? "0" : "1", 1);
        cr_assert_leq(run_one_epoch(&found[rank], 0, 0), (all + 1) / 2);
    }
    cpu_set_t both;
    CPU_AND(&both, &found[0], &found[1]);
    cr_assert_eq(CPU_COUNT(&both), 0);
    CPU_OR(&both, &found[0], &found[1]);
    cr_assert(CPU_EQUAL(&both, &own));
    cpu_set_t caller;
    cr_assert_eq(sched_getaffinity(0, sizeof(caller), &caller), 0);
    cr_assert(CPU_EQUAL(&caller, &own), "the caller's thread is its own");
}

CleanTest(worker_cpus, are_divided_among_the_threads_of_a_process)
{
    cpu_set_t own;
    cpu_set_t found[2];
    cpu_set_t both;
    cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
    const uint32_t all = run_one_epoch(&both, 0, 1);
    cr_assert(CPU_EQUAL(&both, &own), "a single thread: it has all of them");
    if (CPU_COUNT(&own) < 2)
        cr_skip("one CPU cannot be divided");
    for (uint32_t rank = 0; rank < 2; rank++)
        cr_assert_leq(run_one_epoch(&found[rank], rank, 2), (all + 1) / 2);
    CPU_AND(&both, &found[0], &found[1]);
    cr_assert_eq(CPU_COUNT(&both), 0);
    CPU_OR(&both, &found[0], &found[1]);
    cr_assert(CPU_EQUAL(&both, &own));
}
