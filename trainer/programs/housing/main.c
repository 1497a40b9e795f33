/* main.c - stoker-housing: predict a number from a table of numbers with a small network.
 *
 * Exit status: 0 done, 1 failed, 2 bad usage, 130 stopped by Ctrl-C and saved.
 */
#include "trainer/programs/program.h"

static void report(const struct console *console, const char *model, const stoker_evaluation *test)
{
    console_result(console, "test mse%s: %.3f", model, test->loss_sum / (double)test->count);
}

int main(int argc, char **argv)
{
    const struct program_kind kind = { .name = "stoker-housing",
                                       .program = PROGRAM_HOUSING,
                                       .classes = false,
                                       .open = data_open_table,
                                       .report = report };
    return program_run(&kind, argc, argv);
}
