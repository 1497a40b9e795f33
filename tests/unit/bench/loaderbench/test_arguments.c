/* test_arguments.c - the command line of loaderbench: lists, options, bad usage. */
#include "bench/loaderbench/arguments.h"
#include "support/leaks.h"

enum { WORDS_MAX = 20, CPUS = 2 };
static const struct cli_word auto_word[] = { { "auto", -1 }, { NULL, 0 } };

/* Parse words separated by blanks. */
static int parse(const char *line, struct bench_arguments *out, char *message)
{
    static char text[512];
    char *words[WORDS_MAX] = { "loaderbench" };
    int count = 1;
    cr_assert_lt(strlen(line), sizeof(text));
    snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        cr_assert_lt(count, WORDS_MAX - 1);
        words[count++] = word;
    }
    message[0] = '\0';
    return bench_arguments_parse(out, count, words, CPUS, message);
}

static bool list_is(const struct cli_list *list, const int32_t *values, uint32_t count)
{
    return list->count == count && memcmp(list->values, values, count * sizeof(values[0])) == 0;
}

CleanTest(bench_list, numbers_ranges_and_auto)
{
    static const int32_t want[] = { 0, 1, 2, 4, 5, 6, 7, 8, -1 };
    struct cli_list list;
    char message[CLI_MESSAGE_BYTES];
    cr_assert_eq(cli_ranges(&list, "0,1,2,4-8,auto", 0, 256, auto_word, message), STOKER_OK);
    cr_assert(list_is(&list, want, 9));
    cr_assert_eq(cli_ranges(&list, "7", 1, 256, NULL, message), STOKER_OK);
    cr_assert(list_is(&list, (const int32_t[]){ 7 }, 1));
    cr_assert_eq(cli_ranges(&list, "3-3", 1, 256, NULL, message), STOKER_OK);
    cr_assert(list_is(&list, (const int32_t[]){ 3 }, 1));
}

CleanTest(bench_list, wrong_lists_are_refused_and_leave_the_old_one)
{
    static const char *const wrong[] = { "",
                                         ",",
                                         "1,",
                                         ",1",
                                         "1,,2",
                                         "x",
                                         "-1",
                                         "1-",
                                         "4-2",
                                         "257",
                                         "0-257",
                                         "1 2",
                                         "1;2",
                                         "auto1",
                                         "aut",
                                         "1.5",
                                         "0x10",
                                         "+1",
                                         "99999999999999999999",
                                         "auto-3" };
    char message[CLI_MESSAGE_BYTES];
    for (size_t index = 0; index < sizeof(wrong) / sizeof(wrong[0]); index++) {
        struct cli_list list = { .values = { 42 }, .count = 1 };
        message[0] = '\0';
        cr_assert_eq(cli_ranges(&list, wrong[index], 0, 256, auto_word, message), STOKER_EINVAL,
                     "'%s' was taken", wrong[index]);
        cr_assert_neq(message[0], '\0', "'%s' has no message", wrong[index]);
        cr_assert(list_is(&list, (const int32_t[]){ 42 }, 1));
    }
    struct cli_list list = { 0 };
    cr_assert_eq(cli_ranges(&list, "auto", 1, 256, NULL, message), STOKER_EINVAL);
}

CleanTest(bench_list, more_values_than_fit_are_refused_not_cut)
{
    struct cli_list list = { 0 };
    char message[CLI_MESSAGE_BYTES];
    cr_assert_eq(cli_ranges(&list, "1-512", 1, 65536, NULL, message), STOKER_OK);
    cr_assert_eq(list.count, 512);
    cr_assert_eq(cli_ranges(&list, "1-513", 1, 65536, NULL, message), STOKER_EINVAL);
    cr_assert_eq(cli_ranges(&list, "1-512,9", 1, 65536, NULL, message), STOKER_EINVAL);
}

CleanTest(bench_list, default_workers_fit_the_machine)
{
    struct cli_list list;
    bench_default_workers(&list, 1);
    cr_assert(list_is(&list, (const int32_t[]){ 0, 1, -1 }, 3));
    bench_default_workers(&list, 2);
    cr_assert(list_is(&list, (const int32_t[]){ 0, 1, 2, -1 }, 4));
    bench_default_workers(&list, 6);
    cr_assert(list_is(&list, (const int32_t[]){ 0, 1, 2, 4, 6, -1 }, 6));
    bench_default_workers(&list, 1000);
    cr_assert_eq(list.values[list.count - 2], STOKER_WORKERS_MAX);
}

CleanTest(bench_arguments, defaults_are_those_of_the_help)
{
    struct bench_arguments arguments;
    char message[CLI_MESSAGE_BYTES];
    cr_assert_eq(parse("synth:digits", &arguments, message), STOKER_OK);
    cr_assert_str_eq(arguments.dataset, "synth:digits");
    cr_assert_eq(arguments.action, BENCH_SWEEP);
    cr_assert(list_is(&arguments.pins, (const int32_t[]){ STOKER_SWITCH_OFF }, 1));
    cr_assert(list_is(&arguments.batch_sizes, (const int32_t[]){ 64 }, 1));
    cr_assert(list_is(&arguments.dtypes, (const int32_t[]){ STOKER_DTYPE_FLOAT32 }, 1));
    cr_assert_eq(arguments.repeats, 21);
    cr_assert(arguments.shuffle);
    cr_assert(arguments.verify);
    cr_assert_not(arguments.pins_given);
    cr_assert_eq(arguments.format, BENCH_FORMAT_TABLE);
    cr_assert_eq(arguments.device, STOKER_DEVICE_CPU);
    cr_assert_eq(arguments.blockings.count, 1);
    cr_assert_eq(arguments.converts.count, 1);
}

CleanTest(bench_arguments, every_option_is_understood)
{
    struct bench_arguments arguments;
    char message[CLI_MESSAGE_BYTES];
    cr_assert_eq(parse("--workers 0,auto --pin-memory=auto --batch-size 1-3 --dtype "
                       "as-stored,bfloat16 --cache none idx:x --seed 18446744073709551615",
                       &arguments, message),
                 STOKER_OK, "%s", message);
    cr_assert(list_is(&arguments.workers, (const int32_t[]){ 0, -1 }, 2));
    cr_assert(list_is(&arguments.pins, (const int32_t[]){ STOKER_SWITCH_AUTO }, 1));
    cr_assert(arguments.pins_given);
    cr_assert(list_is(&arguments.batch_sizes, (const int32_t[]){ 1, 2, 3 }, 3));
    cr_assert(list_is(&arguments.dtypes,
                      (const int32_t[]){ STOKER_DTYPE_NONE, STOKER_DTYPE_BFLOAT16 }, 2));
    cr_assert(list_is(&arguments.caches, (const int32_t[]){ STOKER_CACHE_NONE }, 1));
    cr_assert_eq(arguments.seed, UINT64_MAX);

    cr_assert_eq(parse("--mean 0.5,0.25 --std 1,2 --reader null --read-depth 7 --prefetch 9 x",
                       &arguments, message),
                 STOKER_OK, "%s", message);
    cr_assert_eq(arguments.mean.count, 2);
    cr_assert_eq(arguments.mean.values[1], 0.25f);
    cr_assert_eq(arguments.std.values[1], 2.0f);
    cr_assert_eq(arguments.reader, stoker_reader_null());
    cr_assert_eq(arguments.read_depth, 7);
    cr_assert_eq(arguments.prefetch_batches, 9);

    cr_assert_eq(parse("--shuffle off --repeats 3 --epochs 2 --seconds 0.5 --verify off --quiet x",
                       &arguments, message),
                 STOKER_OK, "%s", message);
    cr_assert_not(arguments.shuffle);
    cr_assert_eq(arguments.repeats, 3);
    cr_assert_eq(arguments.epochs, 2);
    cr_assert_eq(arguments.seconds, 0.5);
    cr_assert_not(arguments.verify);
    cr_assert(arguments.quiet);

    cr_assert_eq(parse("--ceilings off --headspace --step-us 250 --cold --format html -o f "
                       "--trace t x",
                       &arguments, message),
                 STOKER_OK, "%s", message);
    cr_assert_not(arguments.ceilings);
    cr_assert(arguments.headspace);
    cr_assert_eq(arguments.step_us, 250);
    cr_assert(arguments.cold);
    cr_assert(list_is(&arguments.caches, (const int32_t[]){ STOKER_CACHE_NONE }, 1));
    cr_assert_eq(arguments.format, BENCH_FORMAT_HTML);
    cr_assert_str_eq(arguments.output, "f");
    cr_assert_str_eq(arguments.trace, "t");
}

CleanTest(bench_arguments, a_gpu_sweeps_the_ways_to_it)
{
    struct bench_arguments arguments;
    char message[CLI_MESSAGE_BYTES];
    cr_assert_eq(parse("--device cuda:3 x", &arguments, message), STOKER_OK, "%s", message);
    cr_assert_eq(arguments.device, STOKER_DEVICE_CUDA);
    cr_assert_eq(arguments.device_index, 3);
    cr_assert(list_is(&arguments.blockings, (const int32_t[]){ 1, 0 }, 2));
    cr_assert(list_is(&arguments.converts,
                      (const int32_t[]){ STOKER_SWITCH_AUTO, STOKER_SWITCH_OFF }, 2));
    cr_assert_eq(
        parse("--non-blocking off --convert device,host --device cuda x", &arguments, message),
        STOKER_OK, "%s", message);
    cr_assert_eq(arguments.device_index, 0);
    cr_assert(list_is(&arguments.blockings, (const int32_t[]){ 0 }, 1));
    cr_assert(
        list_is(&arguments.converts, (const int32_t[]){ STOKER_SWITCH_ON, STOKER_SWITCH_OFF }, 2));
    cr_assert_eq(parse("--device cuda-host --like-pytorch --beside f x", &arguments, message),
                 STOKER_OK, "%s", message);
    cr_assert_eq(arguments.device, STOKER_DEVICE_CUDA_HOST);
    cr_assert_eq(arguments.blockings.count, 1);
    cr_assert_str_eq(arguments.beside, "f");
}

CleanTest(bench_arguments, bad_usage_is_refused_with_one_line)
{
    static const char *const wrong[] = { "",
                                         "a b",
                                         "--nonsense x",
                                         "--workers",
                                         "--workers 257 x",
                                         "--pin-memory yes x",
                                         "--batch-size 0 x",
                                         "--batch-size 65537 x",
                                         "--batch-size auto x",
                                         "--dtype float64 x",
                                         "--dtype uint8,,float32 x",
                                         "--cache device x",
                                         "--reader mmap x",
                                         "--read-depth 0 x",
                                         "--read-depth 1025 x",
                                         "--prefetch 1 x",
                                         "--prefetch 65 x",
                                         "--shuffle maybe x",
                                         "--seed -1 x",
                                         "--seed 18446744073709551616 x",
                                         "--repeats 0 x",
                                         "--repeats 1001 x",
                                         "--epochs 0 x",
                                         "--seconds 0 x",
                                         "--seconds nan x",
                                         "--seconds 1s x",
                                         "--verify 1 x",
                                         "--format xml x",
                                         "--mean 0.5 x",
                                         "--mean 0.5 --std 0 x",
                                         "--mean a --std 1 x",
                                         "--mean 1,2 --std 1 x",
                                         "--cold --cache auto x",
                                         "--trace t.json --like-pytorch x",
                                         "--trace t.json --open x",
                                         "--step-us -3 x",
                                         "-z x",
                                         "--output= x",
                                         "--trace= x" };
    for (size_t index = 0; index < sizeof(wrong) / sizeof(wrong[0]); index++) {
        struct bench_arguments arguments;
        char message[CLI_MESSAGE_BYTES];
        cr_assert_eq(parse(wrong[index], &arguments, message), STOKER_EINVAL, "'%s' was taken",
                     wrong[index]);
        cr_assert_neq(message[0], '\0', "'%s' has no message", wrong[index]);
        cr_assert_null(strchr(message, '\n'));
    }
}

CleanTest(bench_arguments, mnist_has_its_usual_constants_by_default)
{
    struct bench_arguments arguments;
    char message[CLI_MESSAGE_BYTES];
    cr_assert_eq(parse("mnist:x", &arguments, message), STOKER_OK);
    bench_arguments_default_mean(&arguments, "idx");
    cr_assert_eq(arguments.mean.count, 0);
    bench_arguments_default_mean(&arguments, "mnist");
    cr_assert_eq(arguments.mean.count, 1);
    cr_assert_eq(arguments.mean.values[0], 0.1307f);
    cr_assert_eq(arguments.std.values[0], 0.3081f);

    cr_assert_eq(parse("--mean 0 --std 1 mnist:x", &arguments, message), STOKER_OK);
    bench_arguments_default_mean(&arguments, "mnist");
    cr_assert_eq(arguments.mean.values[0], 0.0f);
}
