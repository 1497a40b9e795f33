/* main.c - stoker-mnist: train a small convolutional network to classify digits.
 *
 * Exit status: 0 done, 1 failed, 2 bad usage, 130 stopped by Ctrl-C and saved.
 */
#include "trainer/programs/session.h"

static void report(const struct voice *voice, const char *model, const stoker_evaluation *test)
{
    voice_result(voice, "test loss%s: %.4f", model, test->loss_sum / (double)test->count);
    voice_result(voice, "test accuracy%s: %.2f %%", model,
                 100 * (double)test->correct / (double)test->count);
}

int main(int argc, char **argv)
{
    const struct session_kind kind = { .name = "stoker-mnist",
                                       .program = PROGRAM_MNIST,
                                       .classes = true,
                                       .open = data_open_images,
                                       .report = report };
    return session_run(&kind, argc, argv);
}
