/* interrupt.c - see interrupt.h. A handler can reach nothing but a variable of the file. */
#include "loader/cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_bool came;

static void remember(int signal_number)
{
    (void)signal_number;
    atomic_store_explicit(&came, true, memory_order_relaxed); /* no other data goes with it */
}

void cli_interrupt_watch(int signal_number)
{
    struct sigaction action = { .sa_handler = remember,
                                .sa_flags = SA_RESTART | (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    (void)sigaction(signal_number, &action, NULL);
}

bool cli_interrupted(void)
{
    return atomic_load_explicit(&came, memory_order_relaxed);
}
