/* option_fault.h - what a program says about an option that getopt_long() refused: the same words in all. */
#ifndef STK_CLI_OPTION_FAULT_H
#define STK_CLI_OPTION_FAULT_H

#include <getopt.h>
#include <stddef.h>

/* Write one line without an end to message. `found` is what getopt_long() returned: '?', or ':' for a missing
 * value (the short options begin with ':'); argv, optind and optopt are as it left them. */
void cli_option_fault(char *message, size_t bytes, int found, char *const *argv,
                      const struct option *options);

#endif
