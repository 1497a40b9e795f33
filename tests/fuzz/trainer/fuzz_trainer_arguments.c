/* fuzz_trainer_arguments.c - any words as the command line of mnist or housing: understood within
 * the bounds that the options have, or refused in one line that names the option.
 *
 *   input  [program:1], then one word a line
 */
#include "fuzz/words_input.h"
#include "trainer/programs/arguments.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 1)
        return 0;
    const enum program program = (bytes[0] & 1) != 0 ? PROGRAM_MNIST : PROGRAM_HOUSING;
    struct stk_fuzz_words words = stk_fuzz_words(bytes + 1, size - 1);
    struct arguments arguments;
    char message[CLI_MESSAGE_BYTES] = "";
    const int rc = arguments_parse(&arguments, program, NULL, words.count, words.at, message);
    STK_FUZZ_MUST_HOLD(rc == STOKER_OK || rc == STOKER_EINVAL);
    STK_FUZZ_MUST_HOLD(memchr(message, '\0', sizeof(message)) != NULL);
    STK_FUZZ_MUST_HOLD(rc == STOKER_OK || message[0] != '\0');
    if (rc == STOKER_OK && arguments.action == ACTION_TRAIN && arguments.help == CLI_NO_HELP) {
        STK_FUZZ_MUST_HOLD(arguments.batch_size == STOKER_BATCH_SIZE_AUTO ||
                           (arguments.batch_size >= 1 && arguments.batch_size <= STOKER_BATCH_MAX));
        STK_FUZZ_MUST_HOLD(isfinite(arguments.learning_rate));
        STK_FUZZ_MUST_HOLD(isfinite(arguments.weight_decay) && arguments.weight_decay >= 0);
        STK_FUZZ_MUST_HOLD(isfinite(arguments.momentum));
    }
    free(words.text);
    return 0;
}
