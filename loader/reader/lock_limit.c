/* lock_limit.c - see lock_limit.h. */
#include "loader/reader/lock_limit.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RINGS_PER_USER = 128 /* rings for which the user's limit should suffice */ };

static bool has_capability(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
    return syscall(SYS_capget, &header, data) == 0 &&
           (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

/* In another user namespace the capability does not count. The first one maps all ids to
 * themselves. */
static bool in_first_namespace(void)
{
    char text[64];
    const int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    return strstr(text, " 4294967295\n") != NULL;
}

bool stk_lock_is_unlimited(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
        return true;
    return has_capability() && in_first_namespace();
}

bool stk_lock_may_take(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return false;
    return limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur / RINGS_PER_USER;
}
