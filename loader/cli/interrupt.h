/* interrupt.h - Ctrl-C as a request to stop, which a program answers when it suits.
 *
 *   first signal   remembered; interrupted system calls restart
 *   second         ends the program at once, as by default
 */
#ifndef STK_CLI_INTERRUPT_H
#define STK_CLI_INTERRUPT_H

#include <stdbool.h>

/* Watches for a signal (SIGINT, SIGTERM) from now on. */
void cli_interrupt_watch(int signal_number);

/* Returns true once a watched signal has come. Any thread. */
bool cli_interrupted(void);

#endif
