/* values.h - one value of a command line, read as its row of the option table says. */
#ifndef STK_CLI_VALUES_H
#define STK_CLI_VALUES_H

#include "loader/cli/options.h"

/* Reads text (NULL for kinds without a value) into `to`. 0, or STOKER_EINVAL and a message. */
int cli_read_value(const struct cli_option *row, const char *text, void *to,
                   char message[CLI_MESSAGE_BYTES]);

/* "64K", "3", "1T": the largest unit that divides it. */
void cli_bytes_text(char text[24], uint64_t bytes);

#endif
