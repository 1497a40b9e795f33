/* main.c - stoker-housing: predict a number from a table of numbers with a small network.
 *
 * Exit status: 0 done, 1 failed, 2 bad usage, 130 stopped by Ctrl-C and saved.
 */
#include "trainer/programs/session.h"

static void report(const struct voice *voice, const char *model, const stoker_evaluation *test)
{
    voice_result(voice, "test mse%s: %.3f", model, test->loss_sum / (double)test->count);
}

int main(int argc, char **argv)
{
    const struct session_kind kind = { .name = "stoker-housing",
                                       .program = PROGRAM_HOUSING,
                                       .classes = false,
                                       .open = data_open_table,
                                       .report = report };
    return session_run(&kind, argc, argv);
}
