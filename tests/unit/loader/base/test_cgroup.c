/* test_cgroup.c - what control groups leave, read from made-up folders: nested, both versions,
 * containers. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/memory/budget.h"
#include "loader/base/memory/cgroup.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"

#define MB UINT64_C(1000000)

static struct stk_directory root;

static void begin(void)
{
    root = stk_directory_make();
}

static void finish(void)
{
    stk_directory_remove(&root);
    stk_test_check_leaks();
}

TestSuite(cgroup, .init = begin, .fini = finish);

/* Write a file beneath the root; its folders are made. */
static void put(const char *name, const char *text)
{
    char path[512];
    (void)stk_path_in(path, &root, name);
    for (char *slash = path + strlen(root.path) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    stk_file_write(&root, name, text, strlen(text));
}

static void put_mount(const char *text)
{
    char all[4096];
    (void)snprintf(all, sizeof(all),
                   "22 28 0:21 / /proc rw,nosuid - proc proc rw\n"
                   "28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n%s",
                   text);
    put("proc/self/mountinfo", all);
}

static void put_limits(const char *folder, const char *limit, const char *used)
{
    char name[256];
    (void)snprintf(name, sizeof(name), "%s/memory.max", folder);
    put(name, limit);
    (void)snprintf(name, sizeof(name), "%s/memory.current", folder);
    put(name, used);
}

static uint64_t memory_left(void)
{
    struct stk_memory_room room = { .left = UINT64_MAX, .spare = UINT64_MAX };
    stk_cgroup_memory(root.path, &room);
    return room.left;
}

static const char unified[] =
    "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

Test(cgroup, without_any_nothing_is_limited)
{
    cr_assert_eq(memory_left(), UINT64_MAX); /* no /proc at all */
    cr_assert_eq(stk_cgroup_cpus(root.path), UINT32_MAX);
    put_mount("");
    put("proc/self/cgroup", "0::/\n");
    cr_assert_eq(memory_left(), UINT64_MAX);
    cr_assert_eq(stk_cgroup_cpus(root.path), UINT32_MAX);
    put_mount(unified);
    cr_assert_eq(memory_left(), UINT64_MAX); /* the root of version 2 has no limits */
    put("proc/self/cgroup", "nonsense\n:\n0:\n\n");
    cr_assert_eq(memory_left(), UINT64_MAX);
}

/* systemd-run --user --scope -p MemoryMax=..: the tightest of all groups above counts. */
Test(cgroup, the_tightest_of_nested_groups_counts)
{
    put_mount(unified);
    put("proc/self/cgroup", "0::/user.slice/user-1000.slice/run-r1.scope\n");
    put_limits("sys/fs/cgroup/user.slice/user-1000.slice/run-r1.scope", "max\n", "10000000\n");
    put_limits("sys/fs/cgroup/user.slice/user-1000.slice", "100000000\n", "40000000\n");
    put_limits("sys/fs/cgroup/user.slice", "500000000\n", "300000000\n");
    cr_assert_eq(memory_left(), 60 * MB);
    put_limits("sys/fs/cgroup/user.slice", "500000000\n", "450000000\n");
    cr_assert_eq(memory_left(), 50 * MB);
    put_limits("sys/fs/cgroup/user.slice/user-1000.slice/run-r1.scope", "15000000\n", "10000000\n");
    cr_assert_eq(memory_left(), 5 * MB);
    put("sys/fs/cgroup/user.slice/user-1000.slice/run-r1.scope/memory.high", "12000000\n");
    cr_assert_eq(memory_left(), 2 * MB);
    put_limits("sys/fs/cgroup/user.slice", "500000000\n", "600000000\n"); /* lowered since */
    cr_assert_eq(memory_left(), 0);
}

/* What a data loader reads fills the page cache, which the kernel gives up when it is needed. */
Test(cgroup, page_cache_counts_as_left)
{
    put_mount(unified);
    put("proc/self/cgroup", "0::/job\n");
    put_limits("sys/fs/cgroup/job", "100000000\n", "100000000\n");
    put("sys/fs/cgroup/job/memory.stat", "anon 20000000\nfile 80000000\ninactive_anon "
                                         "7\ninactive_file 50000000\nactive_file 20000000\n");
    cr_assert_eq(memory_left(), 60 * MB);
    struct stk_memory_room room = { .left = UINT64_MAX, .spare = UINT64_MAX };
    stk_cgroup_memory(root.path, &room);
    cr_assert_eq(room.spare, 60 * MB - 100 * MB / 8);
}

/* Docker with a namespace of cgroups: its own group is the root. */
Test(cgroup, in_a_container_the_mount_is_the_group)
{
    put_mount(unified);
    put("proc/self/cgroup", "0::/\n");
    put_limits("sys/fs/cgroup", "70000000\n", "20000000\n");
    put("sys/fs/cgroup/cpu.max", "150000 100000\n");
    cr_assert_eq(memory_left(), 50 * MB);
    cr_assert_eq(stk_cgroup_cpus(root.path), 2);
    put("proc/self/cgroup", "0::/../outside\n"); /* moved there from outside */
    cr_assert_eq(memory_left(), 50 * MB);
}

/* Docker without one: the path is the host's, and the mount begins at it. */
Test(cgroup, of_version_1_in_a_container)
{
    put_mount(
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
        "34 31 0:31 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put("proc/self/cgroup", "9:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "64000000\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "60000000\n");
    put("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\nactive_file 2\ntotal_inactive_file "
                                            "30000000\ntotal_active_file 8000000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(memory_left(), 38 * MB);
    cr_assert_eq(stk_cgroup_cpus(root.path), 3);
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    cr_assert_eq(stk_cgroup_cpus(root.path), UINT32_MAX);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    cr_assert_eq(memory_left(), UINT64_MAX);
}

/* Slurm on a machine with both versions: memory in version 1, nested; version 2 without it. */
Test(cgroup, of_slurm_on_a_hybrid_machine)
{
    put_mount("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("proc/self/cgroup",
        "4:memory:/slurm/uid_1/job_7/step_0\n0::/system.slice/slurmd.service\n");
    put("sys/fs/cgroup/memory/slurm/uid_1/job_7/step_0/memory.limit_in_bytes", "9000000000\n");
    put("sys/fs/cgroup/memory/slurm/uid_1/job_7/step_0/memory.usage_in_bytes", "1000000000\n");
    put("sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.limit_in_bytes", "8000000000\n");
    put("sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.usage_in_bytes", "3000000000\n");
    put("sys/fs/cgroup/unified/system.slice/slurmd.service/cpu.max", "400000 100000\n");
    put("sys/fs/cgroup/unified/system.slice/cpu.max", "max 100000\n");
    cr_assert_eq(memory_left(), 5000 * MB);
    cr_assert_eq(stk_cgroup_cpus(root.path), 4);
}

Test(cgroup, names_with_spaces_and_long_lines)
{
    char mounts[3500];
    memset(mounts, 'x', sizeof(mounts));
    (void)snprintf(mounts + 3000, sizeof(mounts) - 3000, "\n%s",
                   "35 24 0:30 / /sys/fs/my\\040cgroup rw - cgroup2 cgroup2 rw\n");
    put_mount(mounts);
    put("proc/self/cgroup", "0::/a job: number 1\n");
    put_limits("sys/fs/my cgroup/a job: number 1", "3000000\n", "1000000\n");
    cr_assert_eq(memory_left(), 2 * MB);
}

Test(cgroup, machine_and_groups_together)
{
    put("proc/meminfo", "MemTotal:       16000 kB\nMemFree:  9 kB\nMemAvailable:   12000 kB\n");
    struct stk_memory_room room = stk_memory_look(root.path);
    cr_assert_eq(room.left, 12000 * 1024);
    cr_assert_eq(room.spare, 10000 * 1024);
    put_mount(unified);
    put("proc/self/cgroup", "0::/job\n");
    put_limits("sys/fs/cgroup/job", "8000000\n", "7500000\n");
    room = stk_memory_look(root.path);
    cr_assert_eq(room.left, 500000);
    cr_assert_eq(room.spare, 0);
}

/* ---- shared by processes ---- */

static uint64_t budget_left(uint32_t ranks)
{
    return stk_budget_left(stk_memory_available(), ranks);
}

Test(cgroup, loaders_of_a_process_share_one_budget)
{
    const uint64_t half = budget_left(1) / 2;
    cr_assert_lt(budget_left(2), half * 5 / 4, "two ranks"); /* others use memory meanwhile */
    stk_budget_reserve(half);
    cr_assert_lt(budget_left(1), half * 5 / 4);
    stk_budget_reserve(UINT64_MAX / 2);
    cr_assert_eq(budget_left(1), 0);
    const pid_t child = fork();
    if (child == 0) /* which holds none of the parent's reservations */
        _exit(budget_left(1) > half ? 0 : 1);
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    stk_budget_give_back(UINT64_MAX / 2);
    stk_budget_give_back(half);
    cr_assert_gt(budget_left(1), half);
}
