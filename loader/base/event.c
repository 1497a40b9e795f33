/* event.c - see event.h. */
#include "loader/base/event.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int stk_event_open(int *out)
{
    const int event = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event < 0)
        return -errno;
    *out = event;
    return 0;
}

/* A counter that cannot take more is set, and one that is 0 is clear: both then answer EAGAIN. */
void stk_event_set(int event)
{
    const int kept = errno;
    const uint64_t one = 1;
    while (write(event, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    errno = kept;
}

void stk_event_clear(int event)
{
    uint64_t count;
    while (read(event, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}
