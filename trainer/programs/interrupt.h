/* interrupt.h - Ctrl-C as a wish: the loop sees it between two steps and saves.
 *
 *   first SIGINT or SIGTERM   remembered; the system calls it fell into go on
 *   second                    ends the program at once, as without us
 */
#ifndef STK_PROGRAMS_INTERRUPT_H
#define STK_PROGRAMS_INTERRUPT_H

#include <stdbool.h>

void interrupt_watch(void);
bool interrupt_wished(void);

#endif
