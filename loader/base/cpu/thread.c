/* thread.c - see thread.h. */
#include "loader/base/cpu/thread.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <stoker/error.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/memory/cgroup.h"

enum { TOGETHER_PER_CPU = 2, NEAR_MAX = 16 };

int stk_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    if (stk_fault_hit(STK_FAULT_THREAD))
        return STOKER_ETHREAD;

    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return STOKER_ETHREAD;
    pthread_setname_np(*thread, name); /* for top and gdb; failing does no harm */
    return 0;
}

void stk_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t wait_ns)
{
    struct timespec limit = { .tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000 };
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, wait_ns < 0 ? NULL : &limit, NULL, 0);
}

void stk_futex_wake(_Atomic uint32_t *word, uint32_t count)
{
    int sleepers = count > INT_MAX ? INT_MAX : (int)count;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec used;
    if (clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)stk_timespec_ns(used);
}

uint64_t stk_thread_cpu_ns(pthread_t thread)
{
    clockid_t clock;
    return pthread_getcpuclockid(thread, &clock) == 0 ? cpu_ns(clock) : 0;
}

uint64_t stk_thread_cpu_ns_here(void)
{
    return cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t stk_thread_queue_ns(pid_t thread)
{
    char text[96]; /* CPU time, time in the queue, number of time slices */
    (void)snprintf(text, sizeof(text), "/proc/self/task/%d/schedstat", (int)thread);
    const int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *second = strchr(text, ' ');
    return second == NULL ? 0 : strtoull(second, NULL, 10);
}

bool stk_thread_leave_cpu(uint32_t cpu)
{
    cpu_set_t allowed;
    if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return false; /* more CPUs than a set holds: let the kernel choose */
    cpu_set_t others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0)
        return false;
    (void)sched_setaffinity(0, sizeof(allowed),
                            &allowed); /* the old mask, which the kernel has accepted before */
    return true;
}

uint32_t stk_cpu_count(void)
{
    cpu_set_t set;
    long cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                             : sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = cpus < 1 ? 1U : (uint32_t)cpus;
    uint32_t quota = stk_cgroup_cpus("");
    return quota < count ? quota : count;
}

uint32_t stk_threads_together(uint64_t pieces, bool far)
{
    if (pieces <= 1)
        return 1; /* the quota takes a dozen files to read */
    uint64_t count = STK_THREADS_TOGETHER_MAX;
    if (!far && (count = (uint64_t)stk_cpu_count() * TOGETHER_PER_CPU) > NEAR_MAX)
        count = NEAR_MAX;
    return pieces < count ? (uint32_t)pieces : (uint32_t)count;
}

void stk_threads_run(uint32_t count, const char *name, void *(*run)(void *), void *argument)
{
    pthread_t threads[STK_THREADS_TOGETHER_MAX];
    uint32_t started = 0;
    assert(count >= 1);
    assert(count <= STK_THREADS_TOGETHER_MAX);
    while (started + 1 < count && stk_thread_start(&threads[started], name, run, argument) == 0)
        started++;
    (void)run(argument);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
