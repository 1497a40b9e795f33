/* help.c - what --help prints: the option table, each row with its default in this program.
 *
 *   --lr X      learning rate (fast 0.01; pytorch 1)      the presets differ
 *   --seed N    of weights, order and dropout (0)         they do not
 */
#include "trainer/programs/option_table.h"

#include <string.h>

static void default_of(char text[CLI_DEFAULT_BYTES], const struct cli_option *row,
                       enum preset preset)
{
    struct arguments arguments;
    preset_apply(&arguments, preset);
    cli_default(text, row, &arguments);
}

static void housing_default(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row)
{
    default_of(text, row, PRESET_HOUSING);
}

static void mnist_default(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row)
{
    char fast[CLI_DEFAULT_BYTES];
    char pytorch[CLI_DEFAULT_BYTES];
    default_of(fast, row, PRESET_FAST);
    default_of(pytorch, row, PRESET_PYTORCH);
    if (row->at == offsetof(struct arguments, preset) || strcmp(fast, pytorch) == 0)
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%s", fast);
    else
        (void)snprintf(text, 2 * CLI_DEFAULT_BYTES + 40, "fast %s; pytorch %s", fast, pytorch);
}

void arguments_help(FILE *file, enum program program)
{
    const struct cli_table table = option_table(program);
    fputs(program == PROGRAM_MNIST
              ? "usage: stoker-mnist [options]\n\n"
                "Train a network to classify images, and test it.\n"
              : "usage: stoker-housing [options]\n\n"
                "Fit a small network to a table of numbers (Boston housing), and test it.\n",
          file);
    cli_print_options(file, &table, program == PROGRAM_MNIST ? mnist_default : housing_default);
    fputs("\nCtrl-C saves what was learnt and prints the command that continues.\n"
          "Exit status: 0 done, 1 failed, 2 bad usage, 130 stopped by Ctrl-C and saved.\n",
          file);
}
