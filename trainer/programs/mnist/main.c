/* main.c - stoker-mnist: train a small convolutional network to classify digits.
 *
 * Exit status: 0 done, 1 failed, 2 bad usage, 130 stopped by Ctrl-C and saved.
 */
#include "trainer/programs/program.h"

static void report(const struct console *console, const char *model, const stoker_evaluation *test)
{
    console_result(console, "test loss%s: %.4f", model, test->loss_sum / (double)test->count);
    console_result(console, "test accuracy%s: %.2f %%", model,
                   100 * (double)test->correct / (double)test->count);
}

int main(int argc, char **argv)
{
    const struct program_kind kind = { .name = "stoker-mnist",
                                       .program = PROGRAM_MNIST,
                                       .classes = true,
                                       .open = data_open_images,
                                       .report = report };
    return program_run(&kind, argc, argv);
}
