/* thread.h - starting threads, sleeping on a word, and how many CPUs we may use. */
#ifndef STK_BASE_THREAD_H
#define STK_BASE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Start a thread with every signal blocked, so that the program's handlers run on
 * its own threads. Returns 0 or STOKER_ETHREAD. */
int stk_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

enum { STK_THREADS_TOGETHER_MAX = 64 };

/* Threads that should share `pieces` pieces of work: 1..16, by the number of CPUs, if they half
 * wait for disks; 1..64 if they nearly only wait, for what is `far`. */
uint32_t stk_threads_together(uint64_t pieces, bool far);

/* Run `run` in this thread and in up to count - 1 more, as many as can be started, and wait for
 * all. */
void stk_threads_run(uint32_t count, const char *name, void *(*run)(void *), void *argument);

/* Sleep while *word == value, at most wait_ns (< 0 = no limit). May return early:
 * the caller looks again at what it waits for. */
void stk_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t wait_ns);

/* Wake up to `count` sleepers on word. */
void stk_futex_wake(_Atomic uint32_t *word, uint32_t count);

/* One turn of a bounded spin: lets the core know that the thread only waits. */
static inline void stk_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The CPU that the calling thread runs on at this moment; a few nanoseconds. */
static inline uint32_t stk_cpu_here(void)
{
    return (uint32_t)sched_getcpu();
}

/* Move the calling thread off this CPU to another one that it may run on; its affinity stays as it
 * was. False: there is no other, or the kernel does not report the affinity. */
bool stk_thread_leave_cpu(uint32_t cpu);

/* CPU time that a thread of this process has used, in nanoseconds; 0 if the system cannot say. A
 * system call. */
uint64_t stk_thread_cpu_ns(pthread_t thread);

/* The same for the calling thread. */
uint64_t stk_thread_cpu_ns_here(void);

/* Nanoseconds in which a thread of this process, by its kernel id, was ready to run and no CPU was
 * free; 0 if the system does not report it. Three system calls. */
uint64_t stk_thread_queue_ns(pid_t thread);

/* CPUs that affinity and the quotas of control groups leave to this process, >= 1. */
uint32_t stk_cpu_count(void);

#endif
