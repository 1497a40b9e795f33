/* interrupt.c - see interrupt.h. A handler can reach nothing but a variable of the file. */
#include "trainer/programs/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_bool wished;

static void remember(int signal_number)
{
    (void)signal_number;
    atomic_store_explicit(&wished, true, memory_order_relaxed); /* nothing is handed over with it */
}

void interrupt_watch(void)
{
    struct sigaction action = { .sa_handler = remember,
                                .sa_flags = SA_RESTART | (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool interrupt_wished(void)
{
    return atomic_load_explicit(&wished, memory_order_relaxed);
}
