/* emulator.h - what a kernel has and an emulator of another processor has not (qemu-user): tests of
 * it are skipped there. */
#ifndef STK_TEST_EMULATOR_H
#define STK_TEST_EMULATOR_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns true if advice about memory is accepted and not followed: pages are not wiped on fork,
 * and none is huge. A kernel refuses advice that it does not know. Such an emulator also makes up
 * /proc/self. */
static inline bool stk_test_is_emulated(void)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *const page =
        mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        abort();
    const bool accepts_any = madvise(page, page_bytes, 12345) == 0;
    munmap(page, page_bytes);
    return accepts_any;
}

/* Returns true if the kernel opens paths beneath a folder, links included (Linux 5.6). */
static inline bool stk_test_has_openat2(void)
{
    return syscall(SYS_openat2, AT_FDCWD, ".", NULL, 0UL) == 0 || errno != ENOSYS;
}

#endif
