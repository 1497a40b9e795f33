/* seccomp.h - make one system call fail, for the rest of this process, as a
 * container's sandbox does: the call is not made and answers os_errno.
 *
 * Static functions in a header, because each test is a program of one file. Works
 * without privileges; use it in a Criterion test, which is a process of its own.
 */
#ifndef STK_TEST_SECCOMP_H
#define STK_TEST_SECCOMP_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int stk_seccomp_install(struct sock_filter *program, size_t steps)
{
    const struct sock_fprog filter = { .len = (unsigned short)steps, .filter = program };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return -errno;
    return 0;
}

/* Returns 0, or -errno where the kernel has no filters (skip the test then). */
static inline int stk_seccomp_refuse(long call, int os_errno)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)os_errno & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return stk_seccomp_install(program, sizeof(program) / sizeof(program[0]));
}

/* The same, only for calls whose argument number `argument` (from 0) has this value in its low
 * half. */
static inline int stk_seccomp_refuse_argument(long call, uint32_t argument, uint32_t value,
                                              int os_errno)
{
    const size_t low_half = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4;
    const size_t at = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) + low_half;
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)os_errno & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return stk_seccomp_install(program, sizeof(program) / sizeof(program[0]));
}

/* One operation of io_uring_register, which is its second argument. */
static inline int stk_seccomp_refuse_operation(long call, uint32_t operation, int os_errno)
{
    return stk_seccomp_refuse_argument(call, 1, operation, os_errno);
}

/* No ring can be made any more: what Docker and a sysctl answer is EPERM, what
 * Podman and a kernel without io_uring answer is ENOSYS. */
static inline int stk_seccomp_refuse_rings(int os_errno)
{
    return stk_seccomp_refuse(SYS_io_uring_setup, os_errno);
}

#endif
