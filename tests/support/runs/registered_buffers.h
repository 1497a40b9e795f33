/* registered_buffers.h - what the io_uring rings of this process have registered, as the kernel
 * reports. */
#ifndef STK_TEST_REGISTERED_BUFFERS_H
#define STK_TEST_REGISTERED_BUFFERS_H

#include <stdio.h>

/* How many buffers, of all rings; < 0: there is none, or the kernel does not report it. */
static inline int stk_test_registered_buffers(void)
{
    int total = -1;
    for (int fd = 0; fd < 64; fd++) {
        char path[64], line[256];
        (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        FILE *info = fopen(path, "r");
        while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
            int buffers;
            if (sscanf(line, "UserBufs: %d", &buffers) == 1)
                total = (total < 0 ? 0 : total) + buffers;
        }
        if (info != NULL)
            fclose(info);
    }
    return total;
}

#endif
