/* fuzz_bench_arguments.c - any words as the command line of loaderbench: understood within the
 * bounds that the options have, or refused in one line.
 *
 *   input  one word a line
 */
#include "bench/loaderbench/arguments.h"
#include "fuzz/words_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { CPUS = 4 };

static void check_list(const struct cli_list *list, int32_t least, int32_t most)
{
    STK_FUZZ_MUST_HOLD(list->count >= 1 && list->count <= CLI_LIST_MAX);
    for (uint32_t i = 0; i < list->count; i++)
        STK_FUZZ_MUST_HOLD(list->values[i] >= least && list->values[i] <= most);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_words words = stk_fuzz_words(bytes, size);
    struct bench_arguments arguments;
    char message[CLI_MESSAGE_BYTES] = "";
    const int rc = bench_arguments_parse(&arguments, words.count, words.at, CPUS, message);
    STK_FUZZ_MUST_HOLD(rc == STOKER_OK || rc == STOKER_EINVAL);
    STK_FUZZ_MUST_HOLD(memchr(message, '\0', sizeof(message)) != NULL);
    STK_FUZZ_MUST_HOLD(rc == STOKER_OK || message[0] != '\0');
    if (rc == STOKER_OK && arguments.action == BENCH_SWEEP && arguments.help == CLI_NO_HELP) {
        STK_FUZZ_MUST_HOLD(arguments.dataset != NULL);
        STK_FUZZ_MUST_HOLD(arguments.mean.count <= BENCH_CHANNELS_MAX);
        STK_FUZZ_MUST_HOLD(arguments.std.count <= BENCH_CHANNELS_MAX);
        check_list(&arguments.workers, -1, STOKER_WORKERS_MAX);
        check_list(&arguments.batch_sizes, 1, STOKER_BATCH_MAX);
    }
    free(words.text);
    return 0;
}
