/* test_near_cpus.c - workers of a rank keep to the CPUs of its GPU's NUMA node, and slots prefer
 * that node's memory. /sys is made up: open() below answers for it. The stand-in says where its
 * GPUs are.
 *
 * The CPUs are dealt crosswise, so that no rank has by chance what it would have without a GPU:
 * those of the first half are near GPU 1, the others near GPU 0.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"

enum { GPUS = 2 };

static cpu_set_t own;
static cpu_set_t near[GPUS]; /* each GPU */
static int32_t nodes[GPUS];  /* node of each GPU; -1 = the kernel does not know */
static bool made_up;         /* /sys is */

/* ---- /sys ---- */

static int file_with(const char *text)
{
    const int fd = memfd_create("sys", MFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* The CPUs between the first and the last of a set: of this process's CPUs the same. */
static int file_with_range(const cpu_set_t *set)
{
    char text[64];
    size_t first = CPU_SETSIZE;
    size_t last = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set)) {
            first = cpu < first ? cpu : first;
            last = cpu;
        }
    (void)snprintf(text, sizeof(text), "%zu-%zu\n", first, last);
    return file_with(text);
}

static int open_node(int32_t node)
{
    for (int gpu = 0; gpu < GPUS; gpu++)
        if (nodes[gpu] == node)
            return file_with_range(&near[gpu]);
    return -1;
}

static int open_made_up(const char *path)
{
    int gpu = 0;
    int node = 0;
    char text[16];
    if (sscanf(path, "/sys/devices/system/node/node%d/cpulist", &node) == 1)
        return open_node(node);
    if (sscanf(path, "/sys/bus/pci/devices/0cda:%02x:00.0/numa_node", (unsigned *)&gpu) != 1)
        return -1;
    cr_assert(gpu >= 1 && gpu <= GPUS);
    (void)snprintf(text, sizeof(text), "%d\n", (int)nodes[gpu - 1]);
    return file_with(text);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const unsigned mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(list, unsigned) : 0;
    va_end(list);
    if (made_up && (strncmp(path, "/sys/bus/pci", 12) == 0 ||
                    strncmp(path, "/sys/devices/system/node", 24) == 0))
        return open_made_up(path);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- a run ---- */

/* The CPUs of all threads with the workers' name. */
static cpu_set_t cpus_of_workers(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    while ((entry = readdir(threads)) != NULL) {
        char path[64];
        char name[32] = "";
        cpu_set_t set;
        (void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        if (fgets(name, sizeof(name), file) != NULL && strcmp(name, "stoker-worker\n") == 0 &&
            sched_getaffinity(atoi(entry->d_name), sizeof(set), &set) == 0)
            CPU_OR(&all, &all, &set);
        (void)fclose(file);
    }
    closedir(threads);
    return all;
}

struct seen {
    cpu_set_t workers;
    int policy;          /* MPOL_*: where a batch's memory comes from */
    unsigned long nodes; /* that it prefers, a bit each */
};

static struct seen run(uint32_t rank, uint32_t gpu, stoker_device device)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?shape=10&count=100");
    stoker_loader_options options = stk_default_options(.num_workers = 2);
    struct seen seen = { .policy = -1 };
    unsigned long mask[1024 / sizeof(unsigned long) / 8] = { 0 };
    options.device = device;
    options.device_index = gpu;
    options.local_rank = rank;
    options.local_world_size = GPUS;
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
    seen.workers = cpus_of_workers();
    if (syscall(SYS_get_mempolicy, &seen.policy, mask, 1024UL, batch.images.data, MPOL_F_ADDR) != 0)
        seen.policy = -1; /* not allowed here */
    seen.nodes = mask[0];
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return seen;
}

static void begin(void)
{
    size_t cpus = 0;
    standin_cuda_reset(GPUS);
    cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
    CPU_ZERO(&near[0]);
    CPU_ZERO(&near[1]);
    const size_t half = (size_t)CPU_COUNT(&own) / 2;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &own)) {
            CPU_SET(cpu, &near[cpus < half ? 1 : 0]);
            cpus++;
        }
    nodes[0] = 1;
    nodes[1] = 0; /* which every machine has */
    made_up = true;
    if (cpus < 2)
        cr_skip("one CPU cannot be divided");
}

static void finish(void)
{
    made_up = false;
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(near_cpus, .init = begin, .fini = finish);

Test(near_cpus, workers_keep_to_the_node_of_their_gpu)
{
    static const stoker_device devices[] = { STOKER_DEVICE_CUDA, STOKER_DEVICE_CUDA_HOST };
    for (int i = 0; i < 2; i++)
        for (uint32_t rank = 0; rank < GPUS; rank++) {
            const struct seen seen = run(rank, rank, devices[i]);
            cr_assert(CPU_EQUAL(&seen.workers, &near[rank]), "rank %u, device %d", rank, i);
        }
    cpu_set_t caller;
    cr_assert_eq(sched_getaffinity(0, sizeof(caller), &caller), 0);
    cr_assert(CPU_EQUAL(&caller, &own), "the caller's thread is its own");
}

/* What the kernel does not allow to be asked or set, as in some containers, is not tested. */
Test(near_cpus, slots_prefer_the_memory_of_that_node)
{
    const struct seen with = run(1, 1, STOKER_DEVICE_CUDA_HOST);
    nodes[1] = -1;
    const struct seen without = run(1, 1, STOKER_DEVICE_CUDA_HOST);
    if (without.policy != MPOL_DEFAULT)
        cr_skip("get_mempolicy is not allowed here");
    cr_assert_eq(with.policy, MPOL_PREFERRED);
    cr_assert_eq(with.nodes, 1UL);
}

/* Every rank must come to the same end, so none moves if one of them may not see the others'
 * GPUs. */
Test(near_cpus, nothing_moves_without_a_gpu_for_each_rank)
{
    const struct seen other = run(0, 1, STOKER_DEVICE_CUDA); /* rank 0 with GPU 1 */
    cr_assert(CPU_EQUAL(&other.workers, &near[1]), "the first half, as without a GPU");
    const struct seen cpu = run(0, 0, STOKER_DEVICE_CPU);
    cr_assert(CPU_EQUAL(&cpu.workers, &near[1]));
    nodes[1] = -1;
    const struct seen unknown = run(0, 0, STOKER_DEVICE_CUDA);
    cr_assert(CPU_EQUAL(&unknown.workers, &near[1]));
    nodes[1] = 1; /* both are near the second half, which is not enough */
    const struct seen crowded = run(0, 0, STOKER_DEVICE_CUDA);
    cr_assert(CPU_EQUAL(&crowded.workers, &near[1]));
    nodes[1] = 0;
    standin_cuda_reset(1); /* as with CUDA_VISIBLE_DEVICES */
    const struct seen alone = run(0, 0, STOKER_DEVICE_CUDA);
    cr_assert(CPU_EQUAL(&alone.workers, &near[1]));
}
