/* fuzz_pack_arguments.c - any words as the command line of stoker-pack: understood within the
 * bounds that the options have, or misused.
 *
 *   input  one word a line
 */
#include "datasets/pack/arguments.h"
#include "fuzz/words_input.h"

#include <getopt.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* It reports to standard error, a line an input. Sanitizers do not write there through stdio. */
static struct pack_arguments read_quietly(struct stk_fuzz_words *words)
{
    static FILE *nowhere;
    FILE *const usual = stderr;
    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "w");
    if (nowhere != NULL)
        stderr = nowhere;
    optind = 0; /* start again */
    const struct pack_arguments arguments = pack_arguments_read(words->count, words->at);
    stderr = usual;
    return arguments;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_words words = stk_fuzz_words(bytes, size);
    const struct pack_arguments arguments = read_quietly(&words);
    if (arguments.action == PACK_RUN && arguments.help == CLI_NO_HELP) {
        STK_FUZZ_MUST_HOLD(arguments.source != NULL);
        STK_FUZZ_MUST_HOLD(arguments.target != NULL && arguments.target[0] != '\0');
        STK_FUZZ_MUST_HOLD(arguments.codec < PACK_DEFAULT);
        STK_FUZZ_MUST_HOLD(arguments.workers == -1 ||
                           (arguments.workers >= 1 && arguments.workers <= 256));
        STK_FUZZ_MUST_HOLD(arguments.quality >= 1 && arguments.quality <= 100);
        STK_FUZZ_MUST_HOLD(arguments.shard_samples <= UINT64_C(1) << 53);
        STK_FUZZ_MUST_HOLD(pack_form_name(arguments.form) != NULL);
    }
    free(words.text);
    return 0;
}
